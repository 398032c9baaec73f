"""``/v1/embeddings``."""

from __future__ import annotations

from mlxcel.engine.errors import InvalidRequestError
from mlxcel.engine.types import Embedding
from mlxcel.generated.openai import models, routes

from ..common.embeddings import as_base64, embeddings
from ..context import Context


@routes.embeddings_create
async def create(request: models.EmbeddingsRequest, ctx: Context) -> models.EmbeddingsResponse:
    """Embed every input; OpenAI's shape has one vector an input, so pooling must be on."""
    if ctx.engine.pooling == "none":
        raise InvalidRequestError(
            "Pooling type 'none' is not OAI compatible. Please use a different pooling type", ""
        )
    answers = await embeddings(request, ctx)
    n_tokens = sum(answer.n_tokens for answer in answers)
    encoded = request.encoding_format == "base64"
    return models.EmbeddingsResponse(
        model=ctx.alias,
        usage=models.EmbeddingsUsage(prompt_tokens=n_tokens, total_tokens=n_tokens),
        data=[_entry(answer, encoded=encoded) for answer in answers],
    )


def _entry(answer: Embedding, *, encoded: bool) -> models.EmbeddingsEntry:
    vector = answer.vectors[0]
    return models.EmbeddingsEntry(
        embedding=as_base64(vector) if encoded else list(vector), index=answer.index
    )
