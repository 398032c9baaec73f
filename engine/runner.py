"""Forward passes of a loaded model: prefill of one sequence, one decode step of a batch, hidden states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from .batch import BatchCache
from .cache import SequenceCache
from .threads import Threads

Floats = npt.NDArray[np.float32]

MANY_ROWS = 12
"""Rows from which products are big enough for several threads; fewer are left to one (see ``blas``)."""


class Runner:
    """Calls an mlx-lm model. Every method runs on the engine's thread and returns evaluated values.

    Args:
        model: a model in mlx-lm's shape: ``model.model`` gives hidden states, ``lm_head`` or the tied embedding
            turns them into logits.
        threads: the matrix library's, None where there is nothing to choose.
    """

    def __init__(self, model: Any, threads: Threads | None = None) -> None:
        self._threads = threads
        self._body = model.model
        self._head = model.lm_head if "lm_head" in model else model.model.embed_tokens.as_linear
        self.n_layers = len(model.model.layers)
        self.ropes = [layer.self_attn.rope for layer in model.model.layers]

    def new_sequence(self) -> SequenceCache:
        """An empty cache for one sequence."""
        return SequenceCache(self.n_layers)

    def new_batch(self) -> BatchCache:
        """An empty decode batch."""
        return BatchCache(self.n_layers)

    def prefill(self, cache: SequenceCache, tokens: Sequence[int], *, last: bool) -> Floats | None:
        """Evaluate ``tokens`` behind what ``cache`` holds.

        Returns:
            The logits after the last token, shape ``[n_vocab]``, when ``last`` is true. Logits of the other
            positions are never computed: over a large vocabulary they cost as much as the model.
        """
        self._adjust_threads(len(tokens))
        hidden = self._body(mx.array([list(tokens)]), cache.layers)
        if not last:
            mx.eval(cache.arrays())
            return None
        logits = self._head(hidden[:, -1, :]).astype(mx.float32)
        mx.eval(logits, cache.arrays())
        values: Floats = _numpy(logits)[0]
        return values

    def decode(self, batch: BatchCache, tokens: Sequence[int]) -> Floats:
        """Append one token to each row of ``batch``; return logits of shape ``[rows, n_vocab]``."""
        self._adjust_threads(batch.rows)
        batch.begin()
        hidden = self._body(mx.array(list(tokens))[:, None], batch.layers)
        logits = self._head(hidden[:, -1, :]).astype(mx.float32)
        mx.eval(logits)
        batch.end()
        return _numpy(logits)

    def _adjust_threads(self, rows: int) -> None:
        if self._threads is not None and rows >= MANY_ROWS:
            self._threads.adjust()

    def hidden_states(self, tokens: Sequence[int]) -> Floats:
        """The normalised states of the last layer for a text of its own, shape ``[n_tokens, n_embd]``."""
        self._adjust_threads(len(tokens))
        hidden = self._body(mx.array([list(tokens)]), self.new_sequence().layers).astype(mx.float32)
        mx.eval(hidden)
        values: Floats = _numpy(hidden)[0]
        return values


def _numpy(values: mx.array) -> Floats:
    """An evaluated array as numpy sees it; on the CPU nothing is copied."""
    return np.asarray(values)
