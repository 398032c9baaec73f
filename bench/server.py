"""A server process of our own, on a port that is free."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
START_TIMEOUT = 300.0


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers; ``start_seconds`` is from launch until it was healthy."""

    port: int
    pid: int
    start_seconds: float

    def peak_memory(self) -> int | None:
        """Largest resident size so far, in bytes; None where the system doesn't tell (no /proc)."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return None
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        return int(found[1]) * 1024 if found else None


@contextmanager
def running(
    arguments: Sequence[str], scripts: Path | None = None, cwd: Path | None = None
) -> Iterator[Server]:
    """Start mlxcel-serve with ``arguments`` in ``cwd``, and stop it at the end.

    ``scripts`` is the folder of the program; this environment's by default.

    Raises:
        RuntimeError: it ended, or wasn't healthy in time.
    """
    port = _free_port()
    serve = (scripts or Path(sys.executable).parent) / "mlxcel-serve"
    begun = time.perf_counter()
    process = subprocess.Popen(
        [str(serve), "--host", HOST, "--port", str(port), *arguments], stdout=subprocess.DEVNULL, cwd=cwd
    )
    try:
        while not _healthy(port):
            if process.poll() is not None:
                raise RuntimeError(f"mlxcel-serve ended with status {process.returncode}")
            if time.perf_counter() - begun > START_TIMEOUT:
                raise RuntimeError(f"mlxcel-serve was not healthy within {START_TIMEOUT:.0f} s")
            time.sleep(0.02)
        yield Server(port, process.pid, time.perf_counter() - begun)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
