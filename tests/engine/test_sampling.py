"""Each sampler against its formula, written a second time here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sampling_support import NEUTRAL, Words, distribution, floats, letters, softmax

from mlxcel.engine.errors import GenerationError, InvalidRequestError
from mlxcel.engine.sampling import Sampler
from mlxcel.engine.types import SamplingSettings

LOGITS = floats(2.0, -1.0, 3.5, 0.5, 3.0, -4.0, 1.0, 0.0)
ORDER = [2, 4, 0, 6, 3, 7, 1, 5]
P = softmax(LOGITS)


def share(tokens: list[int], weights: Any = P) -> dict[int, float]:
    """The probabilities of ``tokens`` alone."""
    total = sum(weights[t] for t in tokens)
    return {t: weights[t] / total for t in tokens}


def check(actual: dict[int, float], expected: dict[int, float]) -> None:
    assert list(actual) == sorted(expected, key=lambda t: -expected[t])
    assert actual == pytest.approx(expected, abs=1e-6)


def test_neutral_settings_leave_the_model_alone() -> None:
    check(distribution(LOGITS), dict(enumerate(P)))


@pytest.mark.parametrize("temperature", [0.5, 0.8, 2.0])
def test_temperature(temperature: float) -> None:
    check(distribution(LOGITS, temperature=temperature), dict(enumerate(softmax(LOGITS / temperature))))


@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_temperature_zero_takes_the_best(temperature: float) -> None:
    assert distribution(LOGITS, temperature=temperature) == {2: 1.0}


def test_dynamic_temperature() -> None:
    evenness = -np.sum(P * np.log(P)) / math.log(len(P))
    temperature = 0.4 + (1.6 - 0.4) * evenness**2
    actual = distribution(LOGITS, dynatemp_range=0.6, dynatemp_exponent=2.0)
    check(actual, dict(enumerate(softmax(LOGITS / temperature))))


@pytest.mark.parametrize("k", [1, 3, 8, 100])
def test_top_k(k: int) -> None:
    check(distribution(LOGITS, top_k=k), share(ORDER[:k]))


@pytest.mark.parametrize("p", [0.0, 0.3, 0.6, 0.9, 0.999])
@pytest.mark.parametrize("min_keep", [0, 3])
@pytest.mark.parametrize("top_k", [0, 6])
def test_top_p(p: float, min_keep: int, top_k: int) -> None:
    tokens = ORDER[: top_k or None]
    weights = share(tokens)
    kept, total = [], 0.0
    for token in tokens:
        kept.append(token)
        total += weights[token]
        if total >= p and len(kept) >= min_keep:
            break
    check(distribution(LOGITS, top_p=p, min_keep=min_keep, top_k=top_k), share(kept))


def test_top_p_of_a_large_vocabulary_looks_further_when_the_first_look_is_not_enough() -> None:
    logits = np.random.default_rng(3).normal(size=3000).astype(np.float32)
    probs = softmax(logits)
    order = np.argsort(-probs)
    for p in (0.02, 0.9):
        count = int(np.searchsorted(np.cumsum(probs[order]), p)) + 1
        words = Words([b"%d" % i for i in range(2999)])
        assert list(distribution(logits, words=words, top_p=p)) == order[:count].tolist()


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("min_keep", [0, 4])
@pytest.mark.parametrize("top_k", [0, 6])
def test_min_p(p: float, min_keep: int, top_k: int) -> None:
    tokens = ORDER[: top_k or None]
    kept = [t for i, t in enumerate(tokens) if P[t] >= p * P.max() * 0.999999 or i < min_keep]
    check(distribution(LOGITS, min_p=p, min_keep=min_keep, top_k=top_k), share(kept))


@pytest.mark.parametrize("n", [0.5, 1.0, 2.0])
def test_top_n_sigma(n: float) -> None:
    kept = [t for t in ORDER if LOGITS[t] >= LOGITS.max() - n * LOGITS.std()]
    check(distribution(LOGITS, top_n_sigma=n), share(kept))


def test_top_n_sigma_leaves_banned_tokens_out_of_the_deviation() -> None:
    banned = ((5, -math.inf), (1, -math.inf))
    left = LOGITS[[0, 2, 3, 4, 6, 7]]
    kept = [t for t in (2, 4, 0, 6, 3, 7) if LOGITS[t] >= left.max() - left.std()]
    check(distribution(LOGITS, top_n_sigma=1.0, logit_bias=banned), share(kept))


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("min_keep", [0, 5])
def test_typical(p: float, min_keep: int) -> None:
    entropy = -np.sum(P * np.log(P))
    order = sorted(range(len(P)), key=lambda t: abs(-math.log(P[t]) - entropy))
    kept, total = [], 0.0
    for token in order:
        kept.append(token)
        total += P[token]
        if total > p and len(kept) >= min_keep:
            break
    check(distribution(LOGITS, typical_p=p, min_keep=min_keep), share(kept))


def test_typical_may_drop_the_best() -> None:
    logits = np.log(floats(0.4, 0.12, 0.12, 0.12, 0.12, 0.12))
    assert 0 not in distribution(logits, typical_p=0.3)


def test_xtc_drops_the_likely_but_the_last() -> None:
    likely = [t for t in ORDER if P[t] >= 0.05]
    assert len(likely) > 2
    kept = ORDER[len(likely) - 1 :]
    check(distribution(LOGITS, xtc_probability=1.0, xtc_threshold=0.05), share(kept))


@pytest.mark.parametrize(
    "settings",
    [
        {"xtc_probability": 0.0, "xtc_threshold": 0.05},
        {"xtc_probability": 1.0, "xtc_threshold": 0.51},
        {"xtc_probability": 1.0, "xtc_threshold": 0.05, "min_keep": 8},
        {"xtc_probability": 1.0, "xtc_threshold": 0.45},
    ],
)
def test_xtc_stays_out_of_it(settings: dict[str, Any]) -> None:
    check(distribution(LOGITS, **settings), dict(enumerate(P)))


def test_xtc_happens_with_its_probability() -> None:
    sampler = Sampler(SamplingSettings(**NEUTRAL, xtc_probability=0.3, xtc_threshold=0.05), letters(7))
    n = 3000
    best = sum(sampler.sample(LOGITS.copy()).token == 2 for _ in range(n)) / n
    assert best == pytest.approx(0.7 * P[2], abs=0.03)


def penalised(history: list[int], last_n: int, repeat: float, frequency: float, presence: float) -> Any:
    logits = LOGITS.astype(np.float64)
    window = history[-last_n:]
    for token in set(window):
        logits[token] = logits[token] * repeat if logits[token] <= 0 else logits[token] / repeat
        logits[token] -= window.count(token) * frequency + presence
    return dict(enumerate(softmax(logits)))


@pytest.mark.parametrize("last_n", [1, 3, 64])
@pytest.mark.parametrize(
    ("repeat", "frequency", "presence"), [(1.3, 0.0, 0.0), (1.0, 0.4, 0.0), (1.0, 0.0, -0.7), (0.8, 0.2, 0.5)]
)
@pytest.mark.parametrize("top_k", [0, 8])
def test_penalties(last_n: int, repeat: float, frequency: float, presence: float, top_k: int) -> None:
    history = [2, 5, 2, 0, 2, 7, 5]
    actual = distribution(
        LOGITS,
        history=history,
        repeat_last_n=last_n,
        repeat_penalty=repeat,
        frequency_penalty=frequency,
        presence_penalty=presence,
        top_k=top_k,
        samplers=("top_k", "penalties"),
    )
    check(actual, penalised(history, last_n, repeat, frequency, presence))


def test_penalties_of_no_window_are_off() -> None:
    check(distribution(LOGITS, history=[2, 2], repeat_last_n=0, repeat_penalty=2.0), dict(enumerate(P)))


@pytest.mark.parametrize("repeat", [0.0, -1.0, math.inf, math.nan])
def test_impossible_repeat_penalty_is_refused(repeat: float) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        Sampler(SamplingSettings(repeat_penalty=repeat), letters())
    assert caught.value.field == "repeat_penalty"


def test_logit_bias_adds_up_and_bans() -> None:
    biased = LOGITS.astype(np.float64)
    biased[3] += 2.5
    biased[2] = -np.inf
    bias = ((3, 2.0), (3, 0.5), (2, -math.inf), (99, 7.0))
    expected = {t: p for t, p in enumerate(softmax(biased)) if p > 0}
    check(distribution(LOGITS, logit_bias=bias), expected)


def test_ignore_eos_bans_the_end() -> None:
    assert 7 in distribution(LOGITS)
    assert 7 not in distribution(LOGITS, ignore_eos=True)


def test_order_of_samplers_matters() -> None:
    hot_first = distribution(LOGITS, temperature=3.0, top_p=0.7, samplers=("temperature", "top_p"))
    hot_last = distribution(LOGITS, temperature=3.0, top_p=0.7, samplers=("top_p", "temperature"))
    assert len(hot_first) > len(hot_last)


def test_samplers_that_are_not_named_do_nothing() -> None:
    settings: dict[str, Any] = {"temperature": 0.1, "top_k": 1, "top_p": 0.1, "min_p": 0.9}
    check(distribution(LOGITS, **settings, samplers=()), dict(enumerate(P)))


def test_mirostat_2_cuts_by_surprise() -> None:
    kept = [t for t in ORDER if -math.log2(P[t]) <= 2 * 1.5]
    check(distribution(LOGITS, mirostat=2, mirostat_tau=1.5, top_k=1), share(kept))


def test_mirostat_1_cuts_by_rank() -> None:
    probs = sorted(P, reverse=True)
    spacing = [math.log((i + 2) / (i + 1)) for i in range(len(P) - 1)]
    steps = [math.log(probs[i] / probs[i + 1]) for i in range(len(P) - 1)]
    s = sum(t * b for t, b in zip(spacing, steps, strict=True)) / sum(t * t for t in spacing)
    k = int((((s - 1) * 2 ** (2 * 1.2)) / (1 - len(P) ** -(s - 1))) ** (1 / s))
    assert 1 < k < len(P)
    check(distribution(LOGITS, mirostat=1, mirostat_tau=1.2), share(ORDER[:k]))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("tau", [1.0, 2.5])
def test_mirostat_holds_the_surprise(version: int, tau: float) -> None:
    logits = (-1.2 * np.log(np.arange(1, 2001))).astype(np.float32)
    settings = SamplingSettings(
        seed=5, mirostat=version, mirostat_tau=tau, n_probs=1, post_sampling_probs=True
    )
    sampler = Sampler(settings, Words([b"%d" % i for i in range(1999)]))
    surprises = [-math.log2(sampler.sample(logits.copy()).probability) for _ in range(600)]
    assert np.mean(surprises[200:]) == pytest.approx(tau, abs=0.35)


@pytest.mark.parametrize("version", [1, 2])
def test_mirostat_at_temperature_zero_takes_the_best(version: int) -> None:
    assert distribution(LOGITS, mirostat=version, temperature=0.0) == {2: 1.0}


def test_adaptive_p_without_a_target_changes_nothing() -> None:
    check(distribution(LOGITS, samplers=("adaptive_p",)), dict(enumerate(P)))


def test_adaptive_p_prefers_what_is_near_the_target() -> None:
    distance = np.abs(P - 0.3) / 0.3
    expected = softmax(5.0 - 10.0 * distance**2 / (1.0 + distance))
    actual = distribution(LOGITS, samplers=("adaptive_p", "top_k"), adaptive_target=0.3)
    check(actual, dict(enumerate(expected)))


def test_adaptive_p_steers_the_average_to_its_target() -> None:
    logits = np.log(floats(0.5, 0.25, 0.12, 0.08, 0.05))
    probs = softmax(logits)
    settings = SamplingSettings(**NEUTRAL, samplers=("adaptive_p",), adaptive_target=0.2, adaptive_decay=0.9)
    sampler = Sampler(settings, letters(4))
    chosen = []
    for _ in range(400):
        token = sampler.sample(logits.copy()).token
        sampler.accept(token, generated=True)
        chosen.append(probs[token])
    assert np.mean(chosen) == pytest.approx(0.2, abs=0.03)


def test_infill_ends_when_ending_is_likely() -> None:
    words = Words([b"x", b"y"])
    assert distribution(np.log(floats(0.5, 0.3, 0.2)), words=words, samplers=("infill",)) == {2: 1.0}


def test_infill_merges_what_begins_alike() -> None:
    words = Words([b"pr", b"print", b"zz", b"q"])
    logits = np.log(floats(0.25, 0.35, 0.3, 0.099, 0.001))
    actual = distribution(logits, words=words, samplers=("infill",))
    # "pr" goes into the likelier "print": 0.6, 0.3 and 0.099; then 0.2 and 1 / (2 + 1) are the thresholds.
    assert set(actual) == {1, 4}


def test_infill_ends_when_no_text_is_likely() -> None:
    words = Words([b"%d" % i for i in range(10, 20)])
    logits = np.log(floats(*[0.0999] * 10, 0.001))
    assert distribution(logits, words=words, samplers=("infill",)) == {10: 1.0}


def test_greedy_is_recognised() -> None:
    def greedy(**settings: Any) -> bool:
        return Sampler(SamplingSettings(**settings), letters()).is_greedy

    assert greedy(temperature=0.0)
    assert greedy(top_k=1)
    assert greedy(temperature=0.0, min_p=0.3, top_n_sigma=1.0)
    assert greedy(temperature=0.0, mirostat=2)
    assert not greedy()
    assert not greedy(temperature=0.0, samplers=("top_p",))
    assert not greedy(temperature=0.0, dynatemp_range=0.5)
    assert not greedy(temperature=0.0, typical_p=0.5)
    assert not greedy(temperature=0.0, xtc_probability=0.5)
    assert not greedy(temperature=0.0, repeat_penalty=1.1)
    assert not greedy(temperature=0.0, dry_multiplier=0.8)
    assert not greedy(temperature=0.0, logit_bias=((1, 1.0),))
    assert not greedy(temperature=0.0, ignore_eos=True)
    assert not greedy(temperature=0.0, n_probs=1)
    assert not greedy(temperature=0.0, grammar='root ::= "a"')


def test_greedy_takes_the_first_of_equals() -> None:
    sampler = Sampler(SamplingSettings(temperature=0.0), letters(3))
    assert sampler.sample(floats(1.0, 2.0, 2.0, 0.0)).token == 1


def test_choices_follow_the_probabilities() -> None:
    sampler = Sampler(SamplingSettings(**NEUTRAL), letters(7))
    n = 4000
    counts = np.bincount([sampler.sample(LOGITS.copy()).token for _ in range(n)], minlength=8) / n
    assert np.abs(counts - P).max() < 0.03


def test_a_seed_makes_the_same_choices_and_another_makes_others() -> None:
    def choices(seed: int) -> list[int]:
        sampler = Sampler(SamplingSettings(**{**NEUTRAL, "seed": seed}), letters(7))
        return [sampler.sample(LOGITS.copy()).token for _ in range(50)]

    assert choices(7) == choices(7)
    assert choices(7) != choices(8)


def test_random_seeds_differ_and_are_told() -> None:
    seeds = {Sampler(SamplingSettings(), letters()).seed for _ in range(5)}
    assert len(seeds) > 1
    assert Sampler(SamplingSettings(seed=9), letters()).seed == 9


def test_probabilities_before_sampling_are_the_raw_models() -> None:
    settings = SamplingSettings(
        seed=1, temperature=0.1, top_k=2, n_probs=3, logit_bias=((5, 50.0),), repeat_penalty=1.4
    )
    sampler = Sampler(settings, letters(7))
    sampler.accept(2, generated=False)
    sample = sampler.sample(LOGITS.copy())
    assert sample.token == 5
    assert sample.probability == pytest.approx(math.log(P[5]), abs=1e-5)
    assert [entry.token for entry in sample.top] == [2, 4, 0]
    assert [entry.value for entry in sample.top] == pytest.approx(
        [math.log(P[t]) for t in (2, 4, 0)], abs=1e-5
    )


def test_probabilities_before_sampling_have_no_infinity() -> None:
    sampler = Sampler(SamplingSettings(temperature=0.0, n_probs=3), letters(2))
    values = [entry.value for entry in sampler.sample(floats(1.0, -math.inf, 0.0)).top]
    assert all(math.isfinite(value) for value in values)


def test_no_probabilities_unless_asked() -> None:
    sample = Sampler(SamplingSettings(**NEUTRAL), letters(7)).sample(LOGITS.copy())
    assert sample.top == ()


@pytest.mark.parametrize("logits", [floats(*[-math.inf] * 8), floats(*[math.nan] * 8)])
def test_logits_that_leave_no_choice_are_an_error(logits: Any) -> None:
    with pytest.raises(GenerationError, match="no token can be chosen"):
        Sampler(SamplingSettings(**NEUTRAL), letters(7)).sample(logits)
