"""Rules for normalising request bodies: codegen/bundle's documents -> generated/<surface>/fields.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codegen.carrier import discriminator, is_struct
from codegen.document import Json
from codegen.render import render
from codegen.schemas import accepts_null, deref, is_object, ref_name, request_bodies, request_schemas

Place = tuple[str, str, str]
"""A place inside a field's value: (path, JSON type, schema name of a closed object or "")."""


def fields(surface: str, document: dict[str, Json], option_names: dict[str, str]) -> str:
    """The source of fields.py. ``option_names`` has the attribute of Options by each spelling."""
    requests = request_schemas(document)
    components = document["components"]["schemas"] if requests else {}
    rules = {
        name: [
            _rule(key, node, schema, document, option_names)
            for key, node in schema.get("properties", {}).items()
            if "x-alias-for" not in node
        ]
        for name, schema in components.items()
        if name in requests and is_struct(schema)
    }
    for name in request_bodies(document):
        if name not in rules:
            body = {"$ref": f"#/components/schemas/{name}"}
            rules[name] = [_rule("", body, {"required": [""]}, document, option_names)]
    return render("fields.py.j2", source=f"specs/{surface}.yaml", surface=surface, schemas=rules)


def _rule(
    name: str,
    node: dict[str, Json],
    schema: dict[str, Json],
    document: dict[str, Json],
    options: dict[str, str],
) -> str:
    """One field as a call of FieldRule; what has its default is left out."""
    compat = node.get("x-compat", {})
    state = "inert" if "x-inert" in node else compat.get("state", "supported")
    places = list(dict.fromkeys(_places(node, document)))
    nullable = accepts_null(node, document)
    aliases = tuple(node.get("x-aliases", ()))
    values: dict[str, Any] = {
        "aliases": aliases,
        "required": name in schema.get("required", []) or bool(aliases and not nullable),
        "nullable": nullable,
        "integers": _integers(places),
        "clamp": tuple(node["x-clamp"]) if "x-clamp" in node else None,
        "maximum_from": node.get("x-maximum-from"),
        "option": options[node["x-option"]] if "x-option" in node else None,
        "state": state if state != "supported" else None,
        "inert": (compat["inert"],) if state == "refused" and "inert" in compat else (),
    }
    arguments = [repr(name)] + [
        f"{key}={value!r}" for key, value in values.items() if value not in ((), None, False)
    ]
    objects = _objects(places, document)
    if objects:
        arguments.append(f"objects=({', '.join(objects)},)")
    return f"FieldRule({', '.join(arguments)})"


def _places(
    node: dict[str, Json], document: dict[str, Json], path: str = "", seen: tuple[str, ...] = ()
) -> Iterator[Place]:
    """The typed places inside a value, down to closed objects, which have rules of their own."""
    name = ref_name(node)
    target = deref(node, document)
    if name is not None:
        if name in seen:
            return
        seen = (*seen, name)
    if is_object(target):
        if name is not None and is_struct(target):
            yield path, "object", name
        else:
            yield path, "object", ""
            extra = target.get("additionalProperties")
            if isinstance(extra, dict) and not target.get("properties"):
                yield from _places(extra, document, f"{path}.*", seen)
        return
    for key in ("anyOf", "oneOf", "allOf"):
        for branch in target.get(key, []):
            yield from _places(branch, document, path, seen)
    if target.get("type") == "array":
        yield from _places(target.get("items", {}), document, f"{path}[]", seen)
    elif "type" in target:
        yield path, target["type"], ""


def _integers(places: list[Place]) -> tuple[str, ...]:
    numbers = {path for path, kind, _ in places if kind == "number"}
    return tuple(path for path, kind, _ in places if kind == "integer" and path not in numbers)


def _objects(places: list[Place], document: dict[str, Json]) -> list[str]:
    """References to closed objects, where the model holds them as such (see codegen.carrier)."""
    found = []
    for path in dict.fromkeys(path for path, kind, _ in places if kind == "object"):
        names = [name for where, kind, name in places if where == path and kind == "object"]
        if len(names) == 1 and names[0]:
            found.append(f"ObjectRef({path!r}, {names[0]!r})")
        elif all(names):
            schemas = [document["components"]["schemas"][name] for name in names]
            tag = discriminator(schemas)
            for name, schema in zip(names, schemas, strict=True):
                if tag is not None:
                    value = schema["properties"][tag]["enum"][0]
                    found.append(f"ObjectRef({path!r}, {name!r}, ({tag!r}, {value!r}))")
    return found
