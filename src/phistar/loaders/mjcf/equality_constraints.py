# SPDX-License-Identifier: BSD-3-Clause
"""MuJoCo's equality constraints -> loop joints and couplings."""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.errors import IgnoredWarning
from phistar.loaders.load_report import Entry, LoadReport
from phistar.loaders.mjcf.mujoco_model import MujocoModel, element_names, mujoco_pose
from phistar.loaders.mjcf.mujoco_types import MjModel
from phistar.model.builder import ModelBuilder
from phistar.model.components import Coupling

_CONNECT, _WELD, _JOINT = range(3)
_SITE = 6
"""MuJoCo's object type of a site."""
_KINDS = ("connect", "weld", "joint", "tendon", "flex", "flexvert", "flexstrain", "distance")
_COEFFICIENTS = 5


def add_loops(
    builder: ModelBuilder,
    compiled: MujocoModel,
    names: tuple[list[str], list[str]],
    report: LoadReport,
    *,
    switched_off: bool,
) -> None:
    """Add every equality constraint between bodies or joints.

    Args:
        builder: Receives them.
        compiled: The robot.
        names: Names of the bodies and of the joints, by MuJoCo's id.
        report: Receives a warning for constraints of other kinds, which are omitted.
        switched_off: Whether the file's flags disable all of them.
    """
    model, (bodies, joints) = compiled.model, names
    for index, name in enumerate(element_names(model, "eq", "equality")):
        kind = int(model.eq_type[index])
        where = compiled.equalities.get(index, "")
        active = bool(model.eq_active0[index]) and not switched_off
        if kind in (_CONNECT, _WELD):
            first, second = _ends(model, index, bodies)
            builder.loop(
                name,
                "spherical" if kind == _CONNECT else "weld",
                first[0],
                second[0],
                predecessor_pose=first[1],
                successor_pose=second[1],
                active=active,
                where=where,
            )
        elif kind == _JOINT:
            builder.couple(_coupling(model, index, name, joints, active, where))
        else:
            what = f'equality "{name}" of kind {_KINDS[kind]} is ignored.'
            cure = "Only connect, weld and joint constraints are kept as loops."
            report.add_problem("warning", "equality-kind", where, what, cure, IgnoredWarning)
            report.ignored.append(Entry(where, f'equality "{name}" ({_KINDS[kind]})', cure))


def _ends(
    model: MjModel, index: int, bodies: list[str]
) -> tuple[tuple[str, Array], tuple[str, Array]]:
    """The two bodies of a connect or weld, and the frames in them that coincide."""
    first, second = int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
    if model.eq_objtype[index] == _SITE:
        one, two = (
            (bodies[model.site_bodyid[s]], mujoco_pose(model.site_pos[s], model.site_quat[s]))
            for s in (first, second)
        )
        return one, two
    data, straight = model.eq_data[index], np.array([1.0, 0.0, 0.0, 0.0])
    if model.eq_type[index] == _CONNECT:
        return (
            (bodies[first], mujoco_pose(data[0:3], straight)),
            (bodies[second], mujoco_pose(data[3:6], straight)),
        )
    # A weld keeps the point data[0:3] of the second body on data[3:6] of the first.
    return (
        (bodies[first], mujoco_pose(data[3:6], data[6:10])),
        (bodies[second], mujoco_pose(data[0:3], straight)),
    )


def _coupling(
    model: MjModel, index: int, name: str, joints: list[str], active: bool, where: str
) -> Coupling:
    dependent, source = int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
    tied = source >= 0
    references = model.qpos0[model.jnt_qposadr]
    return Coupling(
        name,
        joints[dependent],
        joints[source] if tied else "",
        tuple(float(c) for c in model.eq_data[index, : _COEFFICIENTS if tied else 1]),
        (float(references[dependent]), float(references[source]) if tied else 0.0),
        active,
        where,
    )
