"""The generated tree of the golden specs, byte for byte, and that it works; README.md: how to renew it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codegen.__main__ import main
from codegen.pipeline import compile_specs

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"


def run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_output_equals_golden_files() -> None:
    files = compile_specs(HERE / "specs", None)
    golden = {
        path.relative_to(GOLDEN).as_posix(): path.read_text(encoding="utf-8")
        for path in GOLDEN.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sorted(files) == sorted(golden)
    for name, text in files.items():
        assert text == golden[name], f"{name} differs: see tests/codegen/README.md"


@pytest.mark.parametrize("seed", ["1", "2"])
def test_output_does_not_depend_on_the_hash_seed(tmp_path: Path, seed: str) -> None:
    done = run(
        *("-m", "codegen", "--no-handlers", "--specs", str(HERE / "specs"), "--out", str(tmp_path)),
        cwd=HERE.parent.parent,
        PYTHONHASHSEED=seed,
    )
    assert done.returncode == 0, done.stderr
    for path in sorted(tmp_path.rglob("*.*")):
        assert path.read_bytes() == (GOLDEN / path.relative_to(tmp_path)).read_bytes(), path


def test_generated_code_is_clean() -> None:
    options = ("--isolated", "--no-cache", "--line-length", "110", "--target-version", "py311", str(GOLDEN))
    first_party = ("--config", 'lint.isort.known-first-party = ["mlxcel"]')
    rules = (*first_party, "--select", "E,F,W,I,UP,B,SIM,RUF")
    for command in (("check", *rules, *options), ("format", "--check", *options)):
        done = run("-m", "ruff", *command, cwd=HERE)
        assert done.returncode == 0, done.stdout


MODELS = """
import msgspec
from mlxcel.generated.native import models, routes
from mlxcel.generated.native.fields import RULES

for operation in routes.OPERATIONS:
    if operation.request is not None:
        msgspec.json.Decoder(operation.request)
        assert operation.schema in RULES

body = {
    "prompt": ["a", 1, [2]],
    "speculative.n_min": 3,
    "logit_bias": [[1, -2.5], ["a", 1]],
    "lora": [{"id": 1}],
    "parts": ["all", {"type": "text", "text": "x"}, {"type": "token", "token": 1}],
}
request = msgspec.convert(body, models.CompletionRequest)
assert request.speculative_n_min == 3
assert request.n_predict == -1 and request.top_k == 40 and request.stop is None
assert request.lora == [models.Lora(id=1, scale=1.0)]
assert isinstance(request.parts[1], models.TextPart) and request.parts[1].type == "text"
assert msgspec.convert({"prompt": ""}, models.CompletionRequest).parts == ["all"]
try:
    msgspec.convert({"prompt": "", "temprature": 1}, models.CompletionRequest)
except msgspec.ValidationError as error:
    assert "temprature" in str(error)
else:
    raise AssertionError("an unknown field was accepted")

answer = models.Completion(index=0, content="", stopping_word=None)
assert msgspec.json.encode(answer) == b'{"index":0,"content":"","stopping_word":null,"object":"completion"}'
answer.probabilities, answer.settings_n_predict = [0.5], None
expected = b'{"index":0,"probabilities":[0.5],"content":"","stopping_word":null,"settings/n_predict":null'
assert msgspec.json.encode(answer).startswith(expected)
"""


def test_models_carry_requests_and_print_responses_in_order(importable: Path) -> None:
    done = run("-c", MODELS, cwd=importable, PYTHONPATH=str(importable))
    assert done.returncode == 0, done.stderr


HANDLERS = """
from collections.abc import AsyncIterator
from mlxcel.generated.native import models, routes

class Context: ...

@routes.completion_create
async def create(
    request: models.CompletionRequest, ctx: Context
) -> models.Completion | AsyncIterator[models.CompletionChunk]:
    raise NotImplementedError

@routes.slots_act
async def act(ctx: Context, *, id_slot: int, action: str = "save", class_: str | None = None) -> str:
    return action
"""


def test_protocols_make_the_type_checker_compare_handlers(importable: Path) -> None:
    wrong = (
        ("id_slot: int", "id_slot: str"),
        ("request: models.CompletionRequest", "request: models.EmbeddingRequest"),
        ("-> models.Completion |", "-> models.Lora |"),
    )
    (importable / "right.py").write_text(HANDLERS, encoding="utf-8")
    for number, (old, new) in enumerate(wrong):
        assert old in HANDLERS
        (importable / f"wrong{number}.py").write_text(HANDLERS.replace(old, new), encoding="utf-8")
    options = ("--strict", "--namespace-packages", "--explicit-package-bases", "--no-color-output")
    names = ["right.py", *(f"wrong{number}.py" for number in range(len(wrong))), "mlxcel/generated"]
    done = run("-m", "mypy", *options, *names, cwd=importable, MYPYPATH=str(importable))
    faults = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert sorted(line.split(":")[0] for line in faults) == ["wrong0.py", "wrong1.py", "wrong2.py"], (
        done.stdout
    )


def test_check_reports_drift_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--no-handlers", "--specs", str(HERE / "specs"), "--out", str(tmp_path)]
    assert main([*options, "--check"]) == 1
    assert "openapi.json: is missing. Run make codegen" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    assert main(options) == 0
    assert f"wrote {tmp_path.as_posix()}/native/models.py" in capsys.readouterr().out
    assert main([*options, "--check"]) == 0
    assert main(options) == 0
    assert capsys.readouterr().out.splitlines()[1] == "unchanged"
    with (tmp_path / "options.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    assert main([*options, "--check"]) == 1
    assert "options.py: differs" in capsys.readouterr().out


def test_files_of_a_surface_that_is_gone_are_removed_and_others_are_not(specs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--no-handlers", "--specs", str(specs), "--out", str(out)]
    assert main(options) == 0
    (out / "openai" / "mine.py").write_text("# not generated\n", encoding="utf-8")
    (specs / "openai.yaml").unlink()
    assert main([*options, "--check"]) == 1
    assert main(options) == 0
    assert [path.name for path in (out / "openai").iterdir()] == ["mine.py"]
