"""The names under which a request may ask for samplers."""

from __future__ import annotations

import pytest

from mlxcel.engine.errors import InvalidRequestError
from mlxcel.engine.sampling import SAMPLERS, resolve_samplers
from mlxcel.engine.types import DEFAULT_SAMPLERS


def test_canonical_names_stand_for_themselves() -> None:
    names = tuple(sampler.name for sampler in SAMPLERS)
    assert resolve_samplers(names) == names
    assert set(DEFAULT_SAMPLERS) <= set(names)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("top-k", "top_k"),
        ("topk", "top_k"),
        ("nucleus", "top_p"),
        ("Top-P", "top_p"),
        ("temp", "temperature"),
        ("typ", "typ_p"),
        ("typ-p", "typ_p"),
        ("minp", "min_p"),
        ("top-n-sigma", "top_n_sigma"),
        ("adaptive-p", "adaptive_p"),
    ],
)
def test_aliases(alias: str, name: str) -> None:
    assert resolve_samplers([alias]) == (name,)


def test_order_and_repetition_are_kept() -> None:
    assert resolve_samplers(["temp", "top_k", "temp"]) == ("temperature", "top_k", "temperature")
    assert resolve_samplers([]) == ()


def test_letters() -> None:
    assert resolve_samplers("kt") == ("top_k", "temperature")
    assert resolve_samplers("edskypmxtia") == (
        "penalties",
        "dry",
        "top_n_sigma",
        "top_k",
        "typ_p",
        "top_p",
        "min_p",
        "xtc",
        "temperature",
        "infill",
        "adaptive_p",
    )
    assert resolve_samplers("") == ()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (["tpo_k"], ["'tpo_k'", "did you mean 'top_k'?"]),
        (["top_k", "temprature"], ["Field 'samplers[1]'", "'temprature'", "did you mean 'temperature'?"]),
        (["qqqqqq"], ["'qqqqqq'", "known are"]),
        ("kz", ["'z'", "known are"]),
        ("top_k", ["['top_k']"]),
    ],
)
def test_unknown_ones_are_refused_with_a_hint(value: str | list[str], words: list[str]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        resolve_samplers(value)
    assert caught.value.field == "samplers"
    assert all(word in caught.value.message for word in words)
