# SPDX-License-Identifier: BSD-3-Clause
"""A request for vectors and matrices together on one robot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from phistar.backends.policy import BundleWork
from phistar.backends.robot_programs.robot_program import (
    OPTIONAL_INPUTS,
    REGROUPED,
    RobotProgram,
    Shape,
    Tuning,
    column_schedules,
    leaf_axes,
)
from phistar.model.model import Model
from phistar.model.wrenches import WrenchFrames
from phistar.sweeps.matrix_requests import LoweredBundle
from phistar.sweeps.schedule import Schedule

if TYPE_CHECKING:
    from phistar.scalar.program import Unrolled


@dataclass(frozen=True, eq=False)
class BundleProgram(RobotProgram):
    """Vectors and matrices over the joints that are wanted together, joints in body order.

    Attributes:
        bundle: What is wanted.
        model: The robot.
        tuning: What a backend may do.
        label: See ``RobotProgram``.
    """

    bundle: LoweredBundle
    model: Model
    tuning: Tuning = REGROUPED
    label: str = ""

    @property
    def has_loops(self) -> bool:
        """There are none."""
        return False

    @cached_property
    def joints(self) -> int:
        """Joint velocities of all bodies."""
        return sum(body.joint_kind.nv for body in self.model.bodies)

    @property
    def work(self) -> BundleWork:
        """See ``RobotProgram``."""
        return BundleWork(self.joints, batches_only=self.tuning.keeps_zeros)

    @cached_property
    def input_axes(self) -> Mapping[str, int]:
        """See ``RobotProgram``; joint vectors only."""
        return {"q": 1, **{name: 1 for name in self._inputs()}}

    def _inputs(self) -> Iterator[str]:
        units = {form.argument for forms in self.bundle.matrices.values() for form in forms}
        if self.bundle.split is not None:
            units.add(self.bundle.split.argument)
        read = leaf_axes([schedule.program for schedule in self.schedules])
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
        bundle, tuning = self.bundle, self.tuning
        return tuning.options, tuning.keeps_zeros, (*bundle.matrices, *bundle.products.items())

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
        found = (column_schedules(forms)[0] for forms in self.bundle.matrices.values())
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
        found = to_fused(bundle, self.model, absent, self.tuning.options, wrenches)
        return replace(found, keeps_zeros=self.tuning.keeps_zeros)
