"""OpenAI answers where the recordings are accepted by status alone or say nothing."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator

import pytest

from mlxcel.engine.loading import LoadedModel
from tests.support.serving import Served, serving

CHAT = {"messages": [{"role": "user", "content": "Say hi."}], "temperature": 0, "max_tokens": 6}
TEXT = {"prompt": "The capital of France is", "temperature": 0, "max_tokens": 4}


@pytest.fixture(scope="module")
def real(smollm2: LoadedModel) -> Iterator[Served]:
    with serving(smollm2, "--alias", "smollm2,org/smollm2", "-c", "2048", "-np", "2") as running:
        yield running


@pytest.fixture(scope="module")
def embedding(tiny_model: LoadedModel) -> Iterator[Served]:
    with serving(tiny_model, "-np", "1", "--embeddings") as running:
        yield running


def test_a_chat_stream_is_text_finish_usage_done(real: Served) -> None:
    body = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    *chunks, usage, done = real.post("/v1/chat/completions", body).events
    assert done == "[DONE]"
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 6)
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": None}
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    streamed = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
    whole = real.post("/v1/chat/completions", CHAT).json
    assert streamed == whole["choices"][0]["message"]["content"]


def test_usage_is_streamed_only_when_asked_for(real: Served) -> None:
    events = real.post("/v1/chat/completions", {**CHAT, "stream": True}).events
    assert not any("usage" in event for event in events[:-1])


def test_usage_sums_choices_and_counts_each_prompt_once(real: Served) -> None:
    two = real.post("/v1/completions", {**TEXT, "n": 2}).json["usage"]
    assert (two["completion_tokens"], two["prompt_tokens"]) == (8, 5)
    many = real.post("/v1/completions", {**TEXT, "prompt": [TEXT["prompt"], "Once upon a time"]}).json[
        "usage"
    ]
    assert (many["completion_tokens"], many["prompt_tokens"]) == (8, 9)


def test_legacy_logprobs_stand_beside_the_references(real: Served) -> None:
    choice = real.post("/v1/completions", {**TEXT, "logprobs": 2}).json["choices"][0]
    logprobs = choice["logprobs"]
    assert "".join(logprobs["tokens"]) == choice["text"]
    assert logprobs["text_offset"] == [0, 6, 7, 8]
    assert logprobs["token_logprobs"] == pytest.approx([entry["logprob"] for entry in logprobs["content"]])
    assert all(len(top) == 2 for top in logprobs["top_logprobs"])


def test_a_json_object_is_enforced(real: Served) -> None:
    body = {**CHAT, "max_tokens": 40, "response_format": {"type": "json_object"}}
    assert real.post("/v1/chat/completions", body).json["choices"][0]["message"]["content"].startswith("{")


@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        ("/v1/completions", {**TEXT, "suffix": "x"}, 400, "suffix"),
        ("/v1/completions", {**TEXT, "frobnicate": 1}, 400, "frobnicate"),
        ("/v1/chat/completions", {"messages": []}, 400, "messages"),
        ("/v1/chat/completions", {"messages": [{"role": "alien", "content": "a"}]}, 400, "messages[0].role"),
        ("/v1/chat/completions", {**CHAT, "top_logprobs": 2}, 400, "top_logprobs"),
        ("/v1/completions", {**TEXT, "best_of": 3}, 501, "best_of"),
    ],
)
def test_refusals_name_the_field(
    real: Served, path: str, body: dict[str, object], status: int, param: str
) -> None:
    answer = real.post(path, body)
    assert (answer.status, answer.error["param"]) == (status, param)


def test_an_image_is_not_supported(real: Served) -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    answer = real.post("/v1/chat/completions", {"messages": [{"role": "user", "content": [part]}]})
    assert (answer.status, answer.error["type"]) == (501, "not_supported_error")


def test_models_may_have_slashes_in_their_names(real: Served) -> None:
    assert real.get("/v1/models/org/smollm2").json["id"] == "smollm2"
    answer = real.get("/v1/models/org/other")
    assert (answer.status, answer.error["param"]) == (404, "model")


def test_embeddings_as_numbers_and_as_the_sdks_ask_for_them(embedding: Served) -> None:
    numbers = embedding.post("/v1/embeddings", {"input": ["a", "b c"]}).json
    encoded = embedding.post("/v1/embeddings", {"input": ["a", "b c"], "encoding_format": "base64"}).json
    for plain, packed in zip(numbers["data"], encoded["data"], strict=True):
        raw = base64.b64decode(packed["embedding"])
        assert struct.unpack(f"<{len(raw) // 4}f", raw) == pytest.approx(plain["embedding"])
        assert sum(x * x for x in plain["embedding"]) == pytest.approx(1, abs=1e-4)
