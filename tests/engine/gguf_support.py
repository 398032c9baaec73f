"""Small GGUF files with random weights, written the way llama.cpp's converter writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import mlx.core as mx
import numpy as np
import numpy.typing as npt
from mlx_lm.models import gemma3_text, llama, qwen2, qwen3

from mlxcel.engine.loading.parameters import parameters

MODULES: dict[str, Any] = {"llama": llama, "qwen2": qwen2, "qwen3": qwen3, "gemma3": gemma3_text}
ARGUMENTS: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-5,
    "vocab_size": 128,
    "max_position_embeddings": 512,
    "rope_theta": 5000.0,
    "tie_word_embeddings": True,
}
GEMMA_ARGUMENTS = {"num_hidden_layers": 6, "head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 4}
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
GEMMA_NAMES = NAMES | {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
Array = npt.NDArray[Any]


def random_model(architecture: str, **changed: Any) -> Any:
    """A random mlx-lm model in its own (not GGUF's) order of rows."""
    arguments = ARGUMENTS | (GEMMA_ARGUMENTS if architecture == "gemma3" else {}) | changed
    mx.random.seed(3)
    module = MODULES[architecture]
    model = module.Model(module.ModelArgs.from_dict(arguments))
    weights = {path: mx.random.normal(value.shape) * 0.2 for path, value in parameters(model).items()}
    if architecture != "gemma3":
        weights = {path: value + 1 if "norm" in path else value for path, value in weights.items()}
    if architecture == "gemma3" and arguments["tie_word_embeddings"]:
        weights.pop("lm_head.weight")
    model.load_weights(list(model.sanitize(weights).items()))
    mx.eval(model.parameters())
    return model


def logits(model: Any, tokens: tuple[int, ...] = (5, 9, 100, 7, 3, 64, 2, 17, 90)) -> Array:
    """Logits at every position, ``[tokens, n_vocab]``, computed without a cache."""
    from mlx_lm.models.cache import make_prompt_cache

    return np.array(model(mx.array([tokens]), make_prompt_cache(model))[0].astype(mx.float32))


def write_model(
    path: Path,
    architecture: str,
    model: Any,
    *,
    kind: str = "F32",
    metadata: dict[str, Any] | None = None,
    extra: dict[str, Array] | None = None,
    without: tuple[str, ...] = (),
    split: int = 0,
) -> Path:
    """Write ``model`` as GGUF.

    Args:
        kind: type of the matrices.
        metadata: keys to add or replace; None leaves one out.
        extra: float32 tensors to add.
        without: tensors to leave out.
        split: tensors in a file; 0 for a single file.
    """
    writer = gguf.GGUFWriter(path, architecture, split_max_tensors=split)
    for key, value in (_metadata(architecture, model.args) | (metadata or {})).items():
        _add(writer, key, value)
    for name, value in _tensors(architecture, model).items():
        if name not in without:
            _add_tensor(writer, name, value, kind if value.ndim == 2 else "F32")
    for name, value in (extra or {}).items():
        _add_tensor(writer, name, value, "F32")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _metadata(architecture: str, args: Any) -> dict[str, Any]:
    own = {
        "block_count": args.num_hidden_layers,
        "context_length": args.max_position_embeddings,
        "embedding_length": args.hidden_size,
        "feed_forward_length": args.intermediate_size,
        "attention.head_count": args.num_attention_heads,
        "attention.head_count_kv": args.num_key_value_heads,
        "attention.key_length": getattr(args, "head_dim", None)
        or args.hidden_size // args.num_attention_heads,
        "attention.layer_norm_rms_epsilon": float(args.rms_norm_eps),
        "rope.freq_base": float(args.rope_theta),
    }
    if architecture == "gemma3":
        own["attention.sliding_window"] = args.sliding_window
    return {f"{architecture}.{key}": value for key, value in own.items()} | byte_vocabulary(args.vocab_size)


def byte_vocabulary(n_vocab: int) -> dict[str, Any]:
    """A byte-pair vocabulary of printable characters, with a merge and, at the end, a control token."""
    texts = [chr(ord("!") + i) if i < 94 else f"<|{i}|>" for i in range(n_vocab)]
    texts[94], texts[-1] = "he", "<|im_end|>"
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": [1] * (n_vocab - 1) + [3],
        "tokenizer.ggml.merges": ["h e"],
        "tokenizer.ggml.eos_token_id": n_vocab - 1,
    }


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, list):
        writer.add_array(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    else:
        writer.add_uint32(key, value)


def _add_tensor(writer: gguf.GGUFWriter, name: str, value: Array, kind: str) -> None:
    number = gguf.GGMLQuantizationType[kind]
    writer.add_tensor(name, gguf.quantize(value, number), raw_dtype=number)


def _tensors(architecture: str, model: Any) -> dict[str, Array]:
    names = GEMMA_NAMES if architecture == "gemma3" else NAMES
    found: dict[str, Array] = {}
    for path, array in parameters(model).items():
        value = np.array(array)
        stem, _, part = path.rpartition(".")
        if stem.startswith("model.layers."):
            number, _, inner = stem.removeprefix("model.layers.").partition(".")
            name = f"blk.{number}.{names[inner]}.{part}"
            if architecture == "llama" and inner in ("self_attn.q_proj", "self_attn.k_proj"):
                value = _interleaved(value, model.args.head_dim)
        else:
            name = f"{names[stem]}.{part}"
        found[name] = value + 1 if architecture == "gemma3" and "norm" in name else value
    return found


def _interleaved(value: Array, head_dim: int) -> Array:
    """Rows of each head reordered from halves to neighbouring pairs, as the converter does it for llama."""
    halves = value.reshape(-1, 2, head_dim // 2, *value.shape[1:])
    return halves.swapaxes(1, 2).reshape(value.shape)
