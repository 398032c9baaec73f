"""``/slots``."""

from __future__ import annotations

import builtins

from mlxcel.engine.types import SlotState
from mlxcel.generated.native import models, routes

from ..common.settings import SurfaceSettings
from ..context import Context
from .errors import NativeError
from .props import short_settings


@routes.slots_list
async def list(
    ctx: Context, *, fail_on_no_slot: str | None = None, model: str | None = None
) -> builtins.list[models.Slot]:
    """What every slot is doing."""
    states = ctx.engine.slots()
    if fail_on_no_slot is not None and all(state.is_processing for state in states):
        raise NativeError(503, "no slot available", headers={"Retry-After": "1"})
    return [_slot(state) for state in states]


def _slot(state: SlotState) -> models.Slot:
    slot = models.Slot(id=state.id, n_ctx=state.n_ctx, speculative=False, is_processing=state.is_processing)
    if state.request is not None:
        slot.id_task = state.id_task
        slot.n_prompt_tokens = state.n_prompt_tokens
        slot.n_prompt_tokens_processed = state.n_prompt_tokens_processed
        slot.n_prompt_tokens_cache = state.n_prompt_tokens_cache
        slot.params = short_settings(state.request, SurfaceSettings())
        slot.next_token = [
            models.NextToken(
                has_next_token=state.has_next_token,
                has_new_line=state.has_new_line,
                n_remain=state.n_remain,
                n_decoded=state.n_decoded,
            )
        ]
    return slot


@routes.slots_act
async def act(
    request: models.SlotAction, ctx: Context, *, id_slot: int, action: str | None = None
) -> models.Success:
    """Not reached: the option that switches this on is refused at start-up."""
    raise NativeError(501, "This server does not support slots action. Start it with `--slot-save-path`")
