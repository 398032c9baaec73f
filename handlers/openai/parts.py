"""Members that several OpenAI answers share."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from time import time
from typing import Literal

import msgspec

from mlxcel.engine.types import Finished, GenerationRequest, Sample
from mlxcel.generated.openai import models

from ..common import figures
from ..common.settings import SurfaceSettings, generation_settings
from ..common.whole import whole_fields
from ..context import Context

FINGERPRINT = f"mlxcel-{metadata.version('mlxcel')}"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What every chunk of an answer repeats."""

    model: str
    created: int = field(default_factory=lambda: int(time()))
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_urlsafe(24)}")


def finish_reason(end: Finished) -> Literal["stop", "length"]:
    """OpenAI's word for why a sequence ended."""
    return "length" if end.stop_type == "limit" else "stop"


def usage(ends: Sequence[Finished], n_prompts: int = 1) -> models.Usage:
    """Counts over all choices; each prompt counts once, however many choices it has.

    Args:
        ends: the sequences in order of prompt, then choice.
        n_prompts: how many different prompts they have.
    """
    per_prompt = max(1, len(ends) // n_prompts)
    firsts = ends[::per_prompt]
    prompt = sum(end.n_prompt for end in firsts)
    completion = sum(end.n_decoded for end in ends)
    return models.Usage(
        completion_tokens=completion,
        prompt_tokens=prompt,
        total_tokens=prompt + completion,
        prompt_tokens_details=models.PromptTokensDetails(
            cached_tokens=sum(end.timings.cache_n for end in firsts)
        ),
    )


def timings(end: Finished) -> models.Timings:
    """llama-server's figures, an extension."""
    return msgspec.convert(figures.timings(end.timings), models.Timings)


def probabilities(
    samples: Iterable[Sample], ctx: Context, *, linear: bool
) -> list[models.TokenProbabilities]:
    """One entry a token."""
    kind: type[models.TokenProbs | models.TokenLogprobs] = (
        models.TokenProbs if linear else models.TokenLogprobs
    )
    entries = figures.probabilities(tuple(samples), ctx.engine.tokenizer, linear=linear)
    return [msgspec.convert(entry, kind) for entry in entries]


def verbose(
    index: int, end: Finished, wanted: GenerationRequest, ctx: Context, surface: SurfaceSettings
) -> models.Completion:
    """The native object, for ``__verbose``."""
    completion = models.Completion(
        **whole_fields(index, end, wanted, ctx),
        generation_settings=msgspec.convert(generation_settings(wanted, surface), models.GenerationSettings),
        timings=timings(end),
    )
    # The reference lists token IDs only where they are asked for, which OpenAI's routes can't.
    completion.tokens = []
    return completion
