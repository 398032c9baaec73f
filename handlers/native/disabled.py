"""Operations that the reference has for its chat page, and which are always off."""

from __future__ import annotations

from typing import NoReturn

from mlxcel.generated.native import routes

from ..context import Context
from .errors import DISABLED, NativeError


def _refuse() -> NoReturn:
    raise NativeError(403, "this feature is disabled", type=DISABLED)


@routes.disabled_tools
async def tools(ctx: Context) -> None:
    """Refuse."""
    _refuse()


@routes.disabled_tools_call
async def tools_call(ctx: Context) -> None:
    """Refuse."""
    _refuse()


@routes.disabled_cors_proxy
async def cors_proxy(ctx: Context) -> None:
    """Refuse."""
    _refuse()


@routes.disabled_cors_proxy_post
async def cors_proxy_post(ctx: Context) -> None:
    """Refuse."""
    _refuse()
