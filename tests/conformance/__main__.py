"""The command: mlxcel-serve once for each file of recorded answers, which is played against it.

``python -m tests.conformance [FILE...]`` prints one line a file and a total, and below a line the cases that differ;
exits with 1 when a case differs that isn't known to.
"""

from __future__ import annotations

import argparse
import sys

from bench.server import HOST, running

from .recorded import LATER, OPTIONS, Played, options, play


def main() -> int:
    """Play the files named on the command line, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance")
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"of {', '.join(OPTIONS)}; all by default")
    chosen = parser.parse_args().files or list(OPTIONS)
    unknown = [name for name in chosen if name not in OPTIONS]
    if unknown:
        parser.error(f"no file {', '.join(unknown)}")
    total = Played(0, {})
    for name in chosen:
        with running([*options(name), "-lv", "2"]) as server:
            played = play(f"http://{HOST}:{server.port}", name)
        print_line(name, played)
        total = Played(total.n + played.n, total.differing | played.differing)
    print_line("total", total, cases=False)
    return 1 if total.unexpected else 0


def print_line(name: str, played: Played, *, cases: bool = True) -> None:
    """One line of the table, and the differing cases below it."""
    print(f"{name:<16} {played.n_agreeing:>3} of {played.n:>3} agree", flush=True)
    if cases:
        for case, why in played.differing.items():
            note = " (known)" if case in LATER else ""
            print(f"    {case}{note}: {why}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
