"""Path, query and header parameters, checked against the spec and turned into a handler's arguments."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import jsonschema_rs
from starlette.types import Scope

from mlxcel.generated.runtime import Operation, Parameter
from mlxcel.handlers.errors import ApiError

from .faults import nearest
from .schemas import Schema, SchemaSet, to_json_schema

TRUE, FALSE = ("true", "1"), ("false", "0")


class ParameterReader:
    """Reads the parameters of one operation."""

    def __init__(self, operation: Operation, spec: Schema, schemas: SchemaSet, error: type[ApiError]) -> None:
        self._parameters = operation.parameters
        self._error = error
        self._query = {p.name for p in operation.parameters if p.where == "query"}
        self._validators: dict[str, jsonschema_rs.Draft202012Validator] = {
            declared["name"]: schemas.compile(to_json_schema(declared["schema"]))
            for declared in spec.get("parameters", ())
        }

    def read(self, scope: Scope) -> dict[str, Any]:
        """The arguments for the handler.

        Raises:
            ApiError: 400 for an unknown query parameter, a missing one, or a value that the schema refuses.
        """
        sent: bytes = scope.get("query_string", b"")
        if not sent and not self._parameters:
            return {}
        query = dict(parse_qsl(sent.decode("latin-1"), keep_blank_values=True))
        for name in query.keys() - self._query:
            near = nearest(name, self._query)
            hint = f"did you mean '{near}'?" if near else "this operation has no such parameter"
            raise self._error(400, f"Unknown query parameter '{name}': {hint}", field=name)
        return {p.argument: self._value(p, self._sent(p, query, scope)) for p in self._parameters}

    def _sent(self, parameter: Parameter, query: dict[str, str], scope: Scope) -> str | None:
        match parameter.where:
            case "query":
                return query.get(parameter.name)
            case "path":
                value = scope["path_params"].get(parameter.name)
                return None if value is None else str(value)
            case "header":
                wanted = parameter.name.lower().encode()
                return next((v.decode("latin-1") for k, v in scope["headers"] if k == wanted), None)

    def _value(self, parameter: Parameter, text: str | None) -> Any:
        name = parameter.name
        if text is None:
            if parameter.required:
                raise self._error(400, f"Missing {parameter.where} parameter '{name}'", field=name)
            return parameter.default
        value = _converted(text, parameter.kind)
        try:
            self._validators[name].validate(value)
        except jsonschema_rs.ValidationError as cause:
            message = f"{parameter.where.capitalize()} parameter '{name}': {cause.message}"
            raise self._error(400, message, field=name) from None
        return value


def _converted(text: str, kind: str) -> Any:
    """The value that ``text`` writes; text that writes none of the kind is left for the validator to refuse."""
    try:
        if kind == "integer":
            return int(text)
        if kind == "number":
            return float(text)
    except ValueError:
        return text
    if kind == "boolean":
        return True if text in TRUE else False if text in FALSE else text
    return text
