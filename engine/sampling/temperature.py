"""Temperature, fixed or moving with the entropy of the distribution (dynatemp)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..types import SamplingSettings
from .candidates import Candidates


def scale(candidates: Candidates, temperature: float) -> None:
    """Divide the logits by ``temperature``; at zero or below only the best stays possible."""
    if temperature > 0.0:
        candidates.logits /= np.float32(temperature)
        return
    best = candidates.best()
    logit = candidates.logits[best]
    candidates.logits[:] = -np.inf
    candidates.logits[best] = logit


@dataclass(frozen=True, slots=True)
class Temperature:
    """Divide the logits by ``value``; at zero or below take the best."""

    value: float
    keeps_best: ClassVar[bool] = True

    @property
    def takes_best(self) -> bool:
        return self.value <= 0.0

    def apply(self, candidates: Candidates) -> None:
        scale(candidates, self.value)


@dataclass(frozen=True, slots=True)
class DynamicTemperature:
    """A temperature within ``spread`` of ``value``: the closer to even the distribution, the higher."""

    value: float
    spread: float
    exponent: float
    keeps_best: ClassVar[bool] = True
    takes_best: ClassVar[bool] = False

    def apply(self, candidates: Candidates) -> None:
        if len(candidates) < 2:
            return
        candidates.sort()
        probs = candidates.softmax()
        probs = probs[probs > 0]
        evenness = max(0.0, float(-np.sum(probs * np.log(probs)))) / math.log(len(candidates))
        low, high = max(0.0, self.value - self.spread), self.value + self.spread
        scale(candidates, low + (high - low) * evenness**self.exponent)


def temperature(settings: SamplingSettings) -> Temperature | DynamicTemperature | None:
    if settings.dynatemp_range > 0.0:
        return DynamicTemperature(settings.temperature, settings.dynatemp_range, settings.dynatemp_exponent)
    return None if settings.temperature == 1.0 else Temperature(settings.temperature)
