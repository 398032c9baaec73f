"""Clients of every kind at once: nobody gets another's tokens, nothing stays behind."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator

import pytest

from mlxcel.engine.loading import LoadedModel
from tests.support.serving import Served, serving

CLIENTS, ROUNDS = 16, 12
PROMPTS = [
    "The quick brown fox",
    "Once upon a time",
    "user assistant",
    "1, 2, 3,",
    "def main():",
    "Hello, world!",
]


@pytest.fixture(scope="module")
def busy(tiny_model: LoadedModel) -> Iterator[Served]:
    with serving(tiny_model, "-c", "1024", "-np", "4", "--embeddings") as running:
        yield running


def body(prompt: str, n: int, **more: object) -> dict[str, object]:
    return {"prompt": prompt, "n_predict": n, "temperature": 0, "ignore_eos": True, **more}


class Client(threading.Thread):
    """Does one thing after another; ``faults`` says what came out wrong."""

    def __init__(self, server: Served, solo: dict[tuple[str, int], str], seed: int) -> None:
        super().__init__()
        self._server, self._solo, self._chance = server, solo, random.Random(seed)
        self.faults: list[str] = []

    def run(self) -> None:
        for _ in range(ROUNDS):
            try:
                self._chance.choice([self._whole, self._stream, self._leave, self._bad, self._embed])()
            except Exception as error:
                self.faults.append(repr(error))

    def _pick(self) -> tuple[str, int]:
        return self._chance.choice(list(self._solo))

    def _whole(self) -> None:
        prompt, n = self._pick()
        self._compare(prompt, n, self._server.post("/completion", body(prompt, n)).json["content"])

    def _stream(self) -> None:
        prompt, n = self._pick()
        events = self._server.post("/completion", body(prompt, n, stream=True)).events
        self._compare(prompt, n, "".join(event["content"] for event in events))

    def _compare(self, prompt: str, n: int, text: str) -> None:
        if text != self._solo[prompt, n]:
            self.faults.append(f"{prompt!r}: {text!r} is not {self._solo[prompt, n]!r}")

    def _leave(self) -> None:
        connection = self._server.connect()
        connection.request("POST", "/completion", json.dumps(body("Once upon", 500, stream=True)))
        if self._chance.random() < 0.5:
            connection.getresponse().readline()
        connection.close()

    def _bad(self) -> None:
        if (status := self._server.post("/completion", b'{"prompt": ').status) != 400:
            self.faults.append(f"status {status} for a broken body")

    def _embed(self) -> None:
        if (status := self._server.post("/embedding", {"input": "Hello"}).status) != 200:
            self.faults.append(f"status {status} for an embedding")


def test_nobody_gets_anothers_tokens_and_nothing_stays_behind(busy: Served) -> None:
    solo = {
        (prompt, n): busy.post("/completion", body(prompt, n, cache_prompt=False)).json["content"]
        for prompt in PROMPTS
        for n in (3, 17, 40)
    }
    clients = [Client(busy, solo, seed) for seed in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(120)
        assert not client.is_alive()
    assert [fault for client in clients for fault in client.faults] == []
    busy.wait_until_idle()
    counters = busy.engine.counters()
    assert counters.requests_processing == counters.requests_deferred == 0
    assert busy.get("/health").status == 200
