"""Adaptive-p: prefer tokens whose probability is near a target that keeps the running average there."""

from __future__ import annotations

import numpy as np

from .candidates import Candidates
from .rng import Random

PEAK = 5.0
SHARPNESS = 10.0
WIDTH = 0.3


class AdaptiveP:
    """Choose by closeness to ``target`` (a probability; negative: by probability alone).

    ``decay`` in [0, 0.99] is how much of the average each token leaves to its predecessors.
    """

    def __init__(self, target: float, decay: float, seed: int) -> None:
        self._target = target
        self._decay = min(max(decay, 0.0), 0.99)
        self._weighted_sum = target / (1.0 - self._decay)
        self._total_weight = 1.0 / (1.0 - self._decay)
        self._pending: tuple[int, float] | None = None
        self._random = Random(seed)

    def select(self, candidates: Candidates) -> int:
        original = candidates.softmax()
        if self._target < 0.0:
            return self._random.pick(original)
        target = min(max(2.0 * min(self._target, 1.0) - self._weighted_sum / self._total_weight, 0.0), 1.0)
        distance = np.abs((original - np.float32(target)) * np.float32(1.0 / WIDTH))
        moved = np.float32(PEAK) - np.float32(SHARPNESS) * distance * distance / (1.0 + distance)
        candidates.logits = np.where(candidates.logits == -np.inf, candidates.logits, moved)
        candidates.is_sorted = False
        position = self._random.pick(candidates.softmax())
        self._pending = (candidates.id(position), float(original[position]))
        return position

    def accept(self, token: int) -> None:
        """Count the chosen token's own probability into the average."""
        if self._pending is not None and self._pending[0] == token:
            self._weighted_sum = self._pending[1] + self._decay * self._weighted_sum
            self._total_weight = 1.0 + self._decay * self._total_weight
        self._pending = None
