# SPDX-License-Identifier: BSD-3-Clause
"""Machine code for one robot, a SIMD lane a sample: the default backend.

It computes in float64 and, where all inputs are float32, in float32. Other dtypes (complex for
complex steps, longdouble) run on the backend ``numpy``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phistar import settings
from phistar.arrays import Array
from phistar.backends.base import (
    DEFAULT_TUNING,
    OPTIONAL_INPUTS,
    Executable,
    Tuning,
    inputs_read,
    require_inputs,
)
from phistar.backends.batch_axes import as_inexact
from phistar.backends.llvm.run.batches import LLVM_REAL_BY_DTYPE, run_on_batch
from phistar.backends.llvm.run.entry import make_entry
from phistar.backends.llvm.run.fused import FusedCode
from phistar.backends.llvm.run.key import program_key
from phistar.backends.llvm.run.machine_kernel import MachineKernel, llvm_text
from phistar.backends.llvm.run.tiers import TieredKernel, count_compilations
from phistar.backends.policy import NUMPY, MatrixWork, VectorWork, by_tier, decide
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.model.model_cache import Entry
from phistar.model.singular import require_finite_results
from phistar.scalar.lower import LoweringOptions, to_looped, to_unrolled
from phistar.scalar.lower_matrix import (
    FULL_MATRIX,
    result_blocks,
    to_looped_matrix,
    to_unrolled_matrix,
)
from phistar.scalar.program import ScalarProgram
from phistar.spatial import force_transform
from phistar.sweeps.costs import OperationCount
from phistar.sweeps.ir import Type
from phistar.sweeps.matrix_plans import plan_for_form
from phistar.sweeps.requests import Diag, Full, LoweredBundle, MatrixForm, Request
from phistar.sweeps.schedule import Schedule
from phistar.thresholds import POLICY


class MachineCode:
    """A program for one robot; a kernel for each precision and set of optional inputs."""

    def __init__(
        self,
        schedule: Schedule,
        model: Model,
        frames: tuple[str, ...],
        locked: frozenset[int],
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        self.schedule = schedule
        self.model = model
        self.frames = frames
        self.locked = locked
        self.shape = tuning.shape
        self.options = LoweringOptions.of(tuning.regroup_inertia, tuning.snap)
        self.inputs_used = inputs_read(schedule.program)
        program = schedule.program
        self._frame_force_inputs = {n.data for n in program.nodes if n.op == "scatter"}
        self._joint_inputs = {
            n.data for n in program.nodes if n.op == "leaf" and n.type is Type.JOINT
        }
        self._output_types = {name: program.nodes[s].type for name, s in program.outputs.items()}
        self._tiers: dict[tuple[frozenset[str], str], TieredKernel] = {}
        self._numpy: Executable | None = None

    @property
    def source(self) -> str:
        """The LLVM text of the final shape, in double precision, without optional inputs."""
        from phistar.backends.llvm.run import jit

        return llvm_text(self._final_program(), jit.lanes_for(jit.host_cpu()))

    @property
    def cost(self) -> OperationCount:
        """Operations of the final shape on a sample, without optional inputs."""
        bill = self._final_program().count()
        return OperationCount(bill["mul"], bill["add"] + bill["sub"], bill["div"])

    def _final_program(self) -> ScalarProgram:
        """The program of the final shape."""
        kernel = self.tiers().wait_for_final()
        make = to_unrolled if kernel.shape == "straight" else to_looped
        return make(self.schedule, self.model, self._omitted_inputs(()), self.locked, self.options)

    @property
    def work(self) -> VectorWork:
        """What decisions are made by."""
        return VectorWork(sum(1 for _ in self.schedule.program.live()), self.shape)

    def _omitted_inputs(self, given: Sequence[str]) -> frozenset[str]:
        return frozenset(name for name in OPTIONAL_INPUTS if name not in given)

    def tiers(self, given: Sequence[str] = (), real: str = "double") -> TieredKernel:
        """The kernels for some optional inputs and a precision."""
        absent = self._omitted_inputs(given)
        key = (absent, real)
        if key not in self._tiers:
            arguments = (self.schedule, self.model, absent, self.locked, self.options)
            choices = (sorted(absent), sorted(self.locked), self.options)
            self._tiers[key] = TieredKernel(
                program_key(self.schedule, self.model, *choices),
                real,
                f"{self.model.name}: {', '.join(self.schedule.program.outputs)}",
                partial(to_looped, *arguments),
                partial(to_unrolled, *arguments),
                by_tier(self.work, len(self.model.bodies)),
            )
        return self._tiers[key]

    def __call__(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """See ``base.Executable``."""
        results, fine = self.run(q, inputs)
        if not fine:
            self._refuse(as_inexact(q), results)
        return results

    def _refuse(self, q: Array, results: Mapping[str, Array]) -> None:
        """Raise if results are not finite."""
        name = next(iter(results))
        axes = results[name].ndim - self._output_types[name].output_axes
        require_finite_results(self.model, q, results, axes)

    def run(
        self,
        q: ArrayLike,
        inputs: Mapping[str, ArrayLike],
        out: Mapping[str, Array] | None = None,
    ) -> tuple[dict[str, Array], bool]:
        """See ``base.Executable``."""
        require_inputs(self.inputs_used, inputs)
        arrays = {"q": as_inexact(q)}
        arrays.update(
            (name, as_inexact(inputs[name])) for name in self.inputs_used if name in inputs
        )
        dtype = np.result_type(*arrays.values())
        if dtype not in LLVM_REAL_BY_DTYPE:
            return self._numpy_fallback().run(q, inputs, out)
        for name in self._frame_force_inputs & set(arrays):
            arrays[name] = self._to_link_forces(arrays[name])
        tails = {name: 1 if name == "q" or name in self._joint_inputs else 2 for name in arrays}
        kernel = self.tiers(tuple(arrays), LLVM_REAL_BY_DTYPE[dtype]).kernel
        return run_on_batch(kernel, arrays, tails, self._shapes(kernel), out)

    def _shapes(self, kernel: MachineKernel) -> dict[str, tuple[int, ...]]:
        """Shape of each output for one sample."""
        sizes = kernel.call.signature.outputs
        found: dict[str, tuple[int, ...]] = {}
        for name, size in sizes.items():
            kind = self._output_types[name]
            by_link = (len(self.model.bodies), kind.width)
            found[name] = ((), (size,), by_link)[kind.output_axes]
        return found

    def entry(self, order: Sequence[str], names: Mapping[str, str] | None = None) -> Entry | None:
        """See ``base.Executable``."""
        tiers = self.tiers()
        return make_entry(tiers, order, self._shapes(tiers.kernel), names)

    def _numpy_fallback(self) -> Executable:
        if self._numpy is None:
            from phistar.backends.to_numpy import backend as numpy_backend

            self._numpy = numpy_backend.build(self.schedule, self.model, self.frames, self.locked)
        return self._numpy

    def _to_link_forces(self, forces: Array) -> Array:
        """Forces (..., frames, 6) on frames, as forces (..., bodies, 6) on the bodies."""
        shape = (*forces.shape[:-2], len(self.model.bodies), 6)
        result = np.zeros(shape, forces.dtype)
        for i, name in enumerate(self.frames):
            frame = self.model.frame(name)
            if frame.body != GROUND:
                moved = forces[..., i, :] @ force_transform(frame.body_pose).T
                result[..., frame.body, :] += moved
        return result


class MatrixCode:
    """The matrix of an operator for one robot, or a part; a kernel for each precision."""

    def __init__(
        self,
        forms: Sequence[MatrixForm],
        model: Model,
        frames: tuple[str, ...],
        options: LoweringOptions,
        request: Request = FULL_MATRIX,
    ) -> None:
        self.forms = forms
        self.model = model
        self.frames = frames
        self.options = options
        self.request = request
        answer = result_blocks(forms[0], model, frames, request)
        self.shapes = [(len(rows), len(columns)) for rows, columns in answer]
        self._request_count = 0
        given = {*(each.argument for each in forms), *OPTIONAL_INPUTS}
        self._leaves = {
            node.data: node
            for each in forms
            for node in each.schedule.program.nodes
            if node.op in ("leaf", "scatter") and node.data not in given
        }
        self._tiers: dict[str, TieredKernel] = {}

    def tiers(self, real: str = "double") -> TieredKernel:
        """The kernels for a precision."""
        if real not in self._tiers:
            arguments = (
                self.forms,
                self.model,
                self.frames,
                frozenset(OPTIONAL_INPUTS),
                self.options,
            )
            programs = [_program_text(form.schedule) for form in self.forms]
            choices = ("matrix", *self.frames, self.options, self.request, *programs)
            self._tiers[real] = TieredKernel(
                program_key(self.forms[0].schedule, self.model, *choices, frames=self.frames),
                real,
                f"{self.model.name}: matrix, {self.request}",
                partial(to_looped_matrix, *arguments) if self.is_full else None,
                partial(to_unrolled_matrix, *arguments, self.request),
                by_tier(self.work, len(self.model.bodies)),
            )
        return self._tiers[real]

    @cached_property
    def work(self) -> MatrixWork:
        """What decisions are made by."""
        entries = sum(math.prod(shape) for shape in self.shapes)
        operations = None
        if not self.is_full:
            plan = plan_for_form(self.forms[0], self.request, self.model, self.frames)
            operations = plan.cost.total
        return MatrixWork(max(map(max, self.shapes), default=0), entries, operations)

    @property
    def is_full(self) -> bool:
        """Whether it is about all of the matrix: then there are loops for it."""
        return isinstance(self.request, Full)

    def _kernel(self, real: str) -> MachineKernel | None:
        """What is ready; parts of a matrix are compiled when it seems to pay."""
        tiers = self.tiers(real)
        if self.is_full:
            return tiers.kernel
        self._request_count += 1
        wait = (
            self._request_count < POLICY.part_requests_before_compile
            or count_compilations() >= POLICY.max_parts_compiling
        )
        return (
            None
            if wait and settings.tier() == "auto" and not tiers.is_started
            else tiers.kernel_if_ready
        )

    def __call__(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> Any:
        """See ``base.MatrixExecutable``."""
        arrays = {"q": as_inexact(q), **{name: as_inexact(inputs[name]) for name in self._leaves}}
        dtype = np.result_type(*arrays.values())
        if dtype not in LLVM_REAL_BY_DTYPE or any(name in inputs for name in OPTIONAL_INPUTS):
            return None
        kernel = self._kernel(LLVM_REAL_BY_DTYPE[dtype])
        if kernel is None:
            return None
        joint = {"q", *(n for n, node in self._leaves.items() if node.type is Type.JOINT)}
        axes = {name: 1 if name in joint else 2 for name in arrays}
        sizes = [math.prod(shape) for shape in self.shapes]
        (name,) = kernel.call.signature.outputs
        found, finite = run_on_batch(kernel, arrays, axes, {name: (sum(sizes),)})
        result = found[name]
        batch = result.shape[:-1]
        if not finite:
            require_finite_results(self.model, arrays["q"], {"the matrix": result}, len(batch))
        if not isinstance(self.request, Diag):
            return result.reshape(*batch, *self.shapes[0])
        ends = accumulate(sizes)
        return [
            result[..., end - size : end].reshape(*batch, *shape)
            for size, end, shape in zip(sizes, ends, self.shapes, strict=True)
        ]

    def entry(self, order: Sequence[str]) -> Entry | None:
        """See ``base.Executable``."""
        (shape,) = self.shapes
        (name,) = self.tiers().kernel.call.signature.outputs
        return make_entry(self.tiers(), order, {name: shape})


class LlvmBackend:
    """Compiles programs."""

    name = "llvm"
    executes = True

    def build(
        self,
        schedule: Schedule,
        model: Model,
        frames: Sequence[str] = (),
        locked: Set[int] = frozenset(),
        tuning: Tuning = DEFAULT_TUNING,
    ) -> Executable:
        """See ``base.Backend``."""
        if not model.bodies:
            from phistar.backends.to_numpy import backend as numpy_backend

            return numpy_backend.build(schedule, model, frames, locked)
        return MachineCode(schedule, model, tuple(frames), frozenset(locked), tuning)

    def build_matrix(
        self,
        forms: Sequence[MatrixForm],
        model: Model,
        frames: Sequence[str],
        tuning: Tuning,
        request: Request = FULL_MATRIX,
    ) -> MatrixCode | None:
        """See ``base.Backend``; empty and enormous matrices are left to level 2."""
        if not model.bodies:
            return None
        code = MatrixCode(
            forms,
            model,
            tuple(frames),
            LoweringOptions.of(tuning.regroup_inertia, tuning.snap),
            request,
        )
        return None if decide(code.work, len(model.bodies)).shape == NUMPY else code

    def build_fused(
        self, assembly: LoweredBundle, model: Model, tuning: Tuning
    ) -> FusedCode | None:
        """See ``base.Backend``; large robots get their matrices one by one."""
        code = FusedCode(assembly, model, LoweringOptions.of(tuning.regroup_inertia, tuning.snap))
        return None if decide(code.work, len(model.bodies)).shape == NUMPY else code


def _program_text(schedule: Schedule) -> str:
    return repr((schedule.program.nodes, schedule.program.definitions, schedule.program.outputs))


backend = LlvmBackend()
