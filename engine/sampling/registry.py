"""The samplers that a request may name. To add one: write its stage, then give it a line in ``SAMPLERS``."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import InvalidRequestError
from ..types import SamplingSettings
from ..vocabulary import Vocabulary
from .dry import dry
from .infill import Infill
from .penalties import penalties
from .stage import Stage
from .temperature import temperature
from .truncate import min_p, top_k, top_n_sigma, top_p
from .typical import typical
from .xtc import xtc

Builder = Callable[[SamplingSettings, Vocabulary, int], Stage | None]
"""Makes a stage from settings, vocabulary and seed; None where the settings leave it without effect."""


@dataclass(frozen=True, slots=True)
class NamedSampler:
    """A sampler's canonical name, its letter in the short form of ``samplers``, and further names."""

    name: str
    letter: str
    build: Builder
    aliases: tuple[str, ...] = ()

    def names(self) -> set[str]:
        """Everything it may be called: ``top_k`` is also ``top-k`` and ``topk``."""
        return {self.name, self.name.replace("_", "-"), self.name.replace("_", ""), *self.aliases}


ADAPTIVE_P = "adaptive_p"
"""Naming it replaces the selector at the end of the chain, wherever it is named."""

SAMPLERS: tuple[NamedSampler, ...] = (
    NamedSampler("penalties", "e", lambda settings, vocabulary, seed: penalties(settings)),
    NamedSampler("dry", "d", lambda settings, vocabulary, seed: dry(settings, vocabulary)),
    NamedSampler("top_n_sigma", "s", lambda settings, vocabulary, seed: top_n_sigma(settings)),
    NamedSampler("top_k", "k", lambda settings, vocabulary, seed: top_k(settings)),
    NamedSampler("typ_p", "y", lambda settings, vocabulary, seed: typical(settings), ("typ",)),
    NamedSampler("top_p", "p", lambda settings, vocabulary, seed: top_p(settings), ("nucleus",)),
    NamedSampler("min_p", "m", lambda settings, vocabulary, seed: min_p(settings)),
    NamedSampler("xtc", "x", lambda settings, vocabulary, seed: xtc(settings, seed)),
    NamedSampler("temperature", "t", lambda settings, vocabulary, seed: temperature(settings), ("temp",)),
    NamedSampler("infill", "i", lambda settings, vocabulary, seed: Infill(vocabulary)),
    NamedSampler(ADAPTIVE_P, "a", lambda settings, vocabulary, seed: None),
)

BY_NAME = {sampler.name: sampler for sampler in SAMPLERS}
CANONICAL = {name: sampler.name for sampler in SAMPLERS for name in sampler.names()}
BY_LETTER = {sampler.letter: sampler.name for sampler in SAMPLERS}


def resolve_samplers(value: str | Sequence[str]) -> tuple[str, ...]:
    """Canonical sampler names, in order, for a list of names and aliases or a string of letters (``"kt"``).

    Raises:
        InvalidRequestError: a name or letter is unknown; the message suggests the nearest.
    """
    if isinstance(value, str):
        for letter in value:
            if letter not in BY_LETTER:
                raise InvalidRequestError(f"Field 'samplers': {_unknown_letter(value, letter)}", "samplers")
        return tuple(BY_LETTER[letter] for letter in value)
    for position, name in enumerate(value):
        if name.lower() not in CANONICAL:
            where = f"Field 'samplers[{position}]'"
            raise InvalidRequestError(f"{where}: unknown sampler '{name}': {_nearest(name)}", "samplers")
    return tuple(CANONICAL[name.lower()] for name in value)


def _unknown_letter(value: str, letter: str) -> str:
    letters = ", ".join(f"{sampler.letter} {sampler.name}" for sampler in SAMPLERS)
    if value.lower() in CANONICAL:
        return f"a string holds sampler letters; give ['{CANONICAL[value.lower()]}'] to name a sampler"
    return f"unknown sampler letter '{letter}' in '{value}': known are {letters}"


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), CANONICAL, n=1)
    return f"did you mean '{CANONICAL[near[0]]}'?" if near else f"known are {', '.join(BY_NAME)}"


def build_stages(settings: SamplingSettings, vocabulary: Vocabulary, seed: int) -> list[Stage]:
    """The stages that ``settings.samplers`` names, in order, those without effect left out."""
    stages = (BY_NAME[name].build(settings, vocabulary, seed) for name in settings.samplers)
    return [stage for stage in stages if stage is not None]
