"""``/apply-template``."""

from __future__ import annotations

from mlxcel.generated.native import models, routes

from ..common.chat import render
from ..context import Context


@routes.template_apply
async def apply(request: models.ApplyTemplateRequest, ctx: Context) -> models.ApplyTemplateResponse:
    """The prompt that a chat request with these messages is completed from."""
    return models.ApplyTemplateResponse(prompt=render(request, ctx))
