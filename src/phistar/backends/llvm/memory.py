# SPDX-License-Identifier: BSD-3-Clause
"""Memory for large results, used again when nobody holds the old ones any more.

The first touch of fresh memory costs more than computing most results. A block of ours is free when
the pool's own reference to it is the last one: every array that lies in a block, and every view of
one, holds on to the block itself.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SMALL = 1 << 16
"""Bytes below which the system's allocator is as good."""

LINE = 64
"""Bytes; arrays begin with a line of the caches."""

MOST = 512 << 20
"""Bytes of blocks that are kept."""


_probe = [np.empty(1)]
_ALONE = sys.getrefcount(_probe[0])
"""What a list's own reference, and the asking, count for."""


class Pool:
    """Blocks of memory."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Keep nothing; arrays that are in use stay as they are."""
        self._lock = threading.Lock()
        self._blocks: list[Array] = []

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array of this shape, with any content."""
        size = math.prod(shape) * dtype.itemsize
        if size < SMALL or size > MOST:
            return np.empty(shape, dtype)
        with self._lock:
            block = self._take(size + LINE)
        start = -int(block.__array_interface__["data"][0]) % LINE
        return block[start : start + size].view(dtype).reshape(shape)

    def _take(self, size: int) -> Array:
        """A free block that is not much too large, or a new one; the last used comes last."""
        blocks = self._blocks
        for i in range(len(blocks)):
            if size <= len(blocks[i]) <= 2 * size and sys.getrefcount(blocks[i]) == _ALONE:
                blocks.append(blocks.pop(i))
                return blocks[-1]
        block = np.empty(size, np.uint8)
        self._blocks.append(block)
        total = sum(len(each) for each in self._blocks)
        while total > MOST:
            total -= len(self._blocks.pop(0))
        return block


pool = Pool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.forget)
