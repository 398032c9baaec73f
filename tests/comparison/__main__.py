"""The command: llama-server and mlxcel-serve one after the other for each file of recorded requests.

``python -m tests.comparison [FILE...]`` prints the cases that differ and shouldn't, a table of both servers, and a
total; exits with 1 when such a case is found. llama-server is built first, into an environment of its own.

llama-server's flash attention and cache round to 16 bits, of which some probabilities bear traces. ``--exact`` has it
compute as it did for the recorded answers, in float32 throughout.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.server import HOST
from bench.server import running as mlxcel_running
from mlxcel.engine.errors import LoadError
from mlxcel.engine.loading.reference import embedded
from tests.conformance.recorded import OPTIONS, options

from .llama import install
from .llama import running as llama_running
from .rules import Compared, compare, deviations, replies
from .table import line, show
from .weights import float32_copy

MODEL = "SmolLM2-135M-Instruct.f32.gguf"
EXACT = ("-fa", "off", "-ctk", "f32", "-ctv", "f32")
"""Options with which llama-server rounds nothing to 16 bits."""


def main() -> int:
    """Play the files named on the command line, or all, against both servers."""
    arguments = parsed()
    try:
        program = install(arguments.venv)
        model = float32_copy(embedded(), arguments.venv / MODEL)
        command = (str(program), "-m", str(model), *(EXACT if arguments.exact else ()))
        files = {name: played(name, command, arguments.cases) for name in arguments.files or OPTIONS}
    except (LoadError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    show(files, Console())
    return int(any(case.verdict == "differs" for compared in files.values() for case in compared))


def parsed() -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.comparison")
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"of {', '.join(OPTIONS)}; all by default")
    parser.add_argument(
        "--venv",
        type=Path,
        default=Path(".venv-reference"),
        help="environment of llama-server and its model, made if it isn't there (default: %(default)s)",
    )
    parser.add_argument("--cases", action="store_true", help="print a line for every case")
    parser.add_argument("--exact", action="store_true", help="llama-server in float32 throughout")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.files if name not in OPTIONS]
    if unknown:
        parser.error(f"no file {', '.join(unknown)}")
    arguments.venv = arguments.venv.absolute()
    return arguments


def played(name: str, reference: Sequence[str], every: bool) -> list[Compared]:
    """Play one file against both servers; print its cases, ``every`` one or those that differ and shouldn't.

    ``reference`` is llama-server's command line but for the file's options.
    """
    print(f"playing {name}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "llama-server.log"
        with llama_running([*reference, *options(name)], log) as url:
            theirs = replies(url, name)
    with mlxcel_running([*options(name), "-lv", "2"]) as server:
        ours = replies(f"http://{HOST}:{server.port}", name)
    compared = compare(name, theirs, ours, deviations())
    for case in compared:
        if every or case.verdict == "differs":
            print(line(case), flush=True)
    return compared


if __name__ == "__main__":
    sys.exit(main())
