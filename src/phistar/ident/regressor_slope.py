# SPDX-License-Identifier: BSD-3-Clause
"""The slope of a weighted sum of regressor entries, exactly, from values of the regressor.

A regressor is linear in v̇, quadratic in v, and a trigonometric polynomial of degree two in the
angle of each joint that turns (a quadratic in the way of one that slides), as 𝓜 is and its
derivatives are. Slopes of such functions are sums of a few of their values, without any error but
rounding:

    linear       f(1) - f(0)
    quadratic    (f(x + 1) - f(x - 1)) / 2
    degree two   Σ_μ c_μ f(x + (2μ - 1)π/4),  c_μ = (-1)^(μ-1) / (8 sin²((2μ - 1)π/8)),  μ = 1..4

so that the compiled regressor gives its own derivative, seven values for each joint.
"""

from __future__ import annotations

import math

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.ident.columns import PER_BODY, Columns
from phistar.model.joint_map import joint_map
from phistar.robot import Robot

_TURNS = [(2 * mu - 1) * math.pi / 4.0 for mu in range(1, 5)]
TURNING = [
    (shift, (-1.0) ** k / (8.0 * math.sin(shift / 2.0) ** 2)) for k, shift in enumerate(_TURNS)
]
"""Shifts of an angle and their coefficients."""
SLIDING = [(1.0, 0.5), (-1.0, -0.5)]
"""The same of a way."""
TURNING_KINDS = ("revolute", "continuous")
SLIDING_KINDS = ("prismatic",)


def shifts_of(robot: Robot) -> list[list[tuple[float, float]]]:
    """For each coordinate the shifts whose values give the slope.

    Raises:
        ArgumentError: A joint has several axes, or follows another one by an angle.
    """
    model = robot.model
    found = []
    for name in model.joint_names:
        kind = model.joints[name].joint_kind.name
        if kind not in (*TURNING_KINDS, *SLIDING_KINDS):
            raise ArgumentError(
                f"joint '{name}' of '{robot.name}' is {kind}; periodic motions are found for "
                "joints that turn about or slide along one axis"
            )
        found.append(TURNING if kind in TURNING_KINDS else SLIDING)
    if not joint_map(model).one_to_one:
        followers = [x for x in model.joints.values() if x.mimic is not None]
        turning = [x.name for x in followers if x.joint_kind.name in TURNING_KINDS]
        if turning:
            raise ArgumentError(
                f"joint '{turning[0]}' follows another one; load '{robot.name}' with "
                "mimic='independent', or lock it"
            )
    return found


def regressor_slope(
    columns: Columns, weights: Array, q: Array, v: Array, vdot: Array
) -> tuple[Array, Array, Array]:
    """∂/∂q, ∂/∂v, ∂/∂v̇ (N, nv) of the sum of weights times columns, sample by sample.

    Dry friction counts as constant: it is, but where a velocity changes its sign.

    Args:
        columns: Of a robot.
        weights: (N, nv, columns).
        q, v, vdot: (N, nq), (N, nv), (N, nv).
    """
    robot = columns.robot
    spread = np.zeros((len(q), robot.nv, PER_BODY * len(robot.model.bodies)))
    spread[..., columns.inertial_entries] = weights[..., : columns.inertial]
    whole = spread.reshape(len(q), -1)

    def value(q: Array, v: Array, vdot: Array) -> Array:
        rows = robot.regressor(q, v, vdot).reshape(len(q), -1)
        return np.asarray(np.einsum("ni,ni->n", whole, rows))

    along = np.zeros((3, len(q), robot.nv))
    zero = np.zeros_like(v)
    rest = value(q, zero, zero)
    shifts = shifts_of(robot)
    for i, unit in enumerate(np.eye(robot.nv)):
        along[0, :, i] = sum(c * value(q + shift * unit, v, vdot) for shift, c in shifts[i])
        along[1, :, i] = 0.5 * (value(q, v + unit, zero) - value(q, v - unit, zero))
        along[2, :, i] = value(q, zero, np.broadcast_to(unit, v.shape)) - rest
    joints = list(columns.joints)
    for k, kind in enumerate(columns.kinds):
        start = columns.inertial + k * len(joints)
        own = weights[:, joints, range(start, start + len(joints))]
        axis = {"spring": 0, "viscous": 1, "rotor": 2}.get(kind)
        if axis is not None:
            along[axis][:, joints] += own
    return along[0], along[1], along[2]
