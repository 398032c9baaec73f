"""``/embedding``: a bare list, with a list of vectors an input."""

from __future__ import annotations

from mlxcel.engine.types import Embedding
from mlxcel.generated.native import models, routes

from ..common.embeddings import as_base64, embeddings
from ..context import Context


@routes.embedding_create
async def create(request: models.EmbeddingRequest, ctx: Context) -> list[models.EmbeddingEntry]:
    """Embed every input."""
    encoded = request.encoding_format == "base64"
    return [_entry(one, encoded=encoded) for one in await embeddings(request, ctx)]


def _entry(one: Embedding, *, encoded: bool) -> models.EmbeddingEntry:
    if encoded:
        flat = tuple(value for vector in one.vectors for value in vector)
        return models.EmbeddingEntry(index=one.index, embedding=as_base64(flat))
    return models.EmbeddingEntry(index=one.index, embedding=[list(vector) for vector in one.vectors])
