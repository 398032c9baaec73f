"""A model from an MLX checkpoint folder: config.json, *.safetensors, tokenizer.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import tokenizers

from ..errors import LoadError
from ..tokenizer import Tokenizer, Vocabulary
from .gguf_tokenizer import SPACE, byte_level_alphabet
from .memory import keep_float32
from .parameters import evaluate
from .vocabulary import end_of_generation, fim_tokens, special_tokens

PROBE = "a"
"""A text that any tokenizer encodes, to see what is put around it."""

MODEL_TYPES = ("gemma3", "gemma3_text", "llama", "mistral", "qwen2", "qwen3")
"""``model_type`` in config.json. Others may compute logits in ways that the engine doesn't know."""


def load_folder_model(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The model of a checkpoint folder and its config, weights evaluated.

    On the CPU all weights become float32 when memory allows: MLX's own kernels for anything else are slow
    there.

    Raises:
        LoadError: a file is missing or damaged, or the architecture unknown.
    """
    from mlx_lm.utils import dequantize_model, load_model

    kind = read_json(folder / "config.json", required=True).get("model_type")
    if kind not in MODEL_TYPES:
        known = ", ".join(MODEL_TYPES)
        raise LoadError(f"{folder}: model type '{kind}' is not supported (known: {known})")
    try:
        whole, config = load_model(folder, lazy=True)
        # The text part of a model that also sees pictures.
        model: Any = getattr(whole, "language_model", whole)
        if keep_float32(n_params(model)):
            # Scales are widened first, so that products aren't rounded to half precision.
            model.set_dtype(mx.float32)
            model = dequantize_model(model)
        evaluate(model)
    except FileNotFoundError:
        raise LoadError(f"{folder}: no model*.safetensors in the folder; is it an MLX checkpoint?") from None
    except (ValueError, KeyError, TypeError, RuntimeError, AttributeError) as error:
        detail = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise LoadError(f"{folder}: the checkpoint can't be loaded: {detail}") from None
    model.eval()
    return model, config


def n_params(model: Any) -> int:
    """Scalars in a model; quantized layers count what they stand for."""
    from mlx_lm.utils import get_total_parameters

    count: Callable[[Any], int] = get_total_parameters
    return count(model)


def folder_file_type(config: dict[str, Any]) -> str:
    """How the weights are stored, such as ``4-bit`` or ``bfloat16``."""
    quantization = config.get("quantization") or config.get("quantization_config")
    if isinstance(quantization, dict) and "bits" in quantization:
        return f"{quantization['bits']}-bit"
    text = config.get("text_config", {})
    return str(config.get("torch_dtype") or config.get("dtype") or text.get("torch_dtype") or "unknown")


def read_json(path: Path, *, required: bool = False) -> dict[str, Any]:
    """The object in a JSON file; empty when an optional one isn't there.

    Raises:
        LoadError: the file is missing though required, or holds no JSON object.
    """
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        if required:
            raise LoadError(
                f"{path}: no such file; is {path.parent.name} an MLX checkpoint folder?"
            ) from None
        return {}
    except (OSError, ValueError) as error:
        raise LoadError(f"{path}: can't be read as JSON ({error})") from None
    if not isinstance(value, dict):
        raise LoadError(f"{path}: must hold a JSON object")
    return value


def load_folder_tokenizer(folder: Path, config: dict[str, Any]) -> tuple[Tokenizer, str | None]:
    """The tokenizer of a checkpoint folder, and its chat template if it has one.

    Raises:
        LoadError: tokenizer.json is missing or damaged.
    """
    path = folder / "tokenizer.json"
    if not path.exists():
        raise LoadError(f"{path}: no such file; convert the checkpoint with a fast tokenizer")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:
        raise LoadError(f"{path}: can't be read as a tokenizer ({error})") from None
    settings = read_json(folder / "tokenizer_config.json")
    vocabulary = _vocabulary(tokenizer, settings, _eos_ids(config))
    return Tokenizer(tokenizer, vocabulary), _chat_template(folder, settings)


def _eos_ids(config: dict[str, Any]) -> list[int]:
    """End-of-sequence IDs of a config, into which mlx-lm has put those of generation_config.json."""
    found: list[int] = []
    for source in (config, config.get("text_config", {})):
        value = source.get("eos_token_id")
        found += value if isinstance(value, list) else [] if value is None else [value]
    return found


def _vocabulary(tokenizer: tokenizers.Tokenizer, settings: dict[str, Any], eos_ids: list[int]) -> Vocabulary:
    ids = tokenizer.get_vocab(with_added_tokens=True)
    added = tokenizer.get_added_tokens_decoder()
    fim = fim_tokens(ids, {})
    eos = ids.get(_token_text(settings.get("eos_token")), eos_ids[0] if eos_ids else None)
    prefix, suffix = _around(tokenizer)
    bos = ids.get(_token_text(settings.get("bos_token")), prefix[0] if prefix else None)
    eog_ids = end_of_generation(ids, (eos, *eos_ids), fim)
    return Vocabulary(
        pieces=_pieces(tokenizer, ids, frozenset(added)),
        special=special_tokens(ids, (i for i, token in added.items() if token.special), fim),
        bos_id=bos,
        eos_id=eos,
        eog_ids=eog_ids,
        prefix=_switched(prefix, bos, settings.get("add_bos_token")),
        suffix=_switched(suffix, eos, settings.get("add_eos_token")),
        fim=fim,
    )


def _around(tokenizer: tokenizers.Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What the tokenizer puts before and behind a text."""
    around: list[int] = tokenizer.encode(PROBE).ids
    plain: list[int] = tokenizer.encode(PROBE, add_special_tokens=False).ids
    start = next((i for i in range(len(around)) if around[i : i + len(plain)] == plain), 0)
    return tuple(around[:start]), tuple(around[start + len(plain) :])


def _switched(found: tuple[int, ...], token: int | None, switch: bool | None) -> tuple[int, ...]:
    """``found``, or what tokenizer_config.json's explicit switch says instead."""
    if switch is None or token is None:
        return found
    return (found or (token,)) if switch else ()


def _token_text(token: Any) -> str:
    """A token in tokenizer_config.json is its text or an object that has it."""
    return str(token.get("content", "")) if isinstance(token, dict) else str(token or "")


def _pieces(tokenizer: tokenizers.Tokenizer, ids: dict[str, int], added: frozenset[int]) -> tuple[bytes, ...]:
    to_byte = byte_level_alphabet() if "ByteLevel" in str(tokenizer.decoder) else None
    pieces = [b""] * (max(ids.values()) + 1)
    for text, i in ids.items():
        if i in added:
            pieces[i] = text.encode()
        elif to_byte is not None:
            pieces[i] = bytes(to_byte[c] for c in text) if all(c in to_byte for c in text) else text.encode()
        elif len(text) == 6 and text.startswith("<0x"):
            pieces[i] = bytes([int(text[3:5], 16)])
        else:
            pieces[i] = text.replace(SPACE, " ").encode()
    return tuple(pieces)


def _chat_template(folder: Path, settings: dict[str, Any]) -> str | None:
    file = folder / "chat_template.jinja"
    if file.exists():
        return file.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):
        named = {entry.get("name"): entry.get("template") for entry in template}
        template = named.get("default")
    return template if isinstance(template, str) else None
