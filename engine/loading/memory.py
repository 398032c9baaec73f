"""Whether weights fit into this machine's memory in a wider form."""

from __future__ import annotations

import os

SHARE = 0.6
"""Part of the free memory that weights may take; caches and the system need the rest."""


def float32_fits(n_params: int) -> bool:
    """Whether ``n_params`` float32 values fit."""
    return 4 * n_params <= SHARE * available_bytes()


def available_bytes() -> int:
    """Memory that can be used without swapping, in bytes."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            kib = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
            return kib * 1024
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
