"""Logit bias, and the ban on ending that ``ignore_eos`` is."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..types import SamplingSettings
from ..vocabulary import Vocabulary
from .candidates import Candidates


class LogitBias:
    """Add a bias to some tokens' logits; biases of a token given twice add up."""

    keeps_best: ClassVar[bool] = False
    takes_best: ClassVar[bool] = False

    def __init__(self, biases: list[tuple[int, float]]) -> None:
        self._tokens = np.array([token for token, _ in biases], np.intp)
        self._values = np.array([value for _, value in biases], np.float32)

    def apply(self, candidates: Candidates) -> None:
        where, found = candidates.positions(self._tokens)
        np.add.at(candidates.logits, where, self._values[found])
        candidates.is_sorted = False


def logit_bias(settings: SamplingSettings, vocabulary: Vocabulary) -> LogitBias | None:
    biases = [(token, value) for token, value in settings.logit_bias if token >= 0]
    if settings.ignore_eos:
        biases += [(token, -np.inf) for token in sorted(vocabulary.eog_ids)]
    return LogitBias(biases) if biases else None
