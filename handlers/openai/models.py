"""``/v1/models``."""

from __future__ import annotations

import msgspec

from mlxcel.generated.openai import models, routes

from ..common.models import model_entry, model_list
from ..context import Context
from .errors import OpenAIError


@routes.models_list
async def list(ctx: Context) -> models.ModelList:
    """The loaded model."""
    return msgspec.convert(model_list(ctx), models.ModelList)


@routes.models_retrieve
async def retrieve(ctx: Context, *, model: str) -> models.ServedModel:
    """The loaded model, by any of its names."""
    if model not in ctx.aliases:
        raise OpenAIError(
            404, f"The model '{model}' does not exist; GET /v1/models lists what there is", field="model"
        )
    return msgspec.convert(model_entry(ctx), models.ServedModel)
