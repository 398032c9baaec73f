"""Repeat, frequency and presence penalties over the last tokens."""

from __future__ import annotations

import math
from collections import Counter, deque
from typing import ClassVar

import numpy as np

from ..errors import InvalidRequestError
from ..types import SamplingSettings
from .candidates import Candidates


class Penalties:
    """Lower the logits of tokens among the last ``last_n``.

    A token there has a positive logit divided by ``repeat`` (a negative one multiplied), then ``frequency``
    times its count and ``presence`` once subtracted.
    """

    keeps_best: ClassVar[bool] = False
    takes_best: ClassVar[bool] = False

    def __init__(self, last_n: int, repeat: float, frequency: float, presence: float) -> None:
        self._repeat = np.float32(repeat)
        self._frequency = np.float32(frequency)
        self._presence = np.float32(presence)
        self._window: deque[int] = deque(maxlen=last_n)
        self._counts: Counter[int] = Counter()

    def accept(self, token: int) -> None:
        """Remember ``token`` and forget the oldest of a full window."""
        if len(self._window) == self._window.maxlen:
            oldest = self._window[0]
            self._counts[oldest] -= 1
            if not self._counts[oldest]:
                del self._counts[oldest]
        self._window.append(token)
        self._counts[token] += 1

    def apply(self, candidates: Candidates) -> None:
        if not self._counts:
            return
        tokens = np.fromiter(self._counts.keys(), np.intp, len(self._counts))
        counts = np.fromiter(self._counts.values(), np.float32, len(self._counts))
        where, found = candidates.positions(tokens)
        logits = candidates.logits[where]
        logits = np.where(logits <= 0, logits * self._repeat, logits / self._repeat)
        candidates.logits[where] = logits - (counts[found] * self._frequency + self._presence)
        candidates.is_sorted = False


def penalties(settings: SamplingSettings) -> Penalties | None:
    repeat = settings.repeat_penalty
    frequency, presence = settings.frequency_penalty, settings.presence_penalty
    if not (math.isfinite(repeat) and repeat > 0.0 and np.isfinite(1.0 / np.float32(repeat))):
        message = "Failed to initialize samplers: repeat_penalty must be finite and greater than 0"
        raise InvalidRequestError(message, "repeat_penalty")
    if settings.repeat_last_n <= 0 or (repeat == 1.0 and frequency == 0.0 and presence == 0.0):
        return None
    return Penalties(settings.repeat_last_n, repeat, frequency, presence)
