"""``/rerank``: refused until it is built."""

from __future__ import annotations

from mlxcel.generated.native import models, routes

from ..context import Context
from .errors import NativeError


@routes.rerank_create
async def create(request: models.RerankRequest, ctx: Context) -> models.RerankResponse:
    """Not reached: the option that switches this on is refused at start-up."""
    raise NativeError(501, "This server does not support reranking. Start it with `--reranking`")
