"""Imports go one way: the contracts of import-linter in pyproject.toml, and that they can fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def lint(config: Path) -> subprocess.CompletedProcess[str]:
    command = [
        str(Path(sys.executable).with_name("lint-imports")),
        "--no-logo",
        "--no-cache",
        "--config",
        str(config),
    ]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_imports_go_one_way() -> None:
    result = lint(ROOT / "pyproject.toml")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


@pytest.mark.parametrize(
    ("source", "layers"),
    [
        ("server imports handlers", ["mlxcel.handlers", "mlxcel.server"]),
        ("handlers import generated", ["mlxcel.generated", "mlxcel.handlers"]),
        ("handlers import the engine", ["mlxcel.engine", "mlxcel.handlers"]),
    ],
)
def test_a_layer_upside_down_is_seen(source: str, layers: list[str], tmp_path: Path) -> None:
    """The linter sees the project's real imports, so a green contract isn't one about nothing."""
    config = tmp_path / "importlinter.toml"
    quoted = ", ".join(f'"{layer}"' for layer in layers)
    config.write_text(
        f"""
[tool.importlinter]
root_packages = [{quoted}]

[[tool.importlinter.contracts]]
name = "Upside down: {source}"
type = "layers"
layers = [{quoted}]
"""
    )
    result = lint(config)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "1 broken" in result.stdout
