"""The settings of a request that says nothing."""

from __future__ import annotations

from mlxcel.engine.types import GenerationRequest, SamplingSettings

from ..context import Context
from .sampling import sampler_names


def default_request(ctx: Context) -> GenerationRequest:
    """What the server's options make of a request without fields."""
    o = ctx.options
    return GenerationRequest(
        prompt=(),
        n_predict=o.n_predict,
        n_keep=o.n_keep,
        stop=tuple(o.reverse_prompt or ()),
        sampling=SamplingSettings(
            seed=o.seed % 2**32,
            temperature=o.temp,
            dynatemp_range=o.dynatemp_range,
            dynatemp_exponent=o.dynatemp_exponent,
            top_k=o.top_k,
            top_p=o.top_p,
            min_p=o.min_p,
            top_n_sigma=o.top_n_sigma,
            xtc_probability=o.xtc_probability,
            xtc_threshold=o.xtc_threshold,
            typical_p=o.typical_p,
            repeat_last_n=o.repeat_last_n,
            repeat_penalty=o.repeat_penalty,
            presence_penalty=o.presence_penalty,
            frequency_penalty=o.frequency_penalty,
            dry_multiplier=o.dry_multiplier,
            dry_base=o.dry_base,
            dry_allowed_length=o.dry_allowed_length,
            dry_penalty_last_n=o.dry_penalty_last_n,
            dry_sequence_breakers=tuple(o.dry_sequence_breakers),
            mirostat=o.mirostat,
            mirostat_tau=o.mirostat_tau,
            mirostat_eta=o.mirostat_eta,
            adaptive_target=o.adaptive_target,
            adaptive_decay=o.adaptive_decay,
            ignore_eos=o.ignore_eos,
            samplers=sampler_names(o.samplers),
        ),
    )
