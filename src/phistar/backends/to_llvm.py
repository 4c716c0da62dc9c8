# SPDX-License-Identifier: BSD-3-Clause
"""Machine code for one robot, a SIMD lane a sample: the default backend.

It computes in float64 and, where all inputs are float32, in float32. Other dtypes (complex for
complex steps, longdouble) run on the backend ``numpy``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.backends.base import (
    OPTIONAL,
    PLAIN,
    Executable,
    Quick,
    Tuning,
    Way,
    inputs_read,
    require_inputs,
)
from phistar.backends.batch import inexact
from phistar.backends.llvm.kernel import Kernel, text_of
from phistar.backends.llvm.lean import MANY
from phistar.backends.llvm.memory import pool
from phistar.backends.llvm.recipe import fingerprint
from phistar.backends.llvm.rows import REALS, as_rows
from phistar.backends.llvm.tiers import Tiers, compiling, policy
from phistar.backends.llvm.together import LARGEST, Together
from phistar.backends.llvm.ways import turned, way_into
from phistar.model.model import Model
from phistar.model.parts import GROUND
from phistar.scalar.links import ROUNDING
from phistar.scalar.lower import Options, to_rolled, to_straight
from phistar.scalar.matrix import WHOLE, layout, to_matrix, to_rolled_matrix
from phistar.spatial import force_transform
from phistar.sweeps.ir import Type
from phistar.sweeps.matrix import plan_of
from phistar.sweeps.requests import Assembly, Diag, Form, Full, Request
from phistar.sweeps.schedule import Schedule

Array = NDArray[Any]

STREAMS = 2
"""What a column of a matrix takes at a link, in streams of a program."""

LONGEST_LINE = 4000
"""Links times columns up to which a straight line is worth its size."""
LARGEST_MATRIX = 4_000_000
"""Entries up to which a matrix is compiled: the kernel keeps it once more for each lane."""
LARGEST_PART = 40_000
"""Operations up to which a straight line for a part of a matrix is worth its size."""
OFTEN = 3
"""A part of a matrix is compiled when it is asked for so many times: there are n² blocks."""
AT_ONCE = 2
"""Parts of matrices that are compiled at the same time; others have to wait."""

_DOUBLE = np.dtype(np.float64)


class MachineCode:
    """A program for one robot; a kernel for each precision and set of optional inputs."""

    def __init__(
        self,
        schedule: Schedule,
        model: Model,
        frames: tuple[str, ...],
        locked: frozenset[int],
        tuning: Tuning = PLAIN,
    ) -> None:
        self.schedule = schedule
        self.model = model
        self.frames = frames
        self.locked = locked
        self.shape = tuning.shape
        self.options = _options(tuning)
        self.read = inputs_read(schedule.program)
        program = schedule.program
        self._scatter = {n.data for n in program.nodes if n.op == "scatter"}
        self._joint = {n.data for n in program.nodes if n.op == "leaf" and n.type is Type.JOINT}
        self._tails = {
            name: () if program.nodes[stream].type is Type.JOINT else (len(model.bodies), 6)
            for name, stream in program.outputs.items()
        }
        self._tiers: dict[tuple[frozenset[str], str], Tiers] = {}
        self._numpy: Executable | None = None

    @property
    def source(self) -> str:
        """The LLVM text of the final shape, in double precision, without optional inputs."""
        from phistar.backends.llvm import engine

        kernel = self.tiers().wait()
        make = to_straight if kernel.shape == "straight" else to_rolled
        program = make(self.schedule, self.model, self._absent(()), self.locked, self.options)
        return text_of(program, engine.lanes_for(engine.host()))

    def _absent(self, given: Sequence[str]) -> frozenset[str]:
        return frozenset(name for name in OPTIONAL if name not in given)

    def tiers(self, given: Sequence[str] = (), real: str = "double") -> Tiers:
        """The kernels for some optional inputs and a precision."""
        absent = self._absent(given)
        key = (absent, real)
        if key not in self._tiers:
            arguments = (self.schedule, self.model, absent, self.locked, self.options)
            choices = (sorted(absent), sorted(self.locked), self.options)
            self._tiers[key] = Tiers(
                fingerprint(self.schedule, self.model, *choices),
                real,
                f"{self.model.name}: {', '.join(self.schedule.program.outputs)}",
                lambda: to_rolled(*arguments),
                lambda: to_straight(*arguments),
                len(self.model.bodies) * sum(1 for _ in self.schedule.program.live()),
                self.shape,
            )
        return self._tiers[key]

    def __call__(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """See ``base.Executable``."""
        return self.run(q, inputs)[0]

    def run(
        self,
        q: ArrayLike,
        inputs: Mapping[str, ArrayLike],
        out: Mapping[str, Array] | None = None,
    ) -> tuple[dict[str, Array], bool]:
        """See ``base.Executable``."""
        require_inputs(self.read, inputs)
        arrays = {"q": inexact(q)}
        arrays.update((name, inexact(inputs[name])) for name in self.read if name in inputs)
        dtype = np.result_type(*arrays.values())
        if dtype not in REALS:
            return self._by_numpy().run(q, inputs, out)
        for name in self._scatter & set(arrays):
            arrays[name] = self._on_links(arrays[name])
        tails = {name: 1 if name == "q" or name in self._joint else 2 for name in arrays}
        batch, lines = as_rows(arrays, tails)
        kernel = self.tiers(tuple(arrays), REALS[dtype]).kernel
        rows = [lines[name] for name in kernel.call.signature.inputs]
        count = math.prod(batch)
        sizes = kernel.call.signature.outputs
        given = {n: x.reshape(count, sizes[n]) for n, x in (out or {}).items()}
        results = {
            n: given[n] if n in given else pool.empty((count, m), dtype) for n, m in sizes.items()
        }
        finite = True
        if count:
            finite = kernel.call(rows, list(results.values()), fresh=not given)
        for name, x in (out or {}).items():
            if not np.may_share_memory(x, given[name]):
                # Its rows are no rows of equal distance: they were computed elsewhere.
                np.copyto(x, given[name].reshape(x.shape))
        shaped = {
            name: x.reshape(*batch, *(self._tails[name] or (sizes[name],)))
            for name, x in results.items()
        }
        return {**shaped, **(out or {})}, finite

    def quick(self, order: Sequence[str], keep: Callable[[Quick], None]) -> None:
        """See ``base.Executable``."""
        ((name, size),) = self.tiers().kernel.call.signature.outputs.items()
        tail = self._tails[name] or (size,)
        self.tiers().listen(lambda kernel: _hand_over(kernel, tail, order, keep))

    def ways(self, order: Sequence[str], keep: Callable[[Way], None]) -> None:
        """See ``base.Executable``."""

        def hand_over(kernel: Kernel) -> None:
            sizes = kernel.call.signature.outputs
            way = way_into(kernel, {name: self._tails[name] or (sizes[name],) for name in sizes})
            read = list(kernel.call.signature.inputs)
            if way is not None and sorted(read) == sorted(order):
                keep(way if read == list(order) else turned(way, [order.index(x) for x in read]))

        self.tiers().listen(hand_over)

    def _by_numpy(self) -> Executable:
        if self._numpy is None:
            from phistar.backends.to_numpy import backend as numpy_backend

            self._numpy = numpy_backend.build(self.schedule, self.model, self.frames, self.locked)
        return self._numpy

    def _on_links(self, forces: Array) -> Array:
        """Forces (..., frames, 6) on frames, as forces (..., bodies, 6) on the bodies."""
        shape = (*forces.shape[:-2], len(self.model.bodies), 6)
        result = np.zeros(shape, forces.dtype)
        for i, name in enumerate(self.frames):
            frame = self.model.frame(name)
            if frame.body != GROUND:
                moved = forces[..., i, :] @ force_transform(frame.body_pose).T
                result[..., frame.body, :] += moved
        return result


def lean_call(kernel: Kernel, tail: tuple[int, ...]) -> Quick:
    """A quick way into a kernel for plain arrays, one sample or a batch of moderate size.

    Closures, because attributes and packed arguments would take longer than the kernel.
    """
    lean, empty, size = kernel.lean, np.empty, math.prod(tail)
    assert lean is not None
    reshaped = len(tail) > 1

    def single(q: Any, v: Any, x: Any, out: Any = None) -> Array | None:
        result = empty(size) if out is None else out
        if lean(q, v, x, result):
            return result
        return batch(q, v, x, out=out)

    def any_number(*arrays: Any, out: Any = None) -> Array | None:
        result = empty(size) if out is None else out
        if lean(*arrays, result):
            return result.reshape(tail) if reshaped else result
        return batch(*arrays, out=out)

    def batch(*arrays: Any, out: Any = None) -> Array | None:
        q = arrays[0]
        if type(q) is not np.ndarray or q.ndim != 2 or not 0 < len(q) <= MANY:
            return None
        result = pool.empty((len(q), size), _DOUBLE) if out is None else out
        if not lean(*arrays, result):
            return None
        return result.reshape(len(q), *tail) if reshaped else result

    three = len(kernel.call.signature.inputs) == 3
    return single if three and not reshaped else any_number


def _hand_over(
    kernel: Kernel, tail: tuple[int, ...], order: Sequence[str], keep: Callable[[Quick], None]
) -> None:
    if kernel.lean is not None and list(kernel.call.signature.inputs) == list(order):
        keep(lean_call(kernel, tail))


class MatrixCode:
    """The matrix of an operator for one robot, or a part; a kernel for each precision."""

    def __init__(
        self,
        forms: Sequence[Form],
        model: Model,
        frames: tuple[str, ...],
        options: Options,
        request: Request = WHOLE,
    ) -> None:
        self.forms = forms
        self.model = model
        self.frames = frames
        self.options = options
        self.request = request
        answer = layout(forms[0], model, frames, request)
        self.shapes = [(len(rows), len(columns)) for rows, columns in answer]
        self._asked = 0
        given = {*(each.argument for each in forms), *OPTIONAL}
        self._leaves = {
            node.data: node
            for each in forms
            for node in each.schedule.program.nodes
            if node.op in ("leaf", "scatter") and node.data not in given
        }
        self._tiers: dict[str, Tiers] = {}

    def tiers(self, real: str = "double") -> Tiers:
        """The kernels for a precision."""
        if real not in self._tiers:
            arguments = (self.forms, self.model, self.frames, frozenset(OPTIONAL), self.options)
            choices = [
                *self.frames,
                self.options,
                self.request,
                *(_program(form.schedule) for form in self.forms),
            ]
            self._tiers[real] = Tiers(
                fingerprint(self.forms[0].schedule, self.model, "matrix", *choices),
                real,
                f"{self.model.name}: matrix, {self.request}",
                (lambda: to_rolled_matrix(*arguments)) if self.whole else None,
                lambda: to_matrix(*arguments, self.request),
                STREAMS * len(self.model.bodies) * max(map(max, self.shapes)),
                longest=STREAMS * LONGEST_LINE,
            )
        return self._tiers[real]

    @property
    def whole(self) -> bool:
        """Whether it is about all of the matrix: then there are loops for it."""
        return isinstance(self.request, Full)

    def _kernel(self, real: str) -> Kernel | None:
        """What is ready; parts of a matrix are compiled when it seems to pay."""
        tiers = self.tiers(real)
        if self.whole:
            return tiers.kernel
        self._asked += 1
        wait = self._asked < OFTEN or compiling() >= AT_ONCE
        return None if wait and policy() == "auto" and not tiers.begun else tiers.ready

    def __call__(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> Any:
        """See ``base.MatrixExecutable``."""
        arrays = {"q": inexact(q), **{name: inexact(inputs[name]) for name in self._leaves}}
        dtype = np.result_type(*arrays.values())
        if dtype not in REALS or any(name in inputs for name in OPTIONAL):
            return None
        kernel = self._kernel(REALS[dtype])
        if kernel is None:
            return None
        joint = {"q", *(n for n, node in self._leaves.items() if node.type is Type.JOINT)}
        axes = {name: 1 if name in joint else 2 for name in arrays}
        batch, lines = as_rows(arrays, axes)
        rows = [lines[name] for name in kernel.call.signature.inputs]
        sizes = [math.prod(shape) for shape in self.shapes]
        result = pool.empty((math.prod(batch), sum(sizes)), dtype)
        if result.size:
            kernel.call(rows, [result], fresh=True)
        if not isinstance(self.request, Diag):
            return result.reshape(*batch, *self.shapes[0])
        ends = accumulate(sizes)
        return [
            result[:, end - size : end].reshape(*batch, *shape)
            for size, end, shape in zip(sizes, ends, self.shapes, strict=True)
        ]

    def quick(self, order: Sequence[str], keep: Callable[[Quick], None]) -> None:
        """See ``base.Executable``."""
        (shape,) = self.shapes
        self.tiers().listen(lambda kernel: _hand_over(kernel, shape, order, keep))


class LlvmBackend:
    """Compiles programs."""

    name = "llvm"

    def build(
        self,
        schedule: Schedule,
        model: Model,
        frames: Sequence[str] = (),
        locked: Set[int] = frozenset(),
        tuning: Tuning = PLAIN,
    ) -> Executable:
        """See ``base.Backend``."""
        if not model.bodies:
            from phistar.backends.to_numpy import backend as numpy_backend

            return numpy_backend.build(schedule, model, frames, locked)
        return MachineCode(schedule, model, tuple(frames), frozenset(locked), tuning)

    def build_matrix(
        self,
        forms: Sequence[Form],
        model: Model,
        frames: Sequence[str],
        tuning: Tuning,
        request: Request = WHOLE,
    ) -> MatrixCode | None:
        """See ``base.Backend``; empty and enormous matrices are left to level 2."""
        if not model.bodies:
            return None
        code = MatrixCode(forms, model, tuple(frames), _options(tuning), request)
        entries = sum(math.prod(shape) for shape in code.shapes)
        if not 0 < entries <= LARGEST_MATRIX:
            return None
        if not code.whole:
            plan = plan_of(forms[0], request, model, tuple(frames))
            return code if plan.cost.total <= LARGEST_PART else None
        return code

    def build_together(self, assembly: Assembly, model: Model, tuning: Tuning) -> Together | None:
        """See ``base.Backend``; large robots get their matrices one by one."""
        code = Together(assembly, model, _options(tuning))
        return code if 0 < code.weight <= LARGEST else None


def _options(tuning: Tuning) -> Options:
    snap = ROUNDING if tuning.snap is None else tuning.snap
    return Options(regroup=tuning.whole, snap=snap)


def _program(schedule: Schedule) -> str:
    return repr((schedule.program.nodes, schedule.program.definitions, schedule.program.outputs))


backend = LlvmBackend()
