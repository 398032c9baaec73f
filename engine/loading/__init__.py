"""From a reference on the command line to a model with its tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..tokenizer import Tokenizer
from ..types import ModelInfo, Pooling
from .file_type import file_type
from .folder import folder_file_type, load_folder_model, load_folder_tokenizer, n_params
from .gguf_file import GgufFile
from .gguf_model import build_model
from .gguf_tokenizer import load_tokenizer
from .reference import resolve

__all__ = ["LoadedModel", "load"]

POOLING_TYPES: dict[int, Pooling] = {0: "none", 1: "mean", 2: "cls", 3: "last", 4: "rank"}
"""``<architecture>.pooling_type`` in GGUF metadata."""

VOCABULARY_TYPES = {"llama": 1, "gpt2": 2}
"""The reference's numbers for ``tokenizer.ggml.model``."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """All of a checkpoint: an mlx-lm model, its tokenizer, its chat template if it has one, and facts."""

    model: Any
    tokenizer: Tokenizer
    chat_template_source: str | None
    info: ModelInfo


def load(reference: str | None = None) -> LoadedModel:
    """Load what ``reference`` names: a folder, a GGUF file, ``owner/name``, or None for the embedded model.

    Raises:
        LoadError: it can't be found, read, or served; one sentence says why.
    """
    path = resolve(reference)
    return _from_folder(path) if path.is_dir() else _from_gguf(path)


def _from_gguf(path: Path) -> LoadedModel:
    file = GgufFile(path)
    # The architecture is looked at first: its message says more than a missing tokenizer's.
    model = build_model(file)
    tokenizer = load_tokenizer(file)
    info = ModelInfo(
        name=str(file.get("general.name", path.stem)),
        path=str(path),
        architecture=file.architecture,
        file_type=file_type(file),
        vocab_type=VOCABULARY_TYPES[file.require("tokenizer.ggml.model")],
        n_vocab=tokenizer.n_vocab,
        n_ctx_train=int(file.hyperparameter("context_length", 2048)),
        n_embd=int(file.hyperparameter("embedding_length")),
        n_params=file.n_params,
        size=file.n_bytes,
        pooling=POOLING_TYPES.get(file.hyperparameter("pooling_type", -1)),
    )
    return LoadedModel(model, tokenizer, file.get("tokenizer.chat_template"), info)


def _from_folder(folder: Path) -> LoadedModel:
    model, config = load_folder_model(folder)
    tokenizer, template = load_folder_tokenizer(folder, config)
    text = config.get("text_config", config)
    files = folder.glob("model*.safetensors")
    info = ModelInfo(
        name=folder.name,
        path=str(folder),
        architecture=str(config["model_type"]),
        file_type=folder_file_type(config),
        vocab_type=VOCABULARY_TYPES["gpt2"],
        n_vocab=tokenizer.n_vocab,
        n_ctx_train=int(text.get("max_position_embeddings", 2048)),
        n_embd=int(text["hidden_size"]),
        n_params=n_params(model),
        size=sum(file.stat().st_size for file in files),
    )
    return LoadedModel(model, tokenizer, template, info)
