# SPDX-License-Identifier: BSD-3-Clause
"""Straight lines that are traced for one robot directly, not from passes, on a user's arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from phistar import settings
from phistar.arrays import Array
from phistar.backends.llvm.run.batches import LLVM_REAL_BY_DTYPE, run_on_batch
from phistar.backends.llvm.run.entry import make_entry
from phistar.backends.llvm.run.machine_kernel import MachineKernel
from phistar.backends.llvm.run.tiers import TieredKernel
from phistar.model.model_cache import Entry
from phistar.model.wrenches import WrenchFrames, is_wrench_input
from phistar.scalar.program import Unrolled
from phistar.thresholds import POLICY


class TracedCode:
    """A program with one output; a kernel for each precision, made when it is worth it."""

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

    def __call__(self, arrays: Sequence[Array]) -> Array | None:
        """The output (..., size) for inputs (..., size), in their order, if we can say it now.

        Returns:
            None while there is no code yet, for other dtypes than float64 and float32, and where
            an input is not finite.
        """
        dtype = np.result_type(*arrays)
        if dtype not in LLVM_REAL_BY_DTYPE:
            return None
        if self._samples_seen < POLICY.samples_before_compile and settings.tier() == "auto":
            self._samples_seen += math.prod(np.broadcast_shapes(*(x.shape[:-1] for x in arrays)))
            if self._samples_seen < POLICY.samples_before_compile:
                return None
        kernel = self._kernel(LLVM_REAL_BY_DTYPE[dtype])
        if kernel is None:
            return None
        signature = kernel.call.signature
        given = dict(zip(signature.inputs, arrays, strict=True))
        ((name, size),) = signature.outputs.items()
        found, finite = run_on_batch(kernel, given, dict.fromkeys(given, 1), {name: (size,)})
        return found[name] if finite else None

    def _kernel(self, real: str) -> MachineKernel | None:
        tiers = self._tiers[real]
        return tiers.kernel if self._compile_at_once else tiers.kernel_if_ready

    def entry(self, shape: tuple[int, ...], wrenches: WrenchFrames | None = None) -> Entry | None:
        """The entry, see ``llvm.run.entry``; None as long as there is no kernel.

        Args:
            shape: Of the output for one sample.
            wrenches: Frames whose wrenches are inputs.
        """
        started = self._samples_seen >= POLICY.samples_before_compile or settings.tier() != "auto"
        kernel = self._kernel("double") if started else None
        if kernel is None:
            return None
        signature = kernel.call.signature
        (name,) = signature.outputs
        order = [each for each in signature.inputs if not is_wrench_input(each)]
        return make_entry(self._tiers["double"], order, {name: shape}, wrenches=wrenches)
