# SPDX-License-Identifier: BSD-3-Clause
"""Columns are what joint forces follow their numbers by."""

import numpy as np
import pytest

import phistar
from phistar.errors import ArgumentError, LoopError, SingularHingeWarning, UnknownNameError
from phistar.ident import Columns
from tests.ident.conftest import Recorded

PHYSICS = {"viscous": "damping", "coulomb": "friction", "rotor": "armature", "spring": "stiffness"}


def test_columns_add_up_to_inverse_dynamics(recorded: Recorded) -> None:
    """With all kinds, the columns times the robot's own numbers are its joint forces."""
    columns = Columns.of(recorded.true, springs=True)
    at = columns.at(recorded.q[:9], recorded.v[:9], recorded.vdot[:9])
    assert len(columns.names) == len(columns.units) == len(columns) == 20 + 5 * 2
    forces = at.dense() @ columns.values
    assert np.abs(forces - recorded.tau[:9]).max() <= 1e-13 * np.abs(recorded.tau).max()
    assert np.abs(at.force(columns.values) - forces).max() <= 1e-13 * np.abs(forces).max()


@pytest.mark.parametrize("kind", PHYSICS)
def test_a_joint_column_is_what_its_number_does(recorded: Recorded, kind: str) -> None:
    """More of a joint's damping, friction, armature or stiffness changes forces by its column."""
    robot = recorded.known
    more = robot.with_joint_physics(**{PHYSICS[kind]: {"elbow": 0.5}})
    state = recorded.q[:5], recorded.v[:5], recorded.vdot[:5]
    change = more.inverse_dynamics(*state, passive=True) - robot.inverse_dynamics(*state)
    columns = Columns.of(robot, springs=True)
    column = columns.at(*state).dense()[:, :, columns.names.index(f"{kind}.elbow")]
    assert np.abs(change - 0.5 * column).max() <= 1e-13 * np.abs(recorded.tau).max()


def test_support_on_a_tree() -> None:
    """A joint's force has no other column than its support says, and nothing is known besides."""
    rng = np.random.default_rng(0)
    robot = phistar.Robot(phistar.random_model(rng, 5))
    columns = Columns.of(robot)
    q = np.stack([robot.random_configuration(rng) for _ in range(4)])
    v, vdot = rng.normal(size=(2, 4, robot.nv))
    rows = columns.at(q, v, vdot).dense()
    for entry, own in enumerate(columns.support):
        outside = np.setdiff1d(np.arange(len(columns)), own)
        assert not rows[:, entry, outside].any()
    known = columns.known_force(q, v, vdot)
    whole = robot.inverse_dynamics(q, v, vdot, passive=True)
    assert known + rows @ columns.values == pytest.approx(whole, rel=1e-11, abs=1e-11)


def test_units_and_names() -> None:
    """Sliding joints have other units than turning ones."""
    columns = Columns.of(phistar.load("cartpole"), springs=True)
    unit = dict(zip(columns.names, columns.units, strict=True))
    joints = phistar.load("cartpole").joint_names
    assert {unit[f"viscous.{name}"] for name in joints} == {"N s/m", "N m s/rad"}
    assert unit[next(name for name in columns.names if name.startswith("Ixy."))] == "kg m^2"


def test_what_is_refused() -> None:
    """Loops, unknown kinds, bodies without mass."""
    with pytest.raises(LoopError, match=r"robot\.tree"):
        Columns.of(phistar.load("four_bar"))
    robot = phistar.load("double_pendulum")
    with pytest.raises(UnknownNameError, match="viscous"):
        Columns.of(robot, friction=("viscos",))
    with pytest.warns(SingularHingeWarning):
        light = robot.with_parameters(np.concatenate([robot.parameters[:10], np.zeros(10)]))
    with pytest.raises(ArgumentError, match=r"lower_rod.*no mass"):
        Columns.of(light, bodies=["lower_rod"])
    assert Columns.of(light).bodies == (0,)
