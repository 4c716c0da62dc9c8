# SPDX-License-Identifier: BSD-3-Clause
"""MuJoCo's actuators -> actuators on joints; those of other kinds are listed as ignored."""

from __future__ import annotations

from collections.abc import Sequence

from phistar.errors import pluralize
from phistar.loaders.load_report import Entry, LoadReport
from phistar.loaders.mjcf.mujoco_model import (
    HINGE,
    NO_ACTUATION,
    NO_CLAMP,
    SLIDE,
    MujocoModel,
    element_names,
)
from phistar.loaders.mjcf.mujoco_types import MjModel
from phistar.model.actuators import UNLIMITED, Range, Triple
from phistar.model.builder import ModelBuilder

JOINT_TRANSMISSIONS = (0, 1)
TENDON_TRANSMISSION = 3
_JOINT_WRAP = 1
_FIXED, _AFFINE = 0, 1
"""Of a gain; of a bias none and affine."""


def driven_joints(model: MjModel, actuator: int) -> list[tuple[int, float]]:
    """Joints that an actuator drives, by id, with the gear: itself, or by a tendon that is a sum.

    None for other transmissions.
    """
    kind, target = int(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
    gear = float(model.actuator_gear[actuator, 0])
    if kind in JOINT_TRANSMISSIONS:
        return [(target, gear)]
    if kind != TENDON_TRANSMISSION:
        return []
    first = int(model.tendon_adr[target])
    wraps = range(first, first + int(model.tendon_num[target]))
    if any(int(model.wrap_type[k]) != _JOINT_WRAP for k in wraps):
        return []
    return [(int(model.wrap_objid[k]), gear * float(model.wrap_prm[k])) for k in wraps]


def add_actuators(
    builder: ModelBuilder, compiled: MujocoModel, joints: Sequence[str], report: LoadReport
) -> None:
    """Add every actuator without states on joints with one coordinate.

    Args:
        builder: Receives them.
        compiled: The robot.
        joints: Names of the joints, by MuJoCo's id.
        report: Receives what is used, and what is not and why.
    """
    model, flags = compiled.model, int(compiled.model.opt.disableflags)
    names = element_names(model, "actuator", "actuator")
    before = len(builder.actuators)
    for index, name in enumerate(names):
        driven = driven_joints(model, index)
        reason = _left_out(model, index, driven)
        if flags & NO_ACTUATION:
            reason = 'actuators are switched off by the file\'s <flag actuation="disable"/>'
        if reason:
            report.ignored.append(Entry(compiled.file, f'actuator "{name}"', reason))
            continue
        clamped = not flags & NO_CLAMP
        builder.actuator(
            name,
            [joints[joint] for joint, _ in driven],
            gear=[gear for _, gear in driven],
            gain=_coefficients(model.actuator_gainprm[index], int(model.actuator_gaintype[index])),
            bias=_bias(model, index),
            ctrlrange=_range(model, "ctrl", index) if clamped else UNLIMITED,
            forcerange=_range(model, "force", index),
        )
    added = len(builder.actuators) - before
    if added:
        note = "robot.actuators; their joint forces are robot.actuators.force(ctrl, q, v)"
        report.used.append(Entry(compiled.file, pluralize(added, "actuator"), note))


def _left_out(model: MjModel, index: int, driven: Sequence[tuple[int, float]]) -> str:
    """Why an actuator is not used; empty if it is."""
    if int(model.actuator_dyntype[index]) != 0:
        return "actuators with states of their own are not modelled"
    if int(model.actuator_gaintype[index]) > _AFFINE or int(model.actuator_biastype[index]) > 1:
        return "gains and biases other than affine ones are not modelled"
    if not driven:
        return "only joints and tendons that are sums of joints are driven"
    if any(int(model.jnt_type[joint]) not in (SLIDE, HINGE) for joint, _ in driven):
        return "only joints with one coordinate are driven"
    return ""


def _coefficients(values: Sequence[float], kind: int) -> Triple:
    """Of 1, length and rate; a fixed gain reads the first number alone."""
    a, b, c = (float(x) for x in values[:3])
    return (a, 0.0, 0.0) if kind == _FIXED else (a, b, c)


def _bias(model: MjModel, index: int) -> Triple:
    if int(model.actuator_biastype[index]) == 0:
        return (0.0, 0.0, 0.0)
    return _coefficients(model.actuator_biasprm[index], _AFFINE)


def _range(model: MjModel, what: str, index: int) -> Range:
    if not getattr(model, f"actuator_{what}limited")[index]:
        return UNLIMITED
    low, high = getattr(model, f"actuator_{what}range")[index]
    return float(low), float(high)
