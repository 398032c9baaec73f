"""Copies of specs to break, and the golden tree as the package ``mlxcel.generated`` of a subprocess."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
GOLDEN_SPECS = HERE / "specs"
GOLDEN = HERE / "golden"

Replace = Callable[[str, str, str], None]


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    """A copy of the golden specs, called ``specs`` as in the checkout."""
    return Path(shutil.copytree(GOLDEN_SPECS, tmp_path / "specs"))


@pytest.fixture
def replace(specs: Path) -> Replace:
    """Replaces a text that must be in a file of the copy, once."""

    def edit(file: str, old: str, new: str) -> None:
        path = specs / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{old!r} isn't in {file}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    return edit


@pytest.fixture
def importable(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH and MYPYPATH in which ``mlxcel.generated`` is the golden tree."""
    shutil.copytree(GOLDEN, tmp_path / "path" / "mlxcel" / "generated")
    return tmp_path / "path"
