# SPDX-License-Identifier: BSD-3-Clause
"""The caches of this machine, and from which size on results bypass them.

Sizes are asked of the system when code is run, and handed to the code as a number in memory: they
are no part of compiled code, of its name in the cache on disk, or of any result. What counts is the
second-level cache. On processors of AMD, the third level takes what the second one drops, at the
speed of the core: there results bypass the caches when they would fill a good part of it.
"""

from __future__ import annotations

import ctypes
import platform
from functools import cached_property
from pathlib import Path

from phistar.thresholds import POLICY

LINUX_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
"""One folder per cache of a processor, with its level, kind and size as text."""

LINUX_PROCESSORS = Path("/proc/cpuinfo")
"""Lines of names and values, who made the processor among them."""

_MACOS_NAMES = (b"hw.perflevel0.l2cachesize", b"hw.l2cachesize")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def min_streamed_bytes() -> int:
    """Bytes of large outputs from which on they bypass the caches."""
    second, third = _this_machine.cache_bytes
    return int(max(POLICY.min_streamed_caches * second, POLICY.min_streamed_victim_share * third))


def is_made_by_amd(described: Path) -> bool:
    """Whether a file of ``/proc`` describes processors of AMD."""
    try:
        with described.open(encoding="ascii", errors="replace") as lines:
            maker = next((line for line in lines if line.startswith("vendor_id")), "")
    except OSError:
        return False
    return "AuthenticAMD" in maker


def linux_cache_bytes(folder: Path, wanted: str) -> int | None:
    """Size of the cache of a level that a folder of ``/sys`` describes; None if there is none."""
    for each in sorted(folder.glob("index*")):
        try:
            level, kind, size = (
                (each / name).read_text(encoding="ascii").strip()
                for name in ("level", "type", "size")
            )
            if level == wanted and kind != "Instruction":
                return int(size.rstrip("KMG")) * _UNITS.get(size[-1:], 1)
        except (OSError, ValueError):
            continue
    return None


def _macos_cache_bytes() -> int | None:
    ask = ctypes.CDLL(None).sysctlbyname
    for name in _MACOS_NAMES:
        found, length = ctypes.c_int64(0), ctypes.c_size_t(8)
        if not ask(name, ctypes.byref(found), ctypes.byref(length), None, 0) and found.value > 0:
            return found.value
    return None


class _ThisMachine:
    """What is known of this machine, looked at when it is first needed."""

    @cached_property
    def cache_bytes(self) -> tuple[int, int]:
        """Size of the second-level cache, and of a third that takes what the second drops, else 0.

        An assumed size where the system does not say.
        """
        second = linux_cache_bytes(LINUX_CACHES, "2")
        if second is None and platform.system() == "Darwin":
            second = _macos_cache_bytes()
        third = linux_cache_bytes(LINUX_CACHES, "3") if is_made_by_amd(LINUX_PROCESSORS) else 0
        return second or POLICY.assumed_second_level_bytes, third or 0

    @cached_property
    def threshold(self) -> ctypes.c_int64:
        """``min_streamed_bytes`` in memory."""
        return ctypes.c_int64(min_streamed_bytes())


_this_machine = _ThisMachine()


def threshold_address() -> int:
    """Where ``min_streamed_bytes`` stands in memory, for native entries."""
    return ctypes.addressof(_this_machine.threshold)
