"""Handlers of the toy surface in test_surface.py."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any


async def echo(request: dict[str, Any], ctx: object) -> dict[str, Any]:
    return {"echo": request}


async def show(ctx: object, *, name: str, times: int = 1) -> str:
    return name * times


async def stream(ctx: object) -> AsyncIterator[dict[str, int]]:
    async def items() -> AsyncIterator[dict[str, int]]:
        yield {"n": 1}
        raise RuntimeError("half-way")

    return items()


async def fail(ctx: object) -> None:
    raise RuntimeError("a secret of the inside")


async def wrong(ctx: object, *, other: str) -> None:
    return None
