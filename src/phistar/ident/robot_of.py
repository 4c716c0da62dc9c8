# SPDX-License-Identifier: BSD-3-Clause
"""The robot that parameters of columns stand for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phistar.arrays import Array
from phistar.ident.columns import Columns, joint_of
from phistar.robot import Robot

_FIELDS = {"viscous": "damping", "coulomb": "friction", "spring": "stiffness"}
"""What ``with_joint_physics`` calls joint numbers."""


def robot_of(columns: Columns, theta: Array) -> Robot:
    """The columns' robot with other parameters (columns,); offsets are no part of a robot.

    Raises:
        ModelError, ArgumentError: A body or a joint is impossible.
    """
    whole = np.array(columns.robot.parameters)
    whole[columns.inertial_entries] = theta[: columns.inertial]
    physics = _joint_physics(columns, joint_values(columns, theta))
    return columns.robot.with_parameters(whole).with_joint_physics(**physics)


def joint_values(columns: Columns, theta: Array) -> dict[str, dict[str, float]]:
    """Joint numbers by kind (``"viscous"``, ``"coulomb"`` ...) and name of the joint."""
    rows = theta[columns.inertial :].reshape(len(columns.kinds), len(columns.joints))
    names = [joint_of(columns.robot.model, entry) for entry in columns.joints]
    return {
        kind: dict(zip(names, (float(x) for x in row), strict=True))
        for kind, row in zip(columns.kinds, rows, strict=True)
    }


def offset_force(columns: Columns, theta: Array) -> Array:
    """(nv,) constant joint forces beside those of the robot [N m, N]."""
    found = np.zeros(columns.robot.nv)
    places = columns.of_kind("offset")
    found[list(columns.joints)[: len(places)]] = theta[places]
    return found


def _joint_physics(
    columns: Columns, values: Mapping[str, Mapping[str, float]]
) -> dict[str, Mapping[str, float]]:
    """Numbers of joints; those of followers are counted with their leaders."""
    model = columns.robot.model
    given: dict[str, Mapping[str, float]] = {}
    for kind, own in values.items():
        if kind in _FIELDS:
            given[_FIELDS[kind]] = _with_followers(columns, own)
        elif kind == "rotor":
            given["armature"] = _with_followers(columns, own)
            given["rotor_inertia"] = {
                name: 0.0
                for name in given["armature"]
                if any(model.joints[name].drive.rotor_inertia)
            }
    return given


def _with_followers(columns: Columns, values: Mapping[str, float]) -> dict[str, float]:
    followers = {
        joint.name: 0.0
        for joint in columns.robot.model.joints.values()
        if joint.mimic is not None and joint.mimic.joint in values
    }
    return {**values, **followers}
