"""Which surface answers a path, read off the shape of its answers."""

from __future__ import annotations

import importlib
import json
from importlib import resources
from typing import Any

import jsonschema_rs

from mlxcel.generated.runtime import Operation
from mlxcel.server.schemas import SchemaSet, to_json_schema

from .serving import Answer, Served


def document(surface: str) -> dict[str, Any]:
    """A surface's published document."""
    text = resources.files(f"mlxcel.generated.{surface}").joinpath("openapi.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def operations(surface: str) -> tuple[Operation, ...]:
    """A surface's operations."""
    found: tuple[Operation, ...] = importlib.import_module(f"mlxcel.generated.{surface}.routes").OPERATIONS
    return found


def documented(surface: str) -> set[tuple[str, str]]:
    """Every method and path of a surface's document."""
    methods = {"get", "post", "put", "delete", "patch"}
    return {
        (m.upper(), path) for path, item in document(surface)["paths"].items() for m in item if m in methods
    }


def concrete(path: str) -> str:
    """A path with its parameters filled in."""
    return path.replace("{id_slot}", "0").replace("{model}", "some/model")


def provoke(server: Served, operation: Operation) -> Answer:
    """An answer that shows the surface's own envelope: an unknown query parameter is refused by every operation."""
    path = f"{concrete(operation.path)}?zz_unknown=1"
    return server.request(operation.method, path, {} if operation.method == "POST" else None)


def response_schema(surface: str, operation: Operation, status: int) -> jsonschema_rs.Draft202012Validator:
    """The validator of an operation's JSON answers of one status."""
    whole = document(surface)
    answer = whole["paths"][operation.path][operation.method.lower()]["responses"][str(status)]
    if "$ref" in answer:
        answer = whole["components"]["responses"][answer["$ref"].rsplit("/", 1)[1]]

    return SchemaSet(whole).compile(to_json_schema(answer["content"]["application/json"]["schema"]))
