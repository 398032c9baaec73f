"""Text to token IDs and back, with the facts about a vocabulary that serving needs.

The work is done by the ``tokenizers`` library; this module adds what llama-server's callers can ask for:
whether special tokens in a text are recognised, the bytes behind one token, and which tokens end a
generation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import tokenizers


@dataclass(frozen=True, slots=True)
class FimTokens:
    """IDs of the fill-in-the-middle tokens; None where the vocabulary has none."""

    prefix: int | None = None
    suffix: int | None = None
    middle: int | None = None
    pad: int | None = None
    repo: int | None = None
    separator: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What a checkpoint says of its tokens.

    ``pieces`` are the bytes of each token; ``special`` the IDs whose text is hidden in generated output.
    ``prefix`` and ``suffix`` are what encoding with ``add_special`` puts around a text.
    """

    pieces: tuple[bytes, ...]
    special: frozenset[int]
    bos_id: int | None
    eos_id: int | None
    eog_ids: frozenset[int]
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    fim: FimTokens = field(default_factory=FimTokens)


class Tokenizer:
    """Encodes and decodes with one vocabulary; safe to use from several threads."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, vocabulary: Vocabulary) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._parsing = tokenizer
        self._literal = _literal(tokenizer)
        self._vocabulary = vocabulary
        self.n_vocab = len(vocabulary.pieces)
        self.bos_id = vocabulary.bos_id
        self.eos_id = vocabulary.eos_id
        self.eog_ids = vocabulary.eog_ids
        self.fim = vocabulary.fim
        self.bos_token = self._text(vocabulary.bos_id)
        self.eos_token = self._text(vocabulary.eos_id)

    @property
    def add_bos(self) -> bool:
        """Whether a prompt begins with the beginning-of-sequence token."""
        return self.bos_id is not None and self.bos_id in self._vocabulary.prefix

    @property
    def add_eos(self) -> bool:
        """Whether an encoded text ends with the end-of-sequence token."""
        return self.eos_id is not None and self.eos_id in self._vocabulary.suffix

    def encode(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Token IDs of ``text``.

        Args:
            add_special: put the vocabulary's opening and closing tokens around it.
            parse_special: recognise special tokens that are spelled out; otherwise they are plain text.
        """
        engine = self._parsing if parse_special else self._literal
        tokens: list[int] = engine.encode(text, add_special_tokens=False).ids if text else []
        if add_special:
            return [*self._vocabulary.prefix, *tokens, *self._vocabulary.suffix]
        return tokens

    def piece(self, token: int, *, special: bool) -> bytes:
        """The bytes of one token; nothing for a special token unless ``special``.

        Raises:
            IndexError: ``token`` isn't in the vocabulary.
        """
        if token < 0:
            raise IndexError(token)
        return b"" if not special and token in self._vocabulary.special else self._vocabulary.pieces[token]

    def decode(self, tokens: Sequence[int], *, special: bool = True) -> str:
        """The text of ``tokens``; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self.piece(token, special=special) for token in tokens).decode("utf-8", "replace")

    def is_special(self, token: int) -> bool:
        """Whether ``token`` is one whose text is hidden in generated output."""
        return token in self._vocabulary.special

    def _text(self, token: int | None) -> str:
        return "" if token is None else self._vocabulary.pieces[token].decode("utf-8", "replace")


def _literal(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """A twin to which special tokens are plain text: that switch belongs to the object, not to the call."""
    twin = tokenizers.Tokenizer(tokenizer.model)
    twin.normalizer = tokenizer.normalizer
    twin.pre_tokenizer = tokenizer.pre_tokenizer
    added = tokenizer.get_added_tokens_decoder()
    twin.add_tokens([added[i] for i in sorted(added)])
    if twin.get_added_tokens_decoder() != added:
        # Tokens beyond the model's own got other IDs; a copy through JSON is slow but exact.
        twin = tokenizers.Tokenizer.from_str(tokenizer.to_str())
    twin.encode_special_tokens = True
    return twin
