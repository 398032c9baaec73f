"""The command line: specs/options.yaml -> generated/options.py.

The file is a list under ``options``; an entry has the attributes of ``Option`` in
codegen/templates/runtime.py.j2 by the same names (``type`` for ``kind``); ``name``, ``spellings``, ``type``
and ``help`` are required.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from codegen.document import Json, Path_, Problem, SpecError, Specs, nearest
from codegen.models import docstring
from codegen.render import LINE_LENGTH, render

FILE = "options.yaml"

_PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_STATES = ("supported", "refused", "ours", "inert")
_KEYS: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "spellings": (list,),
    "negated": (list,),
    "env": (str,),
    "type": (str,),
    "choices": (list,),
    "minimum": (int, float),
    "maximum": (int, float),
    "default": (str, int, float, bool, list),
    "repeatable": (bool,),
    "group": (str,),
    "metavar": (str,),
    "help": (str,),
    "state": (str,),
    "reason": (str,),
}


@dataclass(frozen=True, slots=True)
class OptionSpecs:
    """The checked entries of options.yaml, in order."""

    entries: tuple[dict[str, Json], ...]

    @property
    def names(self) -> dict[str, str]:
        """The attribute of Options by spelling."""
        return {spelling: entry["name"] for entry in self.entries for spelling in entry["spellings"]}

    @property
    def types(self) -> dict[str, str]:
        """The JSON type of the value by spelling."""
        return {
            spelling: "array" if entry.get("repeatable") else entry["type"]
            for entry in self.entries
            for spelling in entry["spellings"]
        }

    @property
    def defaults(self) -> dict[str, Json]:
        """The default by spelling."""
        return {spelling: entry.get("default") for entry in self.entries for spelling in entry["spellings"]}


def read_options(specs: Specs) -> OptionSpecs:
    """Reads and checks options.yaml; a specs folder without one has no options.

    Raises:
        SpecError: an entry lacks a key, has an unknown one, or contradicts itself or another entry.
    """
    document = specs.files.get(FILE, {"options": []})
    entries = document.get("options")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise SpecError(
            [specs.problem(FILE, ("options",), "isn't a list of entries", "Write `options:` and a list")]
        )
    problems: list[Problem] = []
    taken: dict[str, str] = {}
    for index, entry in enumerate(entries):
        faults = _faults(entry)
        problems += [specs.problem(FILE, ("options", index, *path), *rest) for path, *rest in faults]
        if faults:
            continue
        for word in (
            entry.get("name"),
            entry.get("env"),
            *entry["spellings"],
            *entry.get("negated", []),
        ):
            if not word:
                continue
            if word in taken:
                where = ("options", index)
                problems.append(
                    specs.problem(
                        FILE, where, f"'{word}' is taken by '{taken[word]}'", "Rename or merge the two"
                    )
                )
            taken[word] = str(entry.get("name"))
    if problems:
        raise SpecError(problems)
    return OptionSpecs(tuple(entries))


def _faults(entry: dict[str, Json]) -> list[tuple[Path_, str, str]]:
    """What is wrong with one entry by itself."""
    found: list[tuple[Path_, str, str]] = []
    for key, value in entry.items():
        if key not in _KEYS:
            found.append(((key,), f"unknown key '{key}'", nearest(key, _KEYS)))
        elif not isinstance(value, _KEYS[key]) and not (key == "default" and value is None):
            found.append(((key,), f"{value!r} isn't what '{key}' takes", f"Write a {_KEYS[key][0].__name__}"))
    for key in ("name", "spellings", "type", "help"):
        if not entry.get(key):
            found.append(((), f"lacks '{key}'", "Add it"))
    if found:
        return found
    if not entry["name"].isidentifier():
        found.append(
            (("name",), f"'{entry['name']}' is no Python name", "Use letters, digits and underscores")
        )
    for key in ("spellings", "negated"):
        for index, word in enumerate(entry.get(key, [])):
            if not (isinstance(word, str) and word.startswith("-")):
                found.append(((key, index), f"{word!r} is no option", "Start it with - or --"))
    if entry["type"] not in _PYTHON:
        return [*found, (("type",), f"unknown type '{entry['type']}'", nearest(entry["type"], _PYTHON))]
    if entry.get("state", "supported") not in _STATES:
        found.append((("state",), f"unknown state '{entry['state']}'", nearest(entry["state"], _STATES)))
    if entry.get("state") in ("refused", "inert") and not entry.get("reason"):
        found.append(
            ((), f"is {entry['state']} without a reason", "Add reason: what to do instead, or why it is safe")
        )
    if entry.get("negated") and entry["type"] != "boolean":
        found.append((("negated",), "only a boolean can be negated", "Remove negated"))
    default = entry.get("default")
    values = default if isinstance(default, list) else [] if default is None else [default]
    if isinstance(default, list) and not entry.get("repeatable"):
        found.append(
            (("default",), "a list is the default of a repeatable option only", "Add repeatable: true")
        )
    for value in values:
        wrong = not isinstance(value, _TYPES[entry["type"]]) or isinstance(value, bool) != (
            entry["type"] == "boolean"
        )
        if wrong:
            found.append(
                (("default",), f"{value!r} is no {entry['type']}", "Correct the default or the type")
            )
        elif entry.get("choices") and value not in entry["choices"]:
            found.append((("default",), f"{value!r} is none of the choices", "Add it to choices"))
        elif entry["type"] in ("integer", "number") and not (
            entry.get("minimum", value) <= value <= entry.get("maximum", value)
        ):
            found.append((("default",), f"{value!r} is out of the range", "Correct the default or the range"))
    return found


def options(specs: OptionSpecs) -> str:
    """The source of options.py."""
    rows = [_row(entry) for entry in specs.entries]
    return render("options.py.j2", source=f"specs/{FILE}", options=rows)


def _row(entry: dict[str, Json]) -> dict[str, Any]:
    base = _PYTHON[entry["type"]]
    default = entry.get("default")
    if entry.get("repeatable"):
        default = tuple(default) if isinstance(default, list) else () if default is None else (default,)
        annotation = f"tuple[{base}, ...]"
    else:
        annotation = base if default is not None else f"{base} | None"
    if base == "float" and isinstance(default, int):
        default = float(default)
    values = {
        **entry,
        "spellings": tuple(entry["spellings"]),
        "negated": tuple(entry.get("negated", ())),
        "choices": tuple(entry.get("choices", ())),
        "default": default,
        "help": " ".join(entry["help"].split()),
    }
    names = {**{key: key for key in _KEYS}, "type": "kind"}
    unset = (None, (), "")
    shown = [
        f"{names[key]}={_literal(values[key])}" for key in _KEYS if key in values and values[key] not in unset
    ]
    return {
        "name": entry["name"],
        "annotation": annotation,
        "default": repr(default),
        "doc": docstring(values["help"]),
        "row": f"Option({', '.join(shown)})",
    }


def _literal(value: Json) -> str:
    """A value as Python source; a long text as several strings, which the formatter can't make of one."""
    if not isinstance(value, str) or len(value) < LINE_LENGTH - 20:
        return repr(value)
    lines = textwrap.wrap(value, LINE_LENGTH - 20, drop_whitespace=False, break_on_hyphens=False)
    return f"({' '.join(map(repr, lines))})"
