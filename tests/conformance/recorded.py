"""The recorded answers: the options behind each file, and a file played against a server."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parent.parent / "reference"
PLAY_TIMEOUT = 900.0

FOUR_SLOTS = ("-c", "8192", "-np", "4")
OPTIONS: dict[str, tuple[str, ...]] = {
    "completion": (*FOUR_SLOTS, "--metrics"),
    "openai": (*FOUR_SLOTS, "--metrics"),
    "utility": (*FOUR_SLOTS, "--metrics"),
    "stream": FOUR_SLOTS,
    "samplers": FOUR_SLOTS,
    "grammar": FOUR_SLOTS,
    "errors": FOUR_SLOTS,
    "context": ("-c", "256", "-np", "1"),
    "shift": ("-c", "256", "-np", "1", "--context-shift"),
    "embeddings": ("-c", "2048", "-np", "1", "--embeddings", "--pooling", "mean"),
    "embeddings-none": ("-c", "2048", "-np", "1", "--embeddings", "--pooling", "none"),
    "auth": ("-c", "2048", "-np", "1", "--api-key", "secret,other", "--metrics"),
    "special": ("-c", "2048", "-np", "1", "--special", "-r", "9"),
}
"""Command-line options of the server that each file was recorded from, beside the model and its alias."""

LATER = {
    # Operations and fields that are declared nowhere yet, or refused by name.
    "openai/chat-tools",
    "openai/chat-tool-required",
    "openai/responses",
    "openai/responses-previous-id",
    "openai/responses-stream",
    "openai/responses-input-tokens",
    "openai/messages",
    "openai/messages-stream",
    "openai/messages-no-messages",
    "openai/messages-count",
    "openai/transcriptions-unsupported",
    # The reference lets a JSON answer stand in a Markdown fence, which it then takes off.
    "grammar/chat-response-format-json-schema",
}
"""Cases that don't agree yet; one that begins to agree must leave this list."""


@dataclass(frozen=True, slots=True)
class Played:
    """How a file went: the number of its cases, and those that differ, each with the first difference."""

    n: int
    differing: dict[str, str]

    @property
    def n_agreeing(self) -> int:
        return self.n - len(self.differing)

    @property
    def unexpected(self) -> set[str]:
        """Cases that differ and shouldn't."""
        return set(self.differing) - LATER


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of one file, in the order in which they were recorded."""
    recorded: list[dict[str, Any]] = json.loads(capture(name).read_text())
    return recorded


def capture(name: str) -> Path:
    """The file ``name``."""
    return REFERENCE / "captures" / f"{name}.json"


def options(name: str) -> tuple[str, ...]:
    """All options of the server for one file but the model."""
    return ("--alias", "smollm2", *OPTIONS[name])


def play(url: str, name: str) -> Played:
    """Replay one file against the server at ``url``, which must have been started for it.

    Raises:
        RuntimeError: the replay itself failed.
    """
    command: list[str | Path] = [sys.executable, REFERENCE / "replay.py", url, capture(name)]
    run = subprocess.run(
        [*command, "--deviations", REFERENCE / "deviations.json"],
        capture_output=True,
        text=True,
        timeout=PLAY_TIMEOUT,
        check=False,
    )
    *differences, last = run.stdout.splitlines() or [""]
    differing = dict(line.split(": ", 1) for line in differences if line.startswith(f"{name}/"))
    n = len(cases(name))
    if last != f"replay: {n - len(differing)} of {n} agree":
        raise RuntimeError(f"replay.py failed: {run.stdout}{run.stderr}")
    return Played(n, differing)
