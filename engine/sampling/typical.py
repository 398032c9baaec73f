"""Locally typical sampling: keep the tokens whose surprise is nearest to the expected one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..types import SamplingSettings
from .candidates import Candidates


@dataclass(frozen=True, slots=True)
class Typical:
    """Keep the most typical candidates until they sum to more than ``p``, at least ``min_keep``."""

    p: float
    min_keep: int
    keeps_best: ClassVar[bool] = False
    takes_best: ClassVar[bool] = False

    def apply(self, candidates: Candidates) -> None:
        candidates.sort()
        probs = candidates.softmax()
        with np.errstate(divide="ignore"):
            surprise = -np.log(probs)
        possible = probs > 0
        entropy = np.sum(probs[possible] * surprise[possible])
        order = np.argsort(np.abs(surprise - entropy), kind="stable")
        passed = int(np.searchsorted(np.cumsum(probs[order]), np.float32(self.p), side="right"))
        candidates.keep(order[: max(passed + 1, self.min_keep)])
        candidates.is_sorted = False


def typical(settings: SamplingSettings) -> Typical | None:
    return Typical(settings.typical_p, settings.min_keep) if settings.typical_p < 1.0 else None
