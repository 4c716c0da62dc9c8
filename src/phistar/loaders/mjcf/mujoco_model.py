# SPDX-License-Identifier: BSD-3-Clause
"""MuJoCo's compiled model with positions in the files; reading its names and poses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.loaders.mjcf.meshes import MeshShape
from phistar.loaders.mjcf.mujoco_types import MjModel
from phistar.spatial import pose, quat_to_rotation, wxyz_to_xyzw

# MuJoCo's numbers of its joint types, and how many coordinates each has.
FREE, BALL, SLIDE, HINGE = range(4)
JOINT_NQ = (7, 4, 1, 1)
JOINT_NV = (6, 3, 1, 1)
# Bits of its option.disableflags.
NO_CONSTRAINT, NO_EQUALITY, NO_FRICTION = 1 << 0, 1 << 1, 1 << 2
NO_LIMIT, NO_SPRING, NO_DAMPER, NO_GRAVITY = 1 << 3, 1 << 5, 1 << 6, 1 << 7
NO_CLAMP, NO_ACTUATION = 1 << 8, 1 << 11


@dataclass(frozen=True)
class MujocoModel:
    """A compiled robot with data that MuJoCo does not keep.

    Attributes:
        model: MuJoCo's MjModel.
        name: Name of the robot.
        file: Name of the main file.
        bodies, joints, equalities: ``file:line`` of each, by MuJoCo's id.
        meshes: Geoms that have a mesh, by MuJoCo's id.
        explicit: Ids of the bodies whose inertia the file gives.
    """

    model: MjModel
    name: str
    file: str
    bodies: Mapping[int, str]
    joints: Mapping[int, str]
    equalities: Mapping[int, str]
    meshes: Mapping[int, MeshShape]
    explicit: frozenset[int]


def element_names(model: MjModel, kind: str, stem: str) -> list[str]:
    """Names of all elements of a kind; unnamed ones get ``stem_<id>``, made unique.

    Args:
        model: MuJoCo's MjModel.
        kind: As MuJoCo's arrays of name addresses spell it: ``body``, ``jnt``, ``site`` ...
        stem: Prefix of generated names.
    """
    text = bytes(model.names)
    addresses = getattr(model, f"name_{kind}adr")
    own_names = [text[a : text.index(b"\0", a)].decode() for a in addresses]
    used = set(own_names)
    names: list[str] = []
    for index, name in enumerate(own_names):
        names.append(name or unique_name(f"{stem}_{index}", used))
        used.add(names[-1])
    return names


def unique_name(name: str, used: set[str]) -> str:
    """``name`` with enough underscores appended to be new."""
    while name in used:
        name += "_"
    return name


def mujoco_pose(position: ArrayLike, quaternion: ArrayLike) -> Array:
    """A pose from MuJoCo's position and wxyz quaternion."""
    quat = wxyz_to_xyzw(np.asarray(quaternion, float))
    return pose(quat_to_rotation(quat), np.asarray(position, float))
