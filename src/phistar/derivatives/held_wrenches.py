# SPDX-License-Identifier: BSD-3-Clause
"""Forces on frames in derivatives: what changes as they are held while the robot moves.

Programs hold external forces f in the axes of their links. A wrench that is held in the world
changes in those axes. With J the Jacobian of its frame, in the frame's own axes, δf = S J δq, and
Σ J*SJ δq is added to what it gives the joints; S is linear in f.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from phistar import backends, kinematics
from phistar.arrays import Array
from phistar.derivatives.kinematic_rates import jacobian_rate
from phistar.dynamics import to_robot_coordinates
from phistar.model.model import Model
from phistar.model.numpy_kinematics import reference_pose
from phistar.model.wrenches import Wrenches, WrenchFrames
from phistar.spatial import Q, force_transform, pose_inverse, skew


def wrench_stiffness(model: Model, q: Array, wrenches: Wrenches | None) -> Array | None:
    """Σ J*SJ (..., nv, nv), or None if no force changes in the axes of its frame."""
    if wrenches is None or not wrenches.at.turn:
        return None
    if backends.default() == "llvm":
        from phistar.backends.llvm.run.wrench_code import stiffness

        found = stiffness(model, q, wrenches)
        if found is not None:
            return to_robot_coordinates(model, found)
    total: Array | None = None
    for _, jacobian, wrench in _held(model, q, wrenches):
        part = _flip(jacobian) @ _change(wrench, wrenches.at.reference) @ jacobian
        total = part if total is None else total + part
    return total


def wrench_stiffness_change(
    model: Model, q: Array, dq: Array, wrenches: Wrenches | None
) -> tuple[Array, Wrenches] | None:
    """Along a step dq: the change of ``wrench_stiffness``, and that of the forces on frames.

    None if no force changes in the axes of its frame.
    """
    if wrenches is None or not wrenches.at.turn:
        return None
    reference = wrenches.at.reference
    total: Array | None = None
    moved: list[Array] = []
    for name, jacobian, wrench in _held(model, q, wrenches):
        turning, there = _change(wrench, reference), _flip(jacobian)
        rate = jacobian_rate(model, q, dq, name, "local")
        moved.append(matvec(turning, matvec(jacobian, dq)))
        part = there @ turning @ rate + _flip(rate) @ turning @ jacobian
        part = part + there @ _change(moved[-1], reference) @ jacobian
        total = part if total is None else total + part
    assert total is not None
    frames = wrenches.at.frames
    return total, Wrenches(WrenchFrames(frames, "local"), tuple(moved), frames)


def _held(model: Model, q: Array, wrenches: Wrenches) -> Iterator[tuple[str, Array, Array]]:
    """Frames of the wrenches that are held in the world; J and f in their own axes."""
    for name, value in zip(wrenches.at.frames, wrenches.arrays, strict=True):
        place = kinematics.frame_pose(model, q, name)
        seat = pose_inverse(place) @ reference_pose(place, wrenches.at.reference)
        wrench = matvec(force_transform(seat), value)
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
