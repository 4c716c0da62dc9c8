# SPDX-License-Identifier: BSD-3-Clause
"""Forces on frames in derivatives: what changes as they are held while the robot moves.

Programs hold external forces f in the axes of their links. A wrench that is held in the world
changes in those axes. With J the Jacobian of its frame, in the frame's own axes, δf = S J δq, and
Σ J*SJ δq is added to what it gives the joints; S is linear in f.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from phistar import dynamics, kinematics
from phistar.arrays import Array
from phistar.derivatives.kinematic_rates import jacobian_rate
from phistar.dynamics import Forces
from phistar.model.model import Model
from phistar.model.numpy_kinematics import check_reference, reference_pose
from phistar.spatial import Q, force_transform, pose_inverse, skew


def wrench_inputs(
    model: Model, q: Array, forces: Forces | None, reference: str
) -> dict[str, Array]:
    """The input of programs that forces on frames are; none without them."""
    return {"f_ext": dynamics.link_forces(model, q, forces, reference)} if forces else {}


def wrench_stiffness(model: Model, q: Array, forces: Forces | None, reference: str) -> Array | None:
    """Σ J*SJ (..., nv, nv), or None if no force changes in the axes of its frame."""
    total: Array | None = None
    for _, jacobian, wrench in _held(model, q, forces, reference):
        part = _flip(jacobian) @ _change(wrench, reference) @ jacobian
        total = part if total is None else total + part
    return total


def wrench_stiffness_change(
    model: Model, q: Array, dq: Array, forces: Forces | None, reference: str
) -> tuple[Array, dict[str, Array]] | None:
    """Along a step dq: the change of ``wrench_stiffness``, and that of forces on links, as an
    input.

    None if no force changes in the axes of its frame.
    """
    total: Array | None = None
    moved: dict[str, Array] = {}
    for name, jacobian, wrench in _held(model, q, forces, reference):
        turning, there = _change(wrench, reference), _flip(jacobian)
        rate = jacobian_rate(model, q, dq, name, "local")
        moved[name] = matvec(turning, matvec(jacobian, dq))
        part = there @ turning @ rate + _flip(rate) @ turning @ jacobian
        part = part + there @ _change(moved[name], reference) @ jacobian
        total = part if total is None else total + part
    return None if total is None else (total, wrench_inputs(model, q, moved, "local"))


def _held(
    model: Model, q: Array, forces: Forces | None, reference: str
) -> Iterator[tuple[str, Array, Array]]:
    """Frames of the wrenches that are held in the world; J and f in their own axes."""
    kind = check_reference(reference)
    for name, value in (forces or {}).items() if kind != "local" else ():
        place = kinematics.frame_pose(model, q, name)
        seat = pose_inverse(place) @ reference_pose(place, kind)
        wrench = matvec(force_transform(seat), np.asarray(value, dtype=seat.dtype))
        yield name, kinematics.jacobian(model, q, name, "local"), wrench


def _change(wrench: Array, reference: str) -> Array:
    """S: a wrench that is fixed in the world changes by -crf[J δq] f; one with world axes at the
    frame's origin by what the frame turns, -(ω × n, ω × f)."""
    if reference == "world":
        return Q(wrench)
    left = np.concatenate([skew(wrench[..., :3]), skew(wrench[..., 3:])], axis=-2)
    return np.concatenate([left, np.zeros_like(left)], axis=-1)


def matvec(matrix: Array, x: Array) -> Array:
    """Matrices times vectors."""
    return np.asarray((matrix @ x[..., None])[..., 0])


def _flip(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)
