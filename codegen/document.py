"""Spec files as plain data: strict YAML in, and the line that reports a fault in them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Json = Any
"""A JSON value; specs are walked generically, so a closer type would only be cast away."""

Path_ = tuple[str | int, ...]
"""Where a node is in its document: keys and list indices from the root."""

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One fault of a spec. ``str()`` gives the line that is printed: ``file: path: problem. remedy``."""

    file: str
    path: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        place = f"{self.file}: {self.path}" if self.path else self.file
        return f"{place}: {self.problem}. {self.remedy}"


class SpecError(Exception):
    """A spec can't be compiled; ``problems`` says why, one entry a fault, never empty."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(map(str, self.problems)))


class _Loader(yaml.CSafeLoader):
    """YAML 1.2's core scalars (``on``, ``no`` and dates stay strings), and no silently repeated keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[str] = set()
        for key_node, _ in node.value:
            if key_node.value in keys:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key_node.value!r} is there twice", key_node.start_mark
                )
            keys.add(key_node.value)
        self.flatten_mapping(node)
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^$"), [""])


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    return int(text, 16) if "x" in text else int(text)


def _construct_float(loader: _Loader, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node).replace(".inf", "inf").replace(".nan", "nan"))


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def _string_keys(node: Json) -> Json:
    """Status codes are integers in YAML and strings in OpenAPI; enum values and the like keep their types."""
    if isinstance(node, dict):
        return {str(key): _string_keys(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_string_keys(value) for value in node]
    return node


def load(path: Path, name: str) -> dict[str, Json]:
    """Reads one YAML mapping. ``name`` is how the file is called in messages.

    Raises:
        SpecError: the file is missing, isn't YAML, repeats a key or isn't a mapping.
    """
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise SpecError([Problem(name, "", f"can't be read ({error.strerror})", "Check the path")]) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise SpecError([Problem(name, where, str(error.problem), "Correct the YAML")]) from error
    if not isinstance(data, dict):
        raise SpecError([Problem(name, "", "isn't a mapping", "Write an OpenAPI document")])
    result: dict[str, Json] = _string_keys(data)
    return result


@dataclass(frozen=True, slots=True)
class Specs:
    """The YAML files of a folder by name, sorted; ``prefix`` is the folder as messages show it."""

    files: dict[str, dict[str, Json]]
    prefix: str = "specs"

    @property
    def surfaces(self) -> list[str]:
        """Names of the documents with ``paths``: each becomes a folder in generated/."""
        return [name.removesuffix(".yaml") for name, document in self.files.items() if "paths" in document]

    def shown(self, file: str) -> str:
        """How messages call a file."""
        return f"{self.prefix}/{file}"

    def problem(self, file: str, path: Path_, problem: str, remedy: str) -> Problem:
        """A fault at a place in one of the files."""
        return Problem(self.shown(file), render(path), problem, remedy)

    def written(self, file: str, schema: str, name: str) -> tuple[str, Path_]:
        """File and path where a property of a bundled schema was written; ``file`` is the surface's."""
        owners = {f: d["components"]["schemas"] for f, d in self.files.items() if _has(d, schema)}
        if file not in owners:
            file = next(iter(owners))
        node = owners[file][schema]
        if name not in node.get("properties", {}):
            for reference in node.get("x-include", []):
                source, _, pointer = reference.partition("#/")
                source = source.removeprefix("./") or file
                path = tuple(pointer.split("/"))
                sets = self.files.get(source, {}).get("components", {}).get("x-property-sets", {})
                if name in sets.get(path[-1], {}):
                    return source, (*path, name)
        return file, ("components", "schemas", schema, "properties", name)


def _has(document: dict[str, Json], schema: str) -> bool:
    return schema in document.get("components", {}).get("schemas", {})


def load_specs(folder: Path) -> Specs:
    """Reads every ``*.yaml`` of a folder.

    Raises:
        SpecError: a file can't be read; all such files are reported together.
    """
    problems: list[Problem] = []
    files: dict[str, dict[str, Json]] = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            files[path.name] = load(path, f"{folder.name}/{path.name}")
        except SpecError as error:
            problems += error.problems
    if not files and not problems:
        problems.append(Problem(folder.name, "", "holds no *.yaml file", "Pass the folder with --specs"))
    if problems:
        raise SpecError(problems)
    return Specs(files, folder.name)


def render(path: Path_) -> str:
    """A path as messages show it: ``components.schemas.Message.properties.role``, indices in brackets."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def is_property_map(path: Path_) -> bool:
    """Whether the mapping at a path holds properties by name (one may be called "properties" itself)."""
    trailing = 0
    for part in reversed(path):
        if part != "properties":
            break
        trailing += 1
    return trailing % 2 == 1


def walk(node: Json, path: Path_ = ()) -> Iterator[tuple[Path_, dict[str, Json]]]:
    """Yields every mapping below a node, itself included, parents first."""
    if isinstance(node, dict):
        yield path, node
        for key, value in node.items():
            yield from walk(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from walk(value, (*path, index))


def subschemas(schema: Json, path: Path_ = ()) -> Iterator[tuple[Path_, dict[str, Json]]]:
    """Yields a schema and the schemas written inside it (references aren't followed), parents first."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for name, value in (schema.get("properties") or {}).items():
        yield from subschemas(value, (*path, "properties", name))
    for key in ("items", "additionalProperties", "not"):
        yield from subschemas(schema.get(key), (*path, key))
    for key in ("anyOf", "oneOf", "allOf"):
        for index, value in enumerate(schema.get(key) or []):
            yield from subschemas(value, (*path, key, index))


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


def operations(document: dict[str, Json]) -> Iterator[tuple[Path_, str, str, dict[str, Json]]]:
    """Yields (path in the document, URL path, method, operation) in document order."""
    for url, item in document.get("paths", {}).items():
        for method in METHODS:
            if isinstance(item, dict) and isinstance(item.get(method), dict):
                yield ("paths", url, method), url, method, item[method]


def nearest(word: str, known: Iterable[str]) -> str:
    """A remedy for a misspelt name: the closest known one, or all of them."""
    choices = sorted(known)
    close = difflib.get_close_matches(word, choices, n=1)
    return f"Did you mean '{close[0]}'?" if close else f"Known: {', '.join(choices) or 'none'}"
