"""The command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mlxcel.generated.options import OPTION_TABLE
from mlxcel.server.main import resolved
from mlxcel.server.options import SPELLINGS, SettingsError, parse

CONSOLE_SCRIPT = Path(sys.executable).with_name("mlxcel-serve")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([CONSOLE_SCRIPT, *arguments], capture_output=True, text=True, timeout=120)


def test_every_option_of_the_reference_has_one_place() -> None:
    assert len(OPTION_TABLE) == 250
    assert len(SPELLINGS) == sum(len(o.spellings) + len(o.negated) for o in OPTION_TABLE)


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["-c", "512"], "ctx_size", 512),
        (["--ctx-size=512"], "ctx_size", 512),
        (["--temp", "0.5"], "temp", 0.5),
        (["--seed", "-1"], "seed", -1),
        (["--no-slots"], "slots", False),
        (["--embedding"], "embeddings", True),
        (["-r", "a", "-r", "b"], "reverse_prompt", ("a", "b")),
        (["--pooling", "last"], "pooling", "last"),
    ],
)
def test_spellings(arguments: list[str], name: str, value: object) -> None:
    assert getattr(parse(arguments, {}), name) == value


def test_the_environment_supplies_what_the_command_line_does_not() -> None:
    environment = {"LLAMA_ARG_CTX_SIZE": "512", "LLAMA_ARG_PORT": "1", "LLAMA_ARG_ENDPOINT_METRICS": "on"}
    options = parse(["--port", "2"], environment)
    assert (options.ctx_size, options.port, options.metrics) == (512, 2, True)
    assert not parse([], {"LLAMA_ARG_ENDPOINT_METRICS": "yes"}).metrics


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prot", "1"], "unknown option --prot; did you mean --port?"),
        (["--port"], "--port: a value is missing (PORT)"),
        (["--port", "x"], "--port x: must be an integer"),
        (["--port", "70000"], "--port 70000: must be at least 0 and at most 65535"),
        (["--pooling", "max"], "--pooling max: must be one of none, mean, cls, last"),
        (["--temp", "nan"], "--temp nan: must be"),
        (["--props=1"], "--props: takes no value"),
        (["stray"], "unknown option stray"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments: list[str], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(arguments, {})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_refused_options_say_why_and_inert_ones_are_accepted() -> None:
    with pytest.raises(SettingsError, match="--slot-save-path"):
        parse(["--slot-save-path", "x"], {})
    parse(["--mlock", "--numa", "distribute", "-ngl", "99"], {})


def test_options_that_stand_for_others(tmp_path: Path) -> None:
    grammar = tmp_path / "g.gbnf"
    grammar.write_text('root ::= "x"')
    options = resolved(parse(["--sampler-seq", "kt", "--grammar-file", str(grammar)], {}))
    assert (options.samplers, options.grammar) == ("kt", 'root ::= "x"')
    with pytest.raises(SettingsError, match="--samplers"):
        resolved(parse(["--samplers", "top_k;nonsense"], {}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["-m", "/nowhere/model.gguf"], "no such file"),
        (["--frobnicate"], "unknown option"),
        (["-c", "-5"], "must be at least"),
    ],
)
def test_start_up_ends_with_one_line_and_status_1(arguments: list[str], word: str) -> None:
    ended = run("--port", "0", *arguments)
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("mlxcel-serve: ")
    assert word in last
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_damaged_or_foreign_model_ends_start_up(tmp_path: Path, smollm2_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    with smollm2_path.open("rb") as whole:
        cut.write_bytes(whole.read(3_000_000))
    other = tmp_path / "other.gguf"
    other.write_bytes(b"not a model at all")
    for file in (cut, other):
        ended = run("--port", "0", "-m", str(file))
        assert ended.returncode == 1
        assert file.name in ended.stderr.strip().splitlines()[-1]
        assert "Traceback" not in ended.stderr


def test_help_names_every_supported_option() -> None:
    ended = run("--help")
    assert ended.returncode == 0
    for option in OPTION_TABLE:
        assert option.spellings[-1] in ended.stdout
