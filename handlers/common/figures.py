"""Counts and probabilities as both surfaces print them."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlxcel.engine.tokenizer import Tokenizer
from mlxcel.engine.types import Sample, Timings


def float32(value: float) -> float:
    """``value`` as a 32-bit float would hold it, which is how the reference keeps and prints settings."""
    return float(np.float32(value))


def timings(t: Timings) -> dict[str, Any]:
    """The reference's ``timings`` object; rates over the generated tokens leave the first one out."""
    steps = t.predicted_n - 1
    return {
        "cache_n": t.cache_n,
        "prompt_n": t.prompt_n,
        "prompt_ms": _milliseconds(t.prompt_ms),
        "prompt_per_token_ms": t.prompt_ms / t.prompt_n if t.prompt_n else 0.0,
        "prompt_per_second": 1000.0 * t.prompt_n / t.prompt_ms if t.prompt_ms else 0.0,
        "predicted_n": t.predicted_n,
        "predicted_ms": _milliseconds(t.predicted_ms),
        "predicted_per_token_ms": t.predicted_ms / steps if steps > 0 else 0.0,
        "predicted_per_second": 1000.0 * steps / t.predicted_ms if steps > 0 else 0.0,
    }


def _milliseconds(value: float) -> float:
    return round(value, 3)


def probabilities(samples: Sequence[Sample], tokenizer: Tokenizer, *, linear: bool) -> list[dict[str, Any]]:
    """One entry a generated token: its piece, its (log-)probability and those of the candidates asked for."""
    value, top = ("prob", "top_probs") if linear else ("logprob", "top_logprobs")

    def entry(token: int, number: float) -> dict[str, Any]:
        piece = tokenizer.piece(token, special=True)
        return {
            "id": token,
            "token": _whole_text(piece),
            "bytes": list(piece),
            value: float32(number),
        }

    return [{**entry(s.token, s.probability), top: [entry(c.token, c.value) for c in s.top]} for s in samples]


def _whole_text(piece: bytes) -> str:
    """A token's text without a character that it only begins."""
    return getincrementaldecoder("utf-8")("replace").decode(piece)
