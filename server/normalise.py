"""From a valid body to a handler's values: aliases, nulls, ranges and defaults, as the spec has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlxcel.generated.options import Options
from mlxcel.generated.runtime import FieldRule, ObjectRef
from mlxcel.handlers.errors import ApiError

Rules = Mapping[str, tuple[FieldRule, ...]]


@dataclass(frozen=True, slots=True)
class Normaliser:
    """Applies a surface's field rules.

    Args:
        rules: field rules by schema name.
        error: the surface's error class.
        options: where fields with ``option`` get their defaults from.
        n_slots: what a maximum "slots" is.
    """

    rules: Rules
    error: type[ApiError]
    options: Options
    n_slots: int

    def apply(self, body: Any, schema: str, path: str = "") -> Any:
        """The value for a body (or an object inside one) that satisfies ``schema``.

        Raises:
            ApiError: 501 for a field that this build refuses, 400 past a limit known only at run time.
        """
        rules = self.rules.get(schema)
        if rules is None or not isinstance(body, dict):
            return body
        values = dict(body)
        for rule in rules:
            self._apply_rule(values, rule, f"{path}.{rule.name}" if path else rule.name)
        return values

    def _apply_rule(self, values: dict[str, Any], rule: FieldRule, path: str) -> None:
        value = values.pop(rule.name, None)
        for alias in rule.aliases:
            other = values.pop(alias, None)
            value = other if value is None else value
        if value is None:
            self._fill_absent(values, rule)
            return
        for where in rule.integers:
            value = _each(value, where, _whole)
        if rule.state == "refused" and value not in rule.inert:
            raise self.error(501, _refusal(path, rule), field=path)
        if rule.maximum_from == "slots" and value > self.n_slots:
            raise self.error(
                400,
                f"Field '{path}': Value must be between 1 <= value <= {self.n_slots}, but got {value}",
                field=path,
            )
        if rule.clamp is not None:
            value = _clamped(value, *rule.clamp)
        for reference in rule.objects:
            value = self._apply_inside(value, reference, path)
        values[rule.name] = value

    def _fill_absent(self, values: dict[str, Any], rule: FieldRule) -> None:
        if rule.required and rule.nullable:
            values[rule.name] = None
        elif rule.option is not None:
            default = getattr(self.options, rule.option)
            if default is not None:
                values[rule.name] = list(default) if isinstance(default, tuple) else default

    def _apply_inside(self, value: Any, reference: ObjectRef, path: str) -> Any:
        def apply(inner: Any, where: str = path) -> Any:
            if not isinstance(inner, dict):
                return inner
            if reference.tag is not None and inner.get(reference.tag[0]) != reference.tag[1]:
                return inner
            return self.apply(inner, reference.schema, where)

        return _each(value, reference.path, apply, path)


def _refusal(path: str, rule: FieldRule) -> str:
    accepted = ", ".join(repr(value) for value in rule.inert)
    remedy = f"leave it out or send {accepted}" if accepted else "leave it out"
    return f"Field '{path}': not supported by this build; {remedy}"


def _each(value: Any, where: str, change: Any, path: str | None = None) -> Any:
    """``value`` with ``change`` applied at a place such as "", "[]", "[][]" or ".*[]"."""
    if not where:
        return change(value) if path is None else change(value, path)
    step, rest = where[:2], where[2:]
    if step == "[]" and isinstance(value, list):
        return [_each(v, rest, change, None if path is None else f"{path}[{i}]") for i, v in enumerate(value)]
    if step == ".*" and isinstance(value, dict):
        return {k: _each(v, rest, change, None if path is None else f"{path}.{k}") for k, v in value.items()}
    return value


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _clamped(value: Any, low: float | None, high: float | None) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if low is not None and value < low:
        value = type(value)(low)
    if high is not None and value > high:
        value = type(value)(high)
    return value
