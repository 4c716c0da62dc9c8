# SPDX-License-Identifier: BSD-3-Clause
"""Matrices and vectors of one robot that are wanted together, as one kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from phistar import settings
from phistar.arrays import Array
from phistar.backends.base import OPTIONAL_INPUTS
from phistar.backends.batch_axes import as_inexact
from phistar.backends.llvm.run.batches import LLVM_REAL_BY_DTYPE, run_on_batch
from phistar.backends.llvm.run.entry import make_entry
from phistar.backends.llvm.run.key import program_key
from phistar.backends.llvm.run.machine_kernel import MachineKernel
from phistar.backends.llvm.run.tiers import TieredKernel
from phistar.backends.policy import BundleWork, decide
from phistar.model.model import Model
from phistar.model.model_cache import Entry
from phistar.model.singular import require_finite_results
from phistar.scalar.lower import LoweringOptions
from phistar.scalar.lower_fused import to_fused
from phistar.sweeps.requests import LoweredBundle


class FusedCode:
    """An assembly for one robot; a kernel for each precision."""

    def __init__(self, assembly: LoweredBundle, model: Model, options: LoweringOptions) -> None:
        self.assembly = assembly
        self.model = model
        self.options = options
        self.joint_size = sum(body.joint_kind.nv for body in model.bodies)
        self._tiers: dict[str, TieredKernel] = {}
        self._compile_at_once = decide(self.work, len(model.bodies)).eager

    @property
    def work(self) -> BundleWork:
        """What decisions are made by."""
        return BundleWork(self.joint_size)

    def tiers(self, real: str = "double") -> TieredKernel:
        """The kernels for a precision."""
        if real not in self._tiers:
            assembly = self.assembly
            if real == "float" and assembly.matrices:
                # Walks in common axes lose a digit more on long robots.
                assembly = replace(assembly, split=None)
            schedules = [f.schedule for forms in self.assembly.matrices.values() for f in forms]
            wanted = (*self.assembly.matrices, *self.assembly.products.items())
            if self.assembly.split is not None:
                schedules.append(self.assembly.split.schedule)
            programs = [(s.program.nodes, s.program.definitions) for s in schedules]
            self._tiers[real] = TieredKernel(
                program_key(self.assembly.vectors, self.model, self.options, wanted, programs),
                real,
                f"{self.model.name}: {', '.join(self.assembly.outputs)}",
                None,
                partial(to_fused, assembly, self.model, frozenset(OPTIONAL_INPUTS), self.options),
            )
        return self._tiers[real]

    def kernel(self, real: str) -> MachineKernel | None:
        """What is ready: small ones are compiled on the spot, others by a thread."""
        tiers = self.tiers(real)
        return (
            tiers.kernel
            if self._compile_at_once and settings.tier() != "rolled"
            else tiers.kernel_if_ready
        )

    def _sample_shapes(self, kernel: MachineKernel) -> dict[str, tuple[int, ...]]:
        """Shape of each output for one sample."""
        matrices, n = set(self.assembly.outputs), self.joint_size
        return {x: (n, n) if x in matrices else (n,) for x in kernel.call.signature.outputs}

    def __call__(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array] | None:
        """See ``base.Assembled``."""
        if any(name in inputs for name in OPTIONAL_INPUTS):
            return None
        arrays = {"q": as_inexact(q), **{name: as_inexact(x) for name, x in inputs.items()}}
        dtype = np.result_type(*arrays.values())
        kernel = self.kernel(LLVM_REAL_BY_DTYPE[dtype]) if dtype in LLVM_REAL_BY_DTYPE else None
        if kernel is None:
            return None
        shapes = self._sample_shapes(kernel)
        found, finite = run_on_batch(kernel, arrays, dict.fromkeys(arrays, 1), shapes)
        if not finite:
            axes = found[next(iter(shapes))].ndim - len(shapes[next(iter(shapes))])
            require_finite_results(self.model, arrays["q"], found, axes)
        return found

    def entry(self, order: Sequence[str]) -> Entry | None:
        """See ``base.FusedExecutable``."""
        kernel = self.kernel("double")
        if kernel is None:
            return None
        return make_entry(self.tiers(), order, self._sample_shapes(kernel))
