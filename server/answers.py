"""How a handler's result becomes bytes: JSON, text, or server-sent events."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.types import Receive, Send

from mlxcel.engine.errors import EngineError
from mlxcel.handlers.errors import ApiError

logger = logging.getLogger(__name__)

JSON = b"application/json; charset=utf-8"
EVENTS = b"text/event-stream"

Headers = list[tuple[bytes, bytes]]

encode = msgspec.json.Encoder().encode


async def send_json(send: Send, status: int, value: Any, headers: Headers | None = None) -> None:
    """Answer with a JSON value."""
    await _send_whole(send, status, encode(value), JSON, headers or [])


async def send_error(send: Send, error: ApiError) -> None:
    """Answer with an error in its surface's envelope."""
    headers = [(k.lower().encode(), v.encode()) for k, v in error.headers.items()]
    await send_json(send, error.status, error.envelope(), headers)


async def send_text(send: Send, text: str, media_type: str) -> None:
    """Answer with something that isn't JSON."""
    await _send_whole(send, 200, text.encode(), f"{media_type}; charset=utf-8".encode(), [])


async def _send_whole(send: Send, status: int, body: bytes, media_type: bytes, headers: Headers) -> None:
    start = [(b"content-type", media_type), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True, slots=True)
class StreamStyle:
    """How a stream is written.

    ``done`` ends it with ``data: [DONE]``; after ``ping`` silent seconds (0: never) a comment is sent.
    """

    error: type[ApiError]
    done: bool
    ping: float = 0.0


async def send_events(
    send: Send, receive: Receive, items: AsyncIterator[Any], style: StreamStyle, headers: Headers
) -> None:
    """Answer with one event an item, each sent at once.

    The iterator is closed when the client goes away. What fails half-way becomes a last event with the error.
    """
    start = [
        (b"content-type", EVENTS),
        (b"cache-control", b"no-cache"),
        (b"x-accel-buffering", b"no"),
        *headers,
    ]
    await send({"type": "http.response.start", "status": 200, "headers": start})

    writer = _EventWriter(send)

    async def pump() -> None:
        try:
            async for item in items:
                await writer.event(encode(item))
        except Exception as failure:
            if not isinstance(failure, ApiError | EngineError):
                logger.exception("a stream failed")
            await writer.event(encode(in_surface(failure, style.error).envelope()))
        else:
            if style.done:
                await writer.event(b"[DONE]")
        await send({"type": "http.response.body", "body": b""})

    pings = asyncio.ensure_future(writer.ping(style.ping)) if style.ping > 0 else None
    try:
        await unless_gone(pump(), receive)
    finally:
        if pings is not None:
            pings.cancel()
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()


class _EventWriter:
    """Writes events, and comments while there are none, so that nobody between takes the stream for dead."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._wrote = time.monotonic()

    async def event(self, data: bytes) -> None:
        await self._write(b"data: " + data + b"\n\n")

    async def ping(self, interval: float) -> None:
        while True:
            silence = time.monotonic() - self._wrote
            if silence >= interval:
                await self._write(b":\n\n")
                silence = 0.0
            await asyncio.sleep(interval - silence)

    async def _write(self, block: bytes) -> None:
        self._wrote = time.monotonic()
        await self._send({"type": "http.response.body", "body": block, "more_body": True})


def in_surface(failure: Exception, error: type[ApiError]) -> ApiError:
    """Any failure as the surface's error; what isn't foreseen says nothing of the inside."""
    match failure:
        case ApiError():
            return failure
        case EngineError():
            return error.from_engine(failure)
        case _:
            return error(500, "internal error; the server's log has the details")


class Gone(Exception):
    """The client went away; nobody reads an answer."""


async def unless_gone(work: Coroutine[Any, Any, Any], receive: Receive) -> Any:
    """The result of ``work``, which is cancelled when the client goes away.

    Raises:
        Gone: it did.
    """
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((task, watch), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Gone
    finally:
        watch.cancel()
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
