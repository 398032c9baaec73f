"""The event loop never waits for the model."""

from __future__ import annotations

import json
import statistics
import time

import pytest

from mlxcel.engine.loading import LoadedModel
from tests.support.serving import serving


@pytest.mark.slow
def test_health_answers_while_a_long_prompt_is_evaluated(smollm2: LoadedModel) -> None:
    with serving(smollm2, "-np", "1", "-c", "8192") as server:
        connection = server.connect()
        connection.request("POST", "/completion", json.dumps({"prompt": "word " * 4000, "n_predict": 1}))
        end = time.monotonic() + 20
        while not any(slot.n_prompt_tokens_processed for slot in server.engine.slots()):
            assert time.monotonic() < end
            time.sleep(0.01)
        times = []
        for _ in range(20):
            begun = time.perf_counter()
            assert server.get("/health").status == 200
            times.append(time.perf_counter() - begun)
        [slot] = server.engine.slots()
        assert slot.is_processing
        connection.close()
        server.wait_until_idle(60)
    # The median, since another process may take the machine for a moment.
    assert statistics.median(times) < 0.05, times
