"""From a validator's errors to the one fault worth telling: which field, what is wrong, what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from .schemas import SchemaSet

JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}

# Unknown names come first: a misspelt required field is then told as what it is.
URGENCY = {"AdditionalProperties": 0, "Required": 2}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a body. ``unknown`` holds names that the object at ``path`` doesn't have."""

    path: tuple[str | int, ...]
    message: str
    unknown: tuple[str, ...] = ()

    @property
    def field(self) -> str:
        """The path of the field at fault as messages write it."""
        return dotted((*self.path, *self.unknown[:1]))


def dotted(path: Iterable[str | int]) -> str:
    """A path as text: ``messages[0].content``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def first_fault(validator: Any, body: Any, schemas: SchemaSet, name: str) -> Fault:
    """The fault to tell of a body that ``validator`` (of the schema ``name``) refuses."""
    errors = [_innermost(error) for error in validator.iter_errors(body)]
    worst = min(errors, key=lambda e: (URGENCY.get(_kind(e), 1), len(e.instance_path)))
    return _fault(worst, body, schemas, name)


def _kind(error: jsonschema_rs.ValidationError) -> str:
    return type(error.kind).__name__.rsplit("_", 1)[-1]


def _detail(error: jsonschema_rs.ValidationError) -> Any:
    """What the validator says of the error; its type stubs leave the members of each kind out."""
    return error.kind


def _innermost(error: jsonschema_rs.ValidationError) -> jsonschema_rs.ValidationError:
    """Descend into unions: the fault is in the branch that the value was meant for."""
    if _kind(error) not in ("AnyOf", "OneOfNotValid"):
        return error
    here = len(error.instance_path)
    branches: list[list[jsonschema_rs.ValidationError]] = [b for b in _detail(error).context if b]
    tags = [e for branch in branches for e in branch if _is_tag(e, here)]
    if branches and all(any(_is_tag(e, here) for e in branch) for branch in branches):
        # No branch knows this discriminator value.
        return tags[0]
    meant = [b for b in branches if not any(_is_tag(e, here) or _is_type(e, here) for e in b)]
    if not meant:
        return error
    deepest = max(meant, key=lambda branch: (max(len(e.instance_path) for e in branch), -len(branch)))
    return min((_innermost(e) for e in deepest), key=lambda e: URGENCY.get(_kind(e), 1))


def _is_tag(error: jsonschema_rs.ValidationError, depth: int) -> bool:
    return _kind(error) in ("Enum", "Constant") and len(error.instance_path) == depth + 1


def _is_type(error: jsonschema_rs.ValidationError, depth: int) -> bool:
    return _kind(error) == "Type" and len(error.instance_path) == depth


def _fault(error: jsonschema_rs.ValidationError, body: Any, schemas: SchemaSet, name: str) -> Fault:
    path = tuple(error.instance_path)
    kind = _kind(error)
    if kind == "AdditionalProperties":
        unknown = tuple(_detail(error).unexpected)
        known = schemas.properties_at(name, list(path))
        return Fault(path, _unknown_message(dotted((*path, unknown[0])), unknown[0], known), unknown)
    if kind == "Required":
        missing = (*path, str(_detail(error).property))
        return Fault(missing, f"Field '{dotted(missing)}': is required but missing")
    return Fault(path, _prefixed(path, _expectation(error, kind, _value_at(body, path))))


def _unknown_message(field: str, name: str, known: set[str]) -> str:
    near = nearest(name, known)
    hint = f"did you mean '{near}'?" if near else "see the API reference for the fields there are"
    return f"Unknown field '{field}': {hint}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` was probably meant to be."""
    folded = {k.lower().replace("-", "_"): k for k in sorted(known)}
    wanted = name.lower().replace("-", "_")
    found = difflib.get_close_matches(wanted, folded, n=1, cutoff=0.6)
    found += [key for key in folded if wanted in key.split("_")]
    return folded[found[0]] if found else None


def _prefixed(path: tuple[str | int, ...], text: str) -> str:
    return f"Field '{dotted(path)}': {text}" if path else f"Request body: {text}"


def _value_at(body: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        body = body[part]
    return body


def _expectation(error: jsonschema_rs.ValidationError, kind: str, value: Any) -> str:
    """What would be right, in the reference's words where it has some."""
    details = _detail(error)
    got = JSON_TYPES.get(type(value), "null")
    match kind:
        case "Type":
            types = [t for t in details.types if t != "null"]
            return f"type must be {' or '.join(types)}, but is {got}"
        case "Minimum" | "Maximum" | "ExclusiveMinimum" | "ExclusiveMaximum":
            sign = {"Minimum": ">=", "Maximum": "<=", "ExclusiveMinimum": ">", "ExclusiveMaximum": "<"}[kind]
            return f"Value must be {sign} {details.limit}, but got {value}"
        case "Enum":
            options = [option for option in details.options if option is not None]
            return f"must be one of {', '.join(map(repr, options))}"
        case "AnyOf" | "OneOfNotValid":
            return f"has a form that isn't accepted here (it is of type {got})"
        case _:
            return _shortened(error.message)


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "..."
