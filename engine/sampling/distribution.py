"""The usual end of a chain: choose at random by probability."""

from __future__ import annotations

import numpy as np

from ..errors import GenerationError
from .candidates import Candidates
from .rng import Random


class Distribution:
    """Choose a candidate with its softmax probability."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def select(self, candidates: Candidates) -> int:
        logits = candidates.logits
        with np.errstate(invalid="ignore"):
            weights = np.exp(logits - logits[candidates.best()])
        bounds = np.cumsum(weights, dtype=np.float64)
        if not bounds[-1] > 0.0:
            raise GenerationError(
                "no token can be chosen: the model's logits are not numbers, or all are ruled out"
            )
        position = int(np.searchsorted(bounds, bounds[-1] * self._random.double()))
        candidates.probs = (weights / bounds[-1]).astype(np.float32)
        return min(position, len(logits) - 1)
