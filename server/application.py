"""All surfaces behind the dispatcher, built from what codegen wrote."""

from __future__ import annotations

import importlib
import json
from importlib import resources
from typing import Any

from mlxcel.generated import dispatch
from mlxcel.generated.options import Options
from mlxcel.handlers.errors import ApiError
from mlxcel.handlers.native.errors import NativeError
from mlxcel.handlers.openai.errors import OpenAIError

from .dispatcher import Dispatcher, Mounted
from .keys import api_keys
from .runtime import Runtime
from .surface import build_surface

ERRORS: dict[str, type[ApiError]] = {"native": NativeError, "openai": OpenAIError}
"""The error class of each surface: the one thing about a surface that isn't generated."""


def build(options: Options, runtime: Runtime) -> Dispatcher:
    """The server's ASGI app.

    Raises:
        BindingError: a handler is missing or doesn't fit.
        SettingsError: the file of API keys can't be read.
    """
    surfaces = {name: _mount(name, options, runtime) for name in dispatch.SURFACES}
    return Dispatcher(surfaces, runtime, api_keys(options), default="native")


def _mount(name: str, options: Options, runtime: Runtime) -> Mounted:
    routes = importlib.import_module(f"mlxcel.generated.{name}.routes")
    fields = importlib.import_module(f"mlxcel.generated.{name}.fields")
    error = ERRORS[name]
    report = options.unknown_fields == "report"
    app = build_surface(
        name, document(name), routes.OPERATIONS, fields.RULES, error, runtime, report_unknown=report
    )
    return Mounted(app, error)


def document(name: str) -> dict[str, Any]:
    """The bundled OpenAPI document of a surface."""
    text = resources.files(f"mlxcel.generated.{name}").joinpath("openapi.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded
