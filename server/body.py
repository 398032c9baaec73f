"""A request's body: read under a size limit, parsed once, judged by the schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jsonschema_rs
import msgspec
from starlette.types import Receive

from mlxcel.handlers.errors import ApiError

from .faults import Fault, dotted, first_fault
from .schemas import SchemaSet

_decode = msgspec.json.Decoder().decode


class ClientGone(Exception):
    """The client closed the connection before its request was whole."""


async def read(receive: Receive, limit: int, error: type[ApiError]) -> bytes:
    """The whole body.

    Raises:
        ApiError: 413 as soon as more than ``limit`` bytes have come.
        ClientGone: the connection closed first.
    """
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise error(
                413,
                f"request body exceeds {limit} bytes; send less or raise --max-body-size",
                headers={"Connection": "close"},
            )
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def parse(raw: bytes, error: type[ApiError]) -> Any:
    """The JSON value in ``raw``, whatever content type it was sent with.

    Raises:
        ApiError: 400 for what isn't JSON by the letter: NaN, bad UTF-8, lone surrogates, absurd depth.
    """
    try:
        return _decode(raw)
    except RecursionError:
        raise error(400, "Request body: is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as cause:
        raise error(400, f"Request body: invalid JSON ({cause})") from None


@dataclass(frozen=True, slots=True)
class BodyValidator:
    """Judges bodies of one schema.

    Args:
        schemas: the document's schemas.
        name: the schema's name.
        error: the surface's error class.
        report_unknown: accept unknown fields, take them out and list them instead of refusing them.
    """

    schemas: SchemaSet
    name: str
    error: type[ApiError]
    report_unknown: bool
    validator: jsonschema_rs.Draft202012Validator

    @classmethod
    def build(
        cls, schemas: SchemaSet, name: str, error: type[ApiError], *, report_unknown: bool
    ) -> BodyValidator:
        """Compile the validator."""
        return cls(schemas, name, error, report_unknown, schemas.validator(name))

    def check(self, body: Any) -> list[str]:
        """Judge a body.

        Returns:
            Paths of unknown fields that were taken out of ``body``.

        Raises:
            ApiError: 400 with the fault that matters most.
        """
        ignored: list[str] = []
        while not self.validator.is_valid(body):
            fault = first_fault(self.validator, body, self.schemas, self.name)
            if not fault.unknown or not self.report_unknown:
                raise self.error(400, fault.message, field=fault.field)
            ignored += _take_out(body, fault)
        return ignored


def _take_out(body: Any, fault: Fault) -> list[str]:
    holder = body
    for part in fault.path:
        holder = holder[part]
    for name in fault.unknown:
        del holder[name]
    return [dotted((*fault.path, name)) for name in fault.unknown]
