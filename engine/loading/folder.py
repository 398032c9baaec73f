"""A model from an MLX checkpoint folder: config.json, *.safetensors, tokenizer.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import tokenizers
from mlx.utils import tree_flatten

from ..errors import LoadError
from ..tokenizer import Tokenizer, Vocabulary
from .gguf_tokenizer import SPACE, byte_level_alphabet
from .memory import float32_fits
from .vocabulary import end_of_generation, fim_tokens

PROBE = "a"
"""A text that any tokenizer encodes, to see what is put around it."""


def load_folder_model(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The model of a checkpoint folder and its config, weights evaluated.

    Raises:
        LoadError: a file is missing or damaged, or the architecture unknown.
    """
    from mlx_lm.utils import dequantize_model, load_model

    read_json(folder / "config.json", required=True)
    try:
        model, config = load_model(folder, lazy=True)
        n_params = _n_params(model)
        if mx.default_device() == mx.Device(mx.cpu) and float32_fits(n_params):
            model = dequantize_model(model)
            model.set_dtype(mx.float32)
        mx.eval(model.parameters())
    except FileNotFoundError:
        raise LoadError(f"{folder}: no model*.safetensors in the folder; is it an MLX checkpoint?") from None
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        detail = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise LoadError(f"{folder}: the checkpoint can't be loaded: {detail}") from None
    _check_caches(model, folder)
    return model, config


def _n_params(model: Any) -> int:
    """Scalars in a model; a quantized layer counts what it stands for."""
    total = 0
    for name, module in model.named_modules():
        own = [value for _, value in tree_flatten(dict(module)) if isinstance(value, mx.array)] if name else []
        if hasattr(module, "bits") and "weight" in module:
            total += module.weight.size * 32 // module.bits
        elif not module.children():
            total += sum(value.size for value in own)
    return total


def _check_caches(model: Any, folder: Path) -> None:
    """Refuse models whose state isn't keys and values by position: slots couldn't share prefixes of it."""
    from mlx_lm.models.cache import KVCache, RotatingKVCache, make_prompt_cache

    if any(type(cache) not in (KVCache, RotatingKVCache) for cache in make_prompt_cache(model)):
        raise LoadError(f"{folder}: models with a recurrent or mixed state are not supported")


def read_json(path: Path, *, required: bool = False) -> dict[str, Any]:
    """The object in a JSON file; empty when an optional one isn't there.

    Raises:
        LoadError: the file is missing though required, or holds no JSON object.
    """
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        if required:
            raise LoadError(f"{path}: no such file; is {path.parent.name} an MLX checkpoint folder?") from None
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
    generation = read_json(folder / "generation_config.json")
    vocabulary = _vocabulary(tokenizer, settings, _ids(config, generation))
    return Tokenizer(tokenizer, vocabulary), _chat_template(folder, settings)


def _ids(config: dict[str, Any], generation: dict[str, Any]) -> list[int]:
    """End-of-sequence IDs that the configs name; each may be a number or a list."""
    found: list[int] = []
    for source in (config, config.get("text_config", {}), generation):
        value = source.get("eos_token_id")
        found += value if isinstance(value, list) else [] if value is None else [value]
    return found


def _vocabulary(tokenizer: tokenizers.Tokenizer, settings: dict[str, Any], eos_ids: list[int]) -> Vocabulary:
    ids = tokenizer.get_vocab(with_added_tokens=True)
    added = tokenizer.get_added_tokens_decoder()
    special = frozenset(i for i, token in added.items() if token.special)
    fim = fim_tokens(ids, {})
    eos = ids.get(_token_text(settings.get("eos_token")), eos_ids[0] if eos_ids else None)
    around = tokenizer.encode(PROBE).ids
    plain = tokenizer.encode(PROBE, add_special_tokens=False).ids
    start = next((i for i in range(len(around)) if around[i : i + len(plain)] == plain), 0)
    prefix = tuple(around[:start])
    bos = ids.get(_token_text(settings.get("bos_token")), prefix[0] if prefix else None)
    return Vocabulary(
        pieces=_pieces(tokenizer, ids, frozenset(added)),
        special=special,
        bos_id=bos,
        eos_id=eos,
        eog_ids=end_of_generation(ids, (eos, *eos_ids), fim),
        prefix=prefix,
        suffix=tuple(around[start + len(plain) :]),
        fim=fim,
    )


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
