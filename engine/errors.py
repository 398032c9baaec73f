"""Errors of the engine. Surfaces turn them into their own envelopes; the engine knows no status codes."""

from __future__ import annotations


class EngineError(Exception):
    """Base of everything the engine raises on purpose.

    Attributes:
        message: one sentence for the caller, remedy included.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class LoadError(EngineError):
    """A checkpoint can't be used: missing, damaged, or of an unknown architecture. Ends start-up."""


class InvalidRequestError(EngineError):
    """A request that is well formed but can't be carried out as asked.

    Attributes:
        field: path of the request field at fault, such as ``prompt`` or ``stop[1]``; empty if none.
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class ContextExceededError(EngineError):
    """The prompt doesn't fit into a slot's context.

    Attributes:
        n_prompt_tokens: tokens in the prompt.
        n_ctx: tokens a slot holds.
    """

    def __init__(self, n_prompt_tokens: int, n_ctx: int) -> None:
        super().__init__(
            f"request ({n_prompt_tokens} tokens) exceeds the available context size ({n_ctx} tokens), "
            "try increasing it"
        )
        self.n_prompt_tokens = n_prompt_tokens
        self.n_ctx = n_ctx


class UnsupportedError(EngineError):
    """The model or this build can't do what was asked (no FIM tokens, no embeddings head, ...)."""


class UnavailableError(EngineError):
    """The engine can't take work now: still loading, shutting down, or its thread has died."""


class GenerationError(EngineError):
    """Generation failed part-way; the request is over, the engine lives on."""
