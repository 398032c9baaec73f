"""A model built from a GGUF file, with weights in the form that the device is fastest with."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from ..errors import LoadError
from .gguf_architectures import ROPE_FACTORS, Architecture, architecture_of, module_path
from .gguf_file import GgufFile
from .memory import float32_fits

NATIVE = frozenset({"Q4_0", "Q4_1", "Q8_0"})
"""Types whose blocks are MLX's own affine quantization of 32 weights a group."""


class FactoredRope(nn.Module):
    """Rotary embedding whose wavelengths are stretched by factors stored in the file.

    Args:
        dims: rotated width of a head.
        base: rotary base.
        factors: shape ``[dims / 2]``.
    """

    def __init__(self, dims: int, base: float, traditional: bool, factors: mx.array) -> None:
        super().__init__()
        self._dims = dims
        self._traditional = traditional
        self._freqs = base ** (mx.arange(0, dims, 2, dtype=mx.float32) / dims) * factors

    def __call__(self, x: mx.array, offset: int | mx.array = 0) -> mx.array:
        return mx.fast.rope(
            x, self._dims, traditional=self._traditional, base=None, scale=1.0, offset=offset, freqs=self._freqs
        )


def build_model(file: GgufFile) -> Any:
    """The mlx-lm model of a GGUF file, its weights evaluated.

    Raises:
        LoadError: the architecture is unknown or tensors are missing, extra or misshapen.
    """
    architecture = architecture_of(file)
    try:
        arguments = architecture.arguments(file)
    except (KeyError, TypeError):
        raise LoadError(f"{file.name}: the metadata of the {file.architecture} model is incomplete") from None
    model = architecture.module.Model(architecture.module.ModelArgs.from_dict(arguments))
    n_params = sum(count for _, count in file.kinds())
    if mx.default_device() == mx.Device(mx.cpu) and float32_fits(n_params):
        weights = _dequantized(file, architecture, mx.float32)
    else:
        weights = _quantized(file, architecture, model)
    weights = model.sanitize(weights)
    _fill(model, weights, file)
    _apply_rope_factors(model, arguments, file)
    mx.eval(model.parameters())
    return model.eval() if hasattr(model, "eval") else model


def _fill(model: Any, weights: dict[str, mx.array], file: GgufFile) -> None:
    try:
        model.load_weights(list(weights.items()), strict=True)
    except ValueError as error:
        detail = str(error).strip().splitlines()[0]
        raise LoadError(f"{file.name}: the tensors don't fit a {file.architecture} model ({detail})") from None


def _names(file: GgufFile) -> list[str]:
    return [name for name in file.tensors if name != ROPE_FACTORS]


def _dequantized(file: GgufFile, architecture: Architecture, dtype: mx.Dtype) -> dict[str, mx.array]:
    return {
        module_path(name, architecture, file): _unshifted(name, mx.array(file.floats(name)), architecture).astype(dtype)
        for name in _names(file)
    }


def _unshifted(name: str, value: mx.array, architecture: Architecture) -> mx.array:
    """mlx-lm adds one to this family's norms itself."""
    return value - 1.0 if architecture.shifted_norms and "norm" in name else value


def _quantized(file: GgufFile, architecture: Architecture, model: Any) -> dict[str, mx.array]:
    """Weights in MLX's quantized layout where the file's blocks map to it, half precision elsewhere.

    The layers concerned are replaced in ``model``.
    """
    native = {n for n in _names(file) if file.tensors[n].tensor_type.name in NATIVE}
    bits = {module_path(n, architecture, file).rpartition(".")[0]: _bits(file, n) for n in native}
    weights = {
        module_path(n, architecture, file): _unshifted(n, mx.array(file.floats(n)), architecture).astype(mx.float16)
        for n in _names(file)
        if n not in native
    }
    if native:
        loaded = mx.load(str(file.path))
        for name in native:
            path = module_path(name, architecture, file).rpartition(".")[0]
            stem = name.rpartition(".")[0]
            weights |= {f"{path}.{part}": loaded[f"{stem}.{part}"] for part in ("weight", "scales", "biases")}
    nn.quantize(
        model,
        group_size=32,
        class_predicate=lambda path, _: {"group_size": 32, "bits": bits[path]} if path in bits else False,
    )
    return weights


def _bits(file: GgufFile, name: str) -> int:
    return 8 if file.tensors[name].tensor_type.name == "Q8_0" else 4


def _apply_rope_factors(model: Any, arguments: dict[str, Any], file: GgufFile) -> None:
    if ROPE_FACTORS not in file.tensors:
        return
    factors = mx.array(file.floats(ROPE_FACTORS))
    rope = FactoredRope(
        arguments["head_dim"], arguments["rope_theta"], bool(arguments.get("rope_traditional")), factors
    )
    for layer in model.model.layers:
        layer.self_attn.rope = rope
