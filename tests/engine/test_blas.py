"""A fast BLAS in front of MLX: loaded where it helps, right, and faster."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import subprocess
import sys
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from mlxcel.engine import blas

on_cpu_build = pytest.mark.skipif(
    not blas._is_cpu_build(), reason="only MLX for Linux without a GPU needs a BLAS"
)

TIMING = """
import sys, time
if sys.argv[1] == "fast":
    from mlxcel.engine import blas
    assert blas.loaded() in ("mkl", "openblas"), blas.loaded()
import mlx.core as mx
a, b = mx.random.normal((256, 512)), mx.random.normal((512, 512))
mx.eval(a, b)
times = []
for _ in range(5):
    began = time.perf_counter()
    mx.eval(a @ b)
    times.append(time.perf_counter() - began)
print(min(times))
"""


@on_cpu_build
def test_it_is_loaded_before_mlx() -> None:
    assert blas.loaded() in ("mkl", "openblas")


@on_cpu_build
def test_large_products_are_several_times_faster() -> None:
    # One thread each, so that a busy machine slows both alike.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

    def seconds(kind: str) -> float:
        command = [sys.executable, "-c", TIMING, kind]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return float(done.stdout)

    slow, fast = seconds("slow"), seconds("fast")
    assert slow / fast > 3


@pytest.mark.parametrize("rows", [1, 2, 17])
@pytest.mark.parametrize("columns", [1, 3, 64])
@pytest.mark.parametrize("layout", ["a@b", "a@b.T", "a.T@b", "a.T@b.T", "strided"])
def test_products_are_right_in_every_layout(rows: int, columns: int, layout: str) -> None:
    dice = np.random.default_rng(rows * 100 + columns)
    left = dice.normal(size=(rows, 40)).astype(np.float32)
    right = dice.normal(size=(40, columns)).astype(np.float32)
    a, b = mx.array(left), mx.array(right)
    if "a.T" in layout:
        a = mx.array(left.T.copy()).T
    if "b.T" in layout:
        b = mx.array(right.T.copy()).T
    if layout == "strided":
        a = mx.array(np.repeat(left, 2, axis=1))[:, ::2]
        b = mx.array(np.concatenate([right, right], axis=1))[:, :columns]
    assert np.allclose(np.array(a @ b), left @ right, atol=1e-4)
    batch = mx.stack([a, a * 2]) @ mx.stack([b, b])
    assert np.allclose(np.array(batch), np.stack([left @ right, 2 * left @ right]), atol=1e-4)
    added = mx.addmm(mx.ones((rows, columns)), a, b, alpha=0.5, beta=2.0)
    assert np.allclose(np.array(added), 0.5 * left @ right + 2, atol=1e-4)


def test_other_systems_and_gpus_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not blas._is_cpu_build()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1")
    assert not blas._is_cpu_build()


def test_without_a_compiler_mlx_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delitem(sys.modules, "mlx.core")
    monkeypatch.setattr(blas, "_loaded", None)
    monkeypatch.setattr(blas, "_is_cpu_build", lambda: True)
    monkeypatch.setattr(blas, "_load_mkl", lambda: None)
    with caplog.at_level(logging.WARNING):
        assert blas.load() is None
    assert "no C++ compiler found" in caplog.text
    assert "no fast BLAS" in caplog.text


@on_cpu_build
def test_the_compiled_part_is_kept_and_made_again_when_it_is_gone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = Path(importlib.import_module("scipy_openblas32").get_lib_dir()) / "libscipy_openblas.so"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = blas._compiled(library)
    assert [file.name for file in (tmp_path / "mlxcel").iterdir()] == [first.name]
    made = first.stat().st_mtime_ns
    assert blas._compiled(library).stat().st_mtime_ns == made
    first.unlink()
    assert blas._compiled(library).exists()
