# SPDX-License-Identifier: BSD-3-Clause
"""Quick ways into kernels with several outputs, for plain arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.backends.base import Way
from phistar.backends.llvm.kernel import Kernel
from phistar.backends.llvm.lean import MANY
from phistar.backends.llvm.memory import pool

Array = NDArray[Any]
_DOUBLE = np.dtype(np.float64)


def way_into(kernel: Kernel, tails: Mapping[str, tuple[int, ...]]) -> Way | None:
    """A quick way into a kernel, one sample or a batch of moderate size.

    Closures, because attributes would take longer than a small kernel.

    Args:
        kernel: In float64.
        tails: Shape of each output for one sample.

    Returns:
        None if the kernel cannot be entered so.
    """
    lean, empty = kernel.lean, np.empty
    if lean is None:
        return None
    names = tuple(kernel.call.signature.outputs)
    shapes = tuple(tails[name] for name in names)
    sizes = tuple(map(math.prod, shapes))
    matrices = tuple((i, shape) for i, shape in enumerate(shapes) if len(shape) != 1)

    def call(*arrays: Any) -> dict[str, Array] | None:
        q = arrays[0]
        if type(q) is not np.ndarray:
            return None
        if q.ndim == 1:
            found = [empty(size) for size in sizes]
            if not lean(*arrays, *found):
                return None
            for i, shape in matrices:
                found[i] = found[i].reshape(shape)
            return dict(zip(names, found, strict=True))
        if q.ndim != 2 or not 0 < len(q) <= MANY:
            return None
        count = len(q)
        found = [pool.empty((count, size), _DOUBLE) for size in sizes]
        if not lean(*arrays, *found):
            return None
        for i, shape in matrices:
            found[i] = found[i].reshape(count, *shape)
        return dict(zip(names, found, strict=True))

    return call


def turned(way: Way, places: Sequence[int]) -> Way:
    """A way whose arguments come in another order: where each of its inputs is found."""

    def call(*arrays: Any) -> dict[str, Array] | None:
        return way(*[arrays[i] for i in places])

    return call
