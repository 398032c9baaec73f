"""``/lora-adapters``: none can be loaded yet."""

from __future__ import annotations

import builtins

from mlxcel.engine.errors import InvalidRequestError
from mlxcel.generated.native import models, routes

from ..context import Context


@routes.lora_list
async def list(ctx: Context) -> builtins.list[models.LoraAdapter]:
    """The loaded adapters."""
    return []


@routes.lora_scale
async def scale(request: models.LoraScales, ctx: Context) -> models.Success:
    """Set the scales of the adapters that are listed."""
    if request:
        raise InvalidRequestError(
            f"Field '[0].id': no adapter {request[0].id} is loaded; send an empty list", "id"
        )
    return models.Success(success=True)
