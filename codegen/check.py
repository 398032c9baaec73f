"""The lint of the specs: what an OpenAPI validator lets pass and our house rules don't.

``check_specs`` looks at the files as written, so that every fault has the file and the path of its author.
``check_bundles`` looks at what bundling made of them. Handlers are compared in ``codegen.handlers``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs

from codegen.document import (
    METHODS,
    Json,
    Path_,
    Problem,
    Specs,
    nearest,
    operations,
    render,
    schemas,
)
from codegen.schemas import accepts_null, is_object, request_schemas
from codegen.xkeys import XKeys


def check_specs(specs: Specs, folder: Path, options: dict[str, str]) -> list[Problem]:
    """Every fault of the files as written, sorted; empty when there is none.

    ``folder`` is where the schema of the x- keys lies; ``options`` has the types of server options.
    """
    problems: list[Problem] = []
    x_keys = XKeys(folder)
    for file, document in specs.files.items():
        if "paths" not in document and "components" not in document:
            continue
        problems += x_keys.check(specs, file)
        for path, schema in schemas(document):
            for rule in _SCHEMA_RULES:
                problems += [specs.problem(file, where, *rest) for where, *rest in rule(path, schema)]
            if "x-option" in schema:
                found = _option_rules(path, schema, options)
                problems += [specs.problem(file, where, *rest) for where, *rest in found]
        problems += [
            specs.problem(file, *found) for found in _operation_rules(document, file.removesuffix(".yaml"))
        ]
    problems += _closed_under_all_of(specs)
    problems += _duplicates(specs)
    return sorted(set(problems))


def check_bundles(specs: Specs, bundles: dict[str, dict[str, Json]]) -> list[Problem]:
    """Faults that show only after bundling: optional request fields that refuse null; Connexion's verdict."""
    problems: list[Problem] = []
    for surface, document in bundles.items():
        file = f"{surface}.yaml"
        for name in sorted(request_schemas(document)):
            schema = document["components"]["schemas"][name]
            for key, node in schema.get("properties", {}).items():
                if key in schema.get("required", []) or key in _required_by_alias(schema):
                    continue
                if not accepts_null(node, document):
                    problems.append(
                        specs.problem(
                            *specs.written(file, name, key),
                            "is an optional request field that refuses null",
                            "Add nullable: true beside a type (null inside an enum), or list it in required",
                        )
                    )
        if not problems:
            problems += _connexion(specs, file, document)
    return problems


# ---- rules for one schema: (path, schema) -> (path, problem, remedy)

Found = Iterator[tuple[Path_, str, str]]


def _object_rules(path: Path_, schema: dict[str, Json]) -> Found:
    if not is_object(schema):
        if "x-open" in schema:
            yield (*path, "x-open"), "x-open stands on a schema that isn't an object", "Remove it"
        return
    if schema.get("type") != "object":
        yield path, "has properties but no type", "Add type: object"
    if not (len(path) == 3 and path[:2] == ("components", "schemas")):
        yield path, "is an object without a name", "Move it to components.schemas and refer to it"
    elif not re.fullmatch(r"[A-Z][A-Za-z0-9]*", str(path[2])):
        yield path, f"'{path[2]}' is no class name", "Call it LikeThis"
    closed = schema.get("additionalProperties") is False
    if not closed and "x-open" not in schema:
        yield path, "is an open object", 'Add additionalProperties: false, or x-open: "<why it is open>"'
    if closed and "x-open" in schema:
        yield path, "is closed and says x-open", "Remove x-open or additionalProperties: false"


def _null_rules(path: Path_, schema: dict[str, Json]) -> Found:
    nullable = schema.get("nullable")
    enum = schema.get("enum")
    if nullable is True:
        beside = [key for key in ("$ref", "allOf", "anyOf", "oneOf") if key in schema]
        if beside:
            yield (
                (*path, "nullable"),
                f"nullable beside {beside[0]}: tools disagree on its meaning",
                "Put nullable: true on one typed branch",
            )
        elif "type" not in schema:
            yield (*path, "nullable"), "nullable without a type means nothing", "Add a type beside it"
        if isinstance(enum, list) and None not in enum:
            yield (*path, "enum"), "a nullable enum doesn't list null", "Add null to the enum"
    if isinstance(enum, list) and None in enum and nullable is not True:
        yield (*path, "enum"), "an enum lists null but isn't nullable", "Add nullable: true"


def _type_rules(path: Path_, schema: dict[str, Json]) -> Found:
    kind = schema.get("type")
    if kind is not None and kind not in ("string", "integer", "number", "boolean", "array", "object"):
        yield (
            (*path, "type"),
            f"{kind!r} is no type of OpenAPI 3.0",
            "Use one type name, and nullable for null",
        )
    if kind == "array" and "items" not in schema:
        yield path, "is an array without items", "Add items ({} takes anything)"
    if "default" in schema and kind in ("string", "integer", "number", "boolean"):
        bare = {key: schema[key] for key in ("type", "enum", "minimum", "maximum") if key in schema}
        allowed: Json = {"anyOf": [bare, {"type": "null"}]} if schema.get("nullable") else bare
        if not jsonschema_rs.is_valid(allowed, schema["default"]):
            problem = f"the default {schema['default']!r} breaks its own schema"
            yield (*path, "default"), problem, "Correct the default or the bounds"
    if "x-clamp" in schema and kind not in ("integer", "number"):
        yield (*path, "x-clamp"), "x-clamp stands on a schema that isn't a number", "Remove it"
    for name in schema.get("required", []) if isinstance(schema.get("required"), list) else []:
        if is_object(schema) and "x-include" not in schema and name not in schema.get("properties", {}):
            yield (*path, "required"), f"requires '{name}', which is no property", "Add or rename it"


_SCHEMA_RULES: tuple[Callable[[Path_, dict[str, Json]], Found], ...] = (
    _object_rules,
    _null_rules,
    _type_rules,
)


def _option_rules(path: Path_, schema: dict[str, Json], options: dict[str, str]) -> Found:
    option = schema["x-option"]
    kinds = [branch["type"] for branch in (schema, *schema.get("anyOf", [])) if "type" in branch]
    if option not in options:
        yield (*path, "x-option"), f"unknown option '{option}'", nearest(option, options)
    elif options[option] not in [*kinds, "integer" if "number" in kinds else ""]:
        problem = f"'{option}' is of type {options[option]}, the field of type {' or '.join(kinds)}"
        yield (*path, "x-option"), problem, "Make them agree, or let the handler read the option"


# ---- rules for operations and across files


def _operation_rules(document: dict[str, Json], surface: str) -> Found:
    for url, item in document.get("paths", {}).items():
        if "x-alias-of" in item and len(item) > 1:
            yield ("paths", url), "is an alias and has content of its own", "Keep only x-alias-of"
    for path, url, _, operation in operations(document):
        identifier = operation.get("operationId", "")
        parts = identifier.split(".")
        if len(parts) < 3 or parts[0] != surface or not all(part.isidentifier() for part in parts):
            yield path, f"operationId '{identifier}' names no handler", f"Write {surface}.<module>.<function>"
        for media, content in operation.get("requestBody", {}).get("content", {}).items():
            if "$ref" not in content.get("schema", {}):
                where = (*path, "requestBody", "content", media, "schema")
                yield (
                    where,
                    "is a request body without a name",
                    "Move it to components.schemas and refer to it",
                )
        answers = operation.get("responses", {})
        if "default" not in answers and not any(code.startswith("4") for code in answers):
            yield (*path, "responses"), "lists no error response", "Add default or the 4xx answers"
        if "x-alias-of" not in document["paths"][url]:
            yield from _path_parameters(path, url, [document["paths"][url], operation])


def _path_parameters(path: Path_, url: str, holders: list[dict[str, Json]]) -> Found:
    listed = [parameter for holder in holders for parameter in holder.get("parameters", [])]
    if any("$ref" in parameter for parameter in listed):
        return
    declared = {parameter.get("name") for parameter in listed if parameter.get("in") == "path"}
    for name in sorted(set(re.findall(r"{(\w+)}", url)) ^ declared):
        yield path, f"the path parameter '{name}' isn't in both the path and parameters", "Add or rename it"


def _closed_under_all_of(specs: Specs) -> Iterator[Problem]:
    for file, document in specs.files.items():
        for path, schema in schemas(document):
            for index, branch in enumerate(schema.get("allOf", [])):
                target = _target(specs, file, branch)
                if target.get("additionalProperties") is False:
                    yield specs.problem(
                        file,
                        (*path, "allOf", index),
                        "is a closed object under allOf, which rejects what its siblings add",
                        "Write one object with all properties (x-include shares them)",
                    )


def _target(specs: Specs, file: str, schema: dict[str, Json]) -> dict[str, Json]:
    """What a schema refers to, or itself; unknown references are bundle's to report."""
    for _ in range(20):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            break
        name, _, pointer = reference.partition("#/")
        file = name.removeprefix("./") or file
        node: Any = specs.files.get(file, {})
        for part in pointer.split("/"):
            node = node.get(part, {}) if isinstance(node, dict) else {}
        schema = node
    return schema


def _duplicates(specs: Specs) -> Iterator[Problem]:
    """Operation IDs, and paths with their method, that are there twice over all surfaces."""
    seen: dict[str, str] = {}
    routes: dict[tuple[str, str], str] = {}
    for file, document in specs.files.items():
        for url, item in document.get("paths", {}).items():
            target = document["paths"].get(item.get("x-alias-of"), item)
            for method in METHODS:
                owner = routes.setdefault((url, method), file) if method in target else file
                if owner != file:
                    problem = f"{specs.shown(owner)} answers this path as well"
                    yield specs.problem(file, ("paths", url), problem, "Keep it on one surface")
        for path, _, _, operation in operations(document):
            identifier = operation.get("operationId", "")
            here = f"{specs.shown(file)}: {render(path)}"
            if identifier in seen:
                yield specs.problem(
                    file,
                    (*path, "operationId"),
                    f"'{identifier}' is taken by {seen[identifier]}",
                    "Give each operation an ID of its own; use x-alias-of for a second path",
                )
            seen.setdefault(identifier, here)


# ---- rules for bundles


def _required_by_alias(schema: dict[str, Json]) -> set[str]:
    """Fields of which one must be present, a required field and its aliases; see codegen.bundle."""
    groups = [schema, *schema.get("allOf", [])]
    return {
        name for group in groups for branch in group.get("anyOf", []) for name in branch.get("required", [])
    }


def _connexion(specs: Specs, file: str, document: dict[str, Json]) -> Iterator[Problem]:
    """What Connexion would say at start-up."""
    from connexion.exceptions import InvalidSpecification
    from connexion.spec import Specification

    try:
        Specification.from_dict(json.loads(json.dumps(document)))
    except InvalidSpecification as error:
        cause = error
        while cause.context:  # the branch that got furthest says most
            cause = max(cause.context, key=lambda branch: len(branch.absolute_path))
        message = cause.message if len(cause.message) < 200 else f"{cause.message[:200]}..."
        yield specs.problem(
            file, tuple(cause.absolute_path), f"Connexion refuses it: {message}", "Write OpenAPI 3.0.3"
        )
