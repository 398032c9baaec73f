"""``/v1/streams/lookup``: no stream is kept for resuming yet."""

from __future__ import annotations

from mlxcel.generated.native import models, routes

from ..context import Context


@routes.streams_lookup
async def lookup(request: models.StreamsLookup, ctx: Context) -> list[str]:
    """The streams that can be resumed."""
    return []
