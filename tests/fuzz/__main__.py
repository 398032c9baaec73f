"""The command: a server with a tiny random model, and Schemathesis over HTTP on every surface's bundled spec.

``python -m tests.fuzz [SURFACE...] [--max-examples N]``; exits with 1 when a check failed on any surface.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.server import HOST, running
from tests.conftest import write_tiny_model

ROOT = Path(__file__).resolve().parent.parent.parent
SURFACES = {path.parent.name: path for path in sorted(ROOT.glob("generated/*/openapi.json"))}

# Everything on that can be, so that its answers are seen; a small context, so that no request takes long.
OPTIONS = ("-c", "512", "-np", "4", "-lv", "2", "--metrics", "--props", "--embeddings", "--pooling", "mean")


def main() -> int:
    """Fuzz the surfaces named on the command line, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument(
        "surfaces", nargs="*", metavar="SURFACE", help=f"of {', '.join(SURFACES)}; all by default"
    )
    parser.add_argument(
        "--max-examples", type=int, help="random requests an operation, beside the systematic ones"
    )
    options = parser.parse_args()
    unknown = set(options.surfaces) - set(SURFACES)
    if unknown:
        parser.error(f"no surface {', '.join(sorted(unknown))}")
    extra = ["--max-examples", str(options.max_examples)] if options.max_examples else []
    failed = []
    for surface in options.surfaces or SURFACES:
        with tempfile.TemporaryDirectory() as folder:
            write_tiny_model(Path(folder))
            with running(["-m", folder, *OPTIONS]) as server:
                if schemathesis(SURFACES[surface], server.port, extra) != 0:
                    failed.append(surface)
    print(f"fuzz: {'failures on ' + ', '.join(failed) if failed else 'no failure'}")
    return 1 if failed else 0


def schemathesis(document: Path, port: int, extra: list[str]) -> int:
    """Run it on one document; its exit status."""
    command = [
        *(
            str(Path(sys.executable).with_name("st")),
            "--config-file",
            str(ROOT / "tests/fuzz/schemathesis.toml"),
        ),
        *("run", str(document), "--url", f"http://{HOST}:{port}", *extra),
    ]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
