"""DRY against the plain reading of its rule, quadratic and without tricks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling_support import Words, distribution, floats, letters

from mlxcel.engine.sampling.dry import breakers

LOGITS = floats(0.3, 0.1, -0.2, 0.0, 0.2)


def expected_penalties(
    history: list[int], allowed: int, last_n: int, breaker: int | None
) -> dict[int, float]:
    """For each token the longest stretch before an occurrence of it that also ends the history."""
    window = history[-last_n:]
    limit = len(window)
    if breaker in window:
        limit = window[::-1].index(breaker)
    longest: dict[int, int] = {}
    for at in range(1, len(window)):
        length = 0
        while length < min(at, limit) and window[at - 1 - length] == window[len(window) - 1 - length]:
            length += 1
        if length >= allowed:
            longest[window[at]] = max(longest.get(window[at], 0), length)
    return {token: 0.8 * 1.75 ** (length - allowed) for token, length in longest.items() if token != breaker}


@given(
    history=st.lists(st.integers(0, 2), max_size=24),
    allowed=st.integers(1, 4),
    last_n=st.integers(1, 30),
    breaker=st.sampled_from([None, 0, 2]),
)
def test_dry(history: list[int], allowed: int, last_n: int, breaker: int | None) -> None:
    words = letters(4)
    actual = distribution(
        LOGITS,
        history=history,
        words=words,
        dry_multiplier=0.8,
        dry_allowed_length=allowed,
        dry_penalty_last_n=last_n,
        dry_sequence_breakers=() if breaker is None else (words.words[breaker].decode(),),
    )
    # A window no longer than what is allowed has nothing to repeat.
    penalties = expected_penalties(history, allowed, last_n, breaker)
    if min(len(history), last_n) <= allowed:
        penalties = {}
    logits = LOGITS.astype(np.float64)
    for token, penalty in penalties.items():
        logits[token] -= penalty
    weights = np.exp(logits)
    assert actual == pytest.approx(dict(enumerate(weights / weights.sum())), abs=1e-5)


def test_a_breaker_of_several_tokens_ends_a_repetition() -> None:
    words = Words([b"a", b"b", b"x", b"y"])
    history = words.encode("abxyabxyab", add_special=False, parse_special=False)
    settings: dict[str, Any] = {"dry_multiplier": 5.0, "dry_allowed_length": 2}

    def shares(breaker: str) -> dict[int, float]:
        return distribution(
            LOGITS, history=history, words=words, dry_sequence_breakers=(breaker,), **settings
        )

    # Without a breaker the whole of "abxyab" repeats; after "xy" only "ab" does.
    x = words.words.index(b"x")
    assert shares("zzz")[x] < shares("xy")[x] < distribution(LOGITS, words=words)[x]


def test_a_breaker_may_begin_inside_a_token() -> None:
    words = Words([b"axb", b"c", b"d", b"bc"])
    # "bc" is a token, and also the end of one with the whole of another, or with the beginning of a third.
    assert breakers(words, ["bc"]) == {0: ((1,),), 3: ((),)}
    assert breakers(words, ["xbcd", ""]) == {0: ((1, 2),)}
    assert breakers(words, ["d", "cd"]) == {2: ((),), 4: ((),), 1: ((2,),), 3: ((2,),)}


def test_a_token_that_holds_a_breaker_is_one() -> None:
    words = Words([b"a", b"b", b"b\n", b"c"])
    history = [0, 2, 3, 0, 2, 3, 0]
    plain = distribution(LOGITS, words=words)
    broken = distribution(
        LOGITS,
        history=history,
        words=words,
        dry_multiplier=5.0,
        dry_allowed_length=1,
        dry_sequence_breakers=("\n",),
    )
    # "b\n" would go on the repetition but is a breaker itself.
    assert broken == pytest.approx(plain)


def test_huge_exponents_do_not_overflow() -> None:
    actual = distribution(
        LOGITS,
        history=[0] * 900,
        dry_multiplier=1.0,
        dry_base=2.0,
        dry_allowed_length=1,
        dry_penalty_last_n=1000,
        dry_sequence_breakers=(),
    )
    assert 0 not in actual
    assert all(math.isfinite(value) for value in actual.values())
