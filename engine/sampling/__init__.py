"""The sampler chain: numpy only, one module a sampler, the names in :mod:`registry`."""

from ..vocabulary import Vocabulary
from .chain import Sampler
from .registry import SAMPLERS, resolve_samplers

__all__ = ["SAMPLERS", "Sampler", "Vocabulary", "resolve_samplers"]
