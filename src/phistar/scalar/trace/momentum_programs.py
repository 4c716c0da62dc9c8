# SPDX-License-Identifier: BSD-3-Clause
"""The centroidal momentum matrix, the Jacobian of the centre of mass and their rates, unrolled.

Composite inertias go inward, poses of the links outward; a joint gives its column the momentum of
all links beyond it, as one rigid body, about the centre of mass. The rates are those of the same
walk over numbers that know how they change: every joint's rotation R becomes R (1 + ε ω̃).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.model.numpy_kinematics import ground_mass_point
from phistar.scalar.graph import Scalar
from phistar.scalar.linear.dual_numbers import Dual, as_dual
from phistar.scalar.linear.inertias import RigidInertia
from phistar.scalar.linear.vectors import (
    AxisRotation,
    DenseRotation,
    Matrix,
    Rotation,
    RotationFactor,
    SignedPermutation,
    Vector,
    cross,
    minus,
    plus,
    scaled,
    times,
    zeros,
)
from phistar.scalar.program import Unrolled
from phistar.scalar.robot.link_scalars import link_scalars
from phistar.scalar.trace.kinematics_programs import (
    IDENTITY,
    PathStep,
    PathSteps,
    trace_cheapest,
)


def center_of_mass_jacobian(model: Model, mass: float) -> Unrolled:
    """q -> 3 nv numbers, rows one after the other: linear momentum by the mass of the robot.

    Args:
        model: The robot.
        mass: Of all links that are counted [kg].
    """

    def trace(steps: PathSteps) -> Vector:
        rows = _momentum_rows(model, steps, _still_steps(model, steps))
        return [x * (1.0 / mass) for row in rows[3:] for x in row]

    return trace_cheapest(model, ("q",), trace)


def center_of_mass_jacobian_rate(model: Model, mass: float) -> Unrolled:
    """q, v -> 3 nv numbers: how that changes."""

    def trace(steps: PathSteps) -> Vector:
        rows = _momentum_rows(model, steps, _moving_steps(model, steps))
        return [as_dual(x).change * (1.0 / mass) for row in rows[3:] for x in row]

    return trace_cheapest(model, ("q", "v"), trace)


def centroidal_momentum_matrix(model: Model) -> Unrolled:
    """q -> 6 nv numbers: momentum [angular; linear] about the centre of mass, world axes."""

    def trace(steps: PathSteps) -> Vector:
        rows = _momentum_rows(model, steps, _still_steps(model, steps))
        return [x for row in rows for x in row]

    return trace_cheapest(model, ("q",), trace)


def centroidal_momentum_matrix_rate(model: Model) -> Unrolled:
    """q, v -> 6 nv numbers: how that changes."""

    def trace(steps: PathSteps) -> Vector:
        rows = _momentum_rows(model, steps, _moving_steps(model, steps))
        return [as_dual(x).change for row in rows for x in row]

    return trace_cheapest(model, ("q", "v"), trace)


def linear_momentum_and_center(steps: PathSteps) -> tuple[Vector, Matrix]:
    """Centre of mass of all links, those on the ground included, and its rows (3, nv)."""
    model = steps.model
    joints = _still_steps(model, steps)
    whole = _whole_inertia(model, _composite_inertias(model, steps, joints), joints)
    *at_rest, resting = ground_mass_point(model).tolist()
    mass = float(model.inertias[:, 0].sum()) + resting
    rows = _momentum_rows(model, steps, joints)[3:]
    center = scaled(1.0 / mass, plus(whole.h, at_rest))
    return center, [scaled(1.0 / mass, row) for row in rows]


@dataclass(frozen=True)
class _Place:
    """Axes and origin of a link in the world."""

    rows: Matrix
    origin: Vector


def _momentum_rows(model: Model, steps: PathSteps, joints: Sequence[PathStep]) -> Matrix:
    """(6, nv), of which the angular half is about the centre of mass of what moves."""
    composite = _composite_inertias(model, steps, joints)
    whole = _whole_inertia(model, composite, joints)
    center = scaled(1.0 / whole.mass, whole.h)
    result = [zeros(model.nv) for _ in range(6)]
    for step, inertia, place in zip(joints, composite, _places(model, joints), strict=True):
        arm = minus(place.origin, center)
        for entry, axis in step.axes:
            momentum = inertia.times(axis)
            linear = times(place.rows, momentum[3:])
            angular = plus(times(place.rows, momentum[:3]), cross(arm, linear))
            for i, x in enumerate([*angular, *linear]):
                result[i][entry] = result[i][entry] + x
    return result


def _whole_inertia(
    model: Model, composite: Sequence[RigidInertia], joints: Sequence[PathStep]
) -> RigidInertia:
    """Of all links that move, about the world's origin."""
    whole = RigidInertia(0.0, zeros(3), zeros(6))
    for body in model.bodies:
        if body.parent == GROUND:
            whole = _joined(whole, composite[body.index], joints[body.index])
    return whole


def _composite_inertias(
    model: Model, steps: PathSteps, joints: Sequence[PathStep]
) -> list[RigidInertia]:
    """Of each link and all beyond it, in its axes."""
    links = [link_scalars(link) for link in steps.links]
    found = [RigidInertia(own.mass, own.h, own.J) for own in links]
    for body in reversed(model.bodies):
        if body.parent != GROUND:
            inner = found[body.parent]
            found[body.parent] = _joined(inner, found[body.index], joints[body.index])
    return found


def _joined(inner: RigidInertia, outer: RigidInertia, step: PathStep) -> RigidInertia:
    """The inertia of both sides of a joint, as seen from the inner one."""
    seen = outer.in_parent(step.rotation, step.offset)
    return RigidInertia(inner.mass + seen.mass, plus(inner.h, seen.h), plus(inner.J, seen.J))


def _places(model: Model, joints: Sequence[PathStep]) -> list[_Place]:
    """All links in the world, outward."""
    found: list[_Place] = []
    for body in model.bodies:
        step = joints[body.index]
        inner = _Place(IDENTITY, zeros(3)) if body.parent == GROUND else found[body.parent]
        origin = plus(inner.origin, times(inner.rows, step.offset))
        found.append(_Place(step.to_outer_axes(inner.rows), origin))
    return found


def _still_steps(model: Model, steps: PathSteps) -> list[PathStep]:
    return [steps.joint_step(body.index) for body in model.bodies]


def _moving_steps(model: Model, steps: PathSteps) -> list[PathStep]:
    """The steps in numbers that change as the robot moves with v."""
    return [_moving(steps, step) for step in _still_steps(model, steps)]


def _moving(steps: PathSteps, step: PathStep) -> PathStep:
    """A step whose rotation and offset change by the joint's own motion."""
    own = steps.joint_motion(step)
    (x, y, z), slide = own[:3], step.rotation.rotate(own[3:])
    skew: Matrix = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]
    spin = [[_dual(float(i == j), skew[i][j]) for j in range(3)] for i in range(3)]
    factors = (*(_dual_factor(factor) for factor in step.rotation.factors), DenseRotation(spin))
    offset = [_dual(p, rate) for p, rate in zip(step.offset, slide, strict=True)]
    return PathStep(Rotation(factors), offset, step.axes)


def _dual(value: Scalar, change: Scalar = 0.0) -> Scalar:
    """A number with its change, which formulas take for a scalar."""
    return cast("Scalar", Dual(value, change))


def _dual_factor(factor: RotationFactor) -> RotationFactor:
    """A factor that does not change, in numbers that might."""
    if isinstance(factor, AxisRotation):
        return AxisRotation(factor.axis, _dual(factor.c), _dual(factor.s))
    if isinstance(factor, SignedPermutation):
        return factor
    return DenseRotation([[_dual(x) for x in row] for row in factor.rows])
