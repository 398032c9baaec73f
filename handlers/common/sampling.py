"""From a request's fields to the engine's sampling settings."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from mlxcel.engine.errors import InvalidRequestError
from mlxcel.engine.sampling import resolve_samplers
from mlxcel.engine.tokenizer import Tokenizer
from mlxcel.engine.types import SamplingSettings

DEFAULT_DRY_BASE = 1.75

# These take more than copying; every other setting has the name and the type of its request field.
_TRANSLATED = {
    "seed",
    "samplers",
    "logit_bias",
    "dry_base",
    "dry_sequence_breakers",
    "grammar",
    "json_schema",
}
_COPIED = tuple(f.name for f in fields(SamplingSettings) if f.name not in _TRANSLATED)


def sampling_settings(request: Any, tokenizer: Tokenizer) -> SamplingSettings:
    """The settings that ``request`` asks for.

    Args:
        request: a request model that includes the property sets ``sampling`` and ``grammar`` of the specs.

    Raises:
        InvalidRequestError: a sampler is unknown or a bias names no token.
    """
    biases = logit_bias(request.logit_bias or [], tokenizer)
    if request.ignore_eos:
        biases += [(token, -math.inf) for token in sorted(tokenizer.eog_ids)]
    return SamplingSettings(
        **{name: getattr(request, name) for name in _COPIED},
        # The reference's seed is unsigned: negatives wrap, and -1 becomes the value that asks for a random one.
        seed=request.seed % 2**32,
        samplers=sampler_names(request.samplers),
        logit_bias=tuple(biases),
        dry_base=request.dry_base if request.dry_base >= 1.0 else DEFAULT_DRY_BASE,
        dry_sequence_breakers=tuple(request.dry_sequence_breakers),
        **_constraint(request),
    )


def _constraint(request: Any) -> dict[str, Any]:
    if request.grammar_lazy:
        # Without triggers, which are refused, a lazy grammar never begins to constrain.
        return {}
    # A grammar wins where both are given, as recorded.
    return {
        "grammar": request.grammar or "",
        "json_schema": None if request.grammar else _schema_text(request.json_schema),
    }


def sampler_names(value: str | Sequence[str]) -> tuple[str, ...]:
    """Canonical names in order, from a list, a string of letters, or the command line's names between semicolons.

    Raises:
        InvalidRequestError: a sampler is unknown.
    """
    return resolve_samplers(value.split(";") if isinstance(value, str) and ";" in value else value)


def _schema_text(schema: Any) -> str | None:
    return None if schema is None else json.dumps(schema)


def logit_bias(bias: Mapping[str, Any] | Iterable[Any], tokenizer: Tokenizer) -> list[tuple[int, float]]:
    """Pairs of token ID and bias from either form of the field; ``false`` bans a token.

    Raises:
        InvalidRequestError: a key is no token of the vocabulary, nor text.
    """
    pairs: Iterable[Any] = bias.items() if isinstance(bias, Mapping) else bias
    return [(token, _bias(value)) for key, value in pairs for token in _tokens(key, tokenizer)]


def _bias(value: Any) -> float:
    if value is False:
        return -math.inf
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequestError(
            f"Field 'logit_bias': a bias is a number or false, not {value!r}", "logit_bias"
        )
    return float(value)


def _tokens(key: Any, tokenizer: Tokenizer) -> list[int]:
    if isinstance(key, str) and not _is_number(key):
        return tokenizer.encode(key, add_special=False, parse_special=False)
    if isinstance(key, bool) or (isinstance(key, float) and not key.is_integer()):
        raise InvalidRequestError(
            f"Field 'logit_bias': a token is an ID or a text, not {key!r}", "logit_bias"
        )
    token = int(key)
    if not 0 <= token < tokenizer.n_vocab:
        raise InvalidRequestError(
            f"Field 'logit_bias': {token} is not a token ID (the vocabulary has {tokenizer.n_vocab})",
            "logit_bias",
        )
    return [token]


def _is_number(key: str) -> bool:
    return key.isascii() and key.removeprefix("-").isdigit()
