# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives with the motion of some joints prescribed: complex steps of hybrid dynamics."""

import numpy as np
import pytest

from phistar.errors import UnknownNameError
from tests.derivatives.witness import ROBOTS, State, close, state, steps

GIVEN = ("q", "v", "tau", "vdot")


@pytest.fixture(scope="module", params=ROBOTS)
def case(request: pytest.FixtureRequest) -> State:
    """Robots with every joint kind."""
    return state(request.param)


@pytest.mark.parametrize("chosen", [slice(0, 1), slice(1, None, 3)])
@pytest.mark.parametrize("reference", [None, "world_aligned"])
def test_complex_steps(case: State, chosen: slice, reference: str | None) -> None:
    """All eight matrices are complex steps of both results; relative 1e-10: both sides invert.

    The forces of free joints are given: their rows are exact, and so the witness is not asked.
    """
    robot = case.robot
    names = robot.joint_names[chosen]
    push = {robot.link_names[-1]: [1.0, -2.0, 0.5, 3.0, 0.0, -1.0]}
    options = {"forces": push, "reference": reference} if reference else {}
    arguments = (case.q, case.v, case.x, case.dx)
    found = robot.linearize_hybrid(*arguments, names, **options)
    held = [i for name in names for i in np.arange(robot.nv)[robot.joints[name].v_slice]]
    free = np.setdiff1d(np.arange(robot.nv), held)
    for place, (result, rows) in enumerate({"vdot": free, "tau": held}.items()):
        expected = steps(
            robot,
            lambda *x, place=place: robot.hybrid_dynamics(*x, names, **options)[place],
            arguments,
        )
        for name, theirs in zip(GIVEN, expected, strict=True):
            ours = getattr(found, f"{result}_{name}")
            close(ours[..., rows, :], theirs[..., rows, :], 1e-10)
            given = np.setdiff1d(np.arange(robot.nv), rows)
            exact = np.eye(robot.nv)[given] if name == result else np.zeros((1, robot.nv))
            assert (ours[..., given, :] == exact).all()
        close(getattr(found, result), robot.hybrid_dynamics(*arguments, names, **options)[place])


def test_the_two_ends() -> None:
    """With no joint prescribed it is forward dynamics, with all of them inverse dynamics; 1e-11."""
    case = state("free base")
    robot = case.robot
    arguments = (case.q, case.v, case.x, case.dx)
    none = robot.linearize_hybrid(*arguments, [])
    forward = robot.linearize(*arguments[:3])
    every = robot.linearize_hybrid(*arguments, robot.joint_names)
    inverse = robot.linearize_inverse(case.q, case.v, case.dx)
    for name in ("q", "v", "tau"):
        close(getattr(none, f"vdot_{name}"), getattr(forward, f"vdot_{name}"), 1e-11)
    for name in ("q", "v", "vdot"):
        close(getattr(every, f"tau_{name}"), getattr(inverse, f"tau_{name}"), 1e-14)
    assert not none.vdot_vdot.any()
    assert not every.vdot_q.any()


def test_a_robot_on_a_moving_base() -> None:
    """A base that is held still gives the fixed-base robot; relative 1e-11."""
    case = state("free base")
    robot = case.robot
    base = robot.joint_names[0]
    n = robot.joints[base].v_slice.stop
    v, vdot = case.v.copy(), np.zeros_like(case.v)
    v[..., :n] = 0.0
    found = robot.linearize_hybrid(case.q, v, case.x, vdot, [base])
    inner = robot.mass_matrix(case.q)[..., n:, n:]
    close(found.vdot_tau[..., n:, n:], np.linalg.inv(inner), 1e-11)
    assert not found.vdot_q[..., :n, :].any()


def test_unknown_joints() -> None:
    """A joint that does not exist is named."""
    case = state("serial")
    with pytest.raises(UnknownNameError, match="elbow"):
        case.robot.linearize_hybrid(case.q, case.v, case.x, case.dx, ["elbow"])
