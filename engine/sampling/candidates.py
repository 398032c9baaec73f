"""The tokens still in the running for one step, with their logits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Indices = NDArray[np.intp]

BLOCK = 64
"""Logits a block when the best ones are looked for by block maxima."""


class Candidates:
    """Tokens and their logits, which samplers narrow and reshape in place.

    Attributes:
        ids: token IDs, or None while every token is a candidate and position is ID.
        logits: float32, one per candidate; ``-inf`` for a token that can't be chosen.
        is_sorted: whether logits are in descending order.
        probs: probabilities from the last :meth:`softmax` or the selector, one per candidate; empty before.
    """

    __slots__ = ("ids", "is_sorted", "logits", "probs")

    def __init__(self, logits: Floats) -> None:
        self.ids: Indices | None = None
        self.logits = logits
        self.is_sorted = False
        self.probs: Floats = logits[:0]

    def __len__(self) -> int:
        return len(self.logits)

    def id(self, position: int) -> int:
        """The token at ``position``."""
        return position if self.ids is None else int(self.ids[position])

    def all_ids(self) -> Indices:
        """Every candidate's token ID."""
        return np.arange(len(self.logits)) if self.ids is None else self.ids

    def positions(self, tokens: Indices) -> tuple[Indices, Indices]:
        """Where ``tokens`` are: positions among the candidates, and each one's index in ``tokens``."""
        if self.ids is None:
            found = np.flatnonzero(tokens < len(self.logits))
            return tokens[found], found
        where, found = np.nonzero(self.ids[:, None] == tokens[None, :])
        return where, found

    def keep(self, selection: Indices | slice) -> None:
        """Keep (and reorder to) the given positions; probabilities follow."""
        if self.ids is None and not isinstance(selection, slice):
            self.ids = selection
        else:
            self.ids = self.all_ids()[selection]
        self.logits = self.logits[selection]
        if len(self.probs):
            self.probs = self.probs[selection]

    def keep_top(self, k: int) -> None:
        """Keep the ``k`` best in descending order; all of them if there are fewer."""
        if self.is_sorted:
            self.keep(slice(0, k))
        else:
            self.keep(top_positions(self.logits, k))
            self.is_sorted = True

    def sort(self) -> None:
        """Put the best first."""
        if not self.is_sorted:
            self.keep(np.argsort(-self.logits))
            self.is_sorted = True

    def best(self) -> int:
        """The position of the highest logit, the first of equals."""
        return 0 if self.is_sorted else int(self.logits.argmax())

    def softmax(self) -> Floats:
        """Set ``probs`` from the logits and return them."""
        self.probs = softmax(self.logits)
        return self.probs


def softmax(logits: Floats) -> Floats:
    """Probabilities of ``logits``, float32."""
    probs: Floats = np.exp(logits - logits.max())
    probs /= probs.sum()
    return probs


def top_positions(logits: Floats, k: int) -> Indices:
    """Positions of the ``k`` highest logits, best first, lower position first among equals.

    A vocabulary is searched by blocks: at least ``k`` blocks have a maximum no lower than the k-th highest
    maximum, so nothing below that one can be among the ``k`` best, and few logits are above it.
    """
    n = len(logits)
    k = min(k, n)
    if k <= 0:
        return np.empty(0, np.intp)
    n_blocks = n // BLOCK
    pool: Indices | None = None
    if k < n_blocks:
        maxima = logits[: n_blocks * BLOCK].reshape(n_blocks, BLOCK).max(axis=1)
        pool = np.flatnonzero(logits >= np.partition(maxima, n_blocks - k)[n_blocks - k])
        if len(pool) < k:  # only when logits are not numbers
            pool = None
    values = -logits if pool is None else -logits[pool]
    if 4 * k < len(values):
        # Ties at the edge are settled by position, so keep all of them until the sort.
        edge = np.partition(values, k - 1)[k - 1]
        near = np.flatnonzero(values <= edge)
        pool = near if pool is None else pool[near]
        values = values[near]
    order = np.argsort(values, kind="stable")[:k]
    return order if pool is None else pool[order]
