"""Validation alone accepts what the reference answered, and refuses what it or this project refuses."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import Case, cases, explain, place

# Refused although the body fits the schema: the handler, the engine or the dispatcher says so.
SEMANTIC = {
    "completion/lora-unknown": "no such adapter is loaded",
    "embeddings/embeddings-dimensions": "the model has other dimensions",
    "embeddings/v1-embeddings-dimensions": "the model has other dimensions",
    "embeddings/v1-embeddings-empty": "a text without tokens",
    "errors/prompt-token-out-of-range": "a token beyond the vocabulary",
    "errors/too-long-prompt": "longer than the context",
    "context/prompt-exceeds": "longer than the context",
    "shift/prompt-exceeds": "longer than the context",
    "errors/field-n_cmpl-99": "more than there are slots",
    "grammar/gbnf-bad": "no grammar",
    "grammar/gbnf-no-root": "no grammar",
    "grammar/schema-bad-type": "no JSON Schema",
    "stream/error-in-stream": "no grammar",
    "embeddings-none/v1-embeddings-input": "needs pooling",
    "embeddings-none/v1-embeddings-many": "needs pooling",
}

# A model that takes text only refuses these with 501, after validation.
REFUSED_LATER = {"openai/chat-image-part"}


def bodies() -> list[tuple[Case, Any]]:
    """Cases with a JSON body for an operation that takes one."""
    found = []
    for case in cases():
        where = place(case)
        if where is not None and where.request_schema() is not None and "body" in case.request:
            found.append((case, case.request["body"]))
    assert len(found) > 200
    return found


def fault(case: Case, body: Any) -> str | None:
    where = place(case)
    assert where is not None
    schema = where.request_schema()
    assert schema is not None
    return explain(where.validator(schema), body)


def expected(case: Case) -> int:
    return int(case.deviation["status"]) if case.deviation else case.status


@pytest.mark.parametrize(("case", "body"), bodies(), ids=lambda value: getattr(value, "name", ""))
def test_validation_judges_as_recorded(case: Case, body: Any) -> None:
    found = fault(case, body)
    if case.name in SEMANTIC or case.name in REFUSED_LATER:
        assert expected(case) in (400, 501)
        assert found is None
    elif expected(case) == 400:
        assert found is not None
    elif expected(case) < 400:
        assert found is None


def test_every_refusal_of_ours_is_judged() -> None:
    judged = {case.name for case, _ in bodies()}
    ours = {case.name for case in cases() if case.deviation and case.deviation["status"] == 400}
    assert ours - judged <= {"errors/empty-body"}
    assert SEMANTIC.keys() <= judged


def test_null_is_absent_in_every_optional_field() -> None:
    (case,) = [case for case in cases() if case.name == "completion/limit"]
    where = place(case)
    assert where is not None
    schema = where.resolve(where.request_schema() or {})
    optional = [name for name in schema["properties"] if name not in schema["required"]]
    assert len(optional) > 80
    validator = where.validator(schema)
    for name in optional:
        assert explain(validator, {"prompt": "x", name: None}) is None, name
    assert explain(validator, {"prompt": "x", **dict.fromkeys(optional)}) is None
