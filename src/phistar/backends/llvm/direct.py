# SPDX-License-Identifier: BSD-3-Clause
"""Straight lines that are traced for one robot directly, not from passes, on a user's arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.backends.llvm.lean import Lean
from phistar.backends.llvm.memory import pool
from phistar.backends.llvm.rows import REALS, as_rows
from phistar.backends.llvm.tiers import Tiers, policy
from phistar.scalar.program import Straight

Array = NDArray[Any]

WARM = 32
"""Samples that others compute before a program counts as one that is used, and is compiled.

Kinematics has a program for each frame. Whoever looks once at every frame of a robot should not
wait for as many compilations; who loops, or has a batch, soon gets over this.
"""


class Direct:
    """A program with one output; a kernel for each precision, made when it is worth it.

    Attributes:
        lean: A quick way for one sample in float64, once there is one; see ``llvm.lean``.
    """

    def __init__(self, name: str, title: str, small: bool, program: Callable[[], Straight]) -> None:
        """Args:
        name: Its fingerprint.
        title: What it is, for people.
        small: Whether it compiles fast enough to wait for it; else a thread makes it.
        program: Makes the straight line.
        """
        self._tiers = {real: Tiers(name, real, title, None, program) for real in REALS.values()}
        self._small = small
        self._seen = 0
        self.lean: Lean | None = None

    def __call__(self, arrays: Sequence[Array]) -> Array | None:
        """The output (..., size) for inputs (..., size), in their order, if we can say it now.

        Returns:
            None while there is no code yet, for other dtypes than float64 and float32, and where
            an input is not finite.
        """
        dtype = np.result_type(*arrays)
        if dtype not in REALS:
            return None
        given = {str(i): x for i, x in enumerate(arrays)}
        batch, rows = as_rows(given, dict.fromkeys(given, 1))
        count = math.prod(batch)
        if self._seen < WARM and policy() == "auto":
            self._seen += count
            if self._seen < WARM:
                return None
        tiers = self._tiers[REALS[dtype]]
        kernel = tiers.kernel if self._small else tiers.ready
        if kernel is None:
            return None
        if dtype == np.float64:
            self.lean = kernel.lean
        (size,) = kernel.call.signature.outputs.values()
        result = pool.empty((count, size), dtype)
        if count and not kernel.call(list(rows.values()), [result], fresh=True):
            return None
        return result.reshape(*batch, size)
