"""The cache of the sequences that decode together: one row each, all written at the same column.

A step appends one token to every row, so giving all rows the same next column makes the write one operation a
layer, whatever the rows' lengths. A row's tokens therefore end at the shared column but need not start at 0 nor be
contiguous: ``_positions`` says which position each column of each row holds (-1: none), and the mask follows from
it. Rotary offsets are the rows' own. Columns that no row uses are squeezed out when they get many.
"""

from __future__ import annotations

from typing import cast

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from .cache import GROWTH, SequenceCache, round_up


class _BatchLayer:
    """One layer's part of the batch; what the model sees as its cache."""

    __slots__ = ("_batch", "keys", "values")

    def __init__(self, batch: BatchCache) -> None:
        self._batch = batch
        self.keys: mx.array | None = None
        self.values: mx.array | None = None

    @property
    def offset(self) -> mx.array | int:
        return self._batch.offsets

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        rows, column = self._batch.rows, self._batch.column
        assert self.keys is not None and self.values is not None
        self.keys[:rows, :, column : column + 1] = keys
        self.values[:rows, :, column : column + 1] = values
        return self.keys[:rows, :, : column + 1], self.values[:rows, :, : column + 1]

    def make_mask(
        self, n: int, return_array: bool = False, window_size: int | None = None
    ) -> mx.array | None:
        return self._batch.mask(window_size)


class BatchCache:
    """Rows of keys and values for a decode batch.

    ``layers`` is what a model is called with, ``rows`` how many rows there are, ``column`` where the next token of
    every row is written. Use: :meth:`insert` a prefilled sequence, then per step :meth:`begin`, call the model on
    tokens of shape ``[rows, 1]``, :meth:`end`; :meth:`remove` hands a row back as a sequence of its own.
    """

    def __init__(self, n_layers: int) -> None:
        self.layers = [_BatchLayer(self) for _ in range(n_layers)]
        self.rows = 0
        self.column = 0
        self.offsets: mx.array | int = 0
        self._positions: npt.NDArray[np.int32] = np.full((0, 0), -1, np.int32)
        self._lengths: list[int] = []

    def insert(self, sequence: SequenceCache) -> int:
        """Add a row holding the tokens of ``sequence``; return its index, always the last one."""
        length, row = len(sequence), self.rows
        self.rows += 1
        self._lengths.append(length)
        self.column = max(self.column, length)
        self._reserve(sequence)
        start = self.column - length
        self._positions[row] = -1
        self._positions[row, start : self.column] = np.arange(length, dtype=np.int32)
        for mine, theirs in zip(self.layers, sequence.layers, strict=True):
            assert mine.keys is not None and mine.values is not None
            assert theirs.keys is not None and theirs.values is not None
            mine.keys[row : row + 1, :, start : self.column] = theirs.keys[..., :length, :]
            mine.values[row : row + 1, :, start : self.column] = theirs.values[..., :length, :]
        mx.eval(self._arrays())
        return row

    def remove(self, row: int, *, keep: bool = True) -> SequenceCache | None:
        """Take a row out. The last row moves into its place: whoever had index ``rows`` now has ``row``.

        Returns:
            The row's tokens as a sequence, or None when ``keep`` is false.
        """
        kept = self._extract(row) if keep else None
        last = self.rows - 1
        if row != last:
            for layer in self.layers:
                assert layer.keys is not None and layer.values is not None
                end = self.column
                layer.keys[row : row + 1, :, :end] = layer.keys[last : last + 1, :, :end]
                layer.values[row : row + 1, :, :end] = layer.values[last : last + 1, :, :end]
            self._positions[row] = self._positions[last]
            self._lengths[row] = self._lengths[last]
        self._lengths.pop()
        self.rows = last
        if self.rows:
            self._squeeze()
        else:
            self.clear()
        return kept

    def clear(self) -> None:
        """Drop every row and give the memory back."""
        self.rows = self.column = 0
        self._lengths = []
        self._positions = np.full((0, 0), -1, np.int32)
        for layer in self.layers:
            layer.keys = layer.values = None

    def begin(self) -> None:
        """Make room for one more token a row and fix the rows' positions for this step."""
        self._squeeze()
        self._reserve()
        lengths = np.asarray(self._lengths, np.int32)
        self._positions[: self.rows, self.column] = lengths
        # A scalar offset is the cheaper rotary kernel, and one row is the commonest batch.
        self.offsets = int(lengths[0]) if self.rows == 1 else mx.array(lengths)

    def end(self) -> None:
        """Count the token that the model has just written in every row."""
        self.column += 1
        self._lengths = [length + 1 for length in self._lengths]

    def mask(self, window: int | None) -> mx.array | None:
        """Which columns each row may see in this step: boolean ``[rows, 1, 1, column + 1]``, or None for all."""
        positions = self._positions[: self.rows, : self.column + 1]
        seen = positions >= 0
        if window is not None:
            seen &= positions > (np.asarray(self._lengths, np.int32) - window)[:, None]
        return None if seen.all() else mx.array(seen[:, None, None, :])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(a.nbytes for a in self._arrays())

    def _arrays(self) -> list[mx.array]:
        return [a for layer in self.layers for a in (layer.keys, layer.values) if a is not None]

    def _reserve(self, like: SequenceCache | None = None) -> None:
        """Grow the buffers so that ``rows`` rows have ``column + 1`` columns."""
        rows, columns = self._positions.shape
        if self.rows <= rows and self.column < columns:
            return
        new_rows = rows if self.rows <= rows else max(self.rows, 2 * rows)
        new_columns = max(columns, round_up(self.column + 1))
        positions = np.full((new_rows, new_columns), -1, np.int32)
        positions[:rows, :columns] = self._positions
        self._positions = positions
        for index, layer in enumerate(self.layers):
            source = like.layers[index] if like is not None else layer
            assert source.keys is not None and source.values is not None
            layer.keys = _grown(layer.keys, source.keys, new_rows, new_columns)
            layer.values = _grown(layer.values, source.values, new_rows, new_columns)

    def _squeeze(self) -> None:
        """Right-align the rows again once unused columns outnumber what they are worth."""
        longest = max(self._lengths)
        if self.column - longest < max(GROWTH, longest // 2):
            return
        index = np.zeros((self.rows, longest), np.int32)
        positions = np.full_like(self._positions, -1)
        for row, length in enumerate(self._lengths):
            columns = np.flatnonzero(self._positions[row, : self.column] >= 0)
            index[row, longest - length :] = columns
            positions[row, longest - length : longest] = self._positions[row, columns]
        gather = mx.array(index)[:, None, :, None]
        for layer in self.layers:
            assert layer.keys is not None and layer.values is not None
            for name in ("keys", "values"):
                old = cast(mx.array, getattr(layer, name))
                new = mx.zeros(old.shape, old.dtype)
                new[: self.rows, :, :longest] = mx.take_along_axis(old[: self.rows], gather, axis=2)
                setattr(layer, name, new)
                mx.eval(new)
        self._positions = positions
        self.column = longest

    def _extract(self, row: int) -> SequenceCache:
        length = self._lengths[row]
        columns = np.flatnonzero(self._positions[row, : self.column] >= 0)
        contiguous = len(columns) == 0 or columns[-1] - columns[0] + 1 == length
        start = int(columns[0]) if len(columns) else 0
        sequence = SequenceCache(len(self.layers))
        for mine, theirs in zip(self.layers, sequence.layers, strict=True):
            assert mine.keys is not None and mine.values is not None
            for name, buffer in (("keys", mine.keys), ("values", mine.values)):
                picked = (
                    buffer[row : row + 1, :, start : start + length]
                    if contiguous
                    else mx.take(buffer[row : row + 1], mx.array(columns), axis=2)
                )
                target = mx.zeros(
                    (1, buffer.shape[1], round_up(max(length, 1)), buffer.shape[3]), buffer.dtype
                )
                target[..., :length, :] = picked
                setattr(theirs, name, target)
            theirs.offset = length
        # Evaluated now: a pending view would keep the batch's buffer alive and turn the next write into a copy.
        mx.eval(sequence.arrays())
        return sequence


def _grown(buffer: mx.array | None, like: mx.array, rows: int, columns: int) -> mx.array:
    grown = mx.zeros((rows, like.shape[1], columns, like.shape[3]), like.dtype)
    if buffer is not None:
        grown[: buffer.shape[0], :, : buffer.shape[2]] = buffer
    return grown
