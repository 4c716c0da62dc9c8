# SPDX-License-Identifier: BSD-3-Clause
"""A request on one robot: what all kinds have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING

from phistar.backends.policy import LOOPED, NUMPY, Decision, Work, decide
from phistar.errors import LoweringError
from phistar.model.model import Model
from phistar.model.wrenches import WrenchFrames
from phistar.sweeps.ir import StreamProgram, Type
from phistar.sweeps.matrix_requests import Full, MatrixForm
from phistar.sweeps.schedule import Schedule

if TYPE_CHECKING:
    from phistar.scalar.lower import LoweringOptions
    from phistar.scalar.program import Looped, ScalarProgram, Unrolled


Shape = tuple[int, ...]

EXTERNAL_FORCE = "f_ext"
OPTIONAL_INPUTS = (EXTERNAL_FORCE, "gravity")
"""Inputs with a value of their own: no external forces, the robot's gravity."""


MAX_LABEL_CHARACTERS = 80
"""Of a title: what was chosen may be long."""


@dataclass(frozen=True)
class Tuning:
    """What a backend may do; those that work on links as they are take no notice.

    Attributes:
        regroup_inertia: The program is about the motion of the whole robot: inertia that a joint
            cannot feel may be counted to its parent link, no output can tell.
        snap: Rotations closer than this to right angles, and smaller lengths and inertias, become
            exactly right or zero; None leaves the robot's numbers alone.
        shape: ``"straight"`` or ``"rolled"`` code, or ``"auto"``.
        keeps_zeros: Outputs have zeros already in entries that are zero for every state; these need
            not be written. Of matrices and bundles, for batches.
    """

    regroup_inertia: bool = False
    snap: float | None = None
    shape: str = "auto"
    keeps_zeros: bool = False

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
        label: Name of what was asked for.
    """

    model: Model
    tuning: Tuning = DEFAULT_TUNING
    label: str = ""

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
    def title(self) -> str:
        """What it is, for people: in the cache, and while it is compiled."""
        what = self.label or ", ".join(self.sample_shapes)
        return f"{self.model.name}: {shorten(what, MAX_LABEL_CHARACTERS, placeholder=' …')}"

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

    def reads_wrenches(self, at: WrenchFrames) -> bool:
        """Whether the unrolled program moves wrenches on frames to the links by itself."""
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
        """The unrolled program.

        Args:
            absent: Optional inputs that are not given.
            real: ``"double"`` or ``"float"``.
            wrenches: Frames on which wrenches are given in place of ``f_ext``.
        """

    def looped(self, absent: Set[str] = frozenset()) -> Looped:
        """The loops over the links, of programs that have them.

        Raises:
            LoweringError: It can only be unrolled.
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


def column_schedules(forms: Sequence[MatrixForm]) -> list[Schedule]:
    """Those in which a matrix is an operator applied to unit columns."""
    return [form.schedule for form in forms if form.name == "columns"]


def leaf_axes(programs: Sequence[StreamProgram]) -> dict[str, int]:
    """What programs read besides q: one axis for joint vectors, two for those of links."""
    return {
        node.data: 1 if node.type is Type.JOINT and node.op == "leaf" else 2
        for program in programs
        for node in (program.nodes[stream] for stream in program.live())
        if node.op in ("leaf", "scatter")
    }
