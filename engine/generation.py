"""The events of a sequence on their way from the engine's thread to the coroutine that waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from .sequence import Sequence
from .types import Event, Finished


class Mailbox:
    """A queue in an event loop, filled from the engine's thread a step at a time."""

    def __init__(self, outbox: list[tuple[Mailbox, Event | Exception]]) -> None:
        self.loop = asyncio.get_running_loop()
        self.queue: asyncio.Queue[Event | Exception] = asyncio.Queue()
        self._outbox = outbox

    def put(self, event: Event | Exception) -> None:
        """Add an event to what the current step delivers; on the engine's thread."""
        self._outbox.append((self, event))


class Generation(AsyncIterator[Event]):
    """The events of one sequence, ending with :class:`Finished`.

    It runs from the moment it is made. Closing it frees the slot before the next step, whether or not anything was
    read.
    """

    def __init__(self, mailbox: Mailbox, sequence: Sequence | None) -> None:
        self._mailbox = mailbox
        self._sequence = sequence
        self._over = False

    def __aiter__(self) -> Generation:
        return self

    async def __anext__(self) -> Event:
        if self._over:
            raise StopAsyncIteration
        event = await self._mailbox.queue.get()
        if isinstance(event, Exception):
            self._over = True
            raise event
        self._over = isinstance(event, Finished)
        return event

    async def aclose(self) -> None:
        """Stop generating."""
        self._over = True
        if self._sequence is not None:
            self._sequence.cancelled = True
