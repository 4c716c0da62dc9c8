# SPDX-License-Identifier: BSD-3-Clause
"""What rows with bounded multipliers ask of the velocity after a step: the laws of stops and gaps.

A normal row has 0 <= λ ⟂ σ >= 0 with σ = v⁺ + c: c is how fast the gap may be used up or has to be
taken back, or the speed that comes back from an impact. A joint's v⁺ is held between such bounds
after dry friction has taken what it may.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from phistar.model.model import Model
from phistar.scalar.graph import Scalar, select
from phistar.scalar.linear.elementary import larger, smaller
from phistar.scalar.linear.vectors import Matrix, Vector
from phistar.scalar.trace.projected_gauss_seidel import (
    ContactGroup,
    JointBounds,
    JointGroup,
    RowGroup,
)
from phistar.scalar.trace.unilateral_rows import JointRow, StepRows
from phistar.thresholds import POLICY


@dataclass(frozen=True)
class RowState:
    """Where a row is at the start of a step: coordinate or gap, and its rate."""

    place: Scalar
    rate: Scalar


class RowLaws:
    """The laws of a robot's rows over a step.

    Args:
        model: The robot; its gravity tells what is slow.
        rows: Its rows.
        h: Length of the step.
        joints: Coordinates of joints that rub or stop, in order.
        contacts: Gaps of pairs that may touch, in order.
        least: Mobilities of these joints below which something holds them; none: never.
    """

    def __init__(
        self,
        model: Model,
        rows: StepRows,
        h: Scalar,
        joints: Sequence[RowState],
        contacts: Sequence[RowState],
        least: Sequence[float] = (),
    ) -> None:
        self.rows = rows
        self.h = h
        self.joints = joints
        self.contacts = contacts
        self._least = least or [0.0] * len(joints)
        self._gravity = math.hypot(*model.gravity.tolist())
        self._rate_of_step = 1.0 / h

    def groups(self, delta: Matrix, free: Vector) -> tuple[list[RowGroup], Vector]:
        """Rows that are solved together, and g of σ = Δλ + g.

        Args:
            delta: Δ.
            free: Rates of all rows after a step without multipliers.
        """
        bounded, offset = self.rows.bounded, list(free)
        groups: list[RowGroup] = []
        for i, (row, state) in enumerate(zip(bounded, self.joints, strict=True)):
            bounds = self.bounds(row, state, free[i])
            groups.append(JointGroup(i, delta, bounds, self._least[i]))
        for k, (pair, state) in enumerate(zip(self.rows.contacts, self.contacts, strict=True)):
            i = len(bounded) + 3 * k
            offset[i] = free[i] + self.approach(pair.restitution, state.place, state.rate, free[i])
            groups.append(ContactGroup(i, delta, pair.friction))
        return groups, offset

    def bounds(self, row: JointRow, state: RowState, free: Scalar) -> JointBounds:
        """What a joint may do in this step."""
        friction: Scalar = row.friction * self.h if row.friction else 0.0
        lower = upper = None
        if row.lower > -math.inf:
            way = state.place - row.lower
            lower = -self.approach(row.restitution, way, state.rate, free)
        if row.upper < math.inf:
            way = row.upper - state.place
            upper = self.approach(row.restitution, way, -state.rate, -free)
        return JointBounds(friction, lower, upper)

    def approach(self, restitution: float, gap: Scalar, speed: Scalar, free: Scalar) -> Scalar:
        """c of σ = v⁺ + c: the gap may be used up, or the speed comes back.

        Args:
            restitution: Of the row.
            gap: Distance, negative for a penetration.
            speed: Its rate before the step.
            free: Its rate after the step if nothing touched.
        """
        back = self.rows.correction * smaller(gap, 0.0) * self._rate_of_step
        back = larger(back, -POLICY.max_correction_speed)
        held = larger(gap, 0.0) * self._rate_of_step + back
        if restitution == 0.0:
            return held
        slow = POLICY.resting_gravity_steps * self._gravity * self.h
        fast = select(-speed, slow, restitution * speed, held)
        return select(0.0, gap + self.h * free, fast, held)
