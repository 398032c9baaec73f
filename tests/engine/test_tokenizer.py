"""Tokens, bytes and texts of the embedded model's vocabulary, against the reference's recorded answers."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from mlxcel.engine.loading.gguf_file import GgufFile
from mlxcel.engine.loading.gguf_tokenizer import load_tokenizer
from mlxcel.engine.tokenizer import Tokenizer

CAPTURES = Path(__file__).parents[1] / "reference" / "captures"


@pytest.fixture(scope="module")
def tokenizer(smollm2_path: Path) -> Tokenizer:
    return load_tokenizer(GgufFile(smollm2_path))


def recorded(file: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Names, bodies and answers of a file's successful requests."""
    cases = json.loads((CAPTURES / f"{file}.json").read_text())
    return [
        (case["request"]["name"], case["request"].get("body") or {}, case["answer"]["json"])
        for case in cases
        if case["answer"].get("status") == 200 and isinstance(case["answer"].get("json"), dict)
    ]


def test_recorded_texts_have_the_recorded_tokens(tokenizer: Tokenizer) -> None:
    checked = 0
    for name, body, answer in recorded("utility"):
        if name.startswith("tokenize") and isinstance(body.get("content"), str):
            found = tokenizer.encode(body["content"], add_special=False, parse_special=True)
            tokens = answer["tokens"]
            assert found == [token["id"] if isinstance(token, dict) else token for token in tokens], name
            checked += 1
    assert checked == 3


def test_recorded_tokens_have_the_recorded_pieces(tokenizer: Tokenizer) -> None:
    [tokens] = [answer["tokens"] for name, _, answer in recorded("utility") if name == "tokenize-pieces"]
    for token in tokens:
        piece = tokenizer.piece(token["id"], special=True)
        # A piece that is no UTF-8 is recorded as a list of bytes.
        expected = token["piece"].encode() if isinstance(token["piece"], str) else bytes(token["piece"])
        assert piece == expected


def test_recorded_tokens_have_the_recorded_texts(tokenizer: Tokenizer) -> None:
    cases = [case for case in recorded("utility") if case[0].startswith("detokenize") and "tokens" in case[1]]
    assert len(cases) == 4
    for name, body, answer in cases:
        assert tokenizer.decode(body["tokens"]) == answer["content"], name


def test_recorded_prompts_have_the_recorded_lengths(tokenizer: Tokenizer) -> None:
    cases = [
        (body["prompt"], answer["tokens_evaluated"])
        for _, body, answer in recorded("completion")
        if isinstance(body.get("prompt"), str) and "tokens_evaluated" in answer
    ]
    assert len(cases) > 20
    for prompt, n_tokens in cases:
        assert len(tokenizer.encode(prompt, add_special=True, parse_special=True)) == n_tokens, prompt


def test_special_tokens_are_text_unless_asked_for(tokenizer: Tokenizer) -> None:
    text = "<|im_start|>user<|im_end|>"
    assert tokenizer.encode(text, add_special=False, parse_special=True) == [1, 4093, 2]
    literal = tokenizer.encode(text, add_special=False, parse_special=False)
    assert not {1, 2} & set(literal)
    assert tokenizer.decode(literal) == text


def test_nothing_is_put_around_a_text_of_this_vocabulary(tokenizer: Tokenizer) -> None:
    assert (tokenizer.add_bos, tokenizer.add_eos) == (False, False)
    assert tokenizer.encode("", add_special=True, parse_special=True) == []


def test_facts_of_the_vocabulary(tokenizer: Tokenizer) -> None:
    assert tokenizer.n_vocab == 49152
    assert (tokenizer.bos_id, tokenizer.bos_token) == (1, "<|im_start|>")
    assert (tokenizer.eos_id, tokenizer.eos_token) == (2, "<|im_end|>")
    # The mark of a repository ends a generation too.
    assert tokenizer.eog_ids == {0, 2, 4}
    assert tokenizer.fim.repo == 4
    assert (tokenizer.fim.prefix, tokenizer.fim.suffix, tokenizer.fim.middle) == (None, None, None)


def test_special_pieces_are_hidden_unless_asked_for(tokenizer: Tokenizer) -> None:
    assert tokenizer.is_special(1)
    assert tokenizer.piece(1, special=False) == b""
    assert tokenizer.piece(1, special=True) == b"<|im_start|>"
    assert not tokenizer.is_special(7042)
    assert tokenizer.piece(7042, special=False) == b" Paris"
    assert tokenizer.decode([1, 7042, 2], special=False) == " Paris"


@pytest.mark.parametrize("token", [-1, 49152, 2**40])
def test_a_token_outside_the_vocabulary_is_an_error(tokenizer: Tokenizer, token: int) -> None:
    with pytest.raises(IndexError):
        tokenizer.piece(token, special=True)


def test_a_text_comes_back(tokenizer: Tokenizer) -> None:
    for text in ("naïve 日本 🎉\x00\x7f\u0085\u2028 e\u0301", "".join(map(chr, range(0x20, 0x250)))):
        tokens = tokenizer.encode(text, add_special=False, parse_special=False)
        assert b"".join(tokenizer.piece(token, special=True) for token in tokens) == text.encode()
        assert tokenizer.decode(tokens) == text


def test_a_byte_that_the_vocabulary_lacks_is_dropped(tokenizer: Tokenizer) -> None:
    # As the reference does; there is no token for an unknown byte.
    assert tokenizer.encode("a\x04b", add_special=False, parse_special=False) == [81, 82]


def test_half_a_character_is_replaced(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode("🎉", add_special=False, parse_special=False)
    assert len(tokens) > 1
    assert tokenizer.decode(tokens[:-1]) == "\N{REPLACEMENT CHARACTER}"


def test_threads_can_share_it(tokenizer: Tokenizer) -> None:
    texts = [f"<|im_start|>{n} bottles of beer" for n in range(200)]

    def both(text: str) -> tuple[list[int], list[int]]:
        parsed = tokenizer.encode(text, add_special=False, parse_special=True)
        return parsed, tokenizer.encode(text, add_special=False, parse_special=False)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(both, texts)) == [both(text) for text in texts]


def test_a_long_text_does_not_stop_other_threads(tokenizer: Tokenizer) -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 20_000
    thread = Thread(target=lambda: tokenizer.encode(text, add_special=False, parse_special=True))
    pauses = []
    began = time.perf_counter()
    thread.start()
    while thread.is_alive():
        before = time.perf_counter()
        time.sleep(0.001)
        pauses.append(time.perf_counter() - before)
    # One core may be busy with the encoding, so a pause is compared with all of it.
    assert sorted(pauses)[len(pauses) // 2] < 0.1 * (time.perf_counter() - began)
