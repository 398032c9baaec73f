"""The command: ``python -m bench [-m MODEL] [--clients 1,4,16] [--rounds N] [--smoke]``."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import platform
import statistics
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from . import load
from .server import Server, running

RESULTS = Path(__file__).resolve().parent / "results"


def main() -> None:
    """Measure, print a table, save the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("-m", "--model", help="as mlxcel-serve takes it; the embedded model by default")
    parser.add_argument(
        "--clients", default="1,4,16", help="numbers of clients at once (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=2, help="completions a client (default: %(default)s)")
    parser.add_argument(
        "--repeat",
        type=int,
        default=3,
        help="runs of each, of which the median counts (default: %(default)s)",
    )
    parser.add_argument(
        "--smoke", action="store_true", help="the least that runs everything once; its figures mean nothing"
    )
    options = parser.parse_args()
    counts = [int(count) for count in options.clients.split(",")]
    rounds, repeat = (1, 1) if options.smoke else (options.rounds, options.repeat)
    arguments = [*(["-m", options.model] if options.model else []), "-lv", "2", "-np", str(max(counts))]
    with running([*arguments, "-c", str(max(counts) * 512)]) as server:
        report = asyncio.run(measure(server, counts, rounds, repeat, 0.5 if options.smoke else 5.0))
    show(report, Console())
    print(f"saved {save(report)}")


async def measure(
    server: Server, counts: list[int], rounds: int, repeat: int, seconds: float
) -> dict[str, Any]:
    """All loads, one after the other; of repeated runs the one with the median rate, and the spread."""
    first = await load.completions(server.port, 1, 1, seed=9_000_000)
    rows = []
    for count in counts:
        runs = [
            await load.completions(server.port, count, rounds, seed=1_000_000 * turn + 10_000 * count)
            for turn in range(repeat)
        ]
        rates = [run.tokens_per_second for run in runs]
        middle = statistics.median_low(rates)
        (run, *_) = [run for run in runs if run.tokens_per_second == middle]
        rows.append({**dataclasses.asdict(run), "spread": [min(rates), max(rates)]})
    small = [dataclasses.asdict(await load.tokenize(server.port, count, seconds)) for count in counts]
    return {
        "machine": {"processor": processor(), "cores": os.cpu_count(), "system": platform.platform()},
        "versions": {name: metadata.version(name) for name in ("mlxcel", "mlx", "mlx-lm")},
        "prompt_words": load.N_WORDS,
        "n_predict": load.N_PREDICT,
        "start_seconds": server.start_seconds,
        "first_request_seconds": first.seconds,
        "peak_memory_bytes": server.peak_memory(),
        "completion": rows,
        "tokenize": small,
    }


def processor() -> str:
    """The processor's name, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine()
    )


def show(report: dict[str, Any], console: Console) -> None:
    """Print the figures."""
    table = Table(title=f"{report['prompt_words']}-word prompts, {report['n_predict']} tokens each")
    for title in ("clients", "tokens/s", "spread", "first token p50", "p99", "token", "/tokenize a second"):
        table.add_column(title, justify="right")
    for row, small in zip(report["completion"], report["tokenize"], strict=True):
        low, high = row["spread"]
        table.add_row(
            str(row["clients"]),
            f"{row['tokens_per_second']:.1f}",
            f"{low:.1f}-{high:.1f}",
            f"{1000 * row['first_token_p50']:.0f} ms",
            f"{1000 * row['first_token_p99']:.0f} ms",
            f"{1000 * row['token_seconds']:.1f} ms",
            f"{small['per_second']:.0f}",
        )
    console.print(table)
    memory = report["peak_memory_bytes"]
    console.print(
        f"start-up {report['start_seconds']:.1f} s, first request {report['first_request_seconds']:.2f} s, "
        f"peak memory {'unknown' if memory is None else f'{memory / 2**20:.0f} MiB'}; "
        f"{report['machine']['cores']} cores, {report['machine']['processor']}",
        highlight=False,
    )


def save(report: dict[str, Any]) -> Path:
    """Write the figures beside those of earlier runs."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
