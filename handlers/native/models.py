"""``/models``."""

from __future__ import annotations

import msgspec

from mlxcel.generated.native import models, routes

from ..common.models import model_list
from ..context import Context


@routes.models_list
async def list(ctx: Context) -> models.ModelList:
    """The loaded model."""
    return msgspec.convert(model_list(ctx), models.ModelList)
