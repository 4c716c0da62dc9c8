# SPDX-License-Identifier: BSD-3-Clause
"""Every reference robot against golden values of Pinocchio (URDF) and MuJoCo (MJCF)."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phistar
from tests.helpers import SHARED, needs_shared
from tools.golden import compare, dense_mass_matrix, golden_files

ROBOTS = golden_files(SHARED / "robots")

pytestmark = needs_shared


def test_the_whole_collection_is_there() -> None:
    """The parametrised test below covers all 272 robots."""
    assert len(ROBOTS) == 272


@pytest.mark.parametrize("path", ROBOTS, ids=lambda p: p.name)
def test_robot_agrees(path: Path) -> None:
    """Joints, poses, Jacobians, mass matrices, torques, accelerations; singular hinges reported."""
    assert compare(path).faults == []


@pytest.mark.usefixtures("machine_code")
@pytest.mark.parametrize("path", ROBOTS[::9], ids=lambda p: p.name)
def test_machine_code_agrees(path: Path) -> None:
    """The same by what users run, for a ninth of the robots; ``make robots`` does all of them."""
    assert compare(path).faults == []


def _golden(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.with_name(path.name + ".json").read_text()))


WITH_MIMIC = [p for p in ROBOTS if p.suffix == ".urdf" and _golden(p).get("mimic")]


@pytest.mark.parametrize("path", WITH_MIMIC, ids=lambda p: p.name)
def test_mimic_joints_are_reduced_exactly(path: Path) -> None:
    """The mass matrix in independent coordinates is S* M S, as Pinocchio's mimic models have it."""
    law = _golden(path)["mimic"]
    with np.load(path.with_name(path.name + ".npz")) as stored:
        arrays = dict(stored)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = phistar.load(path, floating_base=law["base"] == "free_flyer")
    names = law["independent"]
    assert sorted(n for n in robot.joint_names if n != "root_joint") == sorted(
        n for n in names if n != "root_joint"
    )
    for follower, (leader, multiplier, offset) in law["mimic"].items():
        mimic = robot.joints[follower].mimic
        assert mimic is not None
        assert (mimic.joint, mimic.multiplier, mimic.offset) == (leader, multiplier, offset)
    simple = all(robot.joints[n].kind in ("revolute", "prismatic") for n in names)
    if simple and law["base"] == "fixed":
        ordered = robot.reorder(names)
        expected = arrays["mimic_M"]
        error = np.abs(dense_mass_matrix(ordered, arrays["mimic_q"]) - expected).max()
        assert error <= 1e-9 * np.abs(expected).max()
