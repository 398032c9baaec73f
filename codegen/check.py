"""The lint of the specs: what an OpenAPI validator lets pass and our house rules don't.

``check_specs`` looks at the files as written, so that every fault has the file and the path of its author.
``check_bundles`` looks at what bundling made of them. Handlers are compared in ``codegen.handlers``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs

from codegen.document import (
    Json,
    Path_,
    Problem,
    Specs,
    is_property_map,
    nearest,
    operations,
    render,
    subschemas,
    walk,
)
from codegen.schemas import accepts_null, is_object, request_schemas

_X_KEYS = "x-keys.schema.json"
_OWN_SPECS = Path(__file__).resolve().parent.parent / "specs"


def check_specs(specs: Specs, folder: Path, spellings: set[str]) -> list[Problem]:
    """Every fault of the files as written, sorted; empty when there is none.

    ``folder`` is where the schema of the x- keys lies; ``spellings`` are the known server options.
    """
    problems: list[Problem] = []
    x_keys = _XKeys(folder)
    for file, document in specs.files.items():
        if "paths" not in document and "components" not in document:
            continue
        for path, node, place in _places(document):
            problems += x_keys.check(specs, file, path, node, place)
        for path, schema in schemas(document):
            for rule in _SCHEMA_RULES:
                problems += [specs.problem(file, where, *rest) for where, *rest in rule(path, schema)]
            option = schema.get("x-option")
            if isinstance(option, str) and option not in spellings:
                where = (*path, "x-option")
                problems.append(
                    specs.problem(file, where, f"unknown option '{option}'", nearest(option, spellings))
                )
        problems += [specs.problem(file, *found) for found in _operation_rules(document)]
    problems += _closed_under_all_of(specs)
    problems += _duplicate_ids(specs)
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
                    path = ("components", "schemas", name, "properties", key)
                    problems.append(
                        specs.problem(
                            file,
                            path,
                            "is an optional request field that refuses null",
                            "Add nullable: true beside a type (null inside an enum), or list it in required",
                        )
                    )
        if not problems:
            problems += _connexion(specs, file, document)
    return problems


# ---- where things are


def schemas(document: dict[str, Json]) -> Iterator[tuple[Path_, dict[str, Json]]]:
    """Every schema of a file with its path, parents first: components, property sets, bodies, parameters."""
    for path, node in walk({k: v for k, v in document.items() if k != "components"}):
        if isinstance(node.get("schema"), dict) and not is_property_map(path):
            yield from subschemas(node["schema"], (*path, "schema"))
    components = document.get("components", {})
    for name, schema in components.get("schemas", {}).items():
        yield from subschemas(schema, ("components", "schemas", name))
    for name, properties in components.get("x-property-sets", {}).items():
        for key, schema in properties.items():
            yield from subschemas(schema, ("components", "x-property-sets", name, key))
    for kind in ("responses", "parameters", "requestBodies", "headers"):
        for path, node in walk(components.get(kind, {}), ("components", kind)):
            if isinstance(node.get("schema"), dict):
                yield from subschemas(node["schema"], (*path, "schema"))


def _places(document: dict[str, Json]) -> Iterator[tuple[Path_, dict[str, Json], str]]:
    """Nodes that may carry x- keys, with the name of their definition in the schema of the x- keys."""
    yield (), document, "document"
    yield ("components",), document.get("components", {}), "components"
    for url, item in document.get("paths", {}).items():
        yield ("paths", url), item, "path-item"
    for path, _, _, operation in operations(document):
        yield path, operation, "operation"
    for path, schema in schemas(document):
        yield path, schema, "schema"


class _XKeys:
    """Validates the x- keys of a node against specs/x-keys.schema.json."""

    def __init__(self, folder: Path) -> None:
        path = folder / _X_KEYS
        text = (path if path.exists() else _OWN_SPECS / _X_KEYS).read_text(encoding="utf-8")
        definitions = json.loads(text)["$defs"]
        self.known = {place: set(d.get("properties", {})) for place, d in definitions.items()}
        self.validators = {
            place: jsonschema_rs.validator_for({"$ref": f"#/$defs/{place}", "$defs": definitions})
            for place in ("document", "components", "schema", "path-item", "operation")
        }

    def check(
        self, specs: Specs, file: str, path: Path_, node: dict[str, Json], place: str
    ) -> Iterator[Problem]:
        keys = {key: value for key, value in node.items() if key.startswith("x-")}
        known = {key: value for key, value in keys.items() if key in self.known[place]}
        for key in keys.keys() - known.keys():
            yield specs.problem(
                file, (*path, key), f"unknown x- key for a {place}", nearest(key, self.known[place])
            )
        for error in self.validators[place].iter_errors(known):
            where = (*path, *error.instance_path)
            yield specs.problem(file, where, error.message, f"See $defs.{place} in {specs.prefix}/{_X_KEYS}")


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


# ---- rules for operations and across files


def _operation_rules(document: dict[str, Json]) -> Found:
    for url, item in document.get("paths", {}).items():
        if "x-alias-of" in item and len(item) > 1:
            yield ("paths", url), "is an alias and has content of its own", "Keep only x-alias-of"
    for path, _, _, operation in operations(document):
        identifier = operation.get("operationId")
        if not isinstance(identifier, str) or len(identifier.split(".")) < 3:
            yield (
                path,
                f"operationId {identifier!r} names no handler",
                "Write <surface>.<module>.<function>",
            )
        answers = operation.get("responses", {})
        if "default" not in answers and not any(code.startswith("4") for code in answers):
            yield (*path, "responses"), "lists no error response", "Add default or the 4xx answers"


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


def _duplicate_ids(specs: Specs) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for file, document in specs.files.items():
        for path, _, _, operation in operations(document):
            identifier = str(operation.get("operationId"))
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
    from connexion.exceptions import InvalidSpecification  # type: ignore[import-untyped]
    from connexion.spec import Specification  # type: ignore[import-untyped]

    try:
        Specification.from_dict(json.loads(json.dumps(document)))
    except InvalidSpecification as error:
        where = tuple(getattr(error, "path", ()))
        yield specs.problem(
            file, where, str(getattr(error, "message", error)), "Connexion takes OpenAPI 3.0.3"
        )
