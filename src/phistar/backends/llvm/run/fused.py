# SPDX-License-Identifier: BSD-3-Clause
"""Matrices and vectors of one robot that are wanted together, as one kernel."""

from __future__ import annotations

from collections.abc import Sequence
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
from phistar.model.wrenches import ProgramInputs, Wrenches, WrenchFrames
from phistar.scalar.lower import LoweringOptions
from phistar.scalar.lower_fused import to_fused
from phistar.scalar.trace.link_tracer import EXTERNAL_FORCE
from phistar.sweeps.requests import LoweredBundle


class FusedCode:
    """An assembly for one robot; a kernel for each precision."""

    def __init__(self, assembly: LoweredBundle, model: Model, options: LoweringOptions) -> None:
        self.assembly = assembly
        self.model = model
        self.options = options
        self.joint_size = sum(body.joint_kind.nv for body in model.bodies)
        self._tiers: dict[tuple[str, WrenchFrames | None], TieredKernel] = {}
        self._compile_at_once = decide(self.work, len(model.bodies)).eager

    @property
    def work(self) -> BundleWork:
        """What decisions are made by."""
        return BundleWork(self.joint_size)

    def tiers(self, real: str = "double", wrenches: WrenchFrames | None = None) -> TieredKernel:
        """The kernels for a precision and, if there are any, wrenches on frames."""
        if (real, wrenches) not in self._tiers:
            assembly = self.assembly
            if real == "float" and assembly.matrices:
                # Walks in common axes lose a digit more on long robots.
                assembly = replace(assembly, split=None)
            schedules = [f.schedule for forms in self.assembly.matrices.values() for f in forms]
            wanted = (*self.assembly.matrices, *self.assembly.products.items())
            if self.assembly.split is not None:
                schedules.append(self.assembly.split.schedule)
            programs = [(s.program.nodes, s.program.definitions) for s in schedules]
            given = () if wrenches is None else (EXTERNAL_FORCE,)
            absent = frozenset(OPTIONAL_INPUTS) - frozenset(given)
            frames = () if wrenches is None else wrenches.frames
            choices = (self.options, wanted, programs, wrenches and wrenches.choices)
            self._tiers[real, wrenches] = TieredKernel(
                program_key(self.assembly.vectors, self.model, *choices, frames=frames),
                real,
                f"{self.model.name}: {', '.join(self.assembly.outputs)}",
                None,
                partial(to_fused, assembly, self.model, absent, self.options, wrenches),
            )
        return self._tiers[real, wrenches]

    def kernel(self, real: str, wrenches: WrenchFrames | None = None) -> MachineKernel | None:
        """What is ready: small ones are compiled on the spot, others by a thread."""
        if wrenches is not None and wrenches.turn and not self.assembly.matrices:
            # Walks along branches do not know forces that change in the axes of links.
            return None
        tiers = self.tiers(real, wrenches)
        return (
            tiers.kernel
            if self._compile_at_once and settings.tier() != "rolled"
            else tiers.kernel_if_ready
        )

    def _sample_shapes(self, kernel: MachineKernel) -> dict[str, tuple[int, ...]]:
        """Shape of each output for one sample."""
        matrices, n = set(self.assembly.outputs), self.joint_size
        return {x: (n, n) if x in matrices else (n,) for x in kernel.call.signature.outputs}

    def __call__(self, q: ArrayLike, inputs: ProgramInputs) -> dict[str, Array] | None:
        """See ``base.Assembled``."""
        arrays = {"q": as_inexact(q)}
        wrenches: WrenchFrames | None = None
        for name, x in inputs.items():
            if isinstance(x, Wrenches):
                wrenches = x.at
                arrays |= x.inputs
            elif name in OPTIONAL_INPUTS:
                return None
            else:
                arrays[name] = as_inexact(x)
        dtype = np.result_type(*arrays.values())
        if dtype not in LLVM_REAL_BY_DTYPE:
            return None
        kernel = self.kernel(LLVM_REAL_BY_DTYPE[dtype], wrenches)
        if kernel is None:
            return None
        shapes = self._sample_shapes(kernel)
        found, finite = run_on_batch(kernel, arrays, dict.fromkeys(arrays, 1), shapes)
        if not finite:
            axes = found[next(iter(shapes))].ndim - len(shapes[next(iter(shapes))])
            require_finite_results(self.model, arrays["q"], found, axes)
        return found

    def entry(self, order: Sequence[str], *, wrenches: WrenchFrames | None = None) -> Entry | None:
        """See ``base.FusedExecutable``."""
        kernel = self.kernel("double", wrenches)
        if kernel is None:
            return None
        shapes = self._sample_shapes(kernel)
        return make_entry(self.tiers("double", wrenches), order, shapes, wrenches=wrenches)
