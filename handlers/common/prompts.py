"""The forms a prompt may take, turned into token IDs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlxcel.engine.engine import Engine
from mlxcel.engine.errors import InvalidRequestError, UnsupportedError

PROMPT_FORMS = (
    "must be a string, a list of tokens, a list of mixed strings and tokens, "
    "an object with a prompt_string, or a list of those"
)


def is_token(value: object) -> bool:
    """Whether a JSON value is a token ID (true and false aren't)."""
    return isinstance(value, int) and not isinstance(value, bool)


async def tokenize_prompts(engine: Engine, prompt: Any, *, field: str = "prompt") -> list[tuple[int, ...]]:
    """Every prompt in ``prompt``, in order, as token IDs.

    A string, an object, and a list that holds a token ID are one prompt; any other list is one prompt an element.

    Raises:
        InvalidRequestError: ``prompt`` has another form.
        UnsupportedError: it carries images or sound.
    """
    if isinstance(prompt, list) and not any(is_token(part) for part in prompt):
        if not prompt:
            raise InvalidRequestError(f"Field '{field}': must not be empty", field)
        return [await _one(engine, part, f"{field}[{i}]") for i, part in enumerate(prompt)]
    return [await _one(engine, prompt, field)]


async def _one(engine: Engine, prompt: Any, field: str) -> tuple[int, ...]:
    if isinstance(prompt, str):
        return tuple(await engine.tokenize(prompt, add_special=True, parse_special=True))
    if isinstance(prompt, list) and all(isinstance(part, str) or is_token(part) for part in prompt):
        return await tokenize_mixed(engine, prompt, add_special=True, parse_special=True)
    text = getattr(prompt, "prompt_string", None)
    if not isinstance(text, str):
        raise InvalidRequestError(f"Field '{field}': {PROMPT_FORMS}", field)
    if prompt.multimodal_data:
        raise UnsupportedError(f"Field '{field}.multimodal_data': this model takes text only; leave it out")
    return tuple(await engine.tokenize(text, add_special=True, parse_special=True))


async def tokenize_mixed(
    engine: Engine, parts: Sequence[str | int], *, add_special: bool, parse_special: bool
) -> tuple[int, ...]:
    """Texts and token IDs in one list; only a text at its start gets the special tokens a prompt begins with."""
    tokens: list[int] = []
    for index, part in enumerate(parts):
        if isinstance(part, str):
            special = add_special and index == 0
            tokens += await engine.tokenize(part, add_special=special, parse_special=parse_special)
        else:
            tokens.append(int(part))
    return tuple(tokens)
