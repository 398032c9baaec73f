"""GGUF tensors in the form that a device is fastest with: floats, or MLX's own quantized layout.

MLX stores a row of weights as unsigned integers packed into 32-bit words, lowest bits first, with a scale and
a bias for every group: weight = scale * integer + bias. Blocks of Q4_0, Q4_1 and Q8_0 are such groups of 32
in another order.
"""

from __future__ import annotations

from dataclasses import dataclass

import gguf
import mlx.core as mx
import numpy as np
import numpy.typing as npt

from .gguf_file import Tensor

GROUP_SIZE = 32
"""Weights in a block of each of the native types, and in a group of the layers made from them."""

Q4_0, Q4_1, Q8_0 = (
    gguf.GGMLQuantizationType.Q4_0,
    gguf.GGMLQuantizationType.Q4_1,
    gguf.GGMLQuantizationType.Q8_0,
)
NATIVE_BITS = {Q4_0: 4, Q4_1: 4, Q8_0: 8}
"""Types with a counterpart in MLX, and the bits of one weight."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A matrix of ``rows`` x ``columns`` in MLX's layout.

    ``weight`` is uint32 of shape ``[rows, columns * bits / 32]``; ``scales`` and ``biases`` have the shape
    ``[rows, columns / 32]``.
    """

    weight: mx.array
    scales: mx.array
    biases: mx.array
    bits: int


def is_native(tensor: Tensor) -> bool:
    """Whether :func:`packed` can take this tensor."""
    return tensor.kind in NATIVE_BITS and len(tensor.shape) == 2


def packed(tensor: Tensor, dtype: mx.Dtype) -> Packed:
    """A tensor of a native type in MLX's layout, its scales and biases as ``dtype``."""
    rows, columns = tensor.shape
    blocks = tensor.data.reshape(rows, columns // GROUP_SIZE, -1)
    scales = _halves(blocks[..., :2])
    if tensor.kind == Q8_0:
        integers = (blocks[..., 2:].view(np.int8).astype(np.int16) + 128).astype(np.uint8)
        biases = scales * -128
        words = integers.reshape(rows, -1).view(np.uint32)
    else:
        biases = _halves(blocks[..., 2:4]) if tensor.kind == Q4_1 else scales * -8
        words = _nibbles(blocks[..., 4 if tensor.kind == Q4_1 else 2 :]).reshape(rows, -1).view(np.uint32)
    return Packed(
        mx.array(words),
        mx.array(scales).astype(dtype),
        mx.array(biases).astype(dtype),
        NATIVE_BITS[tensor.kind],
    )


def _halves(pairs: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Half-precision numbers stored in the last axis' two bytes."""
    return np.ascontiguousarray(pairs).view(np.float16)[..., 0].astype(np.float32)


def _nibbles(blocks: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """4-bit weights in MLX's order; in a GGUF block the low halves of the bytes come first, then the high."""
    ordered: npt.NDArray[np.uint8] = np.concatenate([blocks & 15, blocks >> 4], axis=-1)
    high = np.left_shift(ordered[..., 1::2], 4, dtype=np.uint8)
    return np.bitwise_or(ordered[..., 0::2], high, dtype=np.uint8)
