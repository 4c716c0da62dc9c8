# SPDX-License-Identifier: BSD-3-Clause
"""A step of time with joints that rub and stop and points that touch, as a program for one robot.

With v⁻ before the step of length h, and impulses λ of the rows L,

    v⁺ = v⁻ + 𝓜ₕ⁻¹(h(τ - 𝒞 - passive forces) + L*λ)        q⁺ = q ⊕ h v⁺
    σ = L v⁺ + ... = Δλ + g,    Δ = L𝓜ₕ⁻¹L*

in which 𝓜ₕ has h·damping + h²·stiffness added to the joints' own inertia A: springs and damping act
at the end of the step. Δ and Lv⁺ without λ come from the tree's sweep inward, rows as forces on
links (Γ, see ``loop_join``); λ from sweeps of projected Gauss-Seidel that begin with the impulses
of the step before; v⁺ from the sweep outward.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.scalar.graph import Scalar, select
from phistar.scalar.linear.vectors import Matrix, Vector, dot, plus, scaled, zeros
from phistar.scalar.lower import LoweringOptions, link_number_choices, quaternion_entries
from phistar.scalar.program import Signature, Store, Unrolled, count_arithmetic
from phistar.scalar.robot.link_numbers import LinkNumbers
from phistar.scalar.trace.configuration_programs import integrated
from phistar.scalar.trace.contact_geometry import ContactFrames, TouchingPoint
from phistar.scalar.trace.iterated_line import iterated_line, iterated_loads
from phistar.scalar.trace.loop_join import JoinSweep
from phistar.scalar.trace.projected_gauss_seidel import (
    ContactGroup,
    JointBounds,
    JointGroup,
    RowGroup,
    larger,
    smaller,
    sweep,
)
from phistar.scalar.trace.traced_bias import traced_bias
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.unilateral_rows import JointRow, StepRows
from phistar.sweeps.schedule import Schedule
from phistar.thresholds import POLICY


@dataclass(frozen=True)
class TreeBias:
    """The sweeps of 𝒞, and inputs that they are not given."""

    schedule: Schedule
    absent: Set[str]


def unilateral_step(model: Model, rows: StepRows, bias: TreeBias) -> Unrolled:
    """q, v, tau, dt, impulses -> ``q_next``, ``v_next``, ``impulses_next``.

    Impulses [N s] or [N m s]: of joints that rub or stop, then normal and two tangential ones of
    each contact.
    """
    options = LoweringOptions(regroup=True)
    found = [
        _StepTrace(model, links, rows, bias).program()
        for links in link_number_choices(model, frozenset(), options, flat=True)
    ]
    return min(found, key=lambda program: count_arithmetic(program.count()))


class _StepTrace:
    def __init__(
        self, model: Model, links: Sequence[LinkNumbers], rows: StepRows, bias: TreeBias
    ) -> None:
        self.model = model
        self.rows = rows
        self.robot = TracedLinks(links)
        self.graph = self.robot.graph
        self.order = joint_map(model).v_indices.tolist()
        self.h = self.graph.load("dt", 0)
        self.v: Vector = [self.graph.load("v", i) for i in self.order]
        self._bias = bias
        self.frames = ContactFrames(model, self.robot, self.v)

    @cached_property
    def rate_of_step(self) -> Scalar:
        """1/h."""
        return 1.0 / self.h

    def q(self, i: int) -> Scalar:
        """An entry of the configuration."""
        return self.graph.load("q", i)

    def force(self) -> Vector:
        """h(τ - 𝒞 - passive forces), in body order."""
        bias = traced_bias(self.model, self._bias.schedule, self._bias.absent, self.robot)
        tau = [self.graph.load("tau", i) for i in self.order]
        force = [x - y for x, y in zip(tau, bias, strict=True)]
        for row in self.rows.joints:
            i = self.order.index(row.v)
            if row.damping:
                force[i] = force[i] - row.damping * self.v[i]
            if row.stiffness:
                ahead = self.q(row.q) - row.rest + self.h * self.v[i]
                force[i] = force[i] - row.stiffness * ahead
        return scaled(self.h, force)

    def stiffen(self) -> None:
        """Add h·damping + h²·stiffness to the joints' own inertia."""
        added: dict[int, Scalar] = {
            row.v: self.h * (row.damping + row.stiffness * self.h)
            for row in self.rows.joints
            if row.damping or row.stiffness
        }
        if not added:
            return
        for k, (link, place) in enumerate(
            zip(self.robot.links, self.robot.placed_links, strict=True)
        ):
            own = [added.get(self.order[link.v + i], 0.0) for i in range(len(place.link.columns))]
            heavier = replace(place.link, armature=plus(place.link.armature, own))
            self.robot.placed_links[k] = replace(place, link=heavier)

    def program(self) -> Unrolled:
        """The program."""
        model, rows, g = self.model, self.rows, self.graph
        force = self.force()
        self.stiffen()
        bounded, points = rows.bounded, [self.frames.touching(row) for row in rows.contacts]
        inward = self._inward(force, points)
        offset = self._velocities(points)
        offset = plus(offset, inward.moved)
        delta = [[inward.between(i, j) for j in range(rows.count)] for i in range(rows.count)]
        groups: list[RowGroup] = [
            JointGroup(i, delta, offset, self._bounds(row, offset[i]))
            for i, row in enumerate(bounded)
        ]
        first = len(bounded)
        for k, (row, point) in enumerate(zip(rows.contacts, points, strict=True)):
            i = first + 3 * k
            offset[i] = offset[i] + self._approach(row.restitution, point, offset[i])
            groups.append(ContactGroup(i, delta, offset, row.friction))
        impulses = iterated_loads(g, max(rows.count, 1))
        following = sweep(groups, impulses)
        change, _ = inward.outward(impulses)
        ahead = zeros(model.nv)
        for i, x, y in zip(self.order, self.v, change, strict=True):
            ahead[i] = x + y
        q: Vector = [self.q(i) for i in range(model.nq)]
        stores = [
            Store(name, i, "", x)
            for name, values in (
                ("q_next", integrated(model, q, scaled(self.h, ahead))),
                ("v_next", ahead),
                ("impulses_next", impulses),
            )
            for i, x in enumerate(values)
        ]
        count = len(impulses)
        inputs = {"q": model.nq, "v": model.nv, "tau": model.nv, "dt": 1, "impulses": count}
        outputs = {"q_next": model.nq, "v_next": model.nv, "impulses_next": count}
        signature = Signature(inputs, outputs, quaternion_entries(model))
        start: Vector = [g.load("impulses", i) for i in range(count)]
        return iterated_line(signature, g, start, following, rows.sweeps, stores)

    def _inward(self, force: Vector, points: Sequence[TouchingPoint]) -> JoinSweep:
        """The sweep inward with all rows."""
        L: Matrix = [zeros(self.model.nv) for _ in range(self.rows.count)]
        for i, row in enumerate(self.rows.bounded):
            L[i][self.order.index(row.v)] = 1.0
        inward = JoinSweep(self.robot, L, zeros(len(L)), None)
        first = len(self.rows.bounded)
        for k, point in enumerate(points):
            for body, columns in point.forces.items():
                for i, column in enumerate(columns):
                    inward.links[body].rows[first + 3 * k + i] = scaled(-1.0, column)
        for k in reversed(range(len(self.robot.links))):
            inward.pass_joint(k, force)
        return inward

    def _velocities(self, points: Sequence[TouchingPoint]) -> Vector:
        """L v⁻."""
        found = [self.v[self.order.index(row.v)] for row in self.rows.bounded]
        for point in points:
            for i in range(3):
                parts = (
                    dot(columns[i], self.frames.velocity(body))
                    for body, columns in point.forces.items()
                )
                total: Scalar = 0.0
                for part in parts:
                    total = total + part
                found.append(total)
        return found

    def _bounds(self, row: JointRow, free: Scalar) -> JointBounds:
        """What a joint may do in this step."""
        friction: Scalar = row.friction * self.h if row.friction else 0.0
        v = self.v[self.order.index(row.v)]
        lower = upper = None
        if row.lower > -float("inf"):
            lower = -self._approach_of(row.restitution, self.q(row.q) - row.lower, v, free)
        if row.upper < float("inf"):
            upper = self._approach_of(row.restitution, row.upper - self.q(row.q), -v, -free)
        return JointBounds(friction, lower, upper)

    def _approach(self, restitution: float, point: TouchingPoint, free: Scalar) -> Scalar:
        """What the normal row adds to the velocity."""
        return self._approach_of(restitution, point.gap, point.speed, free)

    def _approach_of(self, restitution: float, gap: Scalar, speed: Scalar, free: Scalar) -> Scalar:
        """c of σ = v⁺ + c: the gap may be used up, or the speed comes back.

        Args:
            restitution: Of the row.
            gap: Distance, negative for a penetration.
            speed: Its rate before the step.
            free: Its rate after the step if nothing touched.
        """
        apart = larger(gap, 0.0) + self.rows.correction * smaller(gap, 0.0)
        held = apart * self.rate_of_step
        if restitution == 0.0:
            return held
        gravity = math.hypot(*self.model.gravity.tolist())
        fast = select(
            -speed, POLICY.resting_gravity_steps * gravity * self.h, restitution * speed, held
        )
        return select(0.0, gap + self.h * free, fast, held)
