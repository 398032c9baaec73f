"""Random numbers as the reference draws them: the same seed makes the same choices.

llama.cpp gives every sampler that draws a Mersenne Twister (C++'s ``mt19937``) of its own, seeded alike.
Numpy has the same generator with the same seeding, and libstdc++'s rules for making fractions and picks out
of its 32-bit words are few.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from ..types import RANDOM_SEED
from .candidates import Floats


def resolve_seed(seed: int) -> int:
    """``seed``, or a fresh one for ``RANDOM_SEED``."""
    return secrets.randbits(32) if seed == RANDOM_SEED else seed % 2**32


class Random:
    """One sampler's source of randomness."""

    def __init__(self, seed: int) -> None:
        self._words = np.random.MT19937()
        state: Any = np.random.RandomState(seed).get_state(legacy=False)
        self._words.state = state

    def double(self) -> float:
        """A float64 in [0, 1) out of two words."""
        low, high = self._words.random_raw(2).tolist()
        return min((float(low) + float(high) * 2.0**32) / 2.0**64, 1.0 - 2.0**-53)

    def single(self) -> float:
        """A float32 in [0, 1) out of one word."""
        return min(float(np.float32(self._words.random_raw()) / np.float32(2**32)), 1.0 - 2.0**-24)

    def pick(self, weights: Floats) -> int:
        """An index with a probability in proportion to ``weights`` (C++'s ``discrete_distribution``)."""
        if len(weights) < 2:
            return 0
        bounds = np.cumsum(weights, dtype=np.float64)
        bounds /= bounds[-1]
        return min(int(np.searchsorted(bounds, self.double())), len(weights) - 1)
