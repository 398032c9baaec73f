"""The operations of a bundle as routes.py and the handler check need them."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from typing import Any

from codegen.document import Json, operations
from codegen.schemas import deref, is_object, ref_name

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """A path, query or header parameter; ``annotation`` and ``default`` are Python source."""

    name: str
    argument: str
    where: str
    kind: str
    annotation: str
    required: bool
    default: str
    description: str

    @property
    def signature(self) -> str:
        """The parameter as it stands in a protocol."""
        return f"{self.argument}: {self.annotation}" + ("" if self.required else f" = {self.default}")


@dataclass(frozen=True, slots=True)
class OperationSpec:
    """One (path, method) of a surface; names and annotations are Python source."""

    operation_id: str
    surface: str
    module: str
    function: str
    method: str
    path: str
    summary: str
    request: str
    body_required: bool
    returns: str
    parameters: tuple[ParameterSpec, ...]
    requires: tuple[str, ...]
    streams: bool
    done: bool
    state: str
    is_alias: bool

    @property
    def name(self) -> str:
        """The decorator's name: the operation ID without the surface, dots as underscores."""
        return "_".join((*self.module.split("."), self.function))

    @property
    def protocol(self) -> str:
        """The protocol's name."""
        return camel(self.name)

    @property
    def handler(self) -> str:
        """Where the handler is, as ``module:function``."""
        return f"mlxcel.handlers.{self.surface}.{self.module}:{self.function}"

    @property
    def handler_file(self) -> str:
        """Where the handler is, as a path in the checkout."""
        return f"handlers/{self.surface}/{self.module.replace('.', '/')}.py"


def camel(name: str) -> str:
    """``completion_create`` as ``CompletionCreate``."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def identifier(name: str) -> str:
    """A wire name as a Python name."""
    result = re.sub(r"\W", "_", name.lower() if "-" in name else name).lstrip("_") or "value"
    return f"{result}_" if keyword.iskeyword(result) or result[0].isdigit() else result


def read_operations(surface: str, document: dict[str, Json]) -> list[OperationSpec]:
    """Every operation of a bundle in document order, those of alias paths included."""
    return [
        _read(surface, document, url, method, operation) for _, url, method, operation in operations(document)
    ]


def _read(
    surface: str, document: dict[str, Json], url: str, method: str, node: dict[str, Json]
) -> OperationSpec:
    parts = re.sub(r"\.alias\d*$", "", node["operationId"]).split(".")
    body = deref(node.get("requestBody", {}), document)
    schema = body.get("content", {}).get("application/json", {}).get("schema", {})
    shared = document["paths"][url].get("parameters", [])
    stream = node.get("x-stream")
    return OperationSpec(
        operation_id=node["operationId"],
        surface=surface,
        module=".".join(parts[1:-1]),
        function=parts[-1],
        method=method.upper(),
        path=url,
        summary=str(node.get("summary", "")).strip().rstrip("."),
        request=annotation(schema, document) if schema else "",
        body_required=bool(body.get("required")),
        returns=_returns(node, document),
        parameters=tuple(
            _parameter(deref(parameter, document), document)
            for parameter in [*shared, *node.get("parameters", [])]
        ),
        requires=tuple(node.get("x-requires", [])),
        streams=stream is not None,
        done=bool(stream and stream["done"]),
        state=node.get("x-compat", {}).get("state", "supported"),
        is_alias="x-alias-of" in document["paths"][url],
    )


def _parameter(node: dict[str, Json], document: dict[str, Json]) -> ParameterSpec:
    schema = deref(node.get("schema", {}), document)
    kind = str(schema.get("type", "string"))
    required = bool(node.get("required"))
    default = schema.get("default")
    optional = "" if required or default is not None else " | None"
    return ParameterSpec(
        name=node["name"],
        argument=identifier(node["name"]),
        where=node["in"],
        kind=kind,
        annotation=_SCALARS.get(kind, "str") + optional,
        required=required,
        default=repr(default),
        description=" ".join(str(node.get("description", "")).split()),
    )


def _returns(node: dict[str, Json], document: dict[str, Json]) -> str:
    """What a handler gives back: the union over its 2xx answers and their content types."""
    found: list[str] = []
    for code, response in node.get("responses", {}).items():
        if not code.startswith("2"):
            continue
        content = deref(response, document).get("content", {})
        for media, value in content.items():
            schema = value.get("schema", {})
            if media == "text/event-stream":
                found.append(f"AsyncIterator[{_event(schema, document)}]")
            elif media.endswith("json"):
                found.append(annotation(schema, document))
            else:
                found.append("str" if media.startswith("text/") else "bytes")
        if not content:
            found.append("None")
    return " | ".join(dict.fromkeys(found)) or "None"


def _event(schema: dict[str, Json], document: dict[str, Json]) -> str:
    """The type of one item of an event stream: what its ``data`` holds, the closing [DONE] aside."""
    data = deref(schema, document).get("properties", {}).get("data", schema)
    resolved = data if ref_name(data) and is_object(deref(data, document)) else deref(data, document)
    branches = resolved.get("anyOf") or resolved.get("oneOf") or [resolved]
    kept = [
        annotation(branch, document) for branch in branches if deref(branch, document).get("type") != "string"
    ]
    return " | ".join(dict.fromkeys(kept)) or "str"


def annotation(schema: Any, document: dict[str, Json]) -> str:
    """A schema as a Python annotation that names classes and aliases of models.py."""
    name = ref_name(schema)
    if name is not None:
        return f"models.{name}"
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches and not is_object(schema):
        return " | ".join(dict.fromkeys(annotation(branch, document) for branch in branches))
    if schema.get("type") == "array":
        return f"list[{annotation(schema.get('items', {}), document)}]"
    if is_object(schema):
        return "dict[str, Any]"
    scalar = _SCALARS.get(schema.get("type", ""), "Any")
    return f"{scalar} | None" if schema.get("nullable") else scalar
