"""How many threads the matrix library uses: all that it may, but only while they help.

Its threads meet at the end of every product. On a machine with something else to do, whichever has lost its core is
waited for each time, and a prompt takes ten times as long with two threads as with one. So now and then the same
small products are timed both ways.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import mlx.core as mx

INTERVAL = 2.0
"""Seconds for which a finding holds; doubled, up to ``LONGEST``, each time threads turn out to be no help."""

LONGEST = 30.0
PRODUCTS = 4
ROWS, DEPTH, COLUMNS = 64, 512, 1024
"""Shape of a product in the trial: like one of a small model's prefill, a millisecond or two."""

WORTHWHILE = 0.9
"""Part of one thread's time that several must stay below."""


class Threads:
    """Keeps the number of threads right; lives on the engine's thread.

    Args:
        most: threads that may be used.
        set_threads: tells the matrix library.
        trial: seconds that the products of a trial take.
    """

    def __init__(
        self, most: int, set_threads: Callable[[int], None], trial: Callable[[], float] | None = None
    ) -> None:
        self._most = most
        self._set = set_threads
        self._trial = trial or _Products().seconds
        self._wait = INTERVAL
        self._next_trial = 0.0
        self.current = 1
        set_threads(1)

    def adjust(self) -> None:
        """Try again whether threads help, if the last finding is old; before big products."""
        now = time.monotonic()
        if self._most == 1 or now < self._next_trial:
            return
        self._set(1)
        alone = self._trial()
        self._set(self._most)
        together = self._trial()
        if together < WORTHWHILE * alone:
            self._wait, self.current = INTERVAL, self._most
        else:
            self._wait, self.current = min(2 * self._wait, LONGEST), 1
            self._set(1)
        self._next_trial = time.monotonic() + self._wait


class _Products:
    def __init__(self) -> None:
        self._left = mx.ones((ROWS, DEPTH))
        self._right = mx.ones((DEPTH, COLUMNS))
        mx.eval(self._left, self._right)

    def seconds(self) -> float:
        begun = time.perf_counter()
        for _ in range(PRODUCTS):
            mx.eval(self._left @ self._right)
        return time.perf_counter() - begun
