"""The loaded model as the list of models shows it."""

from __future__ import annotations

from typing import Any

from ..context import Context


def model_entry(ctx: Context) -> dict[str, Any]:
    """The model as OpenAI's clients look for it."""
    info = ctx.engine.info
    return {
        "id": ctx.alias,
        "aliases": list(ctx.aliases),
        "tags": [],
        "object": "model",
        "created": ctx.started_at,
        "owned_by": "llamacpp",
        "meta": {
            "vocab_type": info.vocab_type,
            "n_vocab": info.n_vocab,
            "n_ctx": ctx.engine.n_ctx,
            "n_ctx_train": info.n_ctx_train,
            "n_embd": info.n_embd,
            "n_params": info.n_params,
            "size": info.size,
            "ftype": info.file_type,
        },
    }


def model_list(ctx: Context) -> dict[str, Any]:
    """The model twice over, as Ollama's and as OpenAI's clients look for it."""
    capability = "embedding" if ctx.options.embeddings else "completion"
    summary = {
        "name": ctx.alias,
        "model": ctx.alias,
        "modified_at": "",
        "size": "",
        "digest": "",
        "type": "model",
        "description": "",
        "tags": [""],
        "capabilities": [capability],
        "parameters": "",
        "details": {
            "parent_model": "",
            "format": "gguf",
            "family": "",
            "families": [""],
            "parameter_size": "",
            "quantization_level": "",
        },
    }
    return {"models": [summary], "object": "list", "data": [model_entry(ctx)]}
