"""The key/value cache of one sequence, behind the protocol that mlx-lm's models expect of a cache.

Position equals column: token ``i`` of the sequence sits in column ``i`` of every layer. Sliding-window layers keep
all columns too and narrow the attention mask instead, so that every sequence can be cut back to any prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

Rope = Callable[..., Any]
"""A rotary embedding: called with keys and ``offset``."""

GROWTH = 256
"""Columns by which a cache grows; growth copies what is there, so it is rare."""


def round_up(columns: int) -> int:
    """The capacity (columns) to allocate for ``columns`` tokens."""
    return -(-columns // GROWTH) * GROWTH


def causal_mask(n: int, offset: int, window: int | None) -> mx.array:
    """Which of ``offset + n`` columns each of ``n`` new tokens may see: boolean, shape ``[n, offset + n]``."""
    rows = mx.arange(offset, offset + n)[:, None]
    columns = mx.arange(offset + n)[None]
    mask = rows >= columns
    if window is not None:
        mask = mask & (rows < columns + window)
    return mask


class LayerCache:
    """Keys and values of one layer for one sequence, each of shape ``[1, kv_heads, capacity, head_dim]``."""

    __slots__ = ("keys", "offset", "values")

    def __init__(self) -> None:
        self.keys: mx.array | None = None
        self.values: mx.array | None = None
        self.offset = 0

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Append ``[1, kv_heads, n, head_dim]`` keys and values; return all columns up to and including them."""
        end = self.offset + keys.shape[2]
        self.keys = _written(self.keys, keys, self.offset, end)
        self.values = _written(self.values, values, self.offset, end)
        self.offset = end
        return self.keys[..., :end, :], self.values[..., :end, :]

    def make_mask(
        self, n: int, return_array: bool = False, window_size: int | None = None
    ) -> mx.array | str | None:
        """The attention mask for the next ``n`` tokens, in one of the forms that MLX's attention takes."""
        windowed = window_size is not None and self.offset + n > window_size
        if windowed or (return_array and n > 1):
            return causal_mask(n, self.offset, window_size if windowed else None)
        return "causal" if n > 1 else None


def _written(buffer: mx.array | None, new: mx.array, start: int, end: int) -> mx.array:
    if buffer is None or end > buffer.shape[2]:
        heads, width = new.shape[1], new.shape[3]
        grown = mx.zeros((1, heads, round_up(end), width), new.dtype)
        if buffer is not None and start:
            grown[..., :start, :] = buffer[..., :start, :]
        buffer = grown
    buffer[..., start:end, :] = new
    return buffer


class SequenceCache:
    """All layers' caches of one sequence. ``layers`` is what a model is called with."""

    __slots__ = ("layers",)

    def __init__(self, n_layers: int) -> None:
        self.layers = [LayerCache() for _ in range(n_layers)]

    def __len__(self) -> int:
        return self.layers[0].offset

    def truncate(self, length: int) -> None:
        """Forget every token from position ``length`` on."""
        for layer in self.layers:
            layer.offset = min(layer.offset, length)

    def copy(self) -> SequenceCache:
        """A cache of its own with the same tokens."""
        other = SequenceCache(len(self.layers))
        for mine, theirs in zip(self.layers, other.layers, strict=True):
            if mine.keys is not None and mine.values is not None:
                theirs.keys, theirs.values = mx.array(mine.keys), mx.array(mine.values)
                theirs.offset = mine.offset
        mx.eval(other.arrays())
        return other

    def drop(self, start: int, n: int, ropes: Sequence[Rope]) -> None:
        """Remove ``n`` tokens from position ``start`` on and move those behind them up.

        Args:
            ropes: each layer's rotary embedding; keys that move are turned back by ``n`` positions.
        """
        for layer, rope in zip(self.layers, ropes, strict=True):
            assert layer.keys is not None and layer.values is not None
            end, behind = layer.offset, start + n
            moved = layer.keys[..., behind:end, :]
            # One position a row: every key is turned by the same angle.
            turned = rope(moved.reshape(1, -1, 1, moved.shape[-1]), offset=-n).reshape(moved.shape)
            layer.keys[..., start : end - n, :] = turned
            layer.values[..., start : end - n, :] = mx.array(layer.values[..., behind:end, :])
            layer.offset = end - n
        mx.eval(self.arrays())

    def arrays(self) -> list[mx.array]:
        """The buffers, for ``mx.eval``."""
        return [a for layer in self.layers for a in (layer.keys, layer.values) if a is not None]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(a.nbytes for a in self.arrays())
