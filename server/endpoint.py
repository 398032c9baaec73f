"""One operation, bound: its handler with all that is settled before and after it, prepared once."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.types import Receive, Scope, Send

from mlxcel.engine.errors import EngineError
from mlxcel.generated.runtime import Operation
from mlxcel.handlers.context import Context
from mlxcel.handlers.errors import ApiError

from .answers import (
    Headers,
    StreamStyle,
    in_surface,
    send_error,
    send_events,
    send_json,
    send_text,
    unless_gone,
)
from .body import BodyValidator, parse, read
from .features import missing_feature
from .normalise import Normaliser, Rules
from .parameters import ParameterReader
from .runtime import Runtime

IGNORED_FIELDS = b"x-mlxcel-ignored-fields"
IGNORED_CAP = 2048
"""Bytes of the header that lists ignored fields; what is over is cut at a name."""

PAYLOAD = "mlxcel"
"""Key of the scope's extensions under which the validated request travels."""


class BindingError(Exception):
    """A handler is missing or doesn't fit its operation. Ends start-up."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that passed every check: its model, its parameters, the fields that were ignored."""

    arguments: tuple[Any, ...]
    parameters: dict[str, Any]
    ignored: list[str]


def bind(operation: Operation) -> Callable[..., Any]:
    """The handler of an operation.

    Raises:
        BindingError: there is none, or it takes other arguments than the operation has.
    """
    module_name, _, name = operation.handler.partition(":")
    try:
        handler = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise BindingError(
            f"{operation.operation_id}: no handler {operation.handler} ({error}); write it or remove the operation"
        ) from error
    expected = [*(["request"] if operation.request is not None else []), "ctx"]
    expected += [parameter.argument for parameter in operation.parameters]
    taken = list(inspect.signature(handler).parameters)
    if taken != expected:
        raise BindingError(
            f"{operation.operation_id}: {operation.handler} takes ({', '.join(taken)}), not ({', '.join(expected)})"
        )
    return handler  # type: ignore[no-any-return]


class Endpoint:
    """An operation with its handler, validator and parameter reader."""

    def __init__(
        self,
        operation: Operation,
        rules: Rules,
        reader: ParameterReader,
        validator: BodyValidator | None,
        error: type[ApiError],
        runtime: Runtime,
        media_type: str,
    ) -> None:
        self.operation = operation
        self._media_type = media_type
        self._handler = bind(operation)
        self._rules = rules
        self._reader = reader
        self._validator = validator
        self._error = error
        self._runtime = runtime
        # Watching for a client that goes away costs two tasks; what answers at once does without.
        self._may_wait = operation.streams or "embeddings" in operation.requires

    async def admit(self, scope: Scope, receive: Receive) -> Admitted:
        """Check a request.

        Raises:
            ApiError: something of it isn't acceptable.
        """
        context = self._runtime.require(self._error)
        self._require_features(context)
        parameters = self._reader.read(scope)
        if self._validator is None:
            return Admitted((context,), parameters, [])
        raw = await read(receive, context.options.max_body_size, self._error)
        if not raw.strip():
            if self.operation.body_required:
                raise self._error(400, "Request body: is empty; send a JSON object")
            raw = b"{}"
        body = parse(raw, self._error)
        ignored = self._validator.check(body)
        values = self._normaliser(context).apply(body, self.operation.schema)
        try:
            request = msgspec.convert(values, self.operation.request)
        except msgspec.ValidationError as error:
            # The validator let it pass, so this is a difference between schema and model: not the client's fault.
            raise self._error(
                500, f"internal error: the request's model refuses a valid body ({error})"
            ) from error
        return Admitted((request, context), parameters, ignored)

    def _require_features(self, context: Context) -> None:
        for feature in self.operation.requires:
            sentence = missing_feature(feature, context)
            if sentence is not None:
                raise self._error(501, sentence)
        if self.operation.state == "refused":
            raise self._error(
                501, f"{self.operation.method} {self.operation.path} is not supported by this build"
            )

    def _normaliser(self, context: Context) -> Normaliser:
        return Normaliser(self._rules, self._error, context.options, context.engine.n_slots)

    async def answer(self, admitted: Admitted, receive: Receive, send: Send) -> None:
        """Run the handler and send what it returns."""
        headers = _ignored_header(admitted.ignored)
        work = self._handler(*admitted.arguments, **admitted.parameters)
        try:
            result = await (unless_gone(work, receive) if self._may_wait else work)
        except EngineError as error:
            return await send_error(send, in_surface(error, self._error))
        if isinstance(result, str) and self._media_type.startswith("text/"):
            return await send_text(send, result, self._media_type)
        if isinstance(result, AsyncIterator):
            ping = float(getattr(admitted.arguments[0], "sse_ping_interval", 0) or 0)
            style = StreamStyle(self._error, self.operation.done, ping)
            return await send_events(send, receive, result, style, headers)
        return await send_json(send, 200, result, headers)


def _ignored_header(names: list[str]) -> Headers:
    if not names:
        return []
    value = ",".join(quote(name, safe="[].") for name in names)
    if len(value) > IGNORED_CAP:
        value = value[:IGNORED_CAP].rpartition(",")[0]
    return [(IGNORED_FIELDS, value.encode())]
