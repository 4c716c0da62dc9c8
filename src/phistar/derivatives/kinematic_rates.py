# SPDX-License-Identifier: BSD-3-Clause
"""Rates of Jacobians, accelerations of frames, and gradients of energies."""

from __future__ import annotations

import numpy as np

from phistar import dynamics, kinematics
from phistar.arguments import check_shapes, checked_numbers, checked_state
from phistar.arrays import Array
from phistar.compile import Full, joint_map, kernel, matrix, run_traced
from phistar.model.configuration import Coordinates
from phistar.model.frame_motions import frame_motions
from phistar.model.model import Model
from phistar.model.numpy_kinematics import check_reference, reference_pose
from phistar.spatial import crm, motion_transform, pose_inverse


def jacobian_rate(
    model: Model, q: Coordinates, v: Coordinates, frame: str, reference: str
) -> Array:
    """The time derivative (..., 6, nv) of a frame's Jacobian."""
    model.frame(frame)
    check_reference(reference)
    arrays = check_shapes(model, q=q, v=v)
    found = run_traced(model, ("jacobian_rate", frame, reference), *arrays.values())
    return _jacobian_rate(model, frame, reference, **arrays) if found is None else found


def _jacobian_rate(model: Model, frame: str, reference: str, q: Array, v: Array) -> Array:
    """The same by sweeps."""
    q, v = checked_numbers(model, q=q, v=v)
    joints = joint_map(model)
    own = joints.gather(
        matrix("jacobian_rate", Full(), model, q, {"v": joints.spread(v)}, (frame,))
    )
    to_reference, turning = _moving(model, q, v, frame, reference)
    return np.asarray(
        to_reference @ (turning @ kinematics.jacobian(model, q, frame, "local") + own)
    )


def frame_acceleration(
    model: Model, q: Coordinates, v: Coordinates, vdot: Coordinates, frame: str, reference: str
) -> Array:
    """The time derivative (..., 6) of a frame's velocity, in O(n)."""
    model.frame(frame)
    check_reference(reference)
    arrays = check_shapes(model, q=q, v=v, vdot=vdot)
    found = run_traced(model, ("frame_acceleration", frame, reference), *arrays.values())
    return _frame_acceleration(model, frame, reference, **arrays) if found is None else found


def _frame_acceleration(
    model: Model, frame: str, reference: str, q: Array, v: Array, vdot: Array
) -> Array:
    """The same by sweeps."""
    q, v, vdot = checked_numbers(model, q=q, v=v, vdot=vdot)
    joints = joint_map(model)
    inputs = {"v": joints.spread(v), "vdot": joints.spread(vdot)}
    links = kernel("link_accelerations")(model, q, inputs)["alpha"]
    own = frame_motions(model, [frame], links)[..., 0, :]
    to_reference, turning = _moving(model, q, v, frame, reference)
    velocity = kinematics.frame_velocity(model, q, v, frame, "local")
    changed = (turning @ velocity[..., None])[..., 0] + own
    return np.asarray((to_reference @ changed[..., None])[..., 0])


def _moving(model: Model, q: Array, v: Array, frame: str, reference: str) -> tuple[Array, Array]:
    """X and W with X' = X W: from a frame's own axes to those of the reference, and its rate."""
    kind = check_reference(reference)
    place = kinematics.frame_pose(model, q, frame)
    to_reference = motion_transform(pose_inverse(reference_pose(place, kind)) @ place)
    velocity = kinematics.frame_velocity(model, q, v, frame, "local").copy()
    if kind == "local":
        velocity[...] = 0.0
    elif kind == "world_aligned":
        velocity[..., 3:] = 0.0
    return to_reference, crm(velocity)


def kinetic_energy_q(model: Model, q: Coordinates, v: Coordinates) -> Array:
    """∂/∂q (..., nv) of ½ v*𝓜v, v held: half of what 𝓜's rate along q weighs with v."""
    q, v = checked_state(model, q=q, v=v)
    joints = joint_map(model)
    spread = joints.spread(v)
    inputs = {"vdot": spread, "w": spread, "v": np.zeros_like(spread)}
    still = kernel("inverse_dynamics_vjp")(model, q, {**inputs, "gravity": _weightless(model)})
    return np.asarray(joints.gather(still["w_q"]) / 2)


def _weightless(model: Model) -> Array:
    return np.zeros((len(model.bodies), 6))


def gravity_force_q(model: Model, q: Coordinates) -> Array:
    """∂/∂q (..., nv, nv) of the joint forces that hold the robot: the Hessian of its potential."""
    (q,) = checked_state(model, q=q)
    joints = joint_map(model)
    zeros = np.zeros(len(joints.v_indices))
    inputs = {"v": zeros, "vdot": zeros}
    return dynamics.to_robot_coordinates(
        model, matrix("inverse_dynamics_q", Full(), model, q, inputs)
    )
