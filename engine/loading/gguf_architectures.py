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

    ``arguments`` makes mlx-lm's model arguments from metadata; ``names`` maps a block's tensor names, without
    "blk.N." and ".weight", to mlx-lm's; ``shifted_norms`` says that norms are stored plus one.
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
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
GEMMA_BLOCK = BLOCK | {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}

# Not weights: the rotary factors are read by the loader itself.
ROPE_FACTORS = "rope_freqs.weight"

BLOCK_NAME = re.compile(r"blk\.(?P<layer>\d+)\.(?P<name>\w+)\.(?P<kind>weight|bias)$")


def _common(file: GgufFile) -> dict[str, Any]:
    heads = int(file.hyperparameter("attention.head_count"))
    width = int(file.hyperparameter("embedding_length"))
    return {
        "model_type": file.architecture,
        "hidden_size": width,
        "num_hidden_layers": int(file.hyperparameter("block_count")),
        "intermediate_size": int(file.hyperparameter("feed_forward_length")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(file.hyperparameter("attention.head_count_kv", heads)),
        "head_dim": int(file.hyperparameter("attention.key_length", width // heads)),
        "rms_norm_eps": float(file.hyperparameter("attention.layer_norm_rms_epsilon", 1e-5)),
        "rope_theta": float(file.hyperparameter("rope.freq_base", 10000.0)),
        "max_position_embeddings": int(file.hyperparameter("context_length", 2048)),
        "vocab_size": int(file.tensors["token_embd.weight"].shape[1]),
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "rope_scaling": _rope_scaling(file),
    }


def _rope_scaling(file: GgufFile) -> dict[str, Any] | None:
    kind, factor = file.hyperparameter("rope.scaling.type"), file.hyperparameter("rope.scaling.factor")
    if kind in (None, "none") or factor is None:
        return None
    scaling = {"type": kind, "factor": float(factor)}
    original = file.hyperparameter("rope.scaling.original_context_length")
    return scaling | ({"original_max_position_embeddings": int(original)} if original else {})


def _llama(file: GgufFile) -> dict[str, Any]:
    # The converter stores this family's query and key rows in the interleaved rotary order.
    return _common(file) | {"rope_traditional": True, "attention_bias": "blk.0.attn_q.bias" in file.tensors}


def _gemma3(file: GgufFile) -> dict[str, Any]:
    common = _common(file)
    # The largest model scales its queries by its width, all others by the head's.
    is_27b = common["num_hidden_layers"] == 62
    scalar = common["hidden_size"] // common["num_attention_heads"] if is_27b else common["head_dim"]
    return common | {
        "model_type": "gemma3_text",
        "query_pre_attn_scalar": scalar,
        "sliding_window": int(file.hyperparameter("attention.sliding_window", 512)),
        "sliding_window_pattern": 6,
    }


ARCHITECTURES: dict[str, Architecture] = {
    "llama": Architecture(llama, _llama, BLOCK),
    "qwen2": Architecture(qwen2, _common, BLOCK),
    "qwen3": Architecture(qwen3, _common, BLOCK),
    "gemma3": Architecture(gemma3_text, _gemma3, GEMMA_BLOCK, shifted_norms=True),
}


def architecture_of(file: GgufFile) -> Architecture:
    """The family of a file.

    Raises:
        LoadError: the architecture isn't known.
    """
    try:
        return ARCHITECTURES[file.architecture]
    except KeyError:
        known = ", ".join(sorted(ARCHITECTURES))
        raise LoadError(
            f"{file.name}: architecture '{file.architecture}' is not supported (known: {known})"
        ) from None


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
