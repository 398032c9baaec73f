"""What an operation may require of the running server (``x-requires``), and what to say when it isn't there."""

from __future__ import annotations

from collections.abc import Callable

from mlxcel.handlers.context import Context


def _switch(name: str, what: str, flag: str) -> Callable[[Context], str | None]:
    """A feature that an option switches on; the sentence is the reference's."""
    sentence = f"This server does not support {what}. Start it with `{flag}`"
    return lambda context: None if getattr(context.options, name) else sentence


def _fim(context: Context) -> str | None:
    fim = context.engine.tokenizer.fim
    roles = (("prefix", fim.prefix), ("suffix", fim.suffix), ("middle", fim.middle))
    missing = "".join(f"{role} token is missing. " for role, token in roles if token is None)
    return f"Infill is not supported by this model: {missing}" if missing else None


FEATURES: dict[str, Callable[[Context], str | None]] = {
    "embeddings": _switch("embeddings", "embeddings", "--embeddings"),
    "rerank": _switch("rerank", "reranking", "--reranking"),
    "slot-save": _switch("slot_save_path", "slots action", "--slot-save-path"),
    "props": _switch("props", "changing global properties", "--props"),
    "metrics": _switch("metrics", "metrics endpoint", "--metrics"),
    "slots": _switch("slots", "slots endpoint", "--slots"),
    "fim": _fim,
    "audio": lambda _: "The current model does not support audio input.",
}
"""For each feature, why it isn't there; None when it is."""


def missing_feature(feature: str, context: Context) -> str | None:
    """The sentence that says why ``feature`` isn't there, or None when it is."""
    return FEATURES[feature](context)
