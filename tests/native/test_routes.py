"""Native paths are answered by the native surface, by every method they have, and by no other."""

from __future__ import annotations

import pytest

from mlxcel.generated.runtime import Operation
from tests.support.routes import concrete, documented, operations, provoke
from tests.support.serving import Served

OPERATIONS = operations("native")
ISSUE_PATHS = {
    ("POST", "/completion"),
    ("POST", "/completions"),
    ("POST", "/tokenize"),
    ("POST", "/detokenize"),
    ("POST", "/apply-template"),
    ("POST", "/embedding"),
    ("POST", "/embeddings"),
    ("GET", "/health"),
    ("GET", "/v1/health"),
    ("GET", "/props"),
    ("POST", "/props"),
    ("GET", "/slots"),
    ("GET", "/metrics"),
    ("GET", "/models"),
}


def test_the_table_is_the_document() -> None:
    assert {(op.method, op.path) for op in OPERATIONS} == documented("native")
    assert documented("native") >= ISSUE_PATHS
    assert not documented("native") & documented("openai")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda op: f"{op.method} {op.path}")
def test_each_answers_in_the_native_envelope(server: Served, operation: Operation) -> None:
    answer = provoke(server, operation)
    assert answer.status in (400, 501), answer.body
    assert set(answer.error) == {"code", "message", "type"}


@pytest.mark.parametrize("path", sorted({op.path for op in OPERATIONS}))
def test_other_methods_are_told_what_is_allowed(server: Served, path: str) -> None:
    methods = {op.method for op in OPERATIONS if op.path == path}
    allowed = methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
    for method in sorted({"GET", "POST", "PUT", "DELETE", "PATCH"} - methods):
        answer = server.request(method, concrete(path))
        assert answer.status == 405
        assert set(answer.headers["allow"].split(", ")) == allowed
        assert answer.error["code"] == 405


def test_completions_without_prefix_answers_the_native_object(server: Served) -> None:
    body = {"prompt": "Hello", "n_predict": 2, "temperature": 0}
    one, other = server.post("/completion", body).json, server.post("/completions", body).json
    assert list(one) == list(other)
    assert one["content"] == other["content"]
    assert "choices" not in one


@pytest.mark.parametrize("path", ["/completion/", "//completion", "/health/", "/nope", "/v2/models"])
def test_unknown_paths_are_not_redirected(server: Served, path: str) -> None:
    answer = server.get(path)
    assert answer.status == 404
    assert answer.error["type"] == "not_found_error"


def test_head_answers_like_get_without_a_body(server: Served) -> None:
    head, get = server.request("HEAD", "/health"), server.get("/health")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(get.body))
