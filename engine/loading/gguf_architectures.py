"""How each architecture's GGUF metadata and tensor names become an mlx-lm model."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlx_lm.models import gemma3_text, llama, qwen2, qwen3

from ..errors import LoadError
from .gguf_file import GgufFile


@dataclass(frozen=True, slots=True)
class Architecture:
    """One family of models.

    ``module`` is mlx-lm's; ``arguments`` makes its model arguments from metadata; ``names`` maps a block's
    tensor names, without ``blk.N.`` and ``.weight``, to mlx-lm's; ``shifted_norms`` says that norms are
    stored plus one.
    """

    module: Any
    arguments: Callable[[GgufFile], dict[str, Any]]
    names: dict[str, str]
    shifted_norms: bool = False


BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
GEMMA_BLOCK = (
    BLOCK
    | HEAD_NORMS
    | {
        "post_attention_norm": "post_attention_layernorm",
        "ffn_norm": "pre_feedforward_layernorm",
        "post_ffw_norm": "post_feedforward_layernorm",
    }
)
OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}

ROPE_FACTORS = "rope_freqs.weight"
"""Not a weight: the loader puts it into the rotary embedding."""

BLOCK_NAME = re.compile(r"blk\.(?P<layer>\d+)\.(?P<name>\w+)\.(?P<kind>weight|bias)")


def _common(file: GgufFile) -> dict[str, Any]:
    _refuse_unknown(file)
    heads = _count(file, "attention.head_count")
    width = _count(file, "embedding_length")
    head_width = _count(file, "attention.key_length", width // heads)
    rotated = _count(file, "rope.dimension_count", head_width)
    if rotated != head_width:
        raise LoadError(f"{file.name}: rotating {rotated} of a head's {head_width} elements is not supported")
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None:
        raise LoadError(f"{file.name}: tensor 'token_embd.weight' is missing; convert the model again")
    return {
        "model_type": file.architecture,
        "hidden_size": width,
        "num_hidden_layers": _count(file, "block_count"),
        "intermediate_size": _count(file, "feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": _count(file, "attention.head_count_kv", heads),
        "head_dim": head_width,
        "rms_norm_eps": float(file.require_hyperparameter("attention.layer_norm_rms_epsilon")),
        "rope_theta": float(file.hyperparameter("rope.freq_base", 10000.0)),
        "max_position_embeddings": _count(file, "context_length"),
        "vocab_size": embedding.shape[0],
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "rope_scaling": _rope_scaling(file),
    }


def _count(file: GgufFile, key: str, default: int | None = None) -> int:
    """A positive whole number of the metadata; a list stands for it when its elements are equal."""
    value = file.require_hyperparameter(key) if default is None else file.hyperparameter(key, default)
    if isinstance(value, list) and len(set(value)) == 1:
        value = value[0]
    if not isinstance(value, int) or value <= 0:
        what = "differing from layer to layer" if isinstance(value, list) else repr(value)
        raise LoadError(f"{file.name}: {file.architecture}.{key} {what} is not supported")
    return value


def _refuse_unknown(file: GgufFile) -> None:
    if file.hyperparameter("expert_count", 0):
        raise LoadError(
            f"{file.name}: {file.architecture} models that are mixtures of experts are not supported"
        )


def _rope_scaling(file: GgufFile) -> dict[str, Any] | None:
    kind = file.hyperparameter("rope.scaling.type")
    # An older key means linear scaling.
    factor = file.hyperparameter("rope.scaling.factor", file.hyperparameter("rope.scale_linear"))
    if kind == "none" or factor in (None, 0, 1.0):
        return None
    kind = kind or "linear"
    if kind not in ("linear", "yarn"):
        raise LoadError(f"{file.name}: rotary scaling '{kind}' is not supported")
    scaling: dict[str, Any] = {"type": kind, "factor": float(factor)}
    original = file.hyperparameter("rope.scaling.original_context_length")
    return scaling | ({"original_max_position_embeddings": int(original)} if original else {})


def _llama(file: GgufFile) -> dict[str, Any]:
    # The converter stores this family's query and key rows in the interleaved rotary order.
    return _common(file) | {
        "rope_traditional": True,
        "attention_bias": "blk.0.attn_q.bias" in file.tensors,
        "mlp_bias": "blk.0.ffn_up.bias" in file.tensors,
    }


def _gemma3(file: GgufFile) -> dict[str, Any]:
    common = _common(file)
    # The largest model scales its queries by its width, all others by the head's.
    is_27b = common["num_hidden_layers"] == 62
    scalar = common["hidden_size"] // common["num_attention_heads"] if is_27b else common["head_dim"]
    window = file.hyperparameter("attention.sliding_window", 0)
    return common | {
        "model_type": "gemma3_text",
        "query_pre_attn_scalar": scalar,
        "rope_local_base_freq": float(file.hyperparameter("rope.freq_base_swa", 10000.0)),
        "sliding_window": window or common["max_position_embeddings"],
        # Every sixth layer sees everything; all of them do when there is no window.
        "sliding_window_pattern": _count(file, "attention.sliding_window_pattern", 6) if window else 1,
    }


ARCHITECTURES: dict[str, Architecture] = {
    "llama": Architecture(llama, _llama, BLOCK),
    "qwen2": Architecture(qwen2, _common, BLOCK),
    "qwen3": Architecture(qwen3, _common, BLOCK | HEAD_NORMS),
    "gemma3": Architecture(gemma3_text, _gemma3, GEMMA_BLOCK, shifted_norms=True),
}


def architecture_of(file: GgufFile) -> Architecture:
    """The family of a file.

    Raises:
        LoadError: the architecture isn't known.
    """
    architecture = ARCHITECTURES.get(file.architecture)
    if architecture is None:
        known = ", ".join(sorted(ARCHITECTURES))
        raise LoadError(f"{file.name}: architecture '{file.architecture}' is not supported (known: {known})")
    return architecture


def module_path(name: str, architecture: Architecture, file: GgufFile) -> str:
    """mlx-lm's parameter path for a GGUF tensor.

    Raises:
        LoadError: the architecture has no such tensor.
    """
    block = BLOCK_NAME.fullmatch(name)
    if block is not None and block["name"] in architecture.names:
        return f"model.layers.{block['layer']}.{architecture.names[block['name']]}.{block['kind']}"
    stem, _, kind = name.rpartition(".")
    if stem in OUTSIDE:
        return f"{OUTSIDE[stem]}.{kind}"
    raise LoadError(f"{file.name}: unexpected tensor '{name}' in a {file.architecture} model")
