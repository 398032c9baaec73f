"""What a completion answers, where the recordings are accepted by status alone or say nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mlxcel.engine.loading import LoadedModel
from tests.support.serving import Served, serving

FRANCE = {"prompt": "The capital of France is", "n_predict": 8, "temperature": 0}


@pytest.fixture(scope="module")
def real(smollm2: LoadedModel) -> Iterator[Served]:
    with serving(smollm2, "--alias", "smollm2", "-c", "2048", "-np", "2") as running:
        yield running


def test_paris(real: Served) -> None:
    answer = real.post("/completion", {**FRANCE, "n_predict": 16}).json
    assert answer["content"].startswith(" Paris.")
    assert answer["stop_type"] == "limit"


def test_empty_stop_strings_are_ignored(real: Served) -> None:
    assert (
        real.post("/completion", {**FRANCE, "stop": ["", "zzz"]}).json["content"]
        == " Paris.\n\nThe answer is:"
    )


def test_an_empty_prompt_answers_nothing(server: Served) -> None:
    answer = server.post("/completion", {"prompt": ""}).json
    assert (answer["content"], answer["tokens_predicted"], answer["tokens_cached"]) == ("", 0, 0)
    assert answer["stop_type"] == "none"


def test_several_prompts_in_a_stream_are_told_apart_by_index(real: Served) -> None:
    prompts = [FRANCE["prompt"], "Once upon a time"]
    whole = real.post("/completion", {**FRANCE, "prompt": prompts}).json
    events = real.post("/completion", {**FRANCE, "prompt": prompts, "stream": True}).events
    for index in (0, 1):
        mine = [event for event in events if event["index"] == index]
        assert "".join(event["content"] for event in mine) == whole[index]["content"]
        assert [event["stop"] for event in mine] == [False] * 8 + [True]


def test_a_cut_character_is_flushed_alike_in_bodies_and_streams(real: Served) -> None:
    body = {"prompt": "日本語の文章：", "n_predict": 16, "temperature": 0}
    whole = real.post("/completion", body).json["content"]
    streamed = "".join(
        event["content"] for event in real.post("/completion", {**body, "stream": True}).events
    )
    assert streamed == whole
    assert whole.endswith("\ufffd")


def test_the_native_stream_ends_with_the_object_and_no_done(real: Served) -> None:
    events = real.post("/completion", {**FRANCE, "stream": True}).events
    assert "[DONE]" not in events
    assert events[-1]["stop"] is True
    assert "generation_settings" in events[-1]


def test_copies_differ_by_their_seed_and_share_the_prompt(real: Served) -> None:
    body = {"prompt": "Once upon a time", "n_predict": 12, "temperature": 1.5, "seed": 7, "n_cmpl": 2}
    first, second = real.post("/completion", body).json
    assert [first["generation_settings"]["seed"], second["generation_settings"]["seed"]] == [7, 8]
    assert first["content"] != second["content"]
    alone = real.post("/completion", {**body, "n_cmpl": 1, "seed": 8}).json
    assert alone["content"] == second["content"]


def test_a_batch_gives_each_what_it_gets_alone(real: Served) -> None:
    prompts = ["1, 2, 3, 4,", FRANCE["prompt"], "The quick brown fox", "def f():\n", "Once upon a time"]
    body = {"n_predict": 12, "temperature": 0, "cache_prompt": False, "return_tokens": True}
    together = real.post("/completion", {**body, "prompt": prompts}).json
    for prompt, answer in zip(prompts, together, strict=True):
        assert real.post("/completion", {**body, "prompt": prompt}).json["tokens"] == answer["tokens"]


def test_metrics_count_what_was_done(server: Served) -> None:
    def value(name: str) -> float:
        lines = server.get("/metrics").body.decode().splitlines()
        return float(next(line for line in lines if line.startswith(f"llamacpp:{name} ")).split()[1])

    before = value("tokens_predicted_total")
    server.post("/completion", {"prompt": "Hello", "n_predict": 5, "ignore_eos": True})
    assert value("tokens_predicted_total") == before + 5
    assert value("requests_processing") == 0


def test_the_landing_page_says_what_runs(server: Served) -> None:
    page = server.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert b"tiny" in page.body


@pytest.mark.parametrize(
    "fields",
    [
        {"presence_penalty": -3e38, "frequency_penalty": -3e38},
        {"grammar": "root ::= root"},
        {"json_schema": {"$ref": "#"}},
        {"logit_bias": [["x", "y"]]},
        {"logit_bias": [[True, 1]]},
        {"logit_bias": [[1.5, 1]]},
        {"logit_bias": {"99999999999999999999": 1}},
    ],
)
def test_settings_that_cannot_work_are_the_clients_fault(server: Served, fields: dict[str, object]) -> None:
    answer = server.post("/completion", {"prompt": "Hello", "n_predict": 4, **fields})
    assert (answer.status, answer.error["type"]) == (400, "invalid_request_error")


def test_template_arguments_may_say_whether_the_answer_begins(server: Served) -> None:
    body = {
        "messages": [{"role": "user", "content": "x"}],
        "chat_template_kwargs": {"add_generation_prompt": False},
    }
    assert server.post("/apply-template", body).json["prompt"] == "<|im_start|>user\nx<|im_end|>\n"
