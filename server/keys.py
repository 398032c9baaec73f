"""API keys from the command line, the environment and a file: all of them count."""

from __future__ import annotations

import csv
from pathlib import Path

from mlxcel.generated.options import Options

from .options import SettingsError


def api_keys(options: Options) -> tuple[bytes, ...]:
    """Every key that is accepted. Keys are taken as they are written, spaces included.

    Raises:
        SettingsError: the key file can't be read.
    """
    listed = [key for text in options.api_key or () for key in next(csv.reader([text]), [])]
    return tuple(key.encode() for key in (*listed, *_from_file(options.api_key_file)) if key)


def _from_file(name: str | None) -> list[str]:
    if not name:
        return []
    try:
        lines = Path(name).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--api-key-file {name}: can't be read ({error})") from None
    return [line for line in lines if line and not line.startswith("#")]
