"""A fast BLAS for MLX on Linux without a GPU.

MLX's CPU wheel for Linux is linked against the reference BLAS, which is some 20 times slower at prefill. A
library that defines the same functions and is already in the process's global scope is used instead, so this
module must run before ``mlx.core`` is imported; ``mlxcel.engine`` does that.

Two libraries are known. Intel's MKL, if somebody installed it, defines the functions itself. OpenBLAS as the
package ``scipy-openblas32`` carries it (kernels for every processor, chosen at run time) gives them a prefix,
so functions without it are compiled once, with the C++ compiler that MLX needs for its own kernels anyway.
They also send products of a single row, which is what decoding one sequence consists of, to the matrix-vector
kernel: it reads the weights in place, where the general one copies them first and takes five times as long.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

logger = logging.getLogger(__name__)

# All that libmlx asks of BLAS (`nm -D --undefined-only libmlx.so`). 101 is row-major, 111 "not transposed",
# 112 "transposed" in every CBLAS.
SOURCE = """
#define ARGUMENTS(T, S) \\
  int order, int ta, int tb, int m, int n, int k, S alpha, const T* a, int lda, const T* b, int ldb, \\
  S beta, T* c, int ldc
// Rows below which a product is left to one thread.
#define SMALL 12
#define VALUES order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc
extern "C" {
void scipy_cblas_sgemm(ARGUMENTS(float, float));
void scipy_cblas_dgemm(ARGUMENTS(double, double));
void scipy_cblas_cgemm(ARGUMENTS(void, const void*));
void scipy_cblas_sgemv(int order, int t, int rows, int columns, float alpha, const float* a, int lda,
                       const float* x, int step_x, float beta, float* y, int step_y);

int scipy_openblas_get_num_threads();
void scipy_openblas_set_num_threads(int threads);

// Threads meet at the end of every product. In a small one they gain nothing, and on a busy machine each waits for
// whichever has lost its core: a decode step has hundreds of products and then takes ten times as long.
struct Alone {
  int threads = scipy_openblas_get_num_threads();
  Alone() { if (threads > 1) scipy_openblas_set_num_threads(1); }
  ~Alone() { if (threads > 1) scipy_openblas_set_num_threads(threads); }
};

void cblas_sgemm(ARGUMENTS(float, float)) {
  if (order != 101 || m >= SMALL) {
    scipy_cblas_sgemm(VALUES);
    return;
  }
  Alone alone;
  if (m > 1) {
    scipy_cblas_sgemm(VALUES);
    return;
  }
  bool by_rows = tb != 111;
  scipy_cblas_sgemv(order, by_rows ? 111 : 112, by_rows ? n : k, by_rows ? k : n, alpha, b, ldb,
                    a, ta == 111 ? 1 : lda, beta, c, 1);
}
void mlxcel_set_threads(int threads) { scipy_openblas_set_num_threads(threads); }
void cblas_dgemm(ARGUMENTS(double, double)) { scipy_cblas_dgemm(VALUES); }
void cblas_cgemm(ARGUMENTS(void, const void*)) { scipy_cblas_cgemm(VALUES); }
}
"""

CUDA_BUILDS = ("mlx-cuda", "mlx-cuda-12", "mlx-cuda-13")

_loaded: str | None = None
_keep: list[ctypes.CDLL] = []


def load() -> str | None:
    """Load the best BLAS there is; once, and only where it helps.

    Returns:
        What :func:`loaded` does.
    """
    global _loaded
    if _loaded is None and "mlx.core" not in sys.modules and _is_cpu_build():
        _loaded = _load_mkl() or _load_openblas()
        if _loaded is None:
            logger.warning("no fast BLAS found, prompts will be slow: pip install scipy-openblas32")
    return _loaded


def loaded() -> str | None:
    """``mkl``, ``openblas``, or None when MLX keeps its own (another system, a GPU, nothing suitable)."""
    return _loaded


def set_threads(n: int) -> None:
    """Use ``n`` threads for big products from now on; without effect where :func:`loaded` isn't ``openblas``."""
    if _loaded == "openblas":
        _keep[-1].mlxcel_set_threads(n)


def _is_cpu_build() -> bool:
    """Whether the installed MLX is the one for Linux without a GPU."""
    if sys.platform != "linux":
        return False
    return _is_installed("mlx-cpu") and not any(map(_is_installed, CUDA_BUILDS))


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _load_mkl() -> str | None:
    library = Path(sys.prefix) / "lib" / "libmkl_rt.so.2"
    return "mkl" if library.exists() and _load_global(library) else None


def _load_openblas() -> str | None:
    package = importlib.util.find_spec("scipy_openblas32")
    if package is None or package.origin is None:
        return None
    library = Path(package.origin).parent / "lib" / "libscipy_openblas.so"
    if not library.exists():
        return None
    try:
        plain = _compiled(library)
    except (OSError, subprocess.SubprocessError) as error:
        logger.warning("OpenBLAS can't be put in front of MLX's own BLAS: %s", error)
        return None
    return "openblas" if _load_global(plain) else None


def _load_global(library: Path) -> bool:
    try:
        _keep.append(ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL))
    except OSError as error:
        logger.warning("%s can't be loaded: %s", library.name, error)
        return False
    return True


def _compiled(library: Path) -> Path:
    """The shared object whose plain functions call those of ``library``; compiled when it isn't cached."""
    stamp = f"{SOURCE}{library}{library.stat().st_mtime_ns}"
    target = _cache_folder() / f"blas-{hashlib.sha256(stamp.encode()).hexdigest()[:16]}.so"
    if target.exists():
        return target
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise OSError("no C++ compiler found")
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        code, built = Path(folder) / "blas.cpp", Path(folder) / "blas.so"
        code.write_text(SOURCE, encoding="utf-8")
        options = ("-O2", "-shared", "-fPIC", f"-Wl,-rpath,{library.parent}")
        command: list[str | Path] = [compiler, *options, code, library, "-o", built]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        # A rename is atomic, so servers that start together can't load half a file.
        built.rename(target)
    return target


def _cache_folder() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "mlxcel"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
