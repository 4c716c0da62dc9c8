# SPDX-License-Identifier: BSD-3-Clause
"""Some derivatives, rows and columns are those of the whole, and nothing else is computed."""

from __future__ import annotations

import numpy as np
import pytest

import phistar
from phistar.compile import TRACED, finish_compilations
from phistar.derivatives.first import Linearization
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.random import random_model
from phistar.robot import Robot
from phistar.scalar.program import count_arithmetic
from phistar.scalar.verify import verify

QUADRUPED = phistar.load("quadruped")


def _states(robot: Robot, *batch: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng, batch)
    return q, rng.standard_normal((*batch, robot.nv)), rng.standard_normal((*batch, robot.nv))


def _coordinates(robot: Robot, names: tuple[str, ...] | None) -> list[int]:
    if names is None:
        return list(range(robot.nv))
    return [i for n in names for i in range(robot.nv)[robot.model.joint(n).v_slice]]


def _compare(robot: Robot, batch: tuple[int, ...], wrt, rows, columns) -> None:
    state = _states(robot, *batch)
    across = np.ix_(_coordinates(robot, rows), _coordinates(robot, columns))
    for method, vector in (("linearize", "vdot"), ("linearize_inverse", "tau")):
        last = "tau" if method == "linearize" else "vdot"
        asked = tuple(last if x == "last" else x for x in wrt)
        whole = getattr(robot, method)(*state)
        for _ in range(3):  # the last call goes straight to machine code, if there is any
            part = getattr(robot, method)(*state, wrt=asked, rows=rows, columns=columns)
            finish_compilations()
            assert part.wrt == asked
            for name in asked:
                dense, found = (getattr(x, f"{vector}_{name}") for x in (whole, part))
                expected = dense[(..., *across)]
                assert found.shape == expected.shape
                assert np.abs(found - expected).max() <= 1e-13 * np.abs(dense).max()
            size = np.abs(getattr(whole, vector)).max()
            both = (getattr(x, vector) for x in (whole, part))
            assert np.abs(np.subtract(*both)).max() <= 1e-13 * size


JOINTS = QUADRUPED.joint_names
CHOICES = [
    (("v",), None, None),
    (("q", "last"), JOINTS[4:6], None),
    (("q", "v"), None, (JOINTS[7], JOINTS[0])),
    (("last",), JOINTS[-1:], JOINTS[:1]),
]


@pytest.mark.parametrize(("wrt", "rows", "columns"), CHOICES)
@pytest.mark.parametrize("batch", [(), (35,)])
def test_parts_of_the_quadruped(batch, wrt, rows, columns) -> None:
    """By machine code for batches, by parts of the whole for first single samples: 1e-13."""
    _compare(QUADRUPED, batch, wrt, rows, columns)


@pytest.mark.parametrize("seed", range(2))
def test_parts_of_random_robots(seed: int) -> None:
    """All joint kinds, robots with coordinates in any order and mimic joints."""
    robot = Robot(random_model(np.random.default_rng(seed), 5, mimic=0.3))
    _compare(robot, (3,), ("v", "last"), robot.joint_names[1:3], robot.joint_names[-1:])


def test_less_is_computed() -> None:
    """Operations of parts: no program for the others is left in them, and rows cost as many."""
    count = {}
    for choice in ((("q", "v", "tau"), (), ()), (("v",), (), ()), (("v",), (6, 7), ())):
        program = TRACED["linearize_part"].trace(QUADRUPED.model, *choice)
        verify(program)
        count[choice] = count_arithmetic(program.count())
    whole, by_v, two_rows = count.values()
    assert by_v < 0.65 * whole
    assert two_rows < 0.8 * by_v


def test_what_was_not_asked_for() -> None:
    """Is not there, and says so; A and B need everything."""
    part = QUADRUPED.linearize(*_states(QUADRUPED), wrt="v")
    assert isinstance(part, Linearization)
    assert "vdot_v (18, 18)" in repr(part)
    with pytest.raises(AttributeError, match="wrt is"):
        _ = part.vdot_q
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = part.nothing_of_the_kind
    for name in ("A", "B"):
        with pytest.raises(ArgumentError, match="leave wrt"):
            getattr(part, name)


def test_forces_and_samples_without_result() -> None:
    """Parts of the whole where no program gives the part; NaN is confined to its sample."""
    q, v, tau = _states(QUADRUPED, 3)
    frame = QUADRUPED.frame_names[-1]
    forces = {frame: np.arange(6.0)}
    whole = QUADRUPED.linearize(q, v, tau, forces=forces)
    part = QUADRUPED.linearize(q, v, tau, forces=forces, wrt=("q",))
    assert (part.vdot_q == whole.vdot_q).all()
    v[1, 2] = np.nan
    part = QUADRUPED.linearize(q, v, tau, wrt=("q",), on_error="nan")
    assert np.isnan(part.vdot_q[1]).all()
    assert np.isfinite(part.vdot_q[[0, 2]]).all()


def test_unknown_names() -> None:
    """Derivatives, joints and empty lists are refused."""
    state = _states(QUADRUPED)
    with pytest.raises(UnknownNameError, match="vdot"):
        QUADRUPED.linearize(*state, wrt=("vdot",))
    with pytest.raises(UnknownNameError, match="joint"):
        QUADRUPED.linearize(*state, rows=("no such joint",))
    with pytest.raises(ArgumentError, match="empty"):
        QUADRUPED.linearize_inverse(*state, wrt=())
    with pytest.raises(ArgumentError, match="columns is empty"):
        QUADRUPED.linearize_inverse(*state, columns=())
    with pytest.raises(ArgumentError, match="pass"):
        QUADRUPED.linearize_inverse(*state, rows="hip")
