# SPDX-License-Identifier: BSD-3-Clause
"""Poses, velocities and Jacobians of a model's frames, in plain NumPy over the batch."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.components import GROUND, Frame
from phistar.model.configuration import Coordinates, batch_shape, configuration, tangent
from phistar.model.model import Model
from phistar.spatial import motion_transform, pose, pose_inverse, pose_rotation, transform_point

Reference = Literal["local", "world", "world_aligned"]
_REFERENCES = get_args(Reference)


def body_poses(model: Model, q: Coordinates) -> Array:
    """World poses of all bodies, (..., nq) -> (..., bodies, 4, 4)."""
    q = configuration(model, q)
    poses = np.empty((len(model.bodies), *q.shape[:-1], 4, 4), dtype=q.dtype)
    for body in model.bodies:
        relative = body.transform(q)
        poses[body.index] = relative if body.parent == GROUND else poses[body.parent] @ relative
    return np.moveaxis(poses, 0, -3)


def _frame_pose(frame: Frame, poses: Array) -> Array:
    """World pose of a frame, given those of the bodies (..., bodies, 4, 4)."""
    if frame.body == GROUND:
        batch = poses.shape[:-3]
        return np.broadcast_to(frame.body_pose.astype(poses.dtype), (*batch, 4, 4)).copy()
    return np.asarray(poses[..., frame.body, :, :] @ frame.body_pose, dtype=poses.dtype)


def frame_pose(model: Model, q: Coordinates, frame: str) -> Array:
    """World pose of a frame, (..., nq) -> (..., 4, 4)."""
    target = model.frame(frame)
    q = configuration(model, q)
    result = np.broadcast_to(np.eye(4, dtype=q.dtype), (*q.shape[:-1], 4, 4))
    for index in model.ancestors(target.body):
        result = result @ model.bodies[index].transform(q)
    return np.asarray(result @ target.body_pose, dtype=q.dtype)


def link_poses(model: Model, q: Coordinates) -> dict[str, Array]:
    """World pose (..., 4, 4) of every link, by name in file order."""
    return link_poses_of_bodies(model, body_poses(model, q))


def link_poses_of_bodies(model: Model, poses: Array) -> dict[str, Array]:
    """World pose (..., 4, 4) of every link by name, given those of bodies (..., bodies, 4, 4)."""
    return {name: _frame_pose(model.frames[name], poses) for name in model.link_names}


def check_reference(reference: str) -> Reference:
    """``reference`` if it is one of the three, else an error that lists them."""
    if reference not in _REFERENCES:
        known = ", ".join(map(repr, _REFERENCES))
        raise ArgumentError(f"reference must be one of {known}, got {reference!r}")
    return reference  # type: ignore[return-value]


def reference_pose(target: Array, reference: Reference) -> Array:
    """World pose of the frame in which a velocity of ``target`` is expressed."""
    if reference == "local":
        return target
    if reference == "world":
        return np.broadcast_to(np.eye(4, dtype=target.dtype), target.shape)
    return np.asarray(pose(translation=target[..., :3, 3]))


def jacobian(model: Model, q: Coordinates, frame: str, reference: str = "world_aligned") -> Array:
    """Jacobian of a frame: J @ v is its spatial velocity [angular; linear].

    Args:
        q: (..., nq).
        frame: Name of a link or frame.
        reference: ``"local"``: the frame's own axes and origin; ``"world"``: world axes, velocity
            of the point of the extended link at the world's origin; ``"world_aligned"``: world
            axes, velocity of the frame's origin.

    Returns:
        (..., 6, nv) [rad/s or m/s per unit of v].
    """
    kind = check_reference(reference)
    target = model.frame(frame)
    q = configuration(model, q)
    chain: list[tuple[int, Array]] = []
    world = np.broadcast_to(np.eye(4, dtype=q.dtype), (*q.shape[:-1], 4, 4))
    for index in model.ancestors(target.body):
        world = world @ model.bodies[index].transform(q)
        chain.append((index, world))
    tip = np.asarray(world @ target.body_pose)
    to_reference = pose_inverse(reference_pose(tip, kind))
    result = np.zeros((*q.shape[:-1], 6, model.nv), dtype=q.dtype)
    for index, body_pose in chain:
        body = model.bodies[index]
        result[..., body.v_slice] += motion_transform(to_reference @ body_pose) @ body.motion_map()
    return result


def body_velocities(model: Model, q: Coordinates, v: Coordinates) -> Array:
    """Spatial velocities of all bodies in their own axes, (..., bodies, 6)."""
    q, v = configuration(model, q), tangent(model, v)
    batch = batch_shape(model, {"q": q, "v": v})
    result = np.zeros((len(model.bodies), *batch, 6), dtype=np.result_type(q, v))
    for body in model.bodies:
        joint_velocity = v[..., body.v_slice] @ body.motion_map().T
        if body.parent == GROUND:
            result[body.index] = joint_velocity
        else:
            inward = motion_transform(pose_inverse(body.transform(q)))
            result[body.index] = (inward @ result[body.parent][..., None])[..., 0] + joint_velocity
    return np.moveaxis(result, 0, -2)


def frame_velocity(
    model: Model, q: Coordinates, v: Coordinates, frame: str, reference: str = "world_aligned"
) -> Array:
    """Spatial velocity [angular; linear] of a frame, (..., 6) [rad/s, m/s]; see ``jacobian``."""
    kind = check_reference(reference)
    target = model.frame(frame)
    q, v = configuration(model, q), tangent(model, v)
    batch = batch_shape(model, {"q": q, "v": v})
    velocity = np.zeros(6)
    world = np.broadcast_to(np.eye(4, dtype=q.dtype), (*q.shape[:-1], 4, 4))
    for index in model.ancestors(target.body):
        body = model.bodies[index]
        relative = body.transform(q)
        world = world @ relative
        from_parent = (motion_transform(pose_inverse(relative)) @ velocity[..., None])[..., 0]
        velocity = from_parent + v[..., body.v_slice] @ body.motion_map().T
    tip = np.asarray(world @ target.body_pose)
    to_reference = pose_inverse(reference_pose(tip, kind)) @ world
    velocity = np.broadcast_to(velocity, (*batch, 6))
    result = (motion_transform(to_reference) @ velocity[..., None])[..., 0]
    return np.asarray(result, dtype=np.result_type(q, v))


def ground_mass_point(model: Model) -> Array:
    """First moment and mass (4,) of the links that are welded to the ground."""
    total = np.zeros(4)
    for link in model.links:
        seat = model.frames.get(link.name)
        if link.mass and seat is not None and seat.body == GROUND:
            place = transform_point(seat.body_pose, link.com)
            total += link.mass * np.array([*place, 1.0])
    return total


def center_of_mass(model: Model, q: Coordinates, *, fixed: bool = True) -> Array:
    """Centre of mass, world axes (..., 3) [m].

    Args:
        q: (..., nq).
        fixed: Count the links that are welded to the ground too (as in ``total_mass``).

    Raises:
        ArgumentError: There is no mass.
    """
    poses = body_poses(model, q)
    masses, first_moments = model.inertias[:, 0], model.inertias[:, 1:4]
    moment = (pose_rotation(poses) @ first_moments[:, :, None])[..., 0].sum(axis=-2)
    moment = moment + (masses[:, None] * poses[..., :3, 3]).sum(axis=-2)
    mass = float(masses.sum())
    if fixed:
        *at_rest, fixed_mass = ground_mass_point(model).tolist()
        moment, mass = moment + np.array(at_rest), mass + fixed_mass
    if mass == 0.0:
        raise ArgumentError(f"robot '{model.name}' has no mass, so it has no centre of mass")
    return np.asarray(moment / mass, dtype=poses.dtype)
