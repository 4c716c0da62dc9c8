# SPDX-License-Identifier: BSD-3-Clause
"""What backends make code of: a scheduled request on one robot, one class for each kind of request.

    VectorProgram    a schedule whose outputs are vectors
    MatrixProgram    the matrix of an operator, or a part of it
    BundleProgram    vectors and matrices that are wanted together
    TracedProgram    scalar operations that are traced for the robot directly

All say what they read and give and how large they are, and are traced to scalar operations in the
same way, so that a backend need not know which kind it has.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from phistar.backends.policy import (
    LOOPED,
    NUMPY,
    BundleWork,
    Decision,
    MatrixWork,
    VectorWork,
    Work,
    decide,
)
from phistar.errors import LoweringError
from phistar.model.model import Model
from phistar.model.wrenches import WrenchFrames
from phistar.sweeps.ir import StreamProgram, Type
from phistar.sweeps.matrix_plans import plan_for_form
from phistar.sweeps.matrix_requests import Diag, Full, LoweredBundle, MatrixForm, Request
from phistar.sweeps.schedule import Schedule
from phistar.sweeps.stream_types import GROUND_COMPONENTS
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.scalar.lower import LoweringOptions
    from phistar.scalar.program import Looped, ScalarProgram, Unrolled

Shape = tuple[int, ...]

EXTERNAL_FORCE = "f_ext"
OPTIONAL_INPUTS = (EXTERNAL_FORCE, "gravity")
"""Inputs with a value of their own: no external forces, the robot's gravity."""


@dataclass(frozen=True)
class Tuning:
    """What a backend may do; those that work on links as they are take no notice.

    Attributes:
        regroup_inertia: The program is about the motion of the whole robot: inertia that a joint
            cannot feel may be counted to its parent link, no output can tell.
        snap: Rotations closer than this to right angles, and smaller lengths and inertias, become
            exactly right or zero; None leaves the robot's numbers alone.
        shape: ``"straight"`` or ``"rolled"`` code, or ``"auto"``.
    """

    regroup_inertia: bool = False
    snap: float | None = None
    shape: str = "auto"

    @property
    def options(self) -> LoweringOptions:
        """The same for the lowering to scalars."""
        from phistar.scalar.lower import LoweringOptions

        return LoweringOptions.of(self.regroup_inertia, self.snap)


FULL_MATRIX = Full()
DEFAULT_TUNING = Tuning()
REGROUPED = Tuning(regroup_inertia=True)


class RobotProgram(ABC):
    """A request on one robot.

    Attributes:
        model: The robot.
        tuning: What a backend may do.
    """

    model: Model
    tuning: Tuning = DEFAULT_TUNING

    @property
    def has_loops(self) -> bool:
        """Whether there is a looped form."""
        return True

    @property
    def placed_frames(self) -> tuple[str, ...]:
        """Frames whose places are part of the code."""
        return ()

    @property
    def is_about_all(self) -> bool:
        """Whether the code may depend on all of the robot: names, fixed links."""
        return False

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is, for people."""

    @property
    @abstractmethod
    def work(self) -> Work:
        """What decisions are made by."""

    @property
    @abstractmethod
    def input_axes(self) -> Mapping[str, int]:
        """How many trailing axes of each input are one sample; the configuration is among them."""

    @property
    @abstractmethod
    def sample_shapes(self) -> Mapping[str, Shape]:
        """Shape of each output for one sample."""

    @property
    @abstractmethod
    def key_parts(self) -> Sequence[object]:
        """What decides the code besides the robot; by ``repr`` a part of the cache key."""

    @property
    def schedules(self) -> Sequence[Schedule]:
        """The sweeps that it is traced from; none if it is traced directly."""
        return ()

    @property
    def column_schedules(self) -> Sequence[Schedule]:
        """Those of them in which matrices are an operator applied to unit columns."""
        return self.schedules

    @property
    def optional_inputs(self) -> tuple[str, ...]:
        """Inputs that may be left out."""
        return ()

    def reads_wrenches(self, at: WrenchFrames) -> bool:
        """Whether the straight line moves wrenches on frames to the links by itself."""
        del at
        return False

    @property
    def decision(self) -> Decision:
        """How it is computed, whatever PHISTAR_TIER says."""
        return decide(self.work, len(self.model.bodies))

    def is_eager(self, tier: str) -> bool:
        """Whether a user waits for a program without loops to be compiled."""
        del tier
        return False

    def is_worth_compiling(self, requests: int, samples: int, compiling: int) -> bool:
        """Whether a program without loops was asked for often enough.

        Args:
            requests: Calls so far.
            samples: Their samples.
            compiling: Programs that are being compiled.
        """
        del requests, samples, compiling
        return True

    @abstractmethod
    def unrolled(
        self,
        absent: Set[str] = frozenset(),
        real: str = "double",
        wrenches: WrenchFrames | None = None,
    ) -> Unrolled:
        """The straight line.

        Args:
            absent: Optional inputs that are not given.
            real: ``"double"`` or ``"float"``.
            wrenches: Frames on which wrenches are given in place of ``f_ext``.
        """

    def looped(self, absent: Set[str] = frozenset()) -> Looped:
        """The loops over the links, of programs that have them.

        Raises:
            LoweringError: It is a straight line only.
        """
        raise LoweringError(f"{self.title}: there are no loops for it, only a straight line")

    def final_scalars(self) -> ScalarProgram:
        """The scalar program of the shape that it ends up in, without optional inputs."""
        looped = self.has_loops and self.decision.shape in (LOOPED, NUMPY)
        return self.traced("rolled" if looped else "straight")

    def traced(self, shape: str, absent: Set[str] | None = None) -> ScalarProgram:
        """The scalar program of a shape, ``"straight"`` or ``"rolled"``."""
        omitted = frozenset(OPTIONAL_INPUTS) if absent is None else absent
        return self.looped(omitted) if shape == "rolled" else self.unrolled(omitted)


@dataclass(frozen=True, eq=False)
class VectorProgram(RobotProgram):
    """A program whose outputs are vectors.

    Attributes:
        schedule: The program.
        model: The robot.
        frames: Names of the frames that B selects, in order.
        locked: Bodies whose joints are not free: H has no row for them.
        tuning: What a backend may do.
    """

    schedule: Schedule
    model: Model
    frames: tuple[str, ...] = ()
    locked: Set[int] = frozenset()
    tuning: Tuning = DEFAULT_TUNING

    @property
    def title(self) -> str:
        """See ``RobotProgram``."""
        return f"{self.model.name}: {', '.join(self.schedule.program.outputs)}"

    @cached_property
    def work(self) -> VectorWork:
        """See ``RobotProgram``."""
        streams = sum(1 for _ in self.schedule.program.live())
        return VectorWork(streams, self.tuning.shape)

    @cached_property
    def input_axes(self) -> Mapping[str, int]:
        """See ``RobotProgram``."""
        return {"q": 1, **_leaf_axes([self.schedule.program])}

    @cached_property
    def sample_shapes(self) -> Mapping[str, Shape]:
        """See ``RobotProgram``."""
        program = self.schedule.program
        return {n: self._shape(program.nodes[s].type) for n, s in program.outputs.items()}

    def _shape(self, kind: Type) -> Shape:
        if kind is Type.TOTAL:
            return ()
        if kind.at_ground:
            return (GROUND_COMPONENTS[kind],)
        bodies = self.model.bodies
        if kind is Type.JOINT:
            return (sum(b.joint_kind.nv for b in bodies if b.index not in self.locked),)
        return len(bodies), kind.width

    @property
    def key_parts(self) -> Sequence[object]:
        """See ``RobotProgram``."""
        return sorted(self.locked), self.tuning.options

    @property
    def schedules(self) -> Sequence[Schedule]:
        """See ``RobotProgram``."""
        return (self.schedule,)

    @property
    def optional_inputs(self) -> tuple[str, ...]:
        """See ``RobotProgram``."""
        return OPTIONAL_INPUTS

    def reads_wrenches(self, at: WrenchFrames) -> bool:
        """See ``RobotProgram``."""
        return EXTERNAL_FORCE in self.input_axes

    def unrolled(
        self,
        absent: Set[str] = frozenset(),
        real: str = "double",
        wrenches: WrenchFrames | None = None,
    ) -> Unrolled:
        """See ``RobotProgram``."""
        from phistar.scalar.lower import to_unrolled

        options = self.tuning.options
        return to_unrolled(self.schedule, self.model, absent, self.locked, options, wrenches)

    def looped(self, absent: Set[str] = frozenset()) -> Looped:
        """See ``RobotProgram``."""
        from phistar.scalar.lower import to_looped

        return to_looped(self.schedule, self.model, absent, self.locked, self.tuning.options)


@dataclass(frozen=True, eq=False)
class MatrixProgram(RobotProgram):
    """The matrix of an operator, or a part of it, joints in body order.

    Attributes:
        forms: Programs that give the same matrix.
        model: The robot.
        frames: Names of the frames that B selects, in order.
        tuning: What a backend may do.
        part: Which part of the matrix.
    """

    forms: Sequence[MatrixForm]
    model: Model
    frames: tuple[str, ...] = ()
    tuning: Tuning = DEFAULT_TUNING
    part: Request = FULL_MATRIX

    @property
    def title(self) -> str:
        """See ``RobotProgram``."""
        return f"{self.model.name}: matrix, {self.part}"

    @property
    def has_loops(self) -> bool:
        """Whether it is about all of the matrix: parts have none."""
        return isinstance(self.part, Full)

    @property
    def placed_frames(self) -> tuple[str, ...]:
        """See ``RobotProgram``."""
        return self.frames

    @cached_property
    def block_shapes(self) -> list[Shape]:
        """Of the matrix, or of each block on its diagonal."""
        from phistar.scalar.lower_matrix import result_blocks

        found = result_blocks(self.forms[0], self.model, self.frames, self.part)
        return [(len(rows), len(columns)) for rows, columns in found]

    @cached_property
    def work(self) -> MatrixWork:
        """See ``RobotProgram``."""
        entries = sum(math.prod(shape) for shape in self.block_shapes)
        operations = None
        if not self.has_loops:
            plan = plan_for_form(self.forms[0], self.part, self.model, self.frames)
            operations = plan.cost.total
        return MatrixWork(max(map(max, self.block_shapes), default=0), entries, operations)

    @cached_property
    def input_axes(self) -> Mapping[str, int]:
        """See ``RobotProgram``."""
        given = {*(form.argument for form in self.forms), "gravity"}
        read = _leaf_axes([form.schedule.program for form in self.forms])
        return {"q": 1, **{name: axes for name, axes in read.items() if name not in given}}

    @property
    def optional_inputs(self) -> tuple[str, ...]:
        """See ``RobotProgram``."""
        return (EXTERNAL_FORCE,) if EXTERNAL_FORCE in self.input_axes else ()

    @cached_property
    def sample_shapes(self) -> Mapping[str, Shape]:
        """See ``RobotProgram``; blocks on the diagonal are one row of numbers."""
        from phistar.scalar.lower_matrix import MATRIX_OUTPUT

        shapes = self.block_shapes
        total = (sum(math.prod(shape) for shape in shapes),)
        return {MATRIX_OUTPUT: total if isinstance(self.part, Diag) else shapes[0]}

    @property
    def key_parts(self) -> Sequence[object]:
        """See ``RobotProgram``."""
        return "matrix", *self.frames, self.tuning.options, self.part

    @property
    def schedules(self) -> Sequence[Schedule]:
        """See ``RobotProgram``."""
        return tuple(form.schedule for form in self.forms)

    @property
    def column_schedules(self) -> Sequence[Schedule]:
        """See ``RobotProgram``."""
        return _column_schedules(self.forms)

    def is_worth_compiling(self, requests: int, samples: int, compiling: int) -> bool:
        """See ``RobotProgram``; of parts."""
        enough = requests >= POLICY.part_requests_before_compile
        return enough and compiling < POLICY.max_parts_compiling

    def unrolled(
        self,
        absent: Set[str] = frozenset(),
        real: str = "double",
        wrenches: WrenchFrames | None = None,
    ) -> Unrolled:
        """See ``RobotProgram``."""
        from phistar.scalar.lower_matrix import to_unrolled_matrix

        return to_unrolled_matrix(
            self.forms,
            self.model,
            self.frames,
            absent,
            self.tuning.options,
            self.part,
        )

    def looped(self, absent: Set[str] = frozenset()) -> Looped:
        """See ``RobotProgram``."""
        from phistar.scalar.lower_matrix import to_looped_matrix

        return to_looped_matrix(self.forms, self.model, self.frames, absent, self.tuning.options)


@dataclass(frozen=True, eq=False)
class BundleProgram(RobotProgram):
    """Vectors and matrices over the joints that are wanted together, joints in body order.

    Attributes:
        bundle: What is wanted.
        model: The robot.
        tuning: What a backend may do.
    """

    bundle: LoweredBundle
    model: Model
    tuning: Tuning = REGROUPED

    @property
    def has_loops(self) -> bool:
        """There are none."""
        return False

    @property
    def title(self) -> str:
        """See ``RobotProgram``."""
        return f"{self.model.name}: {', '.join(self.bundle.outputs)}"

    @cached_property
    def joints(self) -> int:
        """Joint velocities of all bodies."""
        return sum(body.joint_kind.nv for body in self.model.bodies)

    @property
    def work(self) -> BundleWork:
        """See ``RobotProgram``."""
        return BundleWork(self.joints)

    @cached_property
    def input_axes(self) -> Mapping[str, int]:
        """See ``RobotProgram``; joint vectors only."""
        return {"q": 1, **{name: 1 for name in self._inputs()}}

    def _inputs(self) -> Iterator[str]:
        units = {form.argument for forms in self.bundle.matrices.values() for form in forms}
        if self.bundle.split is not None:
            units.add(self.bundle.split.argument)
        read = _leaf_axes([schedule.program for schedule in self.schedules])
        return (name for name in read if name not in {*units, *OPTIONAL_INPUTS})

    @cached_property
    def sample_shapes(self) -> Mapping[str, Shape]:
        """See ``RobotProgram``."""
        n = self.joints
        vectors = dict.fromkeys(self.bundle.vectors.program.outputs, (n,))
        return {**vectors, **dict.fromkeys(self.bundle.outputs, (n, n))}

    @property
    def key_parts(self) -> Sequence[object]:
        """See ``RobotProgram``."""
        bundle = self.bundle
        return self.tuning.options, (*bundle.matrices, *bundle.products.items())

    @property
    def schedules(self) -> Sequence[Schedule]:
        """See ``RobotProgram``."""
        bundle = self.bundle
        found = [form.schedule for forms in bundle.matrices.values() for form in forms]
        walks = [] if bundle.split is None else [bundle.split.schedule]
        return (bundle.vectors, *found, *walks)

    @property
    def column_schedules(self) -> Sequence[Schedule]:
        """See ``RobotProgram``."""
        found = (_column_schedules(forms)[0] for forms in self.bundle.matrices.values())
        return (self.bundle.vectors, *found)

    def is_eager(self, tier: str) -> bool:
        """See ``RobotProgram``."""
        return self.decision.eager and tier != "rolled"

    def reads_wrenches(self, at: WrenchFrames) -> bool:
        """See ``RobotProgram``; walks along branches know no forces that change in link axes."""
        return bool(self.bundle.matrices) or not at.turn

    def unrolled(
        self,
        absent: Set[str] = frozenset(),
        real: str = "double",
        wrenches: WrenchFrames | None = None,
    ) -> Unrolled:
        """See ``RobotProgram``."""
        from phistar.scalar.lower_fused import to_fused

        bundle = self.bundle
        if real == "float" and bundle.matrices:
            # Walks in common axes lose a digit more on long robots.
            bundle = replace(bundle, split=None)
        return to_fused(bundle, self.model, absent, self.tuning.options, wrenches)


@dataclass(frozen=True, eq=False)
class TracedProgram(RobotProgram):
    """Scalar operations that are traced for the robot directly.

    Attributes:
        name: What it computes, and the choices that were made.
        model: The robot.
        inputs: Names of what it reads, in the order of the arguments.
        shapes: Shape of each output for one sample.
        size: How much work it is.
        trace: Gives the program.
    """

    name: tuple[object, ...]
    model: Model
    inputs: tuple[str, ...]
    shapes: Mapping[str, Shape]
    size: Work
    trace: Callable[[], Unrolled]

    @property
    def title(self) -> str:
        """See ``RobotProgram``."""
        return f"{self.model.name}: {' '.join(map(str, self.name))}"

    @property
    def has_loops(self) -> bool:
        """There are none."""
        return False

    @property
    def is_about_all(self) -> bool:
        """See ``RobotProgram``."""
        return True

    @property
    def work(self) -> Work:
        """See ``RobotProgram``."""
        return self.size

    @property
    def sample_shapes(self) -> Mapping[str, Shape]:
        """See ``RobotProgram``."""
        return self.shapes

    @property
    def input_axes(self) -> Mapping[str, int]:
        """See ``RobotProgram``."""
        return dict.fromkeys(self.inputs, 1)

    @property
    def key_parts(self) -> Sequence[object]:
        """See ``RobotProgram``."""
        return "traced", *self.name

    def is_eager(self, tier: str) -> bool:
        """See ``RobotProgram``."""
        del tier
        return self.decision.eager

    def is_worth_compiling(self, requests: int, samples: int, compiling: int) -> bool:
        """See ``RobotProgram``."""
        return samples >= POLICY.samples_before_compile

    def unrolled(
        self,
        absent: Set[str] = frozenset(),
        real: str = "double",
        wrenches: WrenchFrames | None = None,
    ) -> Unrolled:
        """See ``RobotProgram``."""
        return self.trace()


def _column_schedules(forms: Sequence[MatrixForm]) -> list[Schedule]:
    return [form.schedule for form in forms if form.name == "columns"]


def _leaf_axes(programs: Sequence[StreamProgram]) -> dict[str, int]:
    """What programs read besides q: one axis for joint vectors, two for those of links."""
    return {
        node.data: 1 if node.type is Type.JOINT and node.op == "leaf" else 2
        for program in programs
        for node in (program.nodes[stream] for stream in program.live())
        if node.op in ("leaf", "scatter")
    }
