"""Rows that decode together give what each gives alone, whatever joins, leaves and moves meanwhile."""

from __future__ import annotations

import random
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models import gemma3_text, llama

from mlxcel.engine.batch import BatchCache
from mlxcel.engine.cache import GROWTH, SequenceCache
from mlxcel.engine.runner import Runner

VOCAB = 61


def tiny_llama() -> Any:
    mx.random.seed(7)
    args = llama.ModelArgs(
        model_type="llama",
        hidden_size=32,
        num_hidden_layers=2,
        intermediate_size=48,
        num_attention_heads=4,
        num_key_value_heads=2,
        rms_norm_eps=1e-5,
        vocab_size=VOCAB,
        tie_word_embeddings=True,
    )
    return llama.Model(args)


def tiny_gemma3() -> Any:
    mx.random.seed(7)
    args = gemma3_text.ModelArgs(
        model_type="gemma3_text",
        hidden_size=32,
        num_hidden_layers=4,
        intermediate_size=48,
        num_attention_heads=4,
        head_dim=8,
        num_key_value_heads=1,
        vocab_size=VOCAB,
        query_pre_attn_scalar=8,
        sliding_window=6,
        sliding_window_pattern=2,
    )
    return gemma3_text.Model(args)


@pytest.fixture(params=[tiny_llama, tiny_gemma3], ids=["full attention", "sliding window"])
def runner(request: pytest.FixtureRequest) -> Runner:
    model = request.param()
    mx.eval(model.parameters())
    return Runner(model)


def prefilled(runner: Runner, tokens: list[int]) -> SequenceCache:
    cache = runner.new_sequence()
    runner.prefill(cache, tokens, last=False)
    return cache


def solo(runner: Runner, tokens: list[int]) -> np.ndarray:
    logits = runner.prefill(runner.new_sequence(), tokens, last=True)
    assert logits is not None
    return logits


class Rows:
    """A batch and what each of its rows should hold."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.batch: BatchCache = runner.new_batch()
        self.texts: list[list[int]] = []

    def insert(self, tokens: list[int]) -> None:
        assert self.batch.insert(prefilled(self.runner, tokens)) == len(self.texts)
        self.texts.append(list(tokens))

    def remove(self, row: int) -> tuple[list[int], SequenceCache]:
        kept = self.batch.remove(row)
        assert kept is not None
        gone = self.texts[row]
        self.texts[row] = self.texts[-1]
        self.texts.pop()
        return gone, kept

    def decode(self, tokens: list[int]) -> np.ndarray:
        for text, token in zip(self.texts, tokens, strict=True):
            text.append(token)
        return self.runner.decode(self.batch, tokens)


def test_rows_of_different_length_decode_as_they_do_alone(runner: Runner) -> None:
    rows = Rows(runner)
    for length in (9, 2, 17, 1):
        rows.insert([(7 * i + length) % VOCAB for i in range(length)])
    for step in range(12):
        logits = rows.decode([(step * 5 + row) % VOCAB for row in range(4)])
        for row, text in enumerate(rows.texts):
            np.testing.assert_allclose(logits[row], solo(runner, text), atol=2e-4)


def test_rows_may_join_and_leave_at_any_step(runner: Runner) -> None:
    chance = random.Random(3)
    rows = Rows(runner)
    for _ in range(60):
        if not rows.texts or (len(rows.texts) < 5 and chance.random() < 0.4):
            rows.insert([chance.randrange(VOCAB) for _ in range(chance.randrange(1, 30))])
        elif chance.random() < 0.2:
            tokens, cache = rows.remove(chance.randrange(len(rows.texts)))
            assert len(cache) == len(tokens)
            again = runner.prefill(cache, [5], last=True)
            assert again is not None
            np.testing.assert_allclose(again, solo(runner, [*tokens, 5]), atol=2e-4)
            continue
        logits = rows.decode([chance.randrange(VOCAB) for _ in rows.texts])
        for row, text in enumerate(rows.texts):
            np.testing.assert_allclose(logits[row], solo(runner, text), atol=2e-4)


def test_columns_nobody_uses_are_squeezed_out(runner: Runner) -> None:
    rows = Rows(runner)
    rows.insert([1, 2, 3])
    rows.insert([i % VOCAB for i in range(2 * GROWTH + 9)])
    assert rows.batch.column == 2 * GROWTH + 9
    rows.remove(1)
    assert rows.batch.column == 3
    np.testing.assert_allclose(rows.decode([4])[0], solo(runner, [1, 2, 3, 4]), atol=2e-4)


def test_squeezing_keeps_rows_with_holes_right(runner: Runner) -> None:
    rows = Rows(runner)
    rows.insert([1, 2, 3])
    rows.insert([i % VOCAB for i in range(GROWTH + 40)])
    for step in range(3):
        rows.decode([step, step + 1])
    rows.insert([9] * 20)
    rows.remove(1)
    assert rows.batch.column < GROWTH
    logits = rows.decode([8, 11])
    for row, text in enumerate(rows.texts):
        np.testing.assert_allclose(logits[row], solo(runner, text), atol=2e-4)


def test_an_empty_batch_holds_no_memory(runner: Runner) -> None:
    rows = Rows(runner)
    rows.insert([1, 2, 3])
    rows.remove(0)
    assert rows.batch.nbytes == 0


def test_a_truncated_sequence_continues_from_its_prefix(runner: Runner) -> None:
    cache = prefilled(runner, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    cache.truncate(4)
    logits = runner.prefill(cache, [20, 21], last=True)
    assert logits is not None
    np.testing.assert_allclose(logits, solo(runner, [1, 2, 3, 4, 20, 21]), atol=2e-4)
