"""The best of many logits, and the reference's random numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from mlxcel.engine.sampling.candidates import top_positions
from mlxcel.engine.sampling.rng import Random, resolve_seed
from mlxcel.engine.types import RANDOM_SEED

VALUES = st.sampled_from([-np.inf, -3.5, -1.0, 0.0, 0.25, 2.0, 7.0])


@given(
    logits=npst.arrays(np.float32, st.integers(1, 700), elements=VALUES | st.floats(-9, 9, width=32)),
    k=st.integers(0, 800),
)
def test_top_positions(logits: NDArray[np.float32], k: int) -> None:
    assert top_positions(logits, k).tolist() == np.argsort(-logits, kind="stable")[:k].tolist()


@pytest.mark.parametrize("k", [1, 40, 256, 5000])
def test_top_positions_of_a_vocabulary(k: int) -> None:
    logits = np.random.default_rng(k).normal(size=49_152).astype(np.float32)
    assert top_positions(logits, k).tolist() == np.argsort(-logits, kind="stable")[:k].tolist()


def test_the_words_are_those_of_the_c_plus_plus_generator() -> None:
    # The C++ standard gives the 10,000th word of a default-seeded (5489) mt19937.
    random = Random(5489)
    assert random._words.random_raw(10_000)[-1] == 4_123_659_995


def test_fractions_are_in_range_and_even() -> None:
    random = Random(3)
    doubles = [random.double() for _ in range(2000)]
    singles = [random.single() for _ in range(2000)]
    for values in (doubles, singles):
        assert 0.0 <= min(values) <= max(values) < 1.0
        assert np.mean(values) == pytest.approx(0.5, abs=0.03)


def test_picks_follow_the_weights() -> None:
    random = Random(4)
    weights = np.array([0.1, 0.0, 0.6, 0.3], np.float32)
    counts = np.bincount([random.pick(weights) for _ in range(4000)], minlength=4) / 4000
    assert np.abs(counts - weights).max() < 0.03
    assert random.pick(np.ones(1, np.float32)) == 0


def test_only_the_random_seed_is_random() -> None:
    assert resolve_seed(12) == 12
    assert len({resolve_seed(RANDOM_SEED) for _ in range(5)}) > 1
