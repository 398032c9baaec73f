"""The command line: ``python -m codegen [--check] [--no-handlers] [--specs DIR] [--out DIR]``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from codegen.document import SpecError
from codegen.output import drift, write
from codegen.pipeline import compile_specs

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: list[str] | None = None) -> int:
    """Compiles the specs; returns the exit status: 1 on a spec error, or on drift with ``--check``."""
    parser = argparse.ArgumentParser(
        prog="python -m codegen", description="Compiles specs/*.yaml into generated/."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file would change")
    parser.add_argument("--no-handlers", action="store_true", help="don't compare operations with handlers/")
    parser.add_argument(
        "--specs", type=Path, default=ROOT / "specs", metavar="DIR", help="folder of the specs"
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "generated", metavar="DIR", help="folder to write to"
    )
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    try:
        files = compile_specs(options.specs, None if options.no_handlers else ROOT)
    except SpecError as error:
        print(error, file=sys.stderr)
        count = len(error.problems)
        print(f"{count} problem{'s' if count > 1 else ''}; nothing was written", file=sys.stderr)
        return 1
    if options.check:
        lines = drift(files, options.out)
        print("\n".join(lines) or f"unchanged: {len(files)} files match the specs")
        return 1 if lines else 0
    lines = write(files, options.out)
    seconds = time.perf_counter() - started
    print("\n".join(lines) or "unchanged")
    print(f"{len(files)} files, {len(lines)} changed, {seconds:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
