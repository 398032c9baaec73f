"""A tokenizer rebuilt from what a GGUF file says of its vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from ..errors import LoadError
from ..tokenizer import Tokenizer, Vocabulary
from .gguf_file import GgufFile
from .vocabulary import end_of_generation, fim_tokens

CONTRACTIONS = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + TAIL
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + TAIL
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# Regular expressions that split a text one after another before byte pairs are merged, by tokenizer.ggml.pre.
PRE_TOKENIZERS: dict[str, tuple[str, ...]] = {
    "default": (r"[\p{P}\$\+<=>\^~\|]+", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|\s+(?!\S)", r"\p{N}+", r"[0-9][0-9][0-9]"),
    "gpt-2": (GPT2,),
    "phi-2": (GPT2,),
    "mpt": (GPT2,),
    "olmo": (GPT2,),
    "smollm": (r"\p{N}", GPT2),
    "starcoder": (r"\p{N}", GPT2),
    "refact": (r"\p{N}", GPT2),
    "command-r": (r"\p{N}", GPT2),
    "codeshell": (r"\p{N}", GPT2),
    "llama-bpe": (LLAMA3,),
    "llama3": (LLAMA3,),
    "llama-v3": (LLAMA3,),
    "smaug-bpe": (LLAMA3,),
    "falcon3": (LLAMA3,),
    "qwen2": (QWEN2,),
    "deepseek-r1-qwen": (QWEN2,),
    "stablelm2": (QWEN2,),
    "tekken": (TEKKEN,),
}
WHOLE_WORDS_FIRST = frozenset({"llama-bpe", "llama3", "llama-v3", "falcon3", "tekken"})
"""Pre-tokenizers whose words are looked up whole before pairs are merged."""

SPACE = "▁"


class TokenType(IntEnum):
    """``tokenizer.ggml.token_type``."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


def load_tokenizer(file: GgufFile) -> Tokenizer:
    """The tokenizer of a GGUF file.

    Raises:
        LoadError: the vocabulary is missing, or of a kind that isn't known.
    """
    texts: list[str] = file.require("tokenizer.ggml.tokens")
    types: list[int] = file.get("tokenizer.ggml.token_type") or [TokenType.NORMAL] * len(texts)
    kind = file.require("tokenizer.ggml.model")
    if kind == "gpt2":
        tokenizer, pieces = _byte_pairs(file, texts), _byte_level_pieces(texts, types)
    elif kind == "llama":
        tokenizer, pieces = _sentencepiece(file, texts, types), _sentencepiece_pieces(texts, types)
    else:
        raise LoadError(f"{file.name}: tokenizer model '{kind}' is not supported (known: gpt2, llama)")
    tokenizer.add_special_tokens(_added(texts, types, TokenType.CONTROL))
    tokenizer.add_tokens(_added(texts, types, TokenType.USER_DEFINED))
    return Tokenizer(tokenizer, _vocabulary(file, kind, texts, types, pieces))


def _added(texts: Sequence[str], types: Sequence[int], kind: TokenType) -> list[AddedToken]:
    special = kind is TokenType.CONTROL
    return [AddedToken(t, normalized=False, special=special) for t, k in zip(texts, types, strict=True) if k == kind]


def _byte_pairs(file: GgufFile, texts: Sequence[str]) -> tokenizers.Tokenizer:
    pre = file.get("tokenizer.ggml.pre") or "default"
    if pre not in PRE_TOKENIZERS:
        known = ", ".join(sorted(PRE_TOKENIZERS))
        raise LoadError(f"{file.name}: pre-tokenizer '{pre}' is not supported (known: {known})")
    merges = [tuple(merge.split(" ", 1)) for merge in file.require("tokenizer.ggml.merges")]
    model = models.BPE(
        vocab={text: i for i, text in enumerate(texts)},
        merges=merges,
        ignore_merges=pre in WHOLE_WORDS_FIRST,
    )
    tokenizer = tokenizers.Tokenizer(model)
    splits: list[Any] = [pre_tokenizers.Split(Regex(rule), "isolated") for rule in PRE_TOKENIZERS[pre]]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _byte_level_pieces(texts: Sequence[str], types: Sequence[int]) -> tuple[bytes, ...]:
    to_byte = byte_level_alphabet()
    plain = (TokenType.NORMAL, TokenType.UNUSED, TokenType.UNKNOWN)
    return tuple(
        bytes(to_byte[c] for c in text) if kind in plain and all(c in to_byte for c in text) else text.encode()
        for text, kind in zip(texts, types, strict=True)
    )


def byte_level_alphabet() -> dict[str, int]:
    """The printable character that stands for each byte in byte-level vocabularies (GPT-2's mapping), reversed."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def _sentencepiece(file: GgufFile, texts: Sequence[str], types: Sequence[int]) -> tokenizers.Tokenizer:
    scores: list[float] = file.require("tokenizer.ggml.scores")
    mergeable = {
        text: score
        for text, score, kind in zip(texts, scores, types, strict=True)
        if kind in (TokenType.NORMAL, TokenType.USER_DEFINED, TokenType.UNUSED)
    }
    ids = {text: i for i, text in enumerate(texts)}
    unknown = file.get("tokenizer.ggml.unknown_token_id")
    model = models.BPE(
        vocab=ids,
        merges=_merges_from_scores(mergeable, ids),
        byte_fallback=True,
        fuse_unk=True,
        unk_token=texts[unknown] if unknown is not None else None,
    )
    tokenizer = tokenizers.Tokenizer(model)
    steps: list[Any] = [normalizers.Replace(" ", SPACE)]
    if file.get("tokenizer.ggml.add_space_prefix", True):
        steps.insert(0, normalizers.Prepend(SPACE))
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return tokenizer


def _merges_from_scores(scores: dict[str, float], ids: dict[str, int]) -> list[tuple[str, str]]:
    """Every way to join two tokens into one, best score first: sentencepiece's merging as byte-pair merges."""
    found: list[tuple[float, int, str, str]] = []
    for text, score in scores.items():
        for cut in range(1, len(text)):
            left, right = text[:cut], text[cut:]
            if left in scores and right in scores:
                found.append((-score, ids[text], left, right))
    found.sort(key=lambda merge: merge[:2])
    return [(left, right) for _, _, left, right in found]


def _sentencepiece_pieces(texts: Sequence[str], types: Sequence[int]) -> tuple[bytes, ...]:
    def piece(text: str, kind: int) -> bytes:
        if kind == TokenType.BYTE:
            return bytes([int(text[3:5], 16)])
        return text.encode() if kind == TokenType.CONTROL else text.replace(SPACE, " ").encode()

    return tuple(piece(text, kind) for text, kind in zip(texts, types, strict=True))


def _vocabulary(
    file: GgufFile, kind: str, texts: Sequence[str], types: Sequence[int], pieces: tuple[bytes, ...]
) -> Vocabulary:
    ids = {text: i for i, text in enumerate(texts)}

    def named(*names: str) -> int | None:
        found = (file.get(f"tokenizer.ggml.{name}_token_id") for name in names)
        return next((int(token) for token in found if token is not None and 0 <= token < len(texts)), None)

    fim = fim_tokens(
        ids,
        {
            "prefix": named("fim_pre", "prefix"),
            "suffix": named("fim_suf", "suffix"),
            "middle": named("fim_mid", "middle"),
            "pad": named("fim_pad"),
            "repo": named("fim_rep"),
            "separator": named("fim_sep"),
        },
    )
    bos, eos = named("bos"), named("eos")
    add_bos = file.get("tokenizer.ggml.add_bos_token", kind == "llama")
    add_eos = file.get("tokenizer.ggml.add_eos_token", False)
    return Vocabulary(
        pieces=pieces,
        special=frozenset(
            i for i, k in enumerate(types) if k in (TokenType.CONTROL, TokenType.UNKNOWN)
        ),
        bos_id=bos,
        eos_id=eos,
        eog_ids=end_of_generation(ids, (eos, named("eot"), named("eom")), fim),
        prefix=(bos,) if add_bos and bos is not None else (),
        suffix=(eos,) if add_eos and eos is not None else (),
        fim=fim,
    )
