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
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from phistar.arrays import Array, DType
from phistar.backends.llvm.abi import has_gil
from phistar.backends.policy import CACHE_LINE_BYTES
from phistar.memory_limits import available_bytes
from phistar.thresholds import POLICY

_probe = [np.empty(1)]
_UNUSED_REFCOUNT = sys.getrefcount(_probe[0])
"""What a list's own reference, and the asking, count for."""


class ResultPool:
    """Blocks of memory."""

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Keep nothing; arrays that are in use stay as they are."""
        self._lock = threading.Lock()
        self._blocks: list[Array] = []

    @cached_property
    def max_bytes(self) -> int:
        """Size of all blocks, at most: by what was free when the pool was first used.

        Nothing where counts of references are in parts, see ``abi.has_gil``.
        """
        if not has_gil():
            return 0
        return min(POLICY.max_pool_bytes, int(POLICY.max_pool_share * available_bytes()))

    def empty(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """An array of this shape, with any content."""
        (found,) = self.rows(1, (math.prod(shape),), dtype)
        return found.reshape(shape)

    def rows(self, count: int, sizes: Sequence[int], dtype: DType) -> list[Array]:
        """Arrays (count, size) with any content, one for each size."""
        found = []
        for width in sizes:
            size = count * width * dtype.itemsize
            if size < POLICY.min_pooled_bytes or size > self.max_bytes:
                found.append(np.empty((count, width), dtype))
                continue
            room = size + CACHE_LINE_BYTES
            with self._lock:
                blocks = self._blocks
                # A free block that is not much too large; the last used comes last.
                for i in range(len(blocks)):
                    if (
                        room <= len(blocks[i]) <= 2 * room
                        and sys.getrefcount(blocks[i]) == _UNUSED_REFCOUNT
                    ):
                        blocks.append(blocks.pop(i))
                        block = blocks[-1]
                        break
                else:
                    block = self._add_block(room)
            start = -int(block.__array_interface__["data"][0]) % CACHE_LINE_BYTES
            found.append(block[start : start + size].view(dtype).reshape(count, width))
            del block
        return found

    def _add_block(self, size: int) -> Array:
        block = np.empty(size, np.uint8)
        self._blocks.append(block)
        total = sum(len(each) for each in self._blocks)
        while total > self.max_bytes:
            total -= len(self._blocks.pop(0))
        return block


pool = ResultPool()


def pooled_copy(x: object) -> Array:
    """An array of its own with the same numbers, of a large one in the pool."""
    if type(x) is not np.ndarray or x.nbytes < POLICY.min_pooled_bytes:
        return np.array(x)
    found = pool.empty(x.shape, x.dtype)
    np.copyto(found, x)
    return found


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.reset_after_fork)
