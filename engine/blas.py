"""A fast BLAS for MLX on Linux without a GPU.

MLX's CPU wheel for Linux is linked against the reference BLAS, which is some 16 times slower at prefill. A library
that defines the same symbols and is already in the process's global scope is used instead, so this module must run
before ``mlx.core`` is imported; ``mlxcel.engine`` does that.

Two libraries are known: Intel's MKL, if somebody installed it, defines the symbols itself. OpenBLAS in the form that
numpy's maintainers package (``scipy-openblas32``, with kernels for every processor) gives them a prefix, so three
jumps are compiled in front of it, once, with the C++ compiler that MLX needs for its own kernels anyway.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

logger = logging.getLogger(__name__)

# All that libmlx asks of BLAS; see `nm -D --undefined-only libmlx.so`.
SYMBOLS = ("cblas_sgemm", "cblas_dgemm", "cblas_cgemm")
JUMPS = {"x86_64": "jmp {target}@PLT", "aarch64": "b {target}"}

_loaded: str | None = None
_keep: list[ctypes.CDLL] = []


def load() -> str | None:
    """Load the best BLAS there is; once, and only where it helps.

    Returns:
        The library's name, or None when MLX keeps its own (another system, a GPU, or nothing suitable installed).
    """
    global _loaded
    if _loaded is None and sys.platform == "linux" and "mlx.core" not in sys.modules and not _has_gpu():
        _loaded = _load_mkl() or _load_openblas()
    return _loaded


def _has_gpu() -> bool:
    return importlib.util.find_spec("mlx_cuda") is not None or Path("/dev/nvidiactl").exists()


def _load_mkl() -> str | None:
    library = Path(sys.prefix) / "lib" / "libmkl_rt.so.2"
    return "mkl" if library.exists() and _load_global(library) else None


def _load_openblas() -> str | None:
    package = importlib.util.find_spec("scipy_openblas32")
    if package is None or package.origin is None or platform.machine() not in JUMPS:
        return None
    library = Path(package.origin).parent / "lib" / "libscipy_openblas.so"
    if not library.exists():
        return None
    try:
        jumps = _compiled_jumps(library)
    except (OSError, subprocess.SubprocessError) as error:
        logger.warning("OpenBLAS can't be put in front of MLX, prefill will be slow: %s", error)
        return None
    return "openblas" if _load_global(jumps) else None


def _load_global(library: Path) -> bool:
    try:
        _keep.append(ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL))
    except OSError as error:
        logger.warning("%s can't be loaded: %s", library.name, error)
        return False
    return True


def _compiled_jumps(library: Path) -> Path:
    """The shared object whose plain BLAS symbols lead to those of ``library``; compiled when it isn't cached."""
    jump = JUMPS[platform.machine()]
    source = "".join(
        f'__asm__(".text\\n.globl {s}\\n.type {s},%function\\n{s}: {jump.format(target="scipy_" + s)}\\n");\n'
        for s in SYMBOLS
    )
    stamp = f"{source}{library}{library.stat().st_mtime_ns}"
    target = _cache_folder() / f"blas-{hashlib.sha256(stamp.encode()).hexdigest()[:16]}.so"
    if target.exists():
        return target
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise OSError("no C++ compiler found")
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        code, built = Path(folder) / "jumps.cpp", Path(folder) / "jumps.so"
        code.write_text(source)
        command = [compiler, "-shared", "-fPIC", code, "-o", built, library, f"-Wl,-rpath,{library.parent}"]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        # A rename is atomic, so servers that start together can't load half a file.
        built.rename(target)
    return target


def _cache_folder() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "mlxcel"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
