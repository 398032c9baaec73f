"""Bodies and headers as clients really send them, and as they shouldn't."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mlxcel.engine.loading import LoadedModel
from tests.support.serving import Served, serving

BODY = b'{"prompt": "Hello", "n_predict": 1}'


@pytest.mark.parametrize(
    "content_type",
    [None, "application/json", "APPLICATION/JSON", "application/x-www-form-urlencoded", "text/plain", "json", "",
     "application/json; charset=bogus", "application/vnd.x+json"],
)  # fmt: skip
def test_json_is_read_under_any_content_type(server: Served, content_type: str | None) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    assert server.post("/completion", BODY, headers=headers).status == 200


@pytest.mark.parametrize(
    "raw",
    [b"", b"  ", b"{", b"[1,2]", b'"x"', b"null", b"NaN", b'{"prompt": "a", "temperature": NaN}',
     b'{"prompt": "a", "temperature": 1e400}', b'{"prompt": "\xff"}', b'{"prompt": "\\ud800"}',
     b'{"prompt":' + b"[" * 100_000, b'{"prompt": "a", "seed": ' + b"9" * 5000 + b"}", b"\xef\xbb\xbf{}"],
    ids=range(14),
)  # fmt: skip
@pytest.mark.parametrize("path", ["/completion", "/v1/completions"])
def test_what_is_no_json_object_is_a_400(server: Served, path: str, raw: bytes) -> None:
    answer = server.post(path, raw)
    assert answer.status == 400
    assert answer.error["type"] == "invalid_request_error"


def test_a_chunked_body_needs_no_length(server: Served) -> None:
    connection = server.connect()
    connection.request("POST", "/completion", iter([BODY[:9], BODY[9:]]), encode_chunked=True)
    assert connection.getresponse().status == 200


@pytest.fixture(scope="module")
def small(tiny_model: LoadedModel) -> Iterator[Served]:
    with serving(tiny_model, "-np", "1", "--max-body-size", "2000") as running:
        yield running


def test_a_body_over_the_limit_is_a_413_however_it_comes(small: Served) -> None:
    large = b'{"prompt": "' + b"a" * 3000 + b'"}'
    assert small.post("/completion", large).status == 413
    connection = small.connect()
    connection.request("POST", "/completion", iter([large[:1500], large[1500:]]), encode_chunked=True)
    assert connection.getresponse().status == 413


def test_unknown_query_parameters_are_named(server: Served) -> None:
    answer = server.get("/slots?fail_on_no_slots=1")
    assert answer.status == 400
    assert "did you mean 'fail_on_no_slot'" in answer.error["message"]


def test_every_answer_has_a_request_id(server: Served) -> None:
    assert server.get("/health", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"] == "abc-1"
    assert len(server.get("/nope").headers["x-request-id"]) == 32


def test_requests_wait_for_the_model(tiny_model: LoadedModel) -> None:
    with serving(tiny_model, "-np", "1", loaded=False) as loading:
        for path in ("/health", "/props"):
            answer = loading.get(path)
            assert answer.status == 503
            assert answer.error["message"] == "Loading model"
            assert answer.error["type"] == "unavailable_error"
