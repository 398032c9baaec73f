"""A model's parameters by path."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten


def parameters(model: Any) -> dict[str, mx.array]:
    """All arrays of an mlx-lm model, keyed like ``model.layers.0.mlp.up_proj.weight``."""
    flat: Any = tree_flatten(model.parameters())
    return dict(flat)


def evaluate(model: Any) -> None:
    """Compute everything that a model holds, rotary tables included, which MLX doesn't count as parameters.

    What is left lazy belongs to this thread, and the engine's thread couldn't compute it.
    """
    mx.eval([value for module in model.modules() for value in module.values() if isinstance(value, mx.array)])
