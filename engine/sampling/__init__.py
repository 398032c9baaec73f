"""The sampler chain: numpy only, one module a sampler, the names in :mod:`registry`."""

from ..vocabulary import Vocabulary
from .chain import Constrains, Sampler
from .registry import SAMPLERS, resolve_samplers

__all__ = ["SAMPLERS", "Constrains", "Sampler", "Vocabulary", "resolve_samplers"]
