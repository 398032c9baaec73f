"""Compiled validators for the schemas of a bundled OpenAPI document."""

from __future__ import annotations

from typing import Any

import jsonschema_rs

Json = Any
Schema = dict[str, Any]

ANNOTATIONS = frozenset(
    {"discriminator", "xml", "externalDocs", "example", "deprecated", "readOnly", "writeOnly"}
)
LITERALS = frozenset({"enum", "const", "default"})
NAMED = frozenset({"properties", "patternProperties"})


def to_json_schema(node: Json, *, names: bool = False) -> Json:
    """An OpenAPI 3.0 schema as JSON Schema 2020-12: nullable and the boolean exclusive bounds are the difference.

    Args:
        names: the keys of ``node`` are names of properties, not keywords.
    """
    if isinstance(node, list):
        return [to_json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    if names:
        return {name: to_json_schema(schema) for name, schema in node.items()}
    schema = {
        key: value if key in LITERALS else to_json_schema(value, names=key in NAMED)
        for key, value in node.items()
        if key not in ANNOTATIONS and not key.startswith("x-")
    }
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if schema.pop(exclusive, False) is True:
            schema[exclusive] = schema.pop(bound)
    if schema.pop("nullable", False) and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
    return schema


class SchemaSet:
    """The component schemas of one document, compiled as they are asked for."""

    def __init__(self, document: Schema) -> None:
        components = document.get("components", {}).get("schemas", {})
        self._components = {"schemas": to_json_schema(components, names=True)}

    def validator(self, name: str) -> jsonschema_rs.Draft202012Validator:
        """The validator of a component schema."""
        return self.compile({"$ref": f"#/components/schemas/{name}"})

    def compile(self, schema: Schema) -> jsonschema_rs.Draft202012Validator:
        """The validator of any JSON Schema that may refer to the document's components."""
        return jsonschema_rs.Draft202012Validator({**schema, "components": self._components})

    def component(self, name: str) -> Schema:
        """A component schema as JSON Schema."""
        schema: Schema = self._components["schemas"][name]
        return schema

    def properties_at(self, name: str, path: list[str | int]) -> set[str]:
        """Names of the properties that the schema ``name`` allows at an instance path, over all branches."""
        found: set[str] = set()
        pending: list[tuple[Schema, list[str | int]]] = [(self.component(name), path)]
        while pending:
            schema, rest = pending.pop()
            if "$ref" in schema:
                pending.append((self.component(schema["$ref"].rsplit("/", 1)[1]), rest))
            for keyword in ("anyOf", "oneOf", "allOf"):
                pending += [(branch, rest) for branch in schema.get(keyword, ())]
            if not rest:
                found |= set(schema.get("properties", {}))
            elif isinstance(rest[0], int):
                pending += [(schema["items"], rest[1:])] if isinstance(schema.get("items"), dict) else []
            else:
                inner = schema.get("properties", {}).get(rest[0], schema.get("additionalProperties"))
                pending += [(inner, rest[1:])] if isinstance(inner, dict) else []
        return found
