"""Samplers that drop unlikely candidates and leave the best one: top-k, top-p, min-p, top-n-sigma."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..types import SamplingSettings
from .candidates import Candidates, top_positions

FIRST_LOOK = 256
"""Candidates that top-p sorts at first; nearly always enough, and a fraction of sorting a vocabulary."""


@dataclass(frozen=True, slots=True)
class TopK:
    """Keep the ``k`` best."""

    k: int
    keeps_best: ClassVar[bool] = True

    @property
    def takes_best(self) -> bool:
        return self.k == 1

    def apply(self, candidates: Candidates) -> None:
        candidates.keep_top(self.k)


@dataclass(frozen=True, slots=True)
class TopP:
    """Keep the best ones until their probabilities sum to ``p``, at least ``min_keep``."""

    p: float
    min_keep: int
    keeps_best: ClassVar[bool] = True
    takes_best: ClassVar[bool] = False

    def apply(self, candidates: Candidates) -> None:
        probs = candidates.softmax()
        n = len(probs)
        if not candidates.is_sorted and n > 4 * FIRST_LOOK and self.min_keep <= FIRST_LOOK:
            top = top_positions(candidates.logits, FIRST_LOOK)
            count = self._count(probs[top])
            if count is not None:
                candidates.keep(top[:count])
                candidates.is_sorted = True
                return
        candidates.sort()
        candidates.keep(slice(0, self._count(candidates.probs)))

    def _count(self, probs: np.ndarray[tuple[int], np.dtype[np.float32]]) -> int | None:
        """How many of the sorted ``probs`` to keep; None if they don't reach ``p``."""
        reached = int(np.searchsorted(np.cumsum(probs), np.float32(self.p)))
        count = max(reached + 1, self.min_keep)
        return count if count <= len(probs) else None


@dataclass(frozen=True, slots=True)
class MinP:
    """Keep what is at least ``p`` times as likely as the best, at least ``min_keep``."""

    p: float
    min_keep: int
    keeps_best: ClassVar[bool] = True
    takes_best: ClassVar[bool] = False

    def apply(self, candidates: Candidates) -> None:
        logits = candidates.logits
        enough = logits >= logits[candidates.best()] + np.float32(math.log(self.p))
        count = int(np.count_nonzero(enough))
        if candidates.is_sorted:
            candidates.keep(slice(0, max(count, self.min_keep, 1)))
        elif count >= max(self.min_keep, 1):
            candidates.keep(np.flatnonzero(enough))
        else:
            candidates.keep_top(max(self.min_keep, 1))


@dataclass(frozen=True, slots=True)
class TopNSigma:
    """Rule out logits more than ``n`` standard deviations below the best."""

    n: float
    keeps_best: ClassVar[bool] = True
    takes_best: ClassVar[bool] = False

    def apply(self, candidates: Candidates) -> None:
        logits = candidates.logits
        possible = logits[logits != -np.inf]
        if len(logits) > 1 and len(possible):
            logits[logits < possible.max() - np.float32(self.n) * possible.std()] = -np.inf


def top_k(settings: SamplingSettings) -> TopK | None:
    return TopK(settings.top_k) if settings.top_k > 0 else None


def top_p(settings: SamplingSettings) -> TopP | None:
    return TopP(settings.top_p, settings.min_keep) if settings.top_p < 1.0 else None


def min_p(settings: SamplingSettings) -> MinP | None:
    return MinP(settings.min_p, settings.min_keep) if settings.min_p > 0.0 else None


def top_n_sigma(settings: SamplingSettings) -> TopNSigma | None:
    return TopNSigma(settings.top_n_sigma) if settings.top_n_sigma > 0.0 else None
