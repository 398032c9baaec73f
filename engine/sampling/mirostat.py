"""Mirostat 1 and 2: hold the surprise of the text near a target by moving the cut-off after every token."""

from __future__ import annotations

import math

import numpy as np

from .candidates import Candidates
from .rng import Random

CONSIDERED = 100
"""Best candidates from which version 1 estimates how fast probabilities fall with rank."""


class _Mirostat:
    """``tau`` is the target surprise in bits, ``eta`` the learning rate; ``_mu`` the surprise allowed now."""

    def __init__(self, tau: float, eta: float, seed: int) -> None:
        self._tau = tau
        self._eta = eta
        self._mu = 2.0 * tau
        self._random = Random(seed)

    def _choose(self, candidates: Candidates) -> int:
        probs = candidates.softmax()
        position = self._random.pick(probs)
        self._mu -= self._eta * (-math.log2(probs[position]) - self._tau)
        return position


class Mirostat1(_Mirostat):
    """Cut at the rank that a Zipf distribution fitted to the best candidates puts at the allowed surprise."""

    def __init__(self, tau: float, eta: float, seed: int, n_vocab: int) -> None:
        super().__init__(tau, eta, seed)
        self._n_vocab = n_vocab

    def select(self, candidates: Candidates) -> int:
        candidates.sort()
        probs = candidates.softmax()[:CONSIDERED].astype(np.float64)
        candidates.keep_top(self._rank(probs[probs > 0.0]))
        return self._choose(candidates)

    def _rank(self, probs: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
        if len(probs) < 2:
            return 1
        ranks = np.arange(1, len(probs))
        spacing = np.log((ranks + 1) / ranks)
        exponent = float(spacing @ np.log(probs[:-1] / probs[1:]) / (spacing @ spacing))
        excess = exponent - 1.0
        try:
            rank = ((excess * 2.0**self._mu) / (1.0 - self._n_vocab**-excess)) ** (1.0 / exponent)
        except (OverflowError, ZeroDivisionError):
            return self._n_vocab
        return max(1, int(min(rank, self._n_vocab))) if isinstance(rank, float) and math.isfinite(rank) else 1


class Mirostat2(_Mirostat):
    """Cut where a token's surprise exceeds what is allowed."""

    def select(self, candidates: Candidates) -> int:
        candidates.sort()
        with np.errstate(divide="ignore"):
            surprising = -np.log2(candidates.softmax()) > self._mu
        count = int(surprising.argmax()) if surprising.any() else len(candidates)
        candidates.keep_top(max(1, count))
        return self._choose(candidates)
