"""A tokenizer rebuilt from what a GGUF file says of its vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from ..errors import LoadError
from ..tokenizer import Tokenizer, Vocabulary
from .gguf_file import GgufFile
from .pre_tokenizers import PRE_TOKENIZERS, PreTokenizer
from .vocabulary import end_of_generation, fim_tokens, special_tokens

SPACE = "▁"
"""What sentencepiece writes for a space."""


class TokenType(IntEnum):
    """``tokenizer.ggml.token_type``."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True)
class _Defaults:
    """What the reference assumes where a file is silent: IDs, and what is put around a text."""

    bos: int
    eos: int
    unknown: int | None
    add_bos: bool


class _Tokens:
    """The vocabulary's lists: texts, types and their order."""

    def __init__(self, file: GgufFile) -> None:
        texts: list[str] = file.require("tokenizer.ggml.tokens")
        # An empty text can't be looked up; the reference names it like this.
        self.texts = [text or f"[EMPTY_{i}]" for i, text in enumerate(texts)]
        types: list[int] = file.get("tokenizer.ggml.token_type") or [TokenType.NORMAL] * len(texts)
        if len(types) < len(texts):
            raise LoadError(f"{file.name}: 'tokenizer.ggml.token_type' is too short; convert the model again")
        self.types = types[: len(texts)]
        self.ids = {text: i for i, text in enumerate(self.texts)}

    def added(self, special: frozenset[int]) -> list[AddedToken]:
        """Tokens that are cut out of a text before anything else; the special ones only when asked."""
        return [
            AddedToken(text, normalized=False, special=i in special)
            for i, (text, kind) in enumerate(zip(self.texts, self.types, strict=True))
            if i in special or kind == TokenType.USER_DEFINED
        ]


def load_tokenizer(file: GgufFile) -> Tokenizer:
    """The tokenizer of a GGUF file.

    Raises:
        LoadError: the vocabulary is missing or damaged, or of a kind that isn't known.
    """
    kind = file.require("tokenizer.ggml.model")
    if kind not in ("gpt2", "llama"):
        raise LoadError(f"{file.name}: tokenizer model '{kind}' is not supported (known: gpt2, llama)")
    tokens = _Tokens(file)
    try:
        if kind == "gpt2":
            rules = _pre_tokenizer(file)
            defaults = _Defaults(11, 11, None, rules.add_bos)
            tokenizer, pieces = _byte_pairs(file, tokens, rules), _byte_level_pieces(tokens)
        else:
            defaults = _Defaults(1, 2, 0, True)
            tokenizer, pieces = _sentencepiece(file, tokens, defaults), _sentencepiece_pieces(tokens)
    except (ValueError, TypeError, IndexError) as error:
        raise LoadError(
            f"{file.name}: the vocabulary is damaged ({error}); convert the model again"
        ) from None
    vocabulary = _vocabulary(file, tokens, pieces, defaults)
    tokenizer.add_tokens(tokens.added(vocabulary.special))
    return Tokenizer(tokenizer, vocabulary)


def _pre_tokenizer(file: GgufFile) -> PreTokenizer:
    name = file.get("tokenizer.ggml.pre") or "default"
    if name not in PRE_TOKENIZERS:
        raise LoadError(
            f"{file.name}: pre-tokenizer {name!r} is not supported, prompts would be split wrongly; "
            "use the model's MLX checkpoint, which brings its tokenizer along"
        )
    return PRE_TOKENIZERS[name]


def _byte_pairs(file: GgufFile, tokens: _Tokens, rules: PreTokenizer) -> tokenizers.Tokenizer:
    merges = []
    for merge in file.require("tokenizer.ggml.merges"):
        # The first character may be a space itself.
        cut = merge.index(" ", 1)
        merges.append((merge[:cut], merge[cut + 1 :]))
    tokenizer = tokenizers.Tokenizer(_model(tokens, merges, ignore_merges=rules.whole_words))
    splits = [pre_tokenizers.Split(Regex(rule), "isolated") for rule in rules.rules]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _model(tokens: _Tokens, merges: list[tuple[str, str]], **options: object) -> models.BPE:
    known = [pair for pair in merges if all(text in tokens.ids for text in (*pair, "".join(pair)))]
    return models.BPE(vocab=tokens.ids, merges=known, **options)


def _byte_level_pieces(tokens: _Tokens) -> tuple[bytes, ...]:
    to_byte = byte_level_alphabet()

    def piece(text: str, kind: int) -> bytes:
        if kind == TokenType.BYTE:
            return _byte(text)
        if kind == TokenType.NORMAL:
            return b"".join(bytes([to_byte[c]]) if c in to_byte else c.encode() for c in text)
        return b"" if kind == TokenType.UNUSED else text.encode()

    return tuple(map(piece, tokens.texts, tokens.types))


def byte_level_alphabet() -> dict[str, int]:
    """From the printable characters of byte-level vocabularies (GPT-2's mapping) to the bytes they mean."""
    printable = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    ]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def _sentencepiece(file: GgufFile, tokens: _Tokens, defaults: _Defaults) -> tokenizers.Tokenizer:
    scores: list[float] = file.require("tokenizer.ggml.scores")
    unknown = file.get("tokenizer.ggml.unknown_token_id", defaults.unknown)
    model = _model(
        tokens,
        _merges_from_scores(tokens, scores),
        byte_fallback=True,
        fuse_unk=True,
        unk_token=tokens.texts[unknown],
    )
    tokenizer = tokenizers.Tokenizer(model)
    steps: list[normalizers.Normalizer] = [normalizers.Replace(" ", SPACE)]
    if file.get("tokenizer.ggml.add_space_prefix", True):
        steps.insert(0, normalizers.Prepend(SPACE))
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return tokenizer


def _merges_from_scores(tokens: _Tokens, scores: Sequence[float]) -> list[tuple[str, str]]:
    """Every way to join two tokens into a third, best score first: what sentencepiece does, as merges."""
    joined = (TokenType.NORMAL, TokenType.USER_DEFINED, TokenType.UNUSED)
    parts = {text for text, kind in zip(tokens.texts, tokens.types, strict=True) if kind in joined}
    order = sorted((i for i, text in enumerate(tokens.texts) if text in parts), key=lambda i: -scores[i])
    found = []
    for text in map(tokens.texts.__getitem__, order):
        for cut in range(1, len(text)):
            left, right = text[:cut], text[cut:]
            if left in parts and right in parts:
                found.append((left, right))
    return found


def _sentencepiece_pieces(tokens: _Tokens) -> tuple[bytes, ...]:
    def piece(text: str, kind: int) -> bytes:
        if kind == TokenType.BYTE:
            return _byte(text)
        if kind == TokenType.NORMAL:
            return text.replace(SPACE, " ").encode()
        return b"" if kind == TokenType.UNUSED else text.encode()

    return tuple(map(piece, tokens.texts, tokens.types))


def _byte(text: str) -> bytes:
    """The byte of a token spelled ``<0x0A>``."""
    return bytes([int(text[3:5], 16)])


def _vocabulary(
    file: GgufFile, tokens: _Tokens, pieces: tuple[bytes, ...], defaults: _Defaults
) -> Vocabulary:
    def named(*names: str, default: int | None = None) -> int | None:
        values = (file.get(f"tokenizer.ggml.{name}_token_id") for name in names)
        return _first((*values, default), len(tokens.texts))

    fim = fim_tokens(
        tokens.ids,
        {
            # The second names are those of older files.
            "prefix": named("fim_pre", "prefix"),
            "suffix": named("fim_suf", "suffix"),
            "middle": named("fim_mid", "middle"),
            "pad": named("fim_pad"),
            "repo": named("fim_rep"),
            "separator": named("fim_sep"),
        },
    )
    bos, eos = named("bos", default=defaults.bos), named("eos", default=defaults.eos)
    eog_ids = end_of_generation(tokens.ids, (eos, named("eot"), named("eom")), fim)
    control = (i for i, kind in enumerate(tokens.types) if kind in (TokenType.CONTROL, TokenType.UNKNOWN))
    add_bos = file.get("tokenizer.ggml.add_bos_token", defaults.add_bos)
    add_eos = file.get("tokenizer.ggml.add_eos_token", False)
    return Vocabulary(
        pieces=pieces,
        special=special_tokens(tokens.ids, control, fim),
        bos_id=bos,
        eos_id=eos,
        eog_ids=eog_ids,
        prefix=(bos,) if add_bos and bos is not None else (),
        suffix=(eos,) if add_eos and eos is not None else (),
        fim=fim,
    )


def _first(ids: Iterable[int | None], n_vocab: int) -> int | None:
    """The first ID that is inside the vocabulary; files write 2**32 - 1 for "none"."""
    return next((i for i in ids if i is not None and 0 <= i < n_vocab), None)
