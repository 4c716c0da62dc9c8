# SPDX-License-Identifier: BSD-3-Clause
"""Straight lines that are traced for one robot directly, not from passes, on a user's arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from phistar import settings
from phistar.arrays import Array
from phistar.backends.llvm.run.batches import LLVM_REAL_BY_DTYPE, run_on_batch
from phistar.backends.llvm.run.entry import make_entry
from phistar.backends.llvm.run.machine_kernel import MachineKernel
from phistar.backends.llvm.run.tiers import TieredKernel
from phistar.model.model_cache import Entry
from phistar.scalar.program import Unrolled
from phistar.thresholds import POLICY

Shape = tuple[int, ...]


class TracedCode:
    """A program; a kernel for each precision, made when it is worth it."""

    def __init__(
        self, name: str, title: str, compile_at_once: bool, program: Callable[[], Unrolled]
    ) -> None:
        """Args:
        name: Its fingerprint.
        title: What it is, for people.
        compile_at_once: Whether it compiles fast enough to wait for it; else a thread makes it.
        program: Makes the straight line.
        """
        self._tiers = {
            real: TieredKernel(name, real, title, None, program)
            for real in LLVM_REAL_BY_DTYPE.values()
        }
        self._compile_at_once = compile_at_once
        self._samples_seen = 0

    def __call__(
        self, arrays: Mapping[str, Array], shapes: Mapping[str, Shape]
    ) -> dict[str, Array] | None:
        """Outputs (..., *shape) by name for inputs (..., size), if we can say them now.

        Args:
            arrays: Inputs by name; their batches broadcast.
            shapes: Of each output for one sample.

        Returns:
            None while there is no code yet, for other dtypes than float64 and float32, and where
            an input is not finite.
        """
        dtype = np.result_type(*arrays.values())
        if dtype not in LLVM_REAL_BY_DTYPE:
            return None
        if self._samples_seen < POLICY.samples_before_compile and settings.tier() == "auto":
            batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays.values()))
            self._samples_seen += math.prod(batch)
            if self._samples_seen < POLICY.samples_before_compile:
                return None
        kernel = self._kernel(LLVM_REAL_BY_DTYPE[dtype])
        if kernel is None:
            return None
        found, finite = run_on_batch(kernel, arrays, dict.fromkeys(arrays, 1), shapes)
        return found if finite else None

    def _kernel(self, real: str) -> MachineKernel | None:
        tiers = self._tiers[real]
        return tiers.kernel if self._compile_at_once else tiers.kernel_if_ready

    def tiers_if_ready(self) -> TieredKernel | None:
        """The kernels in float64; None as long as there is none."""
        started = self._samples_seen >= POLICY.samples_before_compile or settings.tier() != "auto"
        ready = started and self._kernel("double") is not None
        return self._tiers["double"] if ready else None

    def entry(self, order: Sequence[str], shapes: Mapping[str, Shape]) -> Entry | None:
        """The entry, see ``llvm.run.entry``; None as long as there is no kernel.

        Args:
            order: Names of the inputs in the order of the entry's arguments.
            shapes: Of each output for one sample.
        """
        tiers = self.tiers_if_ready()
        return None if tiers is None else make_entry(tiers, order, shapes)
