"""A sequence's cache: cut, copied, and with a gap closed by turning keys back."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models import llama

from mlxcel.engine.runner import Runner

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7]


def one_layer(*, traditional: bool) -> Any:
    """With one layer, a token's key and value depend on the token alone, so a gap leaves no trace in them."""
    mx.random.seed(11)
    args = llama.ModelArgs(
        model_type="llama",
        hidden_size=32,
        num_hidden_layers=1,
        intermediate_size=48,
        num_attention_heads=4,
        num_key_value_heads=2,
        rms_norm_eps=1e-5,
        vocab_size=61,
        rope_traditional=traditional,
        tie_word_embeddings=True,
    )
    model = llama.Model(args)
    mx.eval(model.parameters())
    return model


@pytest.fixture(params=[False, True], ids=["halves", "interleaved"])
def runner(request: pytest.FixtureRequest) -> Runner:
    return Runner(one_layer(traditional=request.param))


def logits_after(runner: Runner, tokens: list[int]) -> np.ndarray:
    logits = runner.prefill(runner.new_sequence(), tokens, last=True)
    assert logits is not None
    return logits


@pytest.mark.parametrize(("start", "n"), [(0, 1), (2, 5), (4, 9), (13, 1)])
def test_dropped_tokens_leave_no_trace(runner: Runner, start: int, n: int) -> None:
    cache = runner.new_sequence()
    runner.prefill(cache, TOKENS, last=False)
    cache.drop(start, n, runner.ropes)
    assert len(cache) == len(TOKENS) - n
    logits = runner.prefill(cache, [10, 11], last=True)
    assert logits is not None
    rest = TOKENS[:start] + TOKENS[start + n :]
    np.testing.assert_allclose(logits, logits_after(runner, [*rest, 10, 11]), atol=1e-4)


def test_a_gap_that_is_not_closed_would_be_seen(runner: Runner) -> None:
    rest = TOKENS[:2] + TOKENS[7:]
    difference = np.abs(logits_after(runner, [*TOKENS, 10, 11]) - logits_after(runner, [*rest, 10, 11]))
    assert difference.max() > 1e-3


def test_a_copy_goes_its_own_way(runner: Runner) -> None:
    cache = runner.new_sequence()
    runner.prefill(cache, TOKENS, last=False)
    copy = cache.copy()
    runner.prefill(cache, [20, 21], last=False)
    logits = runner.prefill(copy, [30], last=True)
    assert logits is not None
    np.testing.assert_allclose(logits, logits_after(runner, [*TOKENS, 30]), atol=1e-4)
    assert len(cache) == len(TOKENS) + 2
