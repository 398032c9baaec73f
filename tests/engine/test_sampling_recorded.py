"""The reference's recorded distributions, number by number, and its choices under the same seeds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from mlxcel.engine.runner import Runner
from mlxcel.engine.sampling import Sampler, resolve_samplers
from mlxcel.engine.types import Sample, SamplingSettings

CAPTURES = Path(__file__).parents[1] / "reference" / "captures"
FIELDS = SamplingSettings.__dataclass_fields__


def recorded(file: str, *names: str) -> list[Any]:
    cases = json.loads((CAPTURES / f"{file}.json").read_text())
    return [
        pytest.param(case["request"]["body"], case["answer"]["json"], id=case["request"]["name"])
        for case in cases
        if not names or case["request"]["name"] in names
    ]


def settings_of(body: dict[str, Any], answer: dict[str, Any]) -> SamplingSettings:
    """The settings that the reference says it used; it doesn't echo breakers or a schema."""
    echo = answer["generation_settings"]
    values = {name: echo[name] for name in FIELDS if name in echo}
    values["samplers"] = resolve_samplers(echo["samplers"])
    values["logit_bias"] = tuple(
        (entry["token"], -math.inf if entry["bias"] is None else entry["bias"])
        for entry in echo["logit_bias"]
    )
    values["dry_sequence_breakers"] = tuple(body.get("dry_sequence_breakers", echo["dry_sequence_breakers"]))
    values["grammar"] = body.get("grammar", "")
    if "json_schema" in body and not values["grammar"]:
        values["json_schema"] = json.dumps(body["json_schema"])
    return SamplingSettings(**values)


def generate(model: Any, body: dict[str, Any], answer: dict[str, Any]) -> list[Sample]:
    """What the sampler chooses for a recorded request; ends like the recording did, or with its length."""
    prompt = model.tokenizer.encode(body["prompt"], add_special=True, parse_special=True)
    sampler = Sampler(settings_of(body, answer), model.tokenizer)
    for token in prompt:
        sampler.accept(token, generated=False)
    runner = Runner(model.model)
    cache = runner.new_sequence()
    samples: list[Sample] = []
    step = prompt
    while len(samples) < answer["tokens_predicted"]:
        logits = runner.prefill(cache, step, last=True)
        assert logits is not None
        samples.append(sampler.sample(logits))
        sampler.accept(samples[-1].token, generated=True)
        step = [samples[-1].token]
    return samples


def compare(samples: list[Sample], answer: dict[str, Any], tolerance: float) -> None:
    for sample, entry in zip(samples, answer["completion_probabilities"], strict=True):
        kind = "prob" if "prob" in entry else "logprob"
        top = entry[f"top_{kind}s"]
        assert sample.token == entry["id"]
        assert sample.probability == pytest.approx(entry[kind], abs=tolerance)
        assert [each.token for each in sample.top] == [each["id"] for each in top]
        assert [each.value for each in sample.top] == pytest.approx(
            [each[kind] for each in top], abs=tolerance
        )


@pytest.mark.parametrize(("body", "answer"), recorded("samplers"))
def test_one_step(smollm2: Any, body: dict[str, Any], answer: dict[str, Any]) -> None:
    compare(generate(smollm2, body, answer), answer, 5e-4)


@pytest.mark.parametrize(
    ("body", "answer"), recorded("completion", "n-probs-3", "n-probs-post", "n-probs-large")
)
def test_probabilities_of_every_token(smollm2: Any, body: dict[str, Any], answer: dict[str, Any]) -> None:
    compare(generate(smollm2, body, answer), answer, 5e-4)


@pytest.mark.parametrize(
    ("body", "answer"),
    recorded(
        "completion", "logit-bias-pair", "logit-bias-false", "samplers-list", "samplers-chars", "dry-breakers"
    )
    + recorded(
        "grammar",
        "gbnf-yes-no",
        "gbnf-list",
        "schema-object",
        "schema-enum",
        "schema-array",
        "schema-pattern",
        "schema-and-grammar",
    ),
)
def test_text(smollm2: Any, body: dict[str, Any], answer: dict[str, Any]) -> None:
    tokens = [sample.token for sample in generate(smollm2, body, answer)]
    text = b"".join(smollm2.tokenizer.piece(token, special=False) for token in tokens)
    assert text.decode() == answer["content"]
    assert (tokens[-1] in smollm2.tokenizer.eog_ids) == (answer["stop_type"] == "eos")
