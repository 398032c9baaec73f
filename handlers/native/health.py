"""``/health``."""

from __future__ import annotations

from mlxcel.generated.native import models, routes

from ..context import Context


@routes.health_read
async def read(ctx: Context) -> models.Health:
    """The server is ready: requests are turned away before they come here while it isn't."""
    return models.Health(status="ok")
