# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of steps of single joints on scalars, for any joint kind.

    step_adjoint(u)         Ad(exp(-u)): where a step at q ends up after a common step u
    right_jacobian(u)       by how much the end of a step u moves if u changes

Both are the identity for kinds on which a step is a sum. For the others they are those of SE(3) at
the motion H* u, in the joint's own velocities; what is zero in H* drops out.
"""

from __future__ import annotations

import numpy as np

from phistar.model.joints import JointKind
from phistar.scalar.graph import Scalar
from phistar.scalar.linear.elementary import HalfAngle
from phistar.scalar.linear.vectors import Matrix, Vector, cross, dot, minus, plus, scaled, times

IDENTITY: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def step_jacobians(kind: JointKind, step: Vector) -> tuple[Matrix, Matrix]:
    """Both matrices of a joint."""
    if kind.is_euclidean:
        eye: Matrix = [[float(i == j) for j in range(kind.nv)] for i in range(kind.nv)]
        return eye, eye
    motion = joint_motion(kind, step)
    return _in_joint(kind, se3_adjoint(motion)), _in_joint(kind, se3_right_jacobian(motion))


def joint_motion(kind: JointKind, speeds: Vector) -> Vector:
    """H* v, six numbers."""
    motion: Vector = [0.0] * 6
    for column, speed in zip(kind.columns(), speeds, strict=True):
        for component, factor in column:
            motion[component] = motion[component] + factor * speed
    return motion


def joint_speeds(kind: JointKind) -> Matrix:
    """(H*)⁺ (nv, 6): the joint velocities of a motion of the joint."""
    H = np.zeros((6, kind.nv))
    for j, column in enumerate(kind.columns()):
        for component, factor in column:
            H[component, j] = factor
    back = H.T if np.array_equal(H.T @ H, np.eye(kind.nv)) else np.linalg.pinv(H)
    return [list(row) for row in back.tolist()]


def _in_joint(kind: JointKind, matrix: Matrix) -> Matrix:
    """(H*)⁺ X H* of a matrix (6, 6) that takes motions of the joint to such."""
    rows = joint_speeds(kind)
    units = [[float(i == j) for j in range(kind.nv)] for i in range(kind.nv)]
    columns = [times(rows, times(matrix, joint_motion(kind, list(unit)))) for unit in units]
    return [list(row) for row in zip(*columns, strict=True)]


def so3_adjoint(w: Vector, half: HalfAngle) -> Matrix:
    """exp(-w̃)."""
    return _skew_polynomial(w, -half.sine_ratio, half.versine_ratio)


def so3_right_jacobian(w: Vector, half: HalfAngle) -> Matrix:
    """(1 - exp(-w̃)) / w̃."""
    return _skew_polynomial(w, -half.versine_ratio, half.sine_defect)


def _skew_polynomial(w: Vector, first: Scalar, second: Scalar) -> Matrix:
    """1 + a w̃ + b w̃²."""
    columns = []
    for axis in IDENTITY:
        turn = cross(w, axis)
        columns.append(plus(axis, plus(scaled(first, turn), scaled(second, cross(w, turn)))))
    return [list(row) for row in zip(*columns, strict=True)]


def se3_adjoint(u: Vector) -> Matrix:
    """[[R*, 0], [-R* p̃, R*]] with (R, p) = exp(u)."""
    w, v = u[:3], u[3:]
    half = HalfAngle(dot(w, w))
    back = so3_adjoint(w, half)
    turn = cross(w, v)
    p = plus(v, scaled(half.versine_ratio, turn))
    p = plus(p, scaled(half.sine_defect, cross(w, turn)))
    columns = [scaled(-1.0, times(back, cross(p, axis))) for axis in IDENTITY]
    return _lower_blocks(back, columns)


def se3_right_jacobian(u: Vector) -> Matrix:
    """[[J, 0], [Q, J]] of SE(3).

    Q is the derivative of J(w) along v, with J(w) = 1 - b w̃ + c w̃²: b = (1 - cos θ)/θ² and
    c = (θ - sin θ)/θ³ change by (w·v) times b'/θ = (sin θ/θ - 2b)/θ² and c'/θ = (b - 3c)/θ².
    """
    w, v = u[:3], u[3:]
    half = HalfAngle(dot(w, w))
    b, c = half.versine_ratio, half.exact_sine_defect
    along = dot(w, v)
    b_rate = along * ((half.sine_ratio - 2.0 * b) / half.square)
    c_rate = along * ((b - 3.0 * c) / half.square)
    columns = []
    for axis in IDENTITY:
        turn, shift = cross(w, axis), cross(v, axis)
        column = minus(scaled(c_rate, cross(w, turn)), scaled(b_rate, turn))
        column = minus(column, scaled(b, shift))
        columns.append(plus(column, scaled(c, plus(cross(w, shift), cross(v, turn)))))
    return _lower_blocks(so3_right_jacobian(w, half), columns)


def _lower_blocks(block: Matrix, columns: Matrix) -> Matrix:
    """[[B, 0], [C, B]] with C by its columns."""
    nothing: Vector = [0.0, 0.0, 0.0]
    below = [list(row) for row in zip(*columns, strict=True)]
    return [
        *([*row, *nothing] for row in block),
        *([*row, *own] for row, own in zip(below, block, strict=True)),
    ]
