"""The model: load, tokenize, schedule, sample, constrain, cache, embed. Knows nothing of HTTP."""

from . import blas

blas.load()
