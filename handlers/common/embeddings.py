"""Embedding requests of any surface."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from mlxcel.engine.errors import InvalidRequestError
from mlxcel.engine.types import Embedding, EmbeddingRequest

from ..context import Context
from .prompts import tokenize_prompts


async def embeddings(request: Any, ctx: Context) -> list[Embedding]:
    """One embedding an input.

    Args:
        request: a request model with ``input``, ``dimensions`` and ``embd_normalize``.

    Raises:
        InvalidRequestError: other dimensions than the model's are asked for, or an input is empty.
    """
    n_embd = ctx.engine.info.n_embd
    dimensions = getattr(request, "dimensions", None)
    if dimensions is not None and dimensions != n_embd:
        raise InvalidRequestError(
            f"Field 'dimensions': this model's embeddings have {n_embd}; leave it out", "dimensions"
        )
    inputs = await tokenize_prompts(ctx.engine, request.input, field="input")
    return await ctx.engine.embed(EmbeddingRequest(inputs=tuple(inputs), normalize=request.embd_normalize))


def as_base64(vector: tuple[float, ...]) -> str:
    """A vector as OpenAI's clients ask for it: little-endian float32 in base64."""
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()
