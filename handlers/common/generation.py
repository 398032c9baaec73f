"""Running several sequences for one request: their events as one stream, or their ends as one list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from mlxcel.engine.engine import Engine
from mlxcel.engine.generation import Generation
from mlxcel.engine.types import Event, Finished, GenerationRequest

T = TypeVar("T")

Stream = Generation


async def started(engine: Engine, requests: Sequence[GenerationRequest], copies: int) -> list[Stream]:
    """Begin ``copies`` sequences of every request; when one can't begin, those that have are stopped."""
    streams: list[Stream] = []
    try:
        for request in requests:
            streams += await engine.generate_copies(request, copies)
    except BaseException:
        for stream in streams:
            await stream.aclose()
        raise
    return streams


async def merged(streams: Sequence[Stream]) -> AsyncGenerator[tuple[int, Event], None]:
    """Events of all ``streams`` as they come, each with its stream's index. Closing this closes them all."""
    if len(streams) == 1:
        async with aclosing(streams[0]) as only:
            async for event in only:
                yield 0, event
        return
    queue: asyncio.Queue[tuple[int, Event | Exception]] = asyncio.Queue()
    pumps = [asyncio.ensure_future(_pump(index, stream, queue)) for index, stream in enumerate(streams)]
    unfinished = len(streams)
    try:
        while unfinished:
            index, news = await queue.get()
            if isinstance(news, Exception):
                raise news
            yield index, news
            unfinished -= isinstance(news, Finished)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pump(index: int, stream: Stream, queue: asyncio.Queue[tuple[int, Event | Exception]]) -> None:
    try:
        async with aclosing(stream):
            async for event in stream:
                queue.put_nowait((index, event))
    except Exception as error:
        queue.put_nowait((index, error))


async def finished(streams: Sequence[Stream]) -> list[Finished]:
    """Wait for all ``streams``; their last events in order."""
    ends: dict[int, Finished] = {}
    async with aclosing(merged(streams)) as events:
        async for index, event in events:
            if isinstance(event, Finished):
                ends[index] = event
    return [ends[index] for index in range(len(streams))]


class Primed(Generic[T]):
    """``items`` with the first one already there. Closing works before the first item is taken, too."""

    def __init__(self, items: AsyncGenerator[T, None], *first: T) -> None:
        self._items = items
        self._first = list(first)

    def __aiter__(self) -> Primed[T]:
        return self

    async def __anext__(self) -> T:
        return self._first.pop() if self._first else await anext(self._items)

    async def aclose(self) -> None:
        """End the iteration and what is behind it."""
        self._first.clear()
        await self._items.aclose()


async def primed(items: AsyncGenerator[T, None]) -> Primed[T]:
    """Wait for the first of ``items``, so that what goes wrong before it is still an ordinary error answer."""
    try:
        return Primed(items, await anext(items))
    except StopAsyncIteration:
        return Primed(items)
    except BaseException:
        await items.aclose()
        raise
