# SPDX-License-Identifier: BSD-3-Clause
"""Rates of the tangent step u between two configurations of a joint, on scalars, for any kind.

With q = q₀ ⊕ u and the joint velocity v, J the right Jacobian of steps,

    v = J(u) u̇          u̇ = E v, E = J⁻¹          v̇ = J ü + J̇ u̇

For kinds on which a step is a sum E is the identity and J̇ = 0. For the others they are those of
SE(3) at the motion H* u. Its Jacobian is that of SO(3), J(w) = 1 - b w̃ + c w̃², at w + εp with
ε² = 0, w the rotation and p the translation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from phistar.model.joints import JointKind
from phistar.scalar.graph import Scalar, select
from phistar.scalar.linear.dual_numbers import Dual
from phistar.scalar.linear.elementary import HalfAngle, horner
from phistar.scalar.linear.vectors import (
    Vector,
    cross,
    dot,
    minus,
    plus,
    scaled,
    times,
    transposed,
)
from phistar.scalar.trace.step_jacobians import joint_motion, joint_speeds, se3_adjoint
from phistar.spatial import entries

DualVector = list[Dual]

_TERMS = 9
"""Of the power series below, which are for angles below one."""


def _series(first: int, order: int) -> tuple[float, ...]:
    """Σ (-s)^k / (2k + first)!, differentiated ``order`` times in s; the highest power first."""
    found = []
    for k in reversed(range(order, _TERMS + order)):
        found.append((-1) ** k * math.perm(k, order) / math.factorial(2 * k + first))
    return tuple(found)


class TurnFunctions:
    """b(s), c(s) and their derivatives in s = θ², accurate at every angle up to a turn.

    Attributes:
        b, c: (1 - cos θ) / θ² and (θ - sin θ) / θ³.
        b1, c1: First derivatives.
        b2, c2: Second ones.
    """

    def __init__(self, square: Scalar) -> None:
        half = HalfAngle(square)
        s = half.square
        self.half = half

        def exact(far: Scalar, first: int, order: int) -> Scalar:
            return select(s, 1.0, far, horner(_series(first, order), s))

        b, c = half.versine_ratio, half.exact_sine_defect
        b1 = exact((0.5 * half.sine_ratio - b) / s, 2, 1)
        c1 = exact(0.5 * (b - 3.0 * c) / s, 3, 1)
        self.b, self.c, self.b1, self.c1 = b, c, b1, c1
        self.b2 = exact((0.25 * (c - b) - 2.0 * b1) / s, 2, 2)
        self.c2 = exact(0.5 * (b1 - 5.0 * c1) / s, 3, 2)


@dataclass(frozen=True)
class ScrewRates:
    """The functions above of SE(3) at a motion u, [angular; linear]."""

    u: Vector

    @cached_property
    def _functions(self) -> TurnFunctions:
        return TurnFunctions(dot(self.u[:3], self.u[:3]))

    @cached_property
    def _w(self) -> DualVector:
        return _dual(self.u)

    @cached_property
    def _along(self) -> Scalar:
        """The change of s by ε."""
        return 2.0 * dot(self.u[:3], self.u[3:])

    def _coefficient(self, value: Scalar, slope: Scalar) -> Dual:
        return Dual(value, slope * self._along)

    def velocity(self, rate: Vector) -> Vector:
        """J u̇."""
        f, x = self._functions, _dual(rate)
        turn = entries.cross(self._w, x)
        b, c = self._coefficient(f.b, f.b1), self._coefficient(f.c, f.c1)
        again = entries.cross(self._w, turn)
        return _flat([p - b * y + c * z for p, y, z in zip(x, turn, again, strict=True)])

    def rate(self, v: Vector) -> Vector:
        """E v: J has the form [[J, 0], [Q, J]]."""
        angular = self._unbent(v[:3])
        carried = self.velocity([*angular, 0.0, 0.0, 0.0])[3:]
        return [*angular, *self._unbent(minus(v[3:], carried))]

    def rate_adjoint(self, y: Vector) -> Vector:
        """E* y: the blocks J* and Q* are those at -u."""
        back = ScrewRates(scaled(-1.0, self.u))
        linear = back._unbent(y[3:])
        carried = back.velocity([*linear, 0.0, 0.0, 0.0])[3:]
        return [*back._unbent(minus(y[:3], carried)), *linear]

    def _unbent(self, x: Vector) -> Vector:
        """J(w)⁻¹ x of SO(3)."""
        w = self.u[:3]
        turn = cross(w, x)
        more = scaled(self._functions.half.cotangent_defect, cross(w, turn))
        return plus(plus(x, scaled(0.5, turn)), more)

    def bend(self, rate: Vector) -> Vector:
        """J̇ u̇ as u changes at the rate u̇: -ḃ w × ẇ + ċ w × (w × ẇ) + c ẇ × (w × ẇ)."""
        f, x = self._functions, _dual(rate)
        turn = entries.cross(self._w, x)
        speed = 2.0 * entries.dot(self._w, x)
        b_rate = speed * self._coefficient(f.b1, f.b2)
        c_rate = speed * self._coefficient(f.c1, f.c2)
        c = self._coefficient(f.c, f.c1)
        again, across = entries.cross(self._w, turn), entries.cross(x, turn)
        return _flat(
            [c_rate * y - b_rate * z + c * a for y, z, a in zip(again, turn, across, strict=True)]
        )


def _dual(x: Vector) -> DualVector:
    return [Dual(a, b) for a, b in zip(x[:3], x[3:], strict=True)]


def _flat(x: DualVector) -> Vector:
    return [*(each.value for each in x), *(each.change for each in x)]


@dataclass(frozen=True)
class StepRates:
    """The functions above of a joint, at the step u from one configuration to another.

    Attributes:
        kind: Of the joint.
        u: (nv,).
    """

    kind: JointKind
    u: Vector

    @cached_property
    def _screw(self) -> ScrewRates:
        return ScrewRates(joint_motion(self.kind, self.u))

    def _in_joint(self, function: Callable[[Vector], Vector], x: Vector) -> Vector:
        """A motion of the joint that a function makes of another, in joint velocities."""
        return times(joint_speeds(self.kind), function(joint_motion(self.kind, x)))

    def rate(self, v: Vector) -> Vector:
        """u̇ = E v."""
        return v if self.kind.is_euclidean else self._in_joint(self._screw.rate, v)

    def rate_adjoint(self, y: Vector) -> Vector:
        """E* y: H E* (H*⁺)* y."""
        if self.kind.is_euclidean:
            return y
        motion = times(transposed(joint_speeds(self.kind)), y)
        turned = self._screw.rate_adjoint(motion)
        units = [[float(i == j) for j in range(self.kind.nv)] for i in range(self.kind.nv)]
        return [dot(joint_motion(self.kind, list(unit)), turned) for unit in units]

    def velocity(self, rate: Vector) -> Vector:
        """J u̇."""
        return rate if self.kind.is_euclidean else self._in_joint(self._screw.velocity, rate)

    def bend(self, rate: Vector) -> Vector:
        """J̇ u̇."""
        if self.kind.is_euclidean:
            return [0.0] * self.kind.nv
        return self._in_joint(self._screw.bend, rate)

    def carried(self, v: Vector) -> Vector:
        """A velocity at the start of the step in the axes at its end, Ad(exp(-u)) v."""
        if self.kind.is_euclidean:
            return v
        adjoint = se3_adjoint(joint_motion(self.kind, self.u))
        return self._in_joint(lambda x: times(adjoint, x), v)
