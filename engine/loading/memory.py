"""Whether weights are to be kept as float32."""

from __future__ import annotations

import os
from pathlib import Path

import mlx.core as mx

SHARE = 0.6
"""Part of the free memory that weights may take; caches and the system need the rest."""

CONTROL_GROUP = Path("/sys/fs/cgroup")


def keep_float32(n_params: int) -> bool:
    """Whether a model of ``n_params`` scalars should be float32: only on the CPU, and only if that fits."""
    return mx.default_device() == mx.Device(mx.cpu) and 4 * n_params <= SHARE * available_bytes()


def available_bytes() -> int:
    """Memory that can be used without swapping or being killed, in bytes."""
    return int(min(_available_of_machine(), _available_of_group()))


def _available_of_machine() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _available_of_group() -> float:
    """A container's limit; it sees the whole machine's memory otherwise."""
    try:
        return int((CONTROL_GROUP / "memory.max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return float("inf")
