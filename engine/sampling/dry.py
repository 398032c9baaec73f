"""DRY (don't repeat yourself): the longer the repetition a token would prolong, the dearer it is."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..types import SamplingSettings
from ..vocabulary import Vocabulary, pieces
from .candidates import Candidates

Breakers = dict[int, tuple[tuple[int, ...], ...]]
"""Heads of sequence breakers: token ID to the tails that complete one; an empty tail is a whole breaker."""

MAX_BREAKER_BYTES = 40
MAX_TAIL_TOKENS = 20
LOG_FLOAT_MAX = 88.7228391


class Dry:
    """Lower the logit of each token that would prolong a repetition of at least ``allowed_length`` tokens.

    The penalty is ``multiplier * base ** (length - allowed_length)``, length being how many of the last
    tokens also stand before an earlier occurrence of that token among the last ``last_n``. Breakers end
    repetitions.
    """

    keeps_best: ClassVar[bool] = False
    takes_best: ClassVar[bool] = False

    def __init__(
        self, multiplier: float, base: float, allowed_length: int, last_n: int, breakers: Breakers
    ) -> None:
        self._multiplier = multiplier
        self._base = base
        self._allowed = allowed_length
        self._breakers = breakers
        self._window: deque[int] = deque(maxlen=last_n)
        # Where base ** exponent would overflow a float32.
        self._max_exponent = int(LOG_FLOAT_MAX / math.log(base)) if base > 1.000001 else 0

    def accept(self, token: int) -> None:
        """Remember ``token``."""
        self._window.append(token)

    def apply(self, candidates: Candidates) -> None:
        penalties = self._penalties()
        if penalties:
            tokens = np.fromiter(penalties.keys(), np.intp, len(penalties))
            values = np.fromiter(penalties.values(), np.float32, len(penalties))
            where, found = candidates.positions(tokens)
            candidates.logits[where] -= values[found]
            candidates.is_sorted = False

    def _penalties(self) -> dict[int, float]:
        if len(self._window) <= self._allowed:
            return {}
        newest_first = list(reversed(self._window))
        limit = self._limit(newest_first)
        if limit < self._allowed:
            return {}
        longest: dict[int, int] = {}
        for age, length in enumerate(_self_overlaps(newest_first)):
            if age and min(length, limit) >= self._allowed:
                token = newest_first[age - 1]
                longest[token] = max(longest.get(token, 0), min(length, limit))
        return {
            token: self._price(length)
            for token, length in longest.items()
            if () not in self._breakers.get(token, ())
        }

    def _limit(self, newest_first: Sequence[int]) -> int:
        """How long a repetition may count as: tokens since the last sequence breaker."""
        for age, token in enumerate(newest_first):
            complete = [
                len(tail)
                for tail in self._breakers.get(token, ())
                if len(tail) <= age and tuple(newest_first[age - i - 1] for i in range(len(tail))) == tail
            ]
            if complete:
                return age - max(complete)
        return len(newest_first)

    def _price(self, length: int) -> float:
        exponent = length - self._allowed
        if self._max_exponent:
            exponent = min(exponent, self._max_exponent)
        return float(np.float32(self._multiplier * self._base**exponent))


def _self_overlaps(items: Sequence[int]) -> list[int]:
    """For every position, how many items from there on equal those from the start on (Z-algorithm)."""
    n = len(items)
    overlaps = [0] * n
    left = right = 0
    for i in range(1, n):
        length = min(right - i, overlaps[i - left]) if i < right else 0
        while i + length < n and items[length] == items[i + length]:
            length += 1
        overlaps[i] = length
        if i + length > right:
            left, right = i, i + length
    return overlaps


@lru_cache(maxsize=4)
def _joined(vocabulary: Vocabulary) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """All tokens' bytes in a row, and where each token ends."""
    words = pieces(vocabulary)
    ends = np.cumsum([len(word) for word in words], dtype=np.intp)
    return np.frombuffer(b"".join(words), np.uint8), ends


@lru_cache(maxsize=64)
def _heads(vocabulary: Vocabulary, breaker: str) -> Breakers:
    """The tokens that contain ``breaker`` or end with a beginning of it, each with what must follow."""
    text, ends = _joined(vocabulary)
    whole = breaker.encode()[:MAX_BREAKER_BYTES]
    heads: Breakers = {}
    # Places in the text where the first n bytes match, for a growing n; those at the end of a token drop out.
    places = np.flatnonzero(text == whole[0])
    for n in range(1, len(whole)):
        tokens = np.searchsorted(ends, places, side="right")
        at_end = ends[tokens] == places + n
        if at_end.any():
            rest = whole[n:].decode(errors="replace")
            tail = tuple(vocabulary.encode(rest, add_special=False, parse_special=False)[:MAX_TAIL_TOKENS])
            for token in tokens[at_end].tolist():
                heads[token] = tuple(dict.fromkeys((*heads.get(token, ()), tail)))
        places = places[~at_end]
        places = places[text[places + n] == whole[n]]
    complete = np.searchsorted(ends, places, side="right")
    return heads | dict.fromkeys(complete.tolist(), ((),))


def breakers(vocabulary: Vocabulary, texts: Sequence[str]) -> Breakers:
    """The heads of all of ``texts``; empty ones are skipped."""
    merged: Breakers = {}
    for text in texts:
        if text:
            for token, tails in _heads(vocabulary, text).items():
                merged[token] = merged.get(token, ()) + tails
    return merged


def dry(settings: SamplingSettings, vocabulary: Vocabulary) -> Dry | None:
    if settings.dry_multiplier == 0.0 or settings.dry_base < 1.0 or settings.dry_penalty_last_n <= 0:
        return None
    return Dry(
        settings.dry_multiplier,
        settings.dry_base,
        settings.dry_allowed_length,
        settings.dry_penalty_last_n,
        breakers(vocabulary, settings.dry_sequence_breakers),
    )
