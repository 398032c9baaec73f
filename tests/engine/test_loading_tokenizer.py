"""Tokenizers rebuilt from GGUF metadata: how texts are split, merged, and what the tables of tokens say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gguf_support import random_model, write_model
from tokenizers import Regex, pre_tokenizers

from mlxcel.engine.errors import LoadError
from mlxcel.engine.loading.gguf_file import GgufFile
from mlxcel.engine.loading.gguf_tokenizer import load_tokenizer
from mlxcel.engine.loading.pre_tokenizers import PRE_TOKENIZERS
from mlxcel.engine.tokenizer import FimTokens, Tokenizer

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
TEXT = "Hello World's  12345 ab-CD\n\n  x=1.5;don'T"


def split(name: str, text: str) -> list[str]:
    rules: Any = [pre_tokenizers.Split(Regex(rule), "isolated") for rule in PRE_TOKENIZERS[name].rules]
    return [piece for piece, _ in pre_tokenizers.Sequence(rules).pre_tokenize_str(text)]


def tokenizer_of(tmp_path: Path, **metadata: Any) -> Tokenizer:
    values = {f"tokenizer.ggml.{key}": value for key, value in metadata.items()}
    path = write_model(tmp_path / "model.gguf", "llama", random_model("llama"), metadata=values)
    return load_tokenizer(GgufFile(path))


def sentencepiece(tmp_path: Path, tokens: list[tuple[str, float, int]], **metadata: Any) -> Tokenizer:
    """A tokenizer of ``<unk>``, ``<s>``, ``</s>``, the 256 bytes, and ``tokens`` (text, score, type)."""
    start = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    bytes_ = [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
    texts, scores, types = zip(*start, *bytes_, *tokens, strict=True)
    return tokenizer_of(
        tmp_path,
        model="llama",
        pre=None,
        merges=None,
        tokens=list(texts),
        scores=list(scores),
        token_type=list(types),
        eos_token_id=None,
        **metadata,
    )


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        (
            "gpt-2",
            "Hello| World|'s| | 12345| ab|-|CD|\n\n | x|=|1|.|5|;|don|'|T",
        ),
        (
            "smollm",
            "Hello| World|'s|  |1|2|3|4|5| ab|-|CD|\n\n | x|=|1|.|5|;|don|'|T",
        ),
        (
            "llama-bpe",
            "Hello| World|'s| | |123|45| ab|-CD|\n\n| | x|=|1|.|5|;don|'T",
        ),
        (
            "qwen2",
            "Hello| World|'s| | |1|2|3|4|5| ab|-CD|\n\n| | x|=|1|.|5|;don|'T",
        ),
        (
            "tekken",
            "Hello| World|'s| | |1|2|3|4|5| ab|-CD|\n\n| | x|=|1|.|5|;don|'T",
        ),
        (
            "gpt-4o",
            "Hello| World's| | |123|45| ab|-CD|\n\n| | x|=|1|.|5|;don'T",
        ),
        (
            "default",
            "Hello| World|'|s| | |123|45| ab|-|CD|\n\n | x|=|1|.|5|;|don|'|T",
        ),
    ],
)
def test_texts_are_split_as_the_name_says(name: str, pieces: str) -> None:
    assert split(name, TEXT) == pieces.split("|")


def test_words_of_mixed_case_are_split_where_the_vocabulary_was(tmp_path: Path) -> None:
    assert split("tekken", "camelCaseHTTPServer") == ["camel", "Case", "HTTPServer"]
    assert split("llama-bpe", "camelCaseHTTPServer") == ["camelCaseHTTPServer"]


@pytest.mark.parametrize("name", sorted(PRE_TOKENIZERS))
def test_no_rule_loses_a_character(name: str) -> None:
    text = TEXT + " naïve 日本語、漢字 🎉🎉 \t\r\n\u00a0\u3000e\u0301 مرحبا 한국어 ½Ⅷ٣ “q” $5 [a](b) \\"
    assert "".join(split(name, text)) == text


def test_whole_words_are_looked_up_first_where_the_vocabulary_did(tmp_path: Path) -> None:
    tokens = ["h", "e", "y", "he", "hey"]
    given: dict[str, Any] = {
        "tokens": tokens,
        "token_type": [NORMAL] * 5,
        "merges": ["h e"],
        "eos_token_id": None,
    }
    encode: dict[str, bool] = {"add_special": False, "parse_special": False}
    assert tokenizer_of(tmp_path, pre="gpt-2", **given).encode("hey", **encode) == [3, 2]
    assert tokenizer_of(tmp_path, pre="llama-bpe", **given).encode("hey", **encode) == [4]


def test_the_name_says_whether_a_silent_file_wants_a_bos(tmp_path: Path) -> None:
    assert tokenizer_of(tmp_path, pre="llama-bpe", bos_token_id=5).add_bos
    assert not tokenizer_of(tmp_path, pre="gpt-2", bos_token_id=5).add_bos
    assert not tokenizer_of(tmp_path, pre="llama-bpe", bos_token_id=5, add_bos_token=False).add_bos
    both = tokenizer_of(tmp_path, pre="gpt-2", bos_token_id=5, add_bos_token=True, add_eos_token=True)
    assert both.encode("he", add_special=True, parse_special=True) == [5, 94, 127]
    assert both.encode("he", add_special=False, parse_special=True) == [94]


def test_the_best_score_is_merged_first(tmp_path: Path) -> None:
    tokens = [(c, -9.0, NORMAL) for c in "▁abc"] + [
        ("ab", -3.0, NORMAL),
        ("bc", -1.0, NORMAL),
        ("abc", -5.0, NORMAL),
    ]
    found = sentencepiece(tmp_path, tokens, add_space_prefix=False)
    encode: dict[str, bool] = {"add_special": False, "parse_special": False}
    pieces = [found.piece(token, special=True) for token in found.encode("abab", **encode)]
    assert pieces == [b"ab", b"ab"]
    # "bc" scores better than "ab", and "a" + "bc" makes a token as well.
    assert [found.piece(token, special=True) for token in found.encode("abc", **encode)] == [b"abc"]
    assert [found.piece(token, special=True) for token in found.encode("abcb", **encode)] == [b"abc", b"b"]


def test_sentencepiece_puts_a_space_before_every_stretch_of_text(tmp_path: Path) -> None:
    tokens = [(c, -9.0, NORMAL) for c in "▁ab"]
    found = sentencepiece(tmp_path, tokens)
    text = found.encode("a</s>b", add_special=True, parse_special=True)
    assert [found.piece(token, special=True) for token in text] == [b"<s>", b" ", b"a", b"</s>", b" ", b"b"]
    bare = sentencepiece(tmp_path, tokens, add_space_prefix=False)
    text = bare.encode("a b", add_special=True, parse_special=True)
    assert [bare.piece(token, special=True) for token in text] == [b"<s>", b"a", b" ", b"b"]


def test_what_sentencepiece_lacks_becomes_bytes(tmp_path: Path) -> None:
    found = sentencepiece(tmp_path, [("▁", -1.0, NORMAL)], add_space_prefix=False)
    tokens = found.encode("é\n", add_special=False, parse_special=False)
    assert tokens == [3 + 0xC3, 3 + 0xA9, 3 + 0x0A]
    assert found.decode(tokens) == "é\n"
    assert found.piece(3 + 0xC3, special=False) == b"\xc3"


def test_user_defined_tokens_are_always_found_and_control_tokens_when_asked(tmp_path: Path) -> None:
    tokens = [
        ("▁", -1.0, NORMAL),
        ("<div>", -1.0, USER_DEFINED),
        ("<turn>", -1.0, CONTROL),
        ("▁▁", -1.0, UNUSED),
    ]
    found = sentencepiece(tmp_path, tokens, add_space_prefix=False)
    text = "<div><turn>"
    assert found.encode(text, add_special=False, parse_special=True) == [260, 261]
    literal = found.encode(text, add_special=False, parse_special=False)
    assert literal[0] == 260
    assert 261 not in literal
    assert found.decode(literal) == text
    assert (found.is_special(260), found.is_special(261)) == (False, True)
    assert found.piece(262, special=True) == b""


def test_tokens_spelled_like_an_end_are_control_tokens(tmp_path: Path) -> None:
    tokens = [("▁", -1.0, NORMAL), ("<end_of_turn>", -1.0, USER_DEFINED), ("<|channel|>", -1.0, CONTROL)]
    found = sentencepiece(tmp_path, tokens)
    assert found.eog_ids == {2, 260}
    assert found.is_special(260)
    # These are part of what a model says.
    assert not found.is_special(261)


def test_named_ends_count_and_numbers_outside_the_vocabulary_do_not(tmp_path: Path) -> None:
    found = tokenizer_of(tmp_path, eos_token_id=7, eot_token_id=8, eom_token_id=9, bos_token_id=2**32 - 1)
    # The last token is spelled <|im_end|>; 11 is the reference's default.
    assert found.eog_ids == {7, 8, 9, 127}
    assert found.bos_id == 11
    assert not found.is_special(7)


@pytest.mark.parametrize(
    ("texts", "ends"),
    [
        (["<|end|>"], {"<|end|>"}),
        (["<|end|>", "<|return|>", "<|call|>"], {"<|return|>", "<|call|>"}),
        (["<|end|>", "<|calls|>", "<|flush|>"], {"<|calls|>", "<|flush|>"}),
        (["</s>", "<|tool_response>"], {"<|tool_response>"}),
        (["<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"], {"<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"}),
        (["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"], set()),
    ],
)
def test_spelled_ends_of_generation(tmp_path: Path, texts: list[str], ends: set[str]) -> None:
    tokens = ["a", *texts]
    types = [NORMAL] + [CONTROL] * len(texts)
    found = tokenizer_of(tmp_path, tokens=tokens, token_type=types, merges=["a a"], eos_token_id=0)
    assert {tokens[i] for i in found.eog_ids} == ends | {"a"}


def test_fim_tokens_are_named_or_spelled(tmp_path: Path) -> None:
    spelled = ["<|fim_prefix|>", "<fim_suffix>", "▁<MID>", "<PAD>", "<reponame>", "<|file_sep|>"]
    given: dict[str, Any] = {"tokens": ["a", *spelled], "token_type": [NORMAL] * 7, "merges": ["a a"]}
    found = tokenizer_of(tmp_path, **given, eos_token_id=None)
    assert found.fim == FimTokens(prefix=1, suffix=2, middle=3, pad=4, repo=5, separator=6)
    assert all(found.is_special(token) for token in range(1, 7))
    named = tokenizer_of(tmp_path, **given, eos_token_id=None, fim_pre_token_id=0, suffix_token_id=0)
    assert (named.fim.prefix, named.fim.suffix, named.fim.middle) == (0, 0, 3)
    # A name doesn't make a plain token a control token.
    assert not named.is_special(0)


def test_an_empty_token_has_a_name_of_its_own(tmp_path: Path) -> None:
    found = tokenizer_of(
        tmp_path, tokens=["a", "", "b"], token_type=[NORMAL] * 3, merges=["a b"], eos_token_id=None
    )
    assert found.n_vocab == 3
    assert found.encode("ab", add_special=False, parse_special=False) == [0, 2]


def test_an_unknown_pre_tokenizer_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        LoadError, match=r"model\.gguf: pre-tokenizer 'klingon' is not supported.*MLX checkpoint"
    ):
        tokenizer_of(tmp_path, pre="klingon")
