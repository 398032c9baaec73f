"""Probabilities to show beside a token (``n_probs``)."""

from __future__ import annotations

import math

import numpy as np

from ..types import Sample, TokenProbability
from .candidates import Candidates, Floats, top_positions

LOG_ZERO = float(-np.finfo(np.float32).max)
"""Stands for the logarithm of zero; JSON has no infinity."""


def before_sampling(token: int, logits: Floats, n_probs: int) -> Sample:
    """``token`` and the best ``n_probs`` with log-probabilities over the raw ``logits``."""
    highest = logits.max()
    normaliser = float(highest) + math.log(float(np.exp(logits - highest).sum()))
    top = top_positions(logits, n_probs)
    values = np.maximum(logits[top].astype(np.float64) - normaliser, LOG_ZERO).tolist()
    own = max(float(logits[token]) - normaliser, LOG_ZERO)
    return Sample(token, own, tuple(map(TokenProbability, top.tolist(), values)))


def after_sampling(position: int, candidates: Candidates, n_probs: int) -> Sample:
    """The candidate at ``position`` and the best ``n_probs`` with the chain's probabilities, no zeros."""
    probs = candidates.probs
    top = top_positions(probs, n_probs)
    top = top[probs[top] > 0.0]
    ids = top if candidates.ids is None else candidates.ids[top]
    return Sample(
        candidates.id(position),
        float(probs[position]),
        tuple(map(TokenProbability, ids.tolist(), probs[top].tolist())),
    )
