"""A vocabulary without a model, and the distribution that a chain makes of some logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlxcel.engine.sampling import Sampler
from mlxcel.engine.types import SamplingSettings

NEUTRAL: dict[str, Any] = {"seed": 1, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}


class Words:
    """A vocabulary of given words; the last is the end of generation."""

    def __init__(self, words: Sequence[bytes]) -> None:
        self.words = [*words, b"<end>"]
        self.n_vocab = len(self.words)
        self.eos_id = self.n_vocab - 1
        self.eog_ids = frozenset({self.eos_id})

    def encode(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        rest, tokens = text.encode(), []
        while rest:
            word = max((w for w in self.words if w and rest.startswith(w)), key=len, default=rest[:1])
            if word in self.words:
                tokens.append(self.words.index(word))
            rest = rest[len(word) :]
        return tokens

    def piece(self, token: int, *, special: bool) -> bytes:
        return self.words[token] if special or not self.is_special(token) else b""

    def is_special(self, token: int) -> bool:
        return token == self.eos_id


def letters(n: int = 8) -> Words:
    return Words([bytes([ord("a") + i]) for i in range(n)])


def floats(*values: float) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def distribution(
    logits: NDArray[np.float32], *, history: Sequence[int] = (), words: Words | None = None, **settings: Any
) -> dict[int, float]:
    """What each token's probability is after the chain; tokens with none are left out."""
    resolved = SamplingSettings(
        **{**NEUTRAL, "n_probs": len(logits), "post_sampling_probs": True, **settings}
    )
    sampler = Sampler(resolved, words or letters(len(logits) - 1))
    for token in history:
        sampler.accept(token, generated=False)
    return {entry.token: entry.value for entry in sampler.sample(logits.copy()).top}


def softmax(logits: ArrayLike) -> NDArray[np.float64]:
    values = np.exp(np.asarray(logits, np.float64) - np.max(np.asarray(logits)))
    return np.asarray(values / values.sum())
