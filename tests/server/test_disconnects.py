"""A client that goes away frees its slot, wherever its request has got to."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from mlxcel.engine.loading import LoadedModel
from tests.support.serving import Served, serving

LONG = {"prompt": "Once upon a time", "n_predict": 900, "ignore_eos": True, "temperature": 0}


@pytest.fixture(scope="module")
def one_slot(tiny_model: LoadedModel) -> Iterator[Served]:
    with serving(tiny_model, "-c", "1024", "-np", "1") as running:
        yield running


def busy(server: Served) -> bool:
    return any(slot.is_processing for slot in server.engine.slots())


def wait_until_busy(server: Served) -> None:
    end = time.monotonic() + 10
    while not busy(server):
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", ["/completion", "/v1/completions"])
def test_a_running_request_ends_with_its_client(one_slot: Served, path: str, stream: bool) -> None:
    before = one_slot.engine.counters().cancelled
    connection = one_slot.connect()
    connection.request("POST", path, json.dumps({**LONG, "stream": stream}))
    wait_until_busy(one_slot)
    connection.close()
    one_slot.wait_until_idle()
    assert one_slot.engine.counters().cancelled == before + 1


def test_a_waiting_request_ends_with_its_client(one_slot: Served) -> None:
    first, second = one_slot.connect(), one_slot.connect()
    first.request("POST", "/completion", json.dumps(LONG))
    wait_until_busy(one_slot)
    second.request("POST", "/completion", json.dumps(LONG))
    time.sleep(0.1)
    before = one_slot.engine.counters().cancelled
    second.close()
    end = time.monotonic() + 10
    while one_slot.engine.counters().cancelled == before and busy(one_slot):
        assert time.monotonic() < end
        time.sleep(0.005)
    first.close()
    one_slot.wait_until_idle()


def test_all_copies_of_a_request_end_with_its_client(server: Served) -> None:
    connection = server.connect()
    connection.request("POST", "/completion", json.dumps({**LONG, "n_predict": 400, "n_cmpl": 2}))
    wait_until_busy(server)
    connection.close()
    server.wait_until_idle()


def test_the_first_frame_leaves_before_the_last_token(one_slot: Served) -> None:
    connection = one_slot.connect()
    connection.request("POST", "/completion", json.dumps({**LONG, "stream": True}))
    response = connection.getresponse()
    assert response.readline().startswith(b"data: ")
    assert busy(one_slot)
    connection.close()
    one_slot.wait_until_idle()
