"""``response_fields``: the keys of an answer that a client wants, by path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

MISSING = object()


def projected(value: msgspec.Struct, paths: Sequence[str]) -> dict[str, Any]:
    """The values at ``paths``, each under its whole path; what isn't there is left out."""
    whole = msgspec.to_builtins(value)
    found = {path: _at(whole, path) for path in paths}
    return {path: part for path, part in found.items() if part is not MISSING}


def _at(whole: Any, path: str) -> Any:
    for step in path.split("/"):
        if not isinstance(whole, dict) or step not in whole:
            return MISSING
        whole = whole[step]
    return whole
