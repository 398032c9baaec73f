"""The native object of a finished sequence, which OpenAI routes show too when they are asked to be verbose."""

from __future__ import annotations

from typing import Any

from mlxcel.engine.types import Finished, GenerationRequest

from ..context import Context


def whole_fields(index: int, end: Finished, wanted: GenerationRequest, ctx: Context) -> dict[str, Any]:
    """Every member that is a plain value; ``generation_settings`` and ``timings`` are models of the surface."""
    return {
        "index": index,
        "content": end.content,
        "tokens": list(end.tokens),
        "id_slot": end.id_slot,
        "stop": True,
        "model": ctx.alias,
        "tokens_predicted": end.n_decoded,
        "tokens_evaluated": end.n_prompt,
        "prompt": ctx.engine.tokenizer.decode(wanted.prompt),
        "has_new_line": end.has_new_line,
        "truncated": end.truncated,
        "stop_type": end.stop_type,
        "stopping_word": end.stopping_word,
        "tokens_cached": end.n_cached,
    }
