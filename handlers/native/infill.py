"""``/infill``: refused until it is built; a model without FIM tokens is told so first."""

from __future__ import annotations

from mlxcel.generated.native import models, routes

from ..context import Context
from .errors import NativeError


@routes.infill_create
async def create(request: models.InfillRequest, ctx: Context) -> models.Completion:
    """Not reached: the operation's state is refused."""
    raise NativeError(501, "POST /infill is not supported by this build")
