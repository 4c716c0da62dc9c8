# SPDX-License-Identifier: BSD-3-Clause
"""Free memory, and errors for results that would not fit into it."""

from __future__ import annotations

import os
from pathlib import Path

from phistar.errors import TooLargeError

UNCHECKED_BYTES = 1 << 28
"""Bytes up to which the free memory is not checked."""

MAX_SHARE_OF_FREE = 0.5
"""Fraction of the free memory that a result may take: work on it takes about as much again."""

ASSUMED_FREE_BYTES = 8 << 30
"""Bytes assumed free where the system does not report it."""


RECLAIMED = ("active_file", "inactive_file", "slab_reclaimable")
"""Memory of a container that the system gives back, by its names in ``memory.stat``."""


def available_bytes() -> int:
    """Free memory [bytes], as the system reports it."""
    free = ASSUMED_FREE_BYTES
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        free = 1024 * int(text.split("MemAvailable:")[1].split()[0])
    except (OSError, IndexError, ValueError):
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    inside = container_free_bytes(Path("/sys/fs/cgroup"))
    return free if inside is None else min(free, inside)


def container_free_bytes(group: Path) -> int | None:
    """Memory that a container may still take [bytes]; None where it has no limit.

    What the system keeps of files counts as used there, and is given back when it is needed.

    Args:
        group: Folder of the control group, version 2.
    """
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        used = int((group / "memory.current").read_text(encoding="ascii"))
        lines = (group / "memory.stat").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    stat = dict(line.split() for line in lines)
    return limit - used + sum(int(stat.get(name, 0)) for name in RECLAIMED)


def refuse_large(what: str, needed: int, cure: str) -> None:
    """Raise if a result would not fit.

    Args:
        what: The result, for the message; a plural.
        needed: Its size [bytes].
        cure: Suggested fix.

    Raises:
        TooLargeError: It is larger than the fraction of the free memory.
    """
    if needed <= UNCHECKED_BYTES:
        return
    free = available_bytes()
    if needed > MAX_SHARE_OF_FREE * free:
        raise TooLargeError(f"{memory_text(what, needed, free)}; {cure}", needed, free)


def memory_text(what: str, needed: int, free: int) -> str:
    """Needed and free memory as text."""
    return f"{what} take {format_bytes(needed)}, and {format_bytes(free)} of memory are free"


def format_bytes(count: float) -> str:
    """Bytes with a unit."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} PB"
