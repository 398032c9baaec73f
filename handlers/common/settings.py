"""``generation_settings``: the resolved settings as the reference prints them, key by key in its order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mlxcel.engine.types import GenerationRequest

from .figures import float32

LISTS = frozenset(
    [
        "dry_sequence_breakers",
        "stop",
        "logit_bias",
        "grammar",
        "grammar_lazy",
        "grammar_triggers",
        "preserved_tokens",
    ]
)
"""Keys that ``/props`` and ``/slots`` leave out of the settings they show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceSettings:
    """Settings that matter to the surface alone and are echoed beside the engine's."""

    stream: bool = False
    timings_per_token: bool = False
    reasoning_format: str = "deepseek"
    grammar_lazy: bool = False
    chat_format: str = "Content-only"
    generation_prompt: str = ""
    lora: tuple[dict[str, Any], ...] = ()


def generation_settings(request: GenerationRequest, surface: SurfaceSettings) -> dict[str, Any]:
    """All 49 settings of a request; floats are what a 32-bit float holds.

    ``grammar`` is empty for a JSON schema: here the schema constrains the output itself, not a grammar made from it.
    """
    s = request.sampling
    return {
        "seed": s.seed,
        "temperature": float32(s.temperature),
        "dynatemp_range": float32(s.dynatemp_range),
        "dynatemp_exponent": float32(s.dynatemp_exponent),
        "top_k": s.top_k,
        "top_p": float32(s.top_p),
        "min_p": float32(s.min_p),
        "top_n_sigma": float32(s.top_n_sigma),
        "xtc_probability": float32(s.xtc_probability),
        "xtc_threshold": float32(s.xtc_threshold),
        "typical_p": float32(s.typical_p),
        "repeat_last_n": s.repeat_last_n,
        "repeat_penalty": float32(s.repeat_penalty),
        "presence_penalty": float32(s.presence_penalty),
        "frequency_penalty": float32(s.frequency_penalty),
        "dry_multiplier": float32(s.dry_multiplier),
        "dry_base": float32(s.dry_base),
        "dry_allowed_length": s.dry_allowed_length,
        "dry_penalty_last_n": s.dry_penalty_last_n,
        "dry_sequence_breakers": list(s.dry_sequence_breakers),
        "mirostat": s.mirostat,
        "mirostat_tau": float32(s.mirostat_tau),
        "mirostat_eta": float32(s.mirostat_eta),
        "adaptive_target": float32(s.adaptive_target),
        "adaptive_decay": float32(s.adaptive_decay),
        "stop": list(request.stop),
        "max_tokens": request.n_predict,
        "n_predict": request.n_predict,
        "n_keep": request.n_keep,
        "n_discard": request.n_discard,
        "ignore_eos": s.ignore_eos,
        "stream": surface.stream,
        "logit_bias": [
            {"bias": float32(b) if math.isfinite(b) else None, "token": t} for t, b in s.logit_bias
        ],
        "n_probs": s.n_probs,
        "min_keep": s.min_keep,
        "grammar": s.grammar,
        "grammar_lazy": surface.grammar_lazy,
        "grammar_triggers": [],
        "preserved_tokens": [],
        "chat_format": surface.chat_format,
        "reasoning_format": surface.reasoning_format,
        "reasoning_in_content": False,
        "generation_prompt": surface.generation_prompt,
        "samplers": list(s.samplers),
        "speculative.types": "none",
        "timings_per_token": surface.timings_per_token,
        "post_sampling_probs": s.post_sampling_probs,
        "backend_sampling": False,
        "lora": list(surface.lora),
    }
