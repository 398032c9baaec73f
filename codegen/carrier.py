"""Schemas reduced to what msgspec can hold.

The validator alone judges a request; models only carry what it let pass. So bounds, patterns and lengths are
left out here, and unions that ``msgspec`` refuses are widened: several arrays become one array of all their
items, several objects become a tagged union when a required one-value enum tells them apart, else a plain
dict.

How optional properties are typed depends on who makes the object:

* request: ``None`` or the default of the spec (or of the server option behind ``x-option``); a null in the
  body means absent and is dropped before the model is built, so a field with a default never is None;
* response, or both: optional properties are ``UNSET`` and left out of the JSON; required nullable ones print
  null; a required property with one possible value has it as its default.

Fields keep the order of the spec, which is the order of the keys in the JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from codegen.document import Json, operations
from codegen.schemas import accepts_null, deref, is_object, reachable, ref_name, request_reachable

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """How a struct field is written: its wire name, doc, default ("" for none) and added branches."""

    wire: str
    doc: str
    default: str
    null: bool
    unset: bool


@dataclass(slots=True)
class Carrier:
    """Component schemas for the model generator, and the layout of each one that becomes a struct.

    ``tags`` has the property that tells a struct from the others of its union, with its value.
    """

    schemas: dict[str, Schema] = field(default_factory=dict)
    layouts: dict[str, tuple[FieldLayout, ...]] = field(default_factory=dict)
    tags: dict[str, tuple[str, str]] = field(default_factory=dict)


def build(document: Schema, option_defaults: dict[str, Json]) -> Carrier:
    """Reduces a bundle. ``option_defaults`` has the default of a server option by each of its spellings."""
    return _Builder(document, option_defaults).run()


def is_struct(schema: Schema) -> bool:
    """Whether a component becomes a class: a closed object. Open ones are dicts."""
    return is_object(schema) and schema.get("additionalProperties") is False


class _Builder:
    def __init__(self, document: Schema, option_defaults: dict[str, Json]) -> None:
        self.document = document
        self.components: dict[str, Schema] = document.get("components", {}).get("schemas", {})
        self.option_defaults = option_defaults
        self.requests = request_reachable(document)
        bodies = [
            media.get("schema", {})
            for _, _, _, operation in operations(document)
            for answer in operation.get("responses", {}).values()
            for media in deref(answer, document).get("content", {}).values()
        ]
        self.responses: set[str] = set().union(*(reachable(schema, document) for schema in bodies))
        self.tags: dict[str, str] = {}
        self.alias: str | None = None
        aliases = {name: schema for name, schema in self.components.items() if not is_struct(schema)}
        self.recursive = {
            name
            for name, schema in aliases.items()
            if name in reachable(schema, document, within=aliases.keys())
        }

    def run(self) -> Carrier:
        result = Carrier()
        for name, schema in self.components.items():
            decoded = name in self.requests
            if is_struct(schema):
                properties = {k: v for k, v in schema.get("properties", {}).items() if "x-alias-for" not in v}
                result.schemas[name] = {
                    "type": "object",
                    "additionalProperties": False,
                    "required": list(properties),
                    "properties": {k: self.reduce(v, decoded, null=False) for k, v in properties.items()},
                    **({"description": schema["description"]} if "description" in schema else {}),
                }
                result.layouts[name] = tuple(self.layout(name, schema, k, v) for k, v in properties.items())
            else:
                self.alias = name
                result.schemas[name] = self.reduce(schema, decoded, null=False)
                self.alias = None
        for name, tag in self.tags.items():
            result.tags[name] = (tag, self.components[name]["properties"][tag]["enum"][0])
        return result

    def layout(self, name: str, schema: Schema, wire: str, node: Schema) -> FieldLayout:
        doc = " ".join(str(node.get("description", "")).split())
        required = wire in schema.get("required", []) or bool(
            node.get("x-aliases") and not accepts_null(node, self.document)
        )
        null = accepts_null(node, self.document) and self.reduce(node, False, null=False) != {}
        request_only = name in self.requests and name not in self.responses
        if required:
            values = node.get("enum", [])
            constant = repr(values[0]) if len(values) == 1 and not request_only else ""
            return FieldLayout(wire, doc, constant, null, False)
        if not request_only:
            return FieldLayout(wire, doc, "UNSET", null, True)
        default = self.default(node)
        return FieldLayout(wire, doc, repr(default), null and default is None, False)

    def default(self, node: Schema) -> Json:
        value = node.get("default")
        if "x-option" in node:
            value = self.option_defaults.get(node["x-option"])
        return float(value) if node.get("type") == "number" and isinstance(value, int) else value

    def reduce(self, node: Json, decoded: bool, *, null: bool = True) -> Schema:
        """The carrier of a schema; ``decoded`` when msgspec has to build it, ``null`` to keep its null."""
        result = self.bare(node, decoded)
        return _any_of([result, _NULL]) if null and result and accepts_null(node, self.document) else result

    def bare(self, node: Schema, decoded: bool) -> Schema:
        """The carrier of a schema without null."""
        if ref_name(node) is not None:
            # what says nothing is Any, and so is an alias inside itself: msgspec knows no recursive ones
            known = self.target(node).keys() & _TYPED and not {self.alias, ref_name(node)} <= self.recursive
            return {"$ref": node["$ref"]} if known else {}
        if is_object(node):
            extra = node.get("additionalProperties")
            typed = isinstance(extra, dict) and extra and not node.get("properties")
            return {"type": "object", "additionalProperties": self.reduce(extra, decoded) if typed else {}}
        if "anyOf" in node or "oneOf" in node:
            return self.union(node.get("anyOf") or node["oneOf"], decoded)
        if "allOf" in node:
            return self.bare(node["allOf"][0], decoded) if len(node["allOf"]) == 1 else _ANY_OBJECT
        if node.get("type") == "array":
            return {"type": "array", "items": self.reduce(node.get("items", {}), decoded)}
        if "enum" in node:
            return {"enum": [value for value in node["enum"] if value is not None]}
        return {"type": node["type"]} if "type" in node else {}

    def union(self, branches: list[Schema], decoded: bool) -> Schema:
        leaves = self.leaves(branches)
        if not all(self.bare(leaf, False) for leaf in leaves):
            return {}
        arrays = [leaf for leaf in leaves if self.kind(leaf) == "array"]
        objects = [leaf for leaf in leaves if self.kind(leaf) == "object"]
        if not decoded or (len(arrays) < 2 and len(objects) < 2):
            return _any_of([self.bare(branch, decoded) for branch in branches])
        parts = [self.bare(leaf, decoded) for leaf in leaves if self.kind(leaf) not in ("array", "object")]
        if len(arrays) == 1:
            parts.append(self.bare(arrays[0], decoded))
        elif arrays:
            items = [self.target(leaf).get("items", {}) for leaf in arrays]
            merged = self.union(items, decoded)
            null = merged and any(accepts_null(item, self.document) for item in items)
            parts.append({"type": "array", "items": _any_of([merged, _NULL]) if null else merged})
        if len(objects) == 1:
            parts.append(self.bare(objects[0], decoded))
        elif objects:
            parts += self.tagged(objects) or [_ANY_OBJECT]
        return _any_of(parts)

    def tagged(self, objects: list[Schema]) -> list[Schema]:
        """The objects as a union with a discriminator, or nothing when no property tells them apart."""
        names = [name for leaf in objects if (name := ref_name(leaf)) and is_struct(self.components[name])]
        tag = discriminator([self.components[name] for name in names]) if len(names) == len(objects) else None
        if tag is None or any(self.tags.get(name, tag) != tag for name in names):
            return []
        self.tags.update(dict.fromkeys(names, tag))
        return [{"$ref": f"#/components/schemas/{name}"} for name in names]

    def leaves(self, branches: list[Schema]) -> list[Schema]:
        """The branches with unions inside them spread out; a reference stays one unless it names a union."""
        result: list[Schema] = []
        for branch in branches:
            target = self.target(branch)
            inner = None if is_object(target) else target.get("anyOf") or target.get("oneOf")
            for leaf in self.leaves(inner) if inner else [branch]:
                if leaf not in result:
                    result.append(leaf)
        return result

    def target(self, node: Schema) -> Schema:
        return deref(node, self.document)

    def kind(self, node: Schema) -> str:
        target = self.target(node)
        return "object" if is_object(target) or "allOf" in target else str(target.get("type", ""))


_TYPED = {"type", "enum", "anyOf", "oneOf", "allOf", "properties"}
_NULL: Schema = {"type": "null"}
_ANY_OBJECT: Schema = {"type": "object", "additionalProperties": {}}


def _any_of(parts: list[Schema]) -> Schema:
    unique: list[Schema] = []
    for part in parts:
        if part not in unique:
            unique.append(part)
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


def discriminator(schemas: list[Schema]) -> str | None:
    """The first property that every schema requires with one string value, a different one each."""
    for name in schemas[0].get("properties", {}):
        values = []
        for schema in schemas:
            enum = schema.get("properties", {}).get(name, {}).get("enum", [])
            if len(enum) == 1 and isinstance(enum[0], str) and name in schema.get("required", []):
                values.append(enum[0])
        if len(values) == len(schemas) == len(set(values)):
            return str(name)
    return None
