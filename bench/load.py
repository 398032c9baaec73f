"""The loads: completions by a number of clients at once, and small requests one after the other."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from dataclasses import dataclass
from typing import Any

from .client import Connection
from .server import HOST

WORDS = (
    *(
        "the",
        "old",
        "river",
        "runs",
        "past",
        "a",
        "quiet",
        "town",
        "where",
        "people",
        "meet",
        "every",
        "morning",
    ),
    *("to", "trade", "bread", "fish", "wool", "and", "news", "about", "ships", "that", "came", "over", "sea"),
    *("with", "strange", "music", "bright", "glass", "maps", "books", "seeds", "of", "unknown", "trees"),
)
N_WORDS = 64
N_PREDICT = 32


@dataclass(frozen=True, slots=True)
class Completions:
    """What a number of clients saw; rates count generated tokens and the prefill's time."""

    clients: int
    requests: int
    seconds: float
    tokens_per_second: float
    prompt_tokens: int
    first_token_p50: float
    first_token_p99: float
    token_seconds: float


@dataclass(frozen=True, slots=True)
class Small:
    """Requests per second of an operation that needs no model."""

    clients: int
    requests: int
    per_second: float
    latency_p50: float


def prompt(seed: int) -> str:
    """64 words, others for every seed, so that no prompt profits from another's cache."""
    return " ".join(random.Random(seed).choices(WORDS, k=N_WORDS))


async def completions(port: int, clients: int, rounds: int, seed: int) -> Completions:
    """``clients`` at once, each with ``rounds`` streamed completions, greedy, whatever the model wants to end."""
    waits: list[float] = []
    totals = [0, 0]
    spent: list[float] = []

    async def client(number: int) -> None:
        async with Connection(HOST, port) as connection:
            for turn in range(rounds):
                body: dict[str, Any] = {
                    "prompt": prompt(seed + 1000 * turn + number),
                    "n_predict": N_PREDICT,
                    "temperature": 0,
                    "ignore_eos": True,
                    "stream": True,
                }
                last, wait = await connection.post("/completion", body)
                waits.append(wait)
                totals[0] += last["tokens_predicted"]
                totals[1] += last["tokens_evaluated"]
                spent.append(last["timings"]["predicted_per_token_ms"] / 1000)

    begun = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(clients)))
    seconds = time.perf_counter() - begun
    return Completions(
        clients=clients,
        requests=len(waits),
        seconds=seconds,
        tokens_per_second=totals[0] / seconds,
        prompt_tokens=totals[1],
        first_token_p50=statistics.median(waits),
        first_token_p99=_percentile(waits, 0.99),
        token_seconds=statistics.median(spent),
    )


async def tokenize(port: int, clients: int, seconds: float) -> Small:
    """``/tokenize`` of 64 words as often as the clients can within ``seconds``."""
    waits: list[float] = []
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        async with Connection(HOST, port) as connection:
            body = {"content": prompt(number)}
            while time.perf_counter() < end:
                begun = time.perf_counter()
                await connection.post("/tokenize", body)
                waits.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(clients)))
    return Small(
        clients=clients,
        requests=len(waits),
        per_second=len(waits) / (time.perf_counter() - begun),
        latency_p50=statistics.median(waits),
    )


def _percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
