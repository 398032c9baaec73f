"""From a request's fields and a prompt's tokens to the engine's request."""

from __future__ import annotations

from typing import Any

from mlxcel.engine.errors import InvalidRequestError
from mlxcel.engine.types import GenerationRequest

from ..context import Context
from .sampling import sampling_settings


def generation_request(
    request: Any, ctx: Context, prompt: tuple[int, ...], *, progress: bool = False
) -> GenerationRequest:
    """The engine's request for one sequence.

    Args:
        request: a request model that includes the property sets ``limits``, ``serving``, ``sampling``,
            ``probabilities`` and ``grammar`` of the specs.
    """
    return GenerationRequest(
        prompt=prompt,
        sampling=sampling_settings(request, ctx.engine.tokenizer),
        n_predict=request.n_predict,
        n_keep=request.n_keep,
        n_discard=request.n_discard,
        n_indent=request.n_indent,
        t_max_predict_ms=request.t_max_predict_ms,
        stop=stop_strings(request.stop, ctx),
        cache_prompt=request.cache_prompt,
        id_slot=request.id_slot,
        special=ctx.options.special,
        return_progress=progress,
    )


def refuse_adapters(request: Any) -> None:
    """Refuse scales of adapters: none can be loaded yet.

    Raises:
        InvalidRequestError: the request names one.
    """
    if request.lora:
        number = request.lora[0].id
        raise InvalidRequestError(
            f"Field 'lora[0].id': no adapter {number} is loaded; send an empty list", "lora[0].id"
        )


def stop_strings(stop: list[str] | str | None, ctx: Context) -> tuple[str, ...]:
    """The request's stop strings; without any, the server's own (``--reverse-prompt``)."""
    given = [stop] if isinstance(stop, str) else list(stop or ())
    return tuple(given or ctx.options.reverse_prompt or ())
