"""Which x- keys may stand where: every node of a file against specs/x-keys.schema.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema_rs

from codegen.document import Json, Path_, Problem, Specs, is_property_map, nearest, operations, schemas, walk

_FILE = "x-keys.schema.json"
_OWN_SPECS = Path(__file__).resolve().parent.parent / "specs"

_NAMES = ("headers", "schemas", "responses", "parameters", "securitySchemes", "mapping", "x-property-sets")
"""Keys of mappings whose keys are names: ``x-request-id`` may be a header."""

_DATA = ("default", "enum", "example", "examples", "x-compat")
"""Keys whose values are data, apart from the answer called ``default``."""


class XKeys:
    """The rules of a specs folder; a copy without the schema file is judged by our own."""

    def __init__(self, folder: Path) -> None:
        path = folder / _FILE
        text = (path if path.exists() else _OWN_SPECS / _FILE).read_text(encoding="utf-8")
        definitions = json.loads(text)["$defs"]
        places = ("document", "components", "path-item", "operation", "schema")
        self.known = {place: set(definitions[place].get("properties", {})) for place in places}
        self.validators = {
            place: jsonschema_rs.validator_for({"$ref": f"#/$defs/{place}", "$defs": definitions})
            for place in places
        }

    def check(self, specs: Specs, file: str) -> Iterator[Problem]:
        """Unknown x- keys and x- keys with a wrong value in one file."""
        document = specs.files[file]
        places = dict(_places(document))
        for path, node in walk(document):
            if _is_data(path):
                continue
            keys = {key: value for key, value in node.items() if key.startswith("x-")}
            place = places.get(path)
            if place is None:
                for key in () if _holds_names(path) else keys:
                    remedy = "Remove it; x- keys stand on schemas, operations and path items"
                    yield specs.problem(file, (*path, key), f"unknown x- key '{key}' here", remedy)
                continue
            known = {key: value for key, value in keys.items() if key in self.known[place]}
            for key in keys.keys() - known.keys():
                remedy = nearest(key, self.known[place])
                yield specs.problem(file, (*path, key), f"unknown x- key '{key}' on a {place}", remedy)
            for error in self.validators[place].iter_errors(known):
                where = (*path, *error.instance_path)
                remedy = f"See $defs.{place} in {specs.prefix}/{_FILE}"
                yield specs.problem(file, where, error.message, remedy)


def _places(document: dict[str, Json]) -> Iterator[tuple[Path_, str]]:
    """Paths of the nodes that may carry x- keys, with the name of their definition."""
    yield (), "document"
    yield ("components",), "components"
    for url in document.get("paths", {}):
        yield ("paths", url), "path-item"
    for path, _, _, _ in operations(document):
        yield path, "operation"
    for path, _ in schemas(document):
        yield path, "schema"


def _holds_names(path: Path_) -> bool:
    in_a_set = len(path) == 3 and path[:2] == ("components", "x-property-sets")
    return is_property_map(path) or in_a_set or path[-1] in _NAMES


def _is_data(path: Path_) -> bool:
    return any(
        part in _DATA and path[index - 1] != "responses" and not is_property_map(path[:index])
        for index, part in enumerate(path)
        if index
    )
