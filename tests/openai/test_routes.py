"""OpenAI paths are answered by the OpenAI surface: below /v1, and at the aliases that the reference has without it."""

from __future__ import annotations

import pytest

from mlxcel.generated.runtime import Operation
from tests.support.routes import documented, operations, provoke
from tests.support.serving import Served

OPERATIONS = operations("openai")
ISSUE_PATHS = {
    ("POST", "/v1/completions"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/chat/completions"),
    ("POST", "/v1/embeddings"),
    ("GET", "/v1/models"),
}
WITHOUT_PREFIX = {"/chat/completions", "/chat/completions/input_tokens"}


def test_the_table_is_the_document() -> None:
    assert {(op.method, op.path) for op in OPERATIONS} == documented("openai")
    assert documented("openai") >= ISSUE_PATHS
    assert {path for _, path in documented("openai") if not path.startswith("/v1/")} == WITHOUT_PREFIX


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda op: f"{op.method} {op.path}")
def test_each_answers_in_openais_envelope(server: Served, operation: Operation) -> None:
    answer = provoke(server, operation)
    assert answer.status in (400, 501), answer.body
    assert set(answer.error) == {"code", "message", "type", "param"}


@pytest.mark.parametrize("path", ["/v1/nope", "/v1/completions/", "/v1"])
def test_unknown_paths_below_v1_are_told_so_in_openais_envelope(server: Served, path: str) -> None:
    answer = server.post(path, {})
    assert answer.status == 404
    assert answer.error["param"] is None


def test_the_two_completions_differ(server: Served) -> None:
    body = {"prompt": "Hello", "max_tokens": 2, "temperature": 0}
    assert server.post("/v1/completions", body).json["object"] == "text_completion"
    assert "object" not in server.post("/completions", body).json
