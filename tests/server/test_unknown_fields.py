"""Unknown fields are refused by their path, or accepted and reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mlxcel.engine.loading import LoadedModel
from tests.support.serving import Served, serving

CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("/completion", {"prompt": "a", "temprature": 1}, "temprature", "temperature"),
    ("/completion", {"prompt": "a", "Temperature": 1}, "Temperature", "temperature"),
    ("/completion", {"prompt": "a", "top-p": 1}, "top-p", "top_p"),
    ("/completion", {"prompt": "a", "lora": [{"id": 0, "scale": 1, "scales": 2}]}, "lora[0].scales", "scale"),
    ("/completion", {"prompt": "a", "stream_options": {"usage": True}}, "stream_options.usage", "include_usage"),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a", "contents": 1}]},
     "messages[0].contents", "content"),
    ("/v1/chat/completions",
     {"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "texts": 1}]}]},
     "messages[0].content[0].texts", "text"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "field", "near"), CASES)
def test_an_unknown_field_is_refused_by_its_path(
    server: Served, path: str, body: dict[str, Any], field: str, near: str
) -> None:
    answer = server.post(path, body)
    assert answer.status == 400
    assert answer.error["message"] == f"Unknown field '{field}': did you mean '{near}'?"
    if path.startswith("/v1"):
        assert answer.error["param"] == field


@pytest.fixture(scope="module")
def reporting(tiny_model: LoadedModel) -> Iterator[Served]:
    with serving(tiny_model, "-np", "1", "--unknown-fields", "report") as running:
        yield running


def test_unknown_fields_are_accepted_and_listed_where_that_is_asked_for(reporting: Served) -> None:
    body = {"prompt": "a", "n_predict": 1, "rep_pen": 1.1, "näme": 2, "stream_options": {"x": 1}}
    answer = reporting.post("/completion", body)
    assert answer.status == 200
    listed = answer.headers["x-mlxcel-ignored-fields"].split(",")
    assert sorted(listed) == ["n%C3%A4me", "rep_pen", "stream_options.x"]


def test_the_list_of_ignored_fields_is_capped(reporting: Served) -> None:
    body = {"prompt": "a", "n_predict": 1} | {f"unknown_field_{i:04}": 1 for i in range(1000)}
    answer = reporting.post("/completion", body)
    assert answer.status == 200
    assert len(answer.headers["x-mlxcel-ignored-fields"]) <= 2048


def test_other_faults_are_still_refused(reporting: Served) -> None:
    assert reporting.post("/completion", {"prompt": "a", "nope": 1, "n_predict": -5}).status == 400
