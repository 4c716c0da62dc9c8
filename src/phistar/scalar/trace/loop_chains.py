# SPDX-License-Identifier: BSD-3-Clause
"""A loop as a chain of joints from its predecessor frame F₁ to its successor frame F₂.

The chain runs inward from F₁ to the nearest common ancestor of the two links and outward to F₂.
What lies inboard moves both ends alike, so that neither rows nor their rates depend on it. All
vectors are motions of F₂ relative to F₁, [angular; linear] in the axes of F₂ at its origin. Joint g
moves F₂ by u(g) = Σ h(k) v(k) over its coordinates; S(g) is the sum over the joints between it and
F₂:

    V_r  = Σ u(g)
    V̇_r  = Σ h(k) v̇(k) + Σ u(g) × S(g)

A column h(k) turns with what moves between its link and F₂: a step of joint j there changes it by
-h(j) × h(k). For a joint of the predecessor's side that link is its own child, so its own steps
count as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from phistar.model.components import LoopJoint
from phistar.model.kinematic_loops import LoopEnd, loop_ends
from phistar.model.loop_kinds import LOOP_KINDS, RelativePose
from phistar.scalar.graph import Scalar
from phistar.scalar.linear.dual_numbers import DUAL_OPS, Dual, as_dual
from phistar.scalar.linear.vectors import (
    Matrix,
    Rotation,
    Vector,
    cross,
    dot,
    minus,
    plus,
    scaled,
    times,
    transposed,
    zeros,
)
from phistar.scalar.robot.joint_transforms import GRAPH_OPS, factor_rotation
from phistar.scalar.robot.link_numbers import placement_in_link
from phistar.scalar.trace.kinematics_programs import IDENTITY, PathStep, PathSteps


def motion_cross(x: Vector, y: Vector) -> Vector:
    """x × y of motions."""
    linear = plus(cross(x[:3], y[3:]), cross(x[3:], y[:3]))
    return [*cross(x[:3], y[:3]), *linear]


@dataclass(frozen=True)
class ChainJoint:
    """A joint of a chain.

    Attributes:
        columns: Of each of its coordinates the entry in v, and the motion it gives F₂.
        turns_itself: Whether its columns turn with its own steps: it is on the side of F₁.
    """

    columns: tuple[tuple[int, Vector], ...]
    turns_itself: bool

    def motion(self, rates: Sequence[Scalar]) -> Vector:
        """Σ h(k) x(k), of a vector over all coordinates."""
        total = zeros()
        for entry, column in self.columns:
            total = plus(total, scaled(rates[entry], column))
        return total


class LoopChain:
    """One loop of a robot in a graph."""

    def __init__(self, steps: PathSteps, loop: LoopJoint) -> None:
        self.loop = loop
        self.kind = LOOP_KINDS[loop.kind]
        first, second = loop_ends(steps.model, loop)
        one, two = steps.model.ancestors(first.body), steps.model.ancestors(second.body)
        shared = sum(1 for a, b in zip(one, two, strict=False) if a == b)
        path1 = [*(steps.joint_step(k) for k in one[shared:]), _end_step(steps, first)]
        path2 = [*(steps.joint_step(k) for k in two[shared:]), _end_step(steps, second)]
        self.pose = _relative_pose(path1, path2)
        to_f2 = [list(row) for row in transposed([list(row) for row in self.pose.R])]
        inner = _columns(path1, to_f2, list(self.pose.p), -1.0)
        outer = _columns(path2, IDENTITY, zeros(3), 1.0)
        joints = [ChainJoint(columns, True) for columns in reversed(inner) if columns]
        self.joints = joints + [ChainJoint(columns, False) for columns in outer if columns]

    @cached_property
    def wrenches(self) -> Matrix:
        """N: a wrench on the successor per row."""
        return [list(x) for x in self.kind.columns(self.loop, self.pose, GRAPH_OPS)]

    def wrench_rates(self, velocity: Vector) -> Matrix | None:
        """dN/dt; None if N is constant."""
        found = self.kind.column_rates(self.loop, self.pose, velocity, GRAPH_OPS)
        return None if found is None else [list(x) for x in found]

    def row_entries(self, nv: int) -> Matrix:
        """N* times the columns: the rows of this loop (rows, nv)."""
        result = [zeros(nv) for _ in self.wrenches]
        for joint in self.joints:
            for entry, column in joint.columns:
                for row, wrench in zip(result, self.wrenches, strict=True):
                    row[entry] = row[entry] + dot(wrench, column)
        return result

    def motions(self, v: Sequence[Scalar]) -> list[Vector]:
        """u of all joints."""
        return [joint.motion(v) for joint in self.joints]

    def rate_and_bias(self, v: Sequence[Scalar]) -> tuple[Vector, Vector]:
        """N*V_r, and its rate at v̇ = 0."""
        moved = self.motions(v)
        behind = zeros()
        turned = zeros()
        for u in reversed(moved):
            turned = plus(turned, motion_cross(u, behind))
            behind = plus(behind, u)
        velocity = behind
        rate = [dot(wrench, velocity) for wrench in self.wrenches]
        bias = [dot(wrench, turned) for wrench in self.wrenches]
        rates = self.wrench_rates(velocity)
        if rates is not None:
            bias = [x + dot(wrench, velocity) for x, wrench in zip(bias, rates, strict=True)]
        return rate, bias


def _end_step(steps: PathSteps, end: LoopEnd) -> PathStep:
    place = placement_in_link(steps.links, end.body, end.pose)
    return PathStep(Rotation(factor_rotation(place.R.tolist())), place.p.tolist())


def _relative_pose(path1: Sequence[PathStep], path2: Sequence[PathStep]) -> RelativePose:
    """F₂ in F₁: inward along one path, outward along the other."""
    axes, p = [list(row) for row in IDENTITY], zeros(3)
    for step in reversed(path2):
        axes, p = [step.rotation.rotate(x) for x in axes], step.point_inward(p)
    for step in path1:
        axes, p = [step.rotation.rotate_back(x) for x in axes], step.point_outward(p)
    return RelativePose(transposed(axes), p)


def _columns(
    path: Sequence[PathStep], rows: Matrix, r: Vector, sign: float
) -> list[tuple[tuple[int, Vector], ...]]:
    """Motions of F₂ by the joints of a path from the ancestor outward.

    Args:
        path: Its last step leads to an end frame.
        rows: From the axes of that frame to those of F₂.
        r: The origin of F₂ in the axes of that frame.
        sign: -1 on the side of F₁.
    """
    found = []
    for step in reversed(path):
        columns = []
        for entry, axis in step.axes:
            moved = plus(axis[3:], cross(axis[:3], r))
            columns.append((entry, scaled(sign, [*times(rows, axis[:3]), *times(rows, moved)])))
        found.append(tuple(columns))
        rows, r = step.to_inner_axes(rows), step.point_inward(r)
    return found[::-1]


class ChainTangents:
    """How a loop's rows change with q and v, at accelerations v̇ and multipliers λ."""

    def __init__(self, chain: LoopChain, v: Sequence[Scalar], vdot: Sequence[Scalar]) -> None:
        self.chain = chain
        self._moved = chain.motions(v)
        suffix = [zeros()]
        for u in reversed(self._moved):
            suffix.append(plus(suffix[-1], u))
        *self._behind, self.velocity = suffix
        self._behind.reverse()
        self._accelerated = [
            plus(joint.motion(vdot), motion_cross(u, behind))
            for joint, u, behind in zip(chain.joints, self._moved, self._behind, strict=True)
        ]
        self.acceleration = zeros()
        for x in self._accelerated:
            self.acceleration = plus(self.acceleration, x)

    def rows(self, nv: int) -> tuple[Matrix, Matrix, Matrix]:
        """d(Lv)/dq, d(Lv̇ + L̇v)/dq and d(Lv̇ + L̇v)/dv, each (rows, nv)."""
        count = len(self.chain.wrenches)
        rate_q, accel_q, accel_v = ([zeros(nv) for _ in range(count)] for _ in range(3))
        before, pushed = zeros(), zeros()
        for g, joint in enumerate(self.chain.joints):
            ahead, own, strictly = self._behind[g], self._moved[g], before
            if joint.turns_itself:
                before, pushed = plus(before, own), plus(pushed, self._accelerated[g])
            for entry, h in joint.columns:
                velocity = motion_cross(before, h)
                last = minus(self.velocity, before)
                change = plus(motion_cross(pushed, h), motion_cross(before, motion_cross(h, last)))
                by_v = motion_cross(h, minus(ahead, strictly))
                columns = self._row_changes(h, velocity, change, by_v)
                for i, (a, b, c) in enumerate(columns):
                    rate_q[i][entry] = rate_q[i][entry] + a
                    accel_q[i][entry] = accel_q[i][entry] + b
                    accel_v[i][entry] = accel_v[i][entry] + c
            if not joint.turns_itself:
                before, pushed = plus(before, own), plus(pushed, self._accelerated[g])
        return rate_q, accel_q, accel_v

    def _row_changes(
        self, h: Vector, velocity: Vector, change: Vector, by_v: Vector
    ) -> list[tuple[Scalar, Scalar, Scalar]]:
        """Changes of the rows as F₂ moves by h, V_r by ``velocity`` and V̇_r by ``change``."""
        chain = self.chain
        found = [(dot(x, velocity), dot(x, change), dot(x, by_v)) for x in chain.wrenches]
        rates = chain.wrench_rates(self.velocity)
        if rates is None:
            return found
        turned, turned_rates = _moving_columns(chain, h, self.velocity, velocity)
        _, rates_by_v = _moving_columns(chain, zeros(), self.velocity, h)
        result = []
        for i, (a, b, c) in enumerate(found):
            b = b + dot(turned[i], self.acceleration) + dot(turned_rates[i], self.velocity)
            b = b + dot(rates[i], velocity)
            c = c + dot(rates[i], h) + dot(rates_by_v[i], self.velocity)
            result.append((a + dot(turned[i], self.velocity), b, c))
        return result

    def force_rows(self, multipliers: Sequence[Scalar], nv: int) -> dict[tuple[int, int], Scalar]:
        """d(L*λ)/dq as entries by row and column."""
        chain = self.chain
        wrench = zeros()
        for x, column in zip(multipliers, chain.wrenches, strict=True):
            wrench = plus(wrench, scaled(x, column))
        constant = chain.wrench_rates(self.velocity) is None
        found: dict[tuple[int, int], Scalar] = {}
        for j, mover in enumerate(chain.joints):
            for moved, h in mover.columns:
                turned = _turned_wrench(wrench, h)
                extra = None if constant else self._wrench_change(multipliers, h)
                for k, joint in enumerate(chain.joints):
                    after = j > k or (j == k and joint.turns_itself)
                    for row, own in joint.columns:
                        value = dot(turned, own) if after else 0.0
                        if extra is not None:
                            value = value + dot(extra, own)
                        found[row, moved] = found.get((row, moved), 0.0) + value
        return found

    def _wrench_change(self, multipliers: Sequence[Scalar], h: Vector) -> Vector:
        """How Nλ changes as F₂ moves by h."""
        columns, _ = _moving_columns(self.chain, h, self.velocity, zeros())
        total = zeros()
        for x, column in zip(multipliers, columns, strict=True):
            total = plus(total, scaled(x, column))
        return total


def _turned_wrench(f: Vector, h: Vector) -> Vector:
    """The vector w with w·x = -(h × x)·f for every motion x."""
    linear = cross(h[:3], f[3:])
    angular = plus(cross(h[:3], f[:3]), cross(h[3:], f[3:]))
    return [*angular, *linear]


def _moving_columns(
    chain: LoopChain, h: Vector, velocity: Vector, velocity_change: Vector
) -> tuple[Matrix, Matrix]:
    """Changes of N and dN/dt as F₂ moves by h and its velocity changes."""
    at = chain.pose
    turned = [cross(list(row), h[:3]) for row in at.R]  # rows of R [h]×: row × h
    shifted = at.to_predecessor(h[3:])
    moving = RelativePose(
        [[Dual(x, d) for x, d in zip(row, change, strict=True)]
         for row, change in zip(at.R, turned, strict=True)],
        [Dual(x, d) for x, d in zip(at.p, shifted, strict=True)],
    )  # fmt: skip
    rates = [Dual(x, d) for x, d in zip(velocity, velocity_change, strict=True)]
    columns = chain.kind.columns(chain.loop, moving, DUAL_OPS)
    column_rates = chain.kind.column_rates(chain.loop, moving, rates, DUAL_OPS)
    assert column_rates is not None
    changes = [[as_dual(x).change for x in column] for column in columns]
    return changes, [[as_dual(x).change for x in column] for column in column_rates]
