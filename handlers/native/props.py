"""``/props``."""

from __future__ import annotations

from importlib import metadata

import msgspec

from mlxcel.engine.types import GenerationRequest
from mlxcel.generated.native import models, routes

from ..common.defaults import default_request
from ..common.settings import LISTS, SurfaceSettings, generation_settings
from ..context import Context

REFERENCE_BUILD = "b10621"


@routes.props_read
async def read(ctx: Context) -> models.Props:
    """Facts about the server and the settings that a request without fields gets."""
    engine, options = ctx.engine, ctx.options
    return models.Props(
        default_generation_settings=models.DefaultSettings(
            params=short_settings(default_request(ctx), SurfaceSettings(reasoning_format="none")),
            n_ctx=engine.n_ctx,
        ),
        total_slots=engine.n_slots,
        model_alias=ctx.alias,
        model_ftype=engine.info.file_type,
        model_path=engine.info.path,
        modalities=models.Modalities(vision=False, video=False, audio=False),
        media_marker="<__media__>",
        endpoint_slots=options.slots,
        endpoint_props=options.props,
        endpoint_metrics=options.metrics,
        ui=True,
        ui_settings={},
        chat_template=engine.chat_template.source,
        chat_template_caps=engine.chat_template.capabilities(),
        bos_token=engine.tokenizer.bos_token,
        eos_token=engine.tokenizer.eos_token,
        build_info=f"{REFERENCE_BUILD}-mlxcel-{metadata.version('mlxcel')}",
        is_sleeping=False,
        cors_proxy_enabled=False,
    )


@routes.props_change
async def change(request: models.PropsChange, ctx: Context) -> models.Success:
    """Change nothing, as the reference does."""
    return models.Success(success=True)


def short_settings(request: GenerationRequest, surface: SurfaceSettings) -> models.GenerationSettings:
    """The settings without what may be long."""
    settings = generation_settings(request, surface)
    return msgspec.convert(
        {name: value for name, value in settings.items() if name not in LISTS}, models.GenerationSettings
    )
