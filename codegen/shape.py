"""The outline of a spec file: what every later step takes for granted, so that they needn't check types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from codegen.document import METHODS, Json, Problem, Specs

_MAP: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "object"}}
_SCHEMAS = {"type": "object", "additionalProperties": {"$ref": "#/$defs/schema"}}
_SCHEMA_LIST = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/schema"}}
_WITH_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"schema": {"$ref": "#/$defs/schema"}}}
_BODY = {
    "type": "object",
    "properties": {"content": {"type": "object", "additionalProperties": _WITH_SCHEMA}},
}
_PARAMETERS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {**_WITH_SCHEMA["properties"], "name": {"type": "string"}, "in": {"type": "string"}},
    },
}
_STRINGS = {"type": "array", "items": {"type": "string"}}

_OUTLINE = jsonschema_rs.validator_for(
    {
        "type": "object",
        "properties": {
            "openapi": {"type": "string", "pattern": r"^3\.0\.\d+$"},
            "paths": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "properties": {
                        "parameters": _PARAMETERS,
                        "x-alias-of": {"type": "string"},
                        **{method: {"$ref": "#/$defs/operation"} for method in METHODS},
                    },
                },
            },
            "components": {
                "type": "object",
                "properties": {
                    "schemas": _SCHEMAS,
                    "responses": {"type": "object", "additionalProperties": _BODY},
                    "requestBodies": {"type": "object", "additionalProperties": _BODY},
                    "parameters": {"type": "object", "additionalProperties": _WITH_SCHEMA},
                    "headers": {"type": "object", "additionalProperties": _WITH_SCHEMA},
                    "x-property-sets": {"type": "object", "additionalProperties": _SCHEMAS},
                },
                "additionalProperties": _MAP,
            },
        },
        "$defs": {
            "operation": {
                "type": "object",
                "properties": {
                    "operationId": {"type": "string"},
                    "parameters": _PARAMETERS,
                    "requestBody": _BODY,
                    "responses": {"type": "object", "additionalProperties": _BODY},
                },
            },
            "schema": {
                "type": "object",
                "properties": {
                    "$ref": {"type": "string"},
                    "properties": _SCHEMAS,
                    "items": {"$ref": "#/$defs/schema"},
                    "additionalProperties": {"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/schema"}]},
                    "required": _STRINGS,
                    "x-aliases": _STRINGS,
                    "x-include": _STRINGS,
                    "minimum": {"type": "number"},
                    "maximum": {"type": "number"},
                    "x-option": {"type": "string"},
                    "x-compat": {"type": "object"},
                    "enum": {"type": "array", "minItems": 1, "items": {"not": {"type": ["object", "array"]}}},
                    "anyOf": _SCHEMA_LIST,
                    "oneOf": _SCHEMA_LIST,
                    "allOf": _SCHEMA_LIST,
                },
            },
        },
    }
)


def check_shape(specs: Specs) -> Iterator[Problem]:
    """Nodes of the wrong type, such as a property with nothing behind its colon."""
    for file, document in specs.files.items():
        for error in _OUTLINE.iter_errors(document):
            message: Json = error.message
            yield specs.problem(
                file, tuple(error.instance_path), message, "Write what belongs here, or remove the key"
            )
