"""Operation tables and handler protocols: bundles -> routes.py of each surface and dispatch.py."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

from codegen.document import Json
from codegen.models import docstring
from codegen.operations import OperationSpec, read_operations
from codegen.render import render
from codegen.schemas import deref


def routes(surface: str, document: dict[str, Json]) -> str:
    """The source of routes.py: one protocol and decorator a handler, one row an operation."""
    operations = read_operations(surface, document)
    handlers = [_with_doc(operation, operations) for operation in operations if not operation.is_alias]
    return render(
        "routes.py.j2",
        source=f"specs/{surface}.yaml",
        surface=surface,
        operations=operations,
        handlers=handlers,
    )


def _with_doc(operation: OperationSpec, operations: list[OperationSpec]) -> dict[str, Any]:
    """The operation as the template reads it, with a docstring that names every path it answers."""
    paths = [f"{other.method} {other.path}" for other in operations if other.handler == operation.handler]
    text = f"{', '.join(paths)}: {operation.summary or operation.operation_id}."
    return {
        **asdict(operation),
        "name": operation.name,
        "protocol": operation.protocol,
        "parameters": operation.parameters,
        "doc": docstring(text),
    }


def dispatch(bundles: dict[str, dict[str, Json]]) -> str:
    """The source of dispatch.py: the surface of every path and method."""
    exact: dict[str, dict[str, str]] = {}
    patterns: dict[str, dict[str, str]] = {}
    for surface, document in bundles.items():
        for operation in read_operations(surface, document):
            table, key = exact, operation.path
            if "{" in key:
                table, key = patterns, _pattern(operation, document)
            table.setdefault(key, {})[operation.method] = surface
    return render(
        "dispatch.py.j2", source="specs/*.yaml", surfaces=tuple(bundles), exact=exact, patterns=patterns
    )


def _pattern(operation: OperationSpec, document: dict[str, Json]) -> str:
    """A path with parameters as a regular expression; a parameter of format ``path`` may hold slashes."""
    item = document["paths"][operation.path]
    parameters = [*item.get("parameters", []), *item[operation.method.lower()].get("parameters", [])]
    loose = {
        node["name"]
        for node in (deref(parameter, document) for parameter in parameters)
        if deref(node.get("schema", {}), document).get("format") == "path"
    }
    parts = re.split(r"\{(\w+)\}", operation.path)
    return "".join(
        re.escape(part) if index % 2 == 0 else (".+" if part in loose else "[^/]+")
        for index, part in enumerate(parts)
    )
