"""From hidden states to embedding vectors: pooling and normalisation as the reference does them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .types import Pooling

Floats = npt.NDArray[np.float32]


def pool(states: Floats, pooling: Pooling) -> Floats:
    """Reduce states of shape ``[n_tokens, n_embd]`` to ``[n_vectors, n_embd]``; ``none`` keeps one a token."""
    match pooling:
        case "none":
            return states
        case "mean":
            return np.asarray(states.mean(axis=0, keepdims=True), np.float32)
        case "cls":
            return states[:1]
        case "last":
            return states[-1:]
        case "rank":
            raise ValueError("rank pooling needs a classification head")


def normalize(vectors: Floats, norm: int) -> Floats:
    """Scale each row of ``vectors``; zero rows stay zero.

    Args:
        norm: -1 leaves them alone, 0 scales the largest magnitude to 32760 (int16 range), 2 is Euclidean, any other
            p is the p-norm (1: taxicab).
    """
    if norm < 0:
        return vectors
    magnitudes = np.abs(vectors).astype(np.float64)
    if norm == 0:
        lengths = magnitudes.max(axis=1, keepdims=True) / 32760.0
    elif norm == 2:
        lengths = np.sqrt((magnitudes**2).sum(axis=1, keepdims=True))
    else:
        lengths = (magnitudes**norm).sum(axis=1, keepdims=True) ** (1.0 / norm)
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return np.asarray(vectors * scale, np.float32)
