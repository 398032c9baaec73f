"""Every recorded answer is one that the specs describe, down to the order of keys."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from recorded import Case, Place, cases, explain, frames, place

# Streams that this project answers otherwise: a null in place of a frame, a shape of the other surface.
SKIPPED = {"embeddings/v1-embeddings-content"}

OPEN = {"Projection"}


def _is_open(branch: dict[str, Any]) -> bool:
    return branch.get("$ref", "").rsplit("/", 1)[-1] in OPEN


def closed(schema: Any) -> Any:
    """A schema without the branch that takes anything, which is for ``response_fields`` alone."""
    if isinstance(schema, list):
        return [closed(branch) for branch in schema if not (isinstance(branch, dict) and _is_open(branch))]
    if isinstance(schema, dict):
        return {key: closed(value) for key, value in schema.items()}
    return schema


def misordered(where: Place, schema: dict[str, Any], value: Any, path: str = "$") -> str | None:
    """The first object whose keys aren't in the order of the spec, None when there is none."""
    schema = where.resolve(schema)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            fitting = [b for b in schema[key] if explain(where.validator(b), value) is None]
            found = [misordered(where, branch, value, path) for branch in fitting]
            return None if not found or None in found else found[0]
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            fault = misordered(where, schema["items"], item, f"{path}[{index}]")
            if fault:
                return fault
    if isinstance(value, dict) and schema.get("properties"):
        properties = schema["properties"]
        expected = [name for name in properties if name in value]
        if list(value) != expected:
            return f"{path}: {list(value)} isn't in the order {expected}"
        for name, inner in value.items():
            fault = misordered(where, properties[name], inner, f"{path}.{name}")
            if fault:
                return fault
    return None


def judged(case: Case) -> tuple[Place, dict[str, Any], list[Any]] | None:
    """Where a case is answered, the schema that holds for its values, and the values."""
    where = place(case)
    if where is None or case.name in SKIPPED:
        return None
    if "sse" in case.answer:
        event = where.answer_schema(200, "text/event-stream")
        assert event is not None, "answers with a stream that the spec doesn't declare"
        schema = closed(where.resolve(event)["properties"]["data"])
        return where, schema, [frame for frame in frames(case) if frame is not None]
    if "json" not in case.answer:
        return None
    declared = where.answer_schema(case.status, "application/json")
    if declared is None:
        assert case.deviation, f"status {case.status} isn't declared"
        return None
    body = case.request.get("body")
    projected = isinstance(body, dict) and body.get("response_fields")
    return where, declared if projected else closed(declared), [case.answer["json"]]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_recorded_answers_are_described(case: Case) -> None:
    found = judged(case)
    if found is None:
        return
    where, schema, values = found
    validator = where.validator(schema)
    for value in values:
        assert explain(validator, value) is None
        if case.status == 200:
            assert misordered(where, schema, value) is None


def test_the_recordings_reach_most_operations() -> None:
    reached = Counter(case.path for case in cases() if judged(case) is not None)
    assert reached["/completion"] > 100
    expected = """
        /completions /tokenize /detokenize /apply-template /embedding /embeddings /health /v1/health /props /slots
        /lora-adapters /v1/streams/lookup /v1/models /v1/completions /v1/chat/completions /chat/completions
        /v1/embeddings /v1/chat/completions/input_tokens /infill /rerank /slots/0 /tools /cors-proxy
    """
    assert set(expected.split()) <= set(reached)


def test_a_missing_extra_or_misplaced_key_shows() -> None:
    (case,) = [case for case in cases() if case.name == "completion/limit"]
    found = judged(case)
    assert found is not None
    where, schema, (value,) = found
    validator = where.validator(schema)
    for key in value:
        assert explain(validator, {k: v for k, v in value.items() if k != key}) is not None, key
    assert explain(validator, {**value, "extra": 1}) is not None
    assert misordered(where, schema, dict(reversed(value.items()))) is not None
    settings = value["generation_settings"]
    assert len(settings) == 49
    sorted_settings = {**value, "generation_settings": dict(sorted(settings.items()))}
    assert misordered(where, schema, sorted_settings) is not None
