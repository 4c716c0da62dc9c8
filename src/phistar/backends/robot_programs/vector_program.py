# SPDX-License-Identifier: BSD-3-Clause
"""A request for vectors on one robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from phistar.backends.policy import VectorWork
from phistar.backends.robot_programs.robot_program import (
    DEFAULT_TUNING,
    EXTERNAL_FORCE,
    RobotProgram,
    Shape,
    Tuning,
    leaf_axes,
)
from phistar.model.model import Model
from phistar.model.wrenches import WrenchFrames
from phistar.sweeps.ir import Type
from phistar.sweeps.parallel.parallel_schedule import ParallelSchedule
from phistar.sweeps.schedule import Schedule
from phistar.sweeps.stream_types import GROUND_COMPONENTS

if TYPE_CHECKING:
    from phistar.scalar.program import Looped, Unrolled


@dataclass(frozen=True, eq=False)
class VectorProgram(RobotProgram):
    """A program whose outputs are vectors.

    Attributes:
        schedule: The program.
        model: The robot.
        frames: Names of the frames that B selects, in order.
        locked: Bodies whose joints are not free: H has no row for them.
        tuning: What a backend may do.
        parallel: The program in rounds over all links; None: it is not wanted so.
        label: See ``RobotProgram``.
    """

    schedule: Schedule
    model: Model
    frames: tuple[str, ...] = ()
    locked: Set[int] = frozenset()
    tuning: Tuning = DEFAULT_TUNING
    parallel: ParallelSchedule | None = None
    label: str = ""

    @cached_property
    def work(self) -> VectorWork:
        """See ``RobotProgram``."""
        streams = sum(1 for _ in self.schedule.program.live())
        return VectorWork(streams, self.tuning.shape)

    @cached_property
    def input_axes(self) -> Mapping[str, int]:
        """See ``RobotProgram``."""
        return {"q": 1, **leaf_axes([self.schedule.program])}

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
