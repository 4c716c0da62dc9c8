# SPDX-License-Identifier: BSD-3-Clause
"""Exported functions against the robot's own methods, in the user's coordinates."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phistar as ps
from phistar.c_export import scalar_program
from phistar.compile import kernel
from phistar.model.random import random_model
from phistar.robot import Robot
from phistar.scalar.interpret import run


def _robots() -> dict[str, Robot]:
    panda = ps.load("panda")
    mimic = random_model(
        np.random.default_rng(23), 7, kinds=["revolute", "prismatic"], mimic=0.6, anchors=0.5
    )
    mixed = Robot(random_model(np.random.default_rng(5), 8, armature=0.5, floating_base=True))
    return {
        "panda_hand": ps.load("panda_hand"),
        "mimic": Robot(mimic),
        "reordered": panda.reorder(panda.joint_names[::-1]),
        "mixed, reordered": mixed.reorder(mixed.joint_names[::-1]),
    }


ROBOTS = _robots()


@pytest.mark.parametrize("shape", ["straight", "rolled"])
@pytest.mark.parametrize("name", ROBOTS)
def test_inverse_dynamics(name: str, shape: str) -> None:
    """Mimic joints share entries, joints stand in the user's order; relative 1e-12."""
    robot = ROBOTS[name]
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng, (3,))
    v, vdot = rng.normal(size=(2, 3, robot.nv))
    program = scalar_program(kernel("inverse_dynamics", robot.model), robot.model, shape)
    assert list(program.signature.inputs.items()) == [
        ("q", robot.nq),
        ("v", robot.nv),
        ("vdot", robot.nv),
    ]
    tau = run(program, {"q": q, "v": v, "vdot": vdot})["tau"]
    want = robot.inverse_dynamics(q, v, vdot)
    assert np.abs(tau - want).max() < 1e-12 * np.abs(want).max()


@pytest.mark.parametrize("shape", ["straight", "rolled"])
def test_forward_dynamics_in_c(build: Callable[..., Any], shape: str) -> None:
    """Also through the compiler, and with external forces; relative 1e-11."""
    robot = ROBOTS["mixed, reordered"]
    rng = np.random.default_rng(1)
    q = robot.random_configuration(rng, (2,))
    v, tau = rng.normal(size=(2, 2, robot.nv))
    f_ext = rng.normal(size=(2, len(robot.model.bodies), 6))
    compiled = kernel("forward_dynamics", robot.model)
    program = scalar_program(compiled, robot.model, shape, forces=True)
    inputs = {"q": q, "v": v, "tau": tau, "f_ext": f_ext.reshape(2, -1)}
    got = build(program)(inputs)["vdot"]
    want = robot.compile("forward_dynamics")(q, v=v, tau=tau, f_ext=f_ext)
    assert np.abs(got - want).max() < 1e-11 * np.abs(want).max()
