# SPDX-License-Identifier: BSD-3-Clause
"""Steps with joints that rub and stop and points that touch, against dense matrices."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import phistar
from phistar.backends.numpy_scalars import scalar_source
from phistar.compile import TRACED
from phistar.scalar.interpret import run
from phistar.scalar.program import Unrolled
from phistar.scalar.trace.unilateral_rows import Ball, ContactRow, HalfSpace, JointRow, StepRows
from phistar.scalar.verify import verify

H = 1e-3
RADIUS, FRICTION = 0.02, 0.7
FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
UP = np.array([0.0, 0.0, 1.0])


def _rows(robot: phistar.Robot, restitution: float) -> StepRows:
    """Feet on a floor; joints that stop, rub, are damped and have springs."""
    model = robot.model
    contacts = tuple(
        ContactRow(
            Ball(model.frame(f).body, tuple(model.frame(f).body_pose[:3, 3].tolist()), RADIUS),
            HalfSpace(offset=0.01),
            FRICTION,
            restitution,
        )
        for f in FEET
    )
    joints = [model.joints[name] for name in robot.joint_names if model.joints[name].nv == 1]
    given = {
        0: {"lower": -1.0, "upper": 1.0, "restitution": restitution},
        1: {"lower": -1.0},
        2: {"friction": 0.3},
        3: {"friction": 0.2, "upper": 0.5},
        4: {"damping": 3.0},
        5: {"stiffness": 200.0, "rest": 0.1, "lower": -0.5, "upper": 0.5},
    }
    rows = tuple(
        JointRow(joints[i].v_slice.start, joints[i].q_slice.start, **named)
        for i, named in given.items()
    )
    return StepRows(rows, contacts, sweeps=7, correction=0.3)


def _point_jacobian(robot: phistar.Robot, q: np.ndarray, foot: str) -> np.ndarray:
    """Of the lowest point of a foot's sphere."""
    J = robot.jacobian(q, foot, "world_aligned")
    return np.asarray(J[3:] + np.cross(J[:3], -RADIUS * UP, axisa=0, axisb=0, axisc=0))


def _held(row: JointRow | ContactRow, gap: float, v: float, free: float) -> float:
    """What a one-sided row adds to its velocity."""
    if row.restitution and gap + H * free < 0.0 and -v > 2.0 * 9.81 * H:
        return row.restitution * v
    return max(gap, 0.0) / H + max(0.3 * min(gap, 0.0) / H, -1.0)


def _dense(
    robot: phistar.Robot,
    rows: StepRows,
    q: np.ndarray,
    v: np.ndarray,
    tau: np.ndarray,
    impulses: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and impulses after a step, by matrices and the rules of the solver, row by row."""
    M, force = robot.mass_matrix(q), tau - robot.bias_force(q, v)
    for row in rows.joints:
        i = row.v
        M[i, i] += H * row.damping + H * H * row.stiffness
        force[i] -= row.damping * v[i] + row.stiffness * (q[row.q] - row.rest + H * v[i])
    inverse = np.linalg.inv(M)
    free = _in_axes_at_rest(v) + H * inverse @ force
    across = np.cross(np.eye(3)[1], UP)
    axes = np.array([UP, across, np.cross(UP, across)])
    L = [np.eye(robot.nv)[row.v] for row in rows.bounded]
    L = np.array(L + [x for f in FEET for x in axes @ _point_jacobian(robot, q, f)])
    delta, g, x = L @ inverse @ L.T, L @ free, impulses.copy()
    count = len(rows.bounded)
    for k, (foot, row) in enumerate(zip(FEET, rows.contacts, strict=True)):
        i = count + 3 * k
        gap = robot.frame_pose(q, foot)[2, 3] - RADIUS - 0.01
        g[i] += _held(row, gap, L[i] @ v, g[i])
    worked = g.copy()
    for i, row in enumerate(rows.bounded):
        low = -_held(row, q[row.q] - row.lower, v[row.v], g[i])
        high = _held(row, row.upper - q[row.q], -v[row.v], -g[i])
        bound = low if x[i] > 0.0 else high
        worked[i] -= bound if np.isfinite(bound) else 0.0
    x *= np.clip(-x @ worked / max(x @ delta @ x, np.finfo(float).tiny), 0.0, 1.0)
    for _ in range(rows.sweeps):
        for i, row in enumerate(rows.bounded):
            s = g[i] + delta[i] @ x - delta[i, i] * x[i]
            rubbed = H * row.friction * delta[i, i]
            ahead = max(s - rubbed, 0.0) + min(s + rubbed, 0.0)
            ahead = max(ahead, -_held(row, q[row.q] - row.lower, v[row.v], g[i]))
            ahead = min(ahead, _held(row, row.upper - q[row.q], -v[row.v], -g[i]))
            x[i] = (ahead - s) / delta[i, i]
        for k in range(len(FEET)):
            n, t = count + 3 * k, slice(count + 3 * k + 1, count + 3 * k + 3)
            x[n] = max(0.0, x[n] - (g[n] + delta[n] @ x) / delta[n, n])
            x[t] -= (g[t] + delta[t] @ x) / np.linalg.eigvalsh(delta[t, t])[-1]
            x[t] *= min(1.0, FRICTION * x[n] / np.linalg.norm(x[t]))
    return *_moved(robot, q, free + inverse @ L.T @ x), x


def _in_axes_at_rest(v: np.ndarray) -> np.ndarray:
    """v before the force of turning axes: a base at its centre of mass goes on straight."""
    found = v.copy()
    found[3:6] += H * np.cross(v[:3], v[3:6])
    return found


def _moved(robot: phistar.Robot, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q and v after a step, of v in the axes that the base has before."""
    assert not robot.model.links[0].com.any()
    q_next, v_next = robot.integrate(q, H * v), v.copy()
    before, after = Rotation.from_quat(q[3:7]), Rotation.from_quat(q_next[3:7])
    speed = before.apply(v[3:6])
    q_next[:3] = q[:3] + H * speed
    v_next[3:6] = after.inv().apply(speed)
    return q_next, v_next


def _states(robot: phistar.Robot, count: int) -> dict[str, np.ndarray]:
    """Some of them with feet on or in the floor, and with joints at or beyond their stops."""
    rng = np.random.default_rng(7)
    q = robot.random_configuration(rng, (count,))
    q[:, 7:] = rng.uniform(-1.2, 1.2, (count, 12))
    lowest = np.min([robot.frame_pose(q, f)[:, 2, 3] for f in FEET], axis=0)
    q[:, 2] += RADIUS + 0.01 - lowest + rng.uniform(-2e-3, 2e-3, count)
    v, tau = rng.normal(size=(2, count, robot.nv))
    return {"q": q, "v": v, "tau": tau, "dt": np.full((count, 1), H)}


def _numpy_code(program: Unrolled, given: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    made: dict[str, object] = {}
    exec(scalar_source(program), {"np": np}, made)
    found: Sequence[np.ndarray] = made["run"](*given)  # type: ignore[operator]
    return found


@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_the_step_is_that_of_dense_matrices(restitution: float) -> None:
    """v, q and impulses of the same rounds on 𝓜 and L; relative 1e-11. NumPy code: the same."""
    robot = phistar.load("quadruped")
    rows, given = _rows(robot, restitution), _states(robot, 6)
    program = TRACED["unilateral_step"].trace(robot.model, rows)
    verify(program)
    impulses = np.abs(np.random.default_rng(8).normal(size=(6, rows.count))) * 1e-2
    inputs = {**given, "impulses": impulses}
    found = run(program, inputs)
    touched = 0
    for k in range(6):
        q, v, tau = (given[name][k] for name in ("q", "v", "tau"))
        known = _dense(robot, rows, q, v, tau, impulses[k])
        for name, expected in zip(("q_next", "v_next", "impulses_next"), known, strict=True):
            scale = np.abs(expected).max()
            assert np.abs(found[name][k] - expected).max() <= 1e-11 * scale, (k, name)
        touched += int((known[2][len(rows.bounded) :: 3] > 0.0).sum())
    assert touched > 3
    again = _numpy_code(program, list(inputs.values()))
    for x, y in zip(again, found.values(), strict=True):
        assert np.abs(x - y).max() <= 1e-14 * np.abs(y).max()


def test_idle_stops_are_left_out() -> None:
    """Joints between their stops, contacts active: the same as with all rows; relative 1e-11."""
    robot = phistar.load("quadruped")
    rows, given = _rows(robot, 0.0), _states(robot, 4)
    given["q"][:, 7:] *= 0.3
    feet = np.min([robot.frame_pose(given["q"], f)[:, 2, 3] for f in FEET], axis=0)
    given["q"][:, 2] += RADIUS + 0.01 - feet
    given["v"][:, 6:] *= 0.1
    given["v"][:, 3:6] = -robot.frame_pose(given["q"], "base_link")[:, 2, :3]
    impulses = np.zeros((4, rows.count))
    found = run(TRACED["unilateral_step"].trace(robot.model, rows), {**given, "impulses": impulses})
    stops = [i for i, row in enumerate(rows.bounded) if not row.friction]
    assert len(stops) == 3
    assert not found["impulses_next"][:, stops].any()
    for k in range(4):
        q, v, tau = (given[name][k] for name in ("q", "v", "tau"))
        _, v_next, x = _dense(robot, rows, q, v, tau, impulses[k])
        assert np.abs(x[len(rows.bounded) :]).max() > 0.0
        assert np.abs(found["v_next"][k] - v_next).max() <= 1e-11 * np.abs(v_next).max()
        assert np.abs(found["impulses_next"][k] - x).max() <= 1e-11 * np.abs(x).max()


def test_without_rows_it_is_a_plain_step() -> None:
    """No joint stops, none rubs, nothing touches: semi-implicit Euler; relative 1e-13."""
    robot = phistar.load("double_pendulum")
    program = TRACED["unilateral_step"].trace(robot.model, StepRows())
    rng = np.random.default_rng(1)
    q, v, tau = rng.normal(size=(3, 4, 2))
    found = run(
        program, {"q": q, "v": v, "tau": tau, "dt": np.full((4, 1), H), "impulses": np.ones((4, 1))}
    )
    q_next, v_next = robot.step(q, v, tau, H, "semi_implicit")
    np.testing.assert_allclose(found["q_next"], q_next, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found["v_next"], v_next, rtol=1e-13, atol=1e-13)


def test_a_damped_joint_of_any_stiffness_stays_stable() -> None:
    """Damping and stiffness far beyond what an explicit step could take: energy goes down."""
    robot = phistar.load("double_pendulum")
    rows = StepRows(tuple(JointRow(i, i, damping=1e3, stiffness=1e6) for i in range(2)))
    program = TRACED["unilateral_step"].trace(robot.model, rows)
    q, v = np.array([[0.5, -0.4]]), np.zeros((1, 2))
    dt, nothing = np.full((1, 1), 0.01), np.zeros((1, 1))
    sizes = []
    for _ in range(30):
        given = {"q": q, "v": v, "tau": robot.gravity_force(q), "dt": dt, "impulses": nothing}
        found = run(program, given)
        q, v = found["q_next"], found["v_next"]
        sizes.append(float(np.abs(q).max()))
    assert all(y <= x + 1e-15 for x, y in pairwise(sizes))
    assert sizes[-1] < 1e-3
