"""``mlxcel-serve`` as a process: it starts, says so, and ends when told to."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CONSOLE_SCRIPT = Path(sys.executable).with_name("mlxcel-serve")
READY = re.compile(r"mlxcel serves (?P<name>\S+) at http://127\.0\.0\.1:(?P<port>\d+) ")


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    process = subprocess.Popen(
        [CONSOLE_SCRIPT, "--port", "0", "-np", "1", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        ready = READY.match(line)
        assert ready is not None, line
        yield process, int(ready["port"])
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_what_is_running(tiny_model_dir: Path, number: signal.Signals) -> None:
    with started("-m", str(tiny_model_dir)) as (process, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = {"prompt": "Once upon", "n_predict": 300, "ignore_eos": True, "stream": True}
        connection.request("POST", "/completion", json.dumps(body))
        response = connection.getresponse()
        response.readline()
        process.send_signal(number)
        assert b'"stop":true' in response.read()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert errors == ""


@pytest.mark.slow
def test_a_taken_port_is_told_in_one_line(tiny_model_dir: Path) -> None:
    with started("-m", str(tiny_model_dir)) as (_, port):
        second = subprocess.run(
            [CONSOLE_SCRIPT, "--port", str(port)], capture_output=True, text=True, timeout=60
        )
    assert second.returncode == 1
    assert second.stderr.startswith(f"mlxcel-serve: can't listen on 127.0.0.1:{port}")
    assert second.stderr.count("\n") == 1
