"""A model built from a GGUF file."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gguf
import mlx.core as mx
from mlx.nn.layers.quantized import quantize

from ..errors import LoadError
from .gguf_architectures import ROPE_FACTORS, Architecture, architecture_of, module_path
from .gguf_file import GgufFile
from .gguf_weights import GROUP_SIZE, is_native, packed
from .memory import keep_float32
from .parameters import evaluate, parameters


class FactoredRope:
    """Rotary embedding whose wavelengths are stretched by factors that the file stores.

    Args:
        dims: rotated width of a head.
        base: rotary base.
        traditional: whether neighbouring elements form a pair, or elements half a head apart.
        factors: shape ``[dims / 2]``.
    """

    def __init__(self, dims: int, base: float, traditional: bool, factors: mx.array) -> None:
        self._dims = dims
        self._traditional = traditional
        self._freqs = base ** (mx.arange(0, dims, 2, dtype=mx.float32) / dims) * factors
        mx.eval(self._freqs)

    def __call__(self, x: mx.array, offset: int | mx.array = 0) -> mx.array:
        """Rotate ``x``, ``[batch, heads, tokens, dims]``, whose first token is at position ``offset``."""
        return mx.fast.rope(
            x,
            self._dims,
            traditional=self._traditional,
            base=None,
            scale=1.0,
            offset=offset,
            freqs=self._freqs,
        )


def build_model(file: GgufFile) -> Any:
    """The mlx-lm model of a GGUF file, its weights evaluated.

    On the CPU all weights become float32 when memory allows: MLX's own kernels for anything else are slow
    there. On other devices, blocks that MLX knows stay quantized.

    Raises:
        LoadError: the architecture is unknown or tensors are missing, extra or misshapen.
    """
    architecture = architecture_of(file)
    arguments = architecture.arguments(file)
    try:
        model = architecture.module.Model(architecture.module.ModelArgs.from_dict(arguments))
    except (KeyError, TypeError, ValueError) as error:
        raise LoadError(f"{file.name}: this {file.architecture} model can't be built ({error!r})") from None
    is_wide = keep_float32(file.n_params)
    weights = _wide(file, architecture) if is_wide else _compact(file, architecture, model)
    weights = model.sanitize(weights)
    _add_missing_biases(model, weights)
    try:
        model.load_weights(list(weights.items()), strict=True)
    except ValueError as error:
        detail = str(error).strip().splitlines()[0]
        raise LoadError(
            f"{file.name}: the tensors don't fit a {file.architecture} model ({detail})"
        ) from None
    _apply_rope_factors(model, arguments, file)
    evaluate(model)
    model.eval()
    return model


def _weights(file: GgufFile) -> list[str]:
    return [name for name in file.tensors if name != ROPE_FACTORS]


def _wide(file: GgufFile, architecture: Architecture) -> dict[str, mx.array]:
    """All weights as float32."""
    names = _weights(file)
    # numpy lets other threads run meanwhile.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        values = pool.map(lambda name: mx.array(file.floats(name)), names)
        return {
            module_path(name, architecture, file): _shifted(name, value, architecture)
            for name, value in zip(names, values, strict=True)
        }


def _shifted(name: str, values: mx.array, architecture: Architecture) -> mx.array:
    # mlx-lm adds one to this family's norms itself.
    return values - 1.0 if architecture.shifted_norms and "norm" in name else values


def _compact(file: GgufFile, architecture: Architecture, model: Any) -> dict[str, mx.array]:
    """Weights as MLX's quantized layers where the file's blocks allow, in half precision elsewhere.

    The layers concerned are replaced in ``model``.
    """
    # A model trained in bfloat16 can leave float16's range.
    is_brain = any(tensor.kind == gguf.GGMLQuantizationType.BF16 for tensor in file.tensors.values())
    dtype = mx.bfloat16 if is_brain else mx.float16
    weights: dict[str, mx.array] = {}
    bits: dict[str, int] = {}
    for name in _weights(file):
        path = module_path(name, architecture, file)
        tensor = file.tensors[name]
        if is_native(tensor):
            layer, matrix = path.removesuffix(".weight"), packed(tensor, dtype)
            bits[layer] = matrix.bits
            weights |= {
                f"{layer}.weight": matrix.weight,
                f"{layer}.scales": matrix.scales,
                f"{layer}.biases": matrix.biases,
            }
        else:
            values = mx.array(file.floats(name))
            weights[path] = _shifted(name, values, architecture).astype(dtype)
    quantize(
        model,
        group_size=GROUP_SIZE,
        class_predicate=lambda path, _: (
            {"group_size": GROUP_SIZE, "bits": bits[path]} if path in bits else False
        ),
    )
    return weights


def _add_missing_biases(model: Any, weights: dict[str, mx.array]) -> None:
    """Zeros for biases that a file leaves out: mlx-lm switches all of a block's biases together."""
    for path, value in parameters(model).items():
        if path.endswith(".bias") and path not in weights:
            weights[path] = mx.zeros_like(value)


def _apply_rope_factors(model: Any, arguments: dict[str, Any], file: GgufFile) -> None:
    if ROPE_FACTORS not in file.tensors:
        return
    dims, base = arguments["head_dim"], arguments["rope_theta"]
    factors = mx.array(file.floats(ROPE_FACTORS))
    if factors.shape != (dims // 2,):
        raise LoadError(f"{file.name}: tensor '{ROPE_FACTORS}' must have {dims // 2} values")
    rope = FactoredRope(dims, base, bool(arguments.get("rope_traditional")), factors)
    for layer in model.model.layers:
        layer.self_attn.rope = rope
