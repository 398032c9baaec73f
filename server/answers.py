"""How a handler's result becomes bytes: JSON, text, or server-sent events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import msgspec
from starlette.types import Receive, Send

from mlxcel.engine.errors import EngineError
from mlxcel.handlers.context import Text
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


async def send_text(send: Send, text: Text) -> None:
    """Answer with something that isn't JSON."""
    await _send_whole(send, 200, text.body.encode(), text.media_type.encode(), [])


async def _send_whole(send: Send, status: int, body: bytes, media_type: bytes, headers: Headers) -> None:
    start = [(b"content-type", media_type), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


async def send_events(
    send: Send, receive: Receive, items: AsyncIterator[Any], *, done: bool, error: type[ApiError], headers: Headers
) -> None:
    """Answer with one event an item, each sent at once.

    The iterator is closed when the client goes away. What fails half-way becomes a last event with the error.

    Args:
        done: end with ``data: [DONE]``.
    """
    start = [(b"content-type", EVENTS), (b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"), *headers]
    await send({"type": "http.response.start", "status": 200, "headers": start})

    async def pump() -> None:
        try:
            async for item in items:
                await _send_event(send, encode(item))
        except (ApiError, EngineError) as failure:
            await _send_event(send, encode(in_surface(failure, error).envelope()))
        except Exception as failure:
            logger.exception("a stream failed")
            await _send_event(send, encode(in_surface(failure, error).envelope()))
        else:
            if done:
                await _send_event(send, b"[DONE]")
        await send({"type": "http.response.body", "body": b""})

    try:
        await unless_gone(pump(), receive)
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()


async def _send_event(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": b"data: " + data + b"\n\n", "more_body": True})


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
