"""What sampling and constraints need to know of a tokenizer."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol


class Vocabulary(Protocol):
    """The part of the tokenizer that samplers and constraints read."""

    @property
    def n_vocab(self) -> int: ...
    @property
    def eos_id(self) -> int | None: ...
    @property
    def eog_ids(self) -> frozenset[int]: ...

    def __hash__(self) -> int: ...
    def encode(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]: ...
    def piece(self, token: int, *, special: bool) -> bytes: ...
    def is_special(self, token: int) -> bool: ...


@lru_cache(maxsize=4)
def pieces(vocabulary: Vocabulary) -> tuple[bytes, ...]:
    """The bytes of every token, special ones included, in order of ID; computed once a tokenizer."""
    return tuple(vocabulary.piece(token, special=True) for token in range(vocabulary.n_vocab))
