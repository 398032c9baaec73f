"""XTC (exclude top choices): now and then drop all of the likely tokens but the least likely of them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..types import SamplingSettings
from .candidates import Candidates
from .rng import Random


class Xtc:
    """With ``probability``, drop all candidates above ``threshold`` but the last, if ``min_keep`` remain."""

    keeps_best: ClassVar[bool] = False
    takes_best: ClassVar[bool] = False

    def __init__(self, probability: float, threshold: float, min_keep: int, seed: int) -> None:
        self.probability = probability
        self.threshold = threshold
        self.min_keep = min_keep
        self._random = Random(seed)

    def apply(self, candidates: Candidates) -> None:
        if len(candidates) < 2 or self._random.single() > self.probability:
            return
        candidates.sort()
        likely = int(np.count_nonzero(candidates.softmax() >= np.float32(self.threshold)))
        last = max(0, likely - 1)
        if last > 0 and len(candidates) - last >= self.min_keep:
            candidates.keep(slice(last, None))


def xtc(settings: SamplingSettings, seed: int) -> Xtc | None:
    if settings.xtc_probability <= 0.0 or settings.xtc_threshold > 0.5:
        return None
    return Xtc(settings.xtc_probability, settings.xtc_threshold, settings.min_keep, seed)
