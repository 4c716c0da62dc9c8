# SPDX-License-Identifier: BSD-3-Clause
"""Rows of loops, their rates and tangents against complex steps, for every kind."""

from dataclasses import replace

import numpy as np
import pytest

import phistar
from phistar.arrays import Array
from phistar.compile import traced_results
from phistar.constraints import Distance, Rolling
from phistar.loops.system import rows_at
from phistar.model import ModelBuilder
from phistar.model.components import LoopJoint
from phistar.model.configuration import integrate, random_configuration
from phistar.model.loop_kinds import LOOP_KINDS, across
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.scalar.graph import Graph
from phistar.scalar.interpret import run
from phistar.scalar.linear.dual_numbers import Dual, as_dual
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.trace.loop_programs import loop_closure
from phistar.spatial import pose, rotation_about

STEP = 1e-30


def with_all_kinds(seed: int) -> Model:
    """A random tree whose loops come in every kind, all switched on, and couplings."""
    rng = np.random.default_rng(seed)
    options = {"floating_base": seed % 3 == 0, "mimic": 0.3 * (seed % 2)}
    model = random_model(rng, 5, loops=3, **options)
    loops = [replace(loop, active=True) for loop in model.loops]
    more = [
        replace(loop, name=f"{loop.name} {kind}", kind=kind, size=0.3)
        for loop in loops
        if isinstance(loop, LoopJoint)
        for kind in LOOP_KINDS
        if kind != loop.kind
    ]
    return model.with_loops((*loops, *more))


@pytest.mark.parametrize("seed", range(4))
def test_rows_and_tangents_are_exact_derivatives(seed: int) -> None:
    """Lv, L̇v, ∂(Lv)/∂q, ∂(Lv̇ + L̇v)/∂(q, v) and ∂(L*λ)/∂q by complex steps, to 1e-11."""
    model = with_all_kinds(seed)
    rng = np.random.default_rng(seed + 100)
    q = random_configuration(model, rng)
    v, vdot = rng.normal(size=(2, model.nv))
    at = traced_results(model, ("loop_motion",), q, v)
    multipliers = rng.normal(size=at["rate"].shape)
    found = traced_results(model, ("loop_tangents",), q, v, vdot, multipliers)
    steps = 1j * STEP * np.eye(model.nv)
    shape = (model.nv, model.nq)
    ahead = integrate(model, np.broadcast_to(q.astype(complex), shape), steps)
    moved = traced_results(model, ("loop_motion",), ahead, v.astype(complex))
    faster = traced_results(model, ("loop_motion",), q.astype(complex), v + steps)
    along = integrate(model, q.astype(complex), 1j * STEP * v)
    later = traced_results(model, ("loop_motion",), along, v.astype(complex))
    pairs = {
        "rate": (at["rows"] @ v, at["rate"]),
        "bias": (later["rows"].imag @ v / STEP, at["bias"]),
        "rate_q": (moved["rate"].imag.T / STEP, found["rate_q"]),
        "acceleration_q": ((moved["rows"] @ vdot + moved["bias"]).imag.T / STEP,
                           found["acceleration_q"]),
        "acceleration_v": (faster["bias"].imag.T / STEP, found["acceleration_v"]),
        "force_q": ((np.swapaxes(moved["rows"], -1, -2) @ multipliers).imag.T / STEP,
                    found["force_q"]),
    }  # fmt: skip
    for name, (expected, value) in pairs.items():
        assert np.abs(value - expected).max() < 1e-11 * max(1.0, np.abs(expected).max()), name


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_errors_are_those_of_the_rows(kind: str) -> None:
    """Where a loop is nearly closed, steps change both errors as its rows say, to second order."""
    model = with_all_kinds(1)
    rng = np.random.default_rng(5)
    q = random_configuration(model, rng)
    loops = [x for x in model.loops if isinstance(x, LoopJoint) and x.kind == kind]
    assert loops
    for loop in loops:
        alone = model.with_loops((loop,))
        relative = rows_at(alone, q).relative[0]
        # Closed here: the predecessor frame is put onto the successor frame.
        if kind == "distance":
            closed = replace(loop, size=float(np.linalg.norm(relative[:3, 3])))
        elif kind in ("rolling", "rolling_disc"):
            height = LOOP_KINDS[kind].error(loop, relative)[2]
            shift = pose(translation=(0, 0, height))
            closed = replace(loop, predecessor_pose=loop.predecessor_pose @ shift)
        else:
            closed = replace(loop, predecessor_pose=loop.predecessor_pose @ relative)
        alone = model.with_loops((closed,))
        at = rows_at(alone, q)
        holonomic = np.array(LOOP_KINDS[kind].holonomic)
        assert np.abs(at.error).max() < 1e-13
        step = 1e-5 * rng.normal(size=model.nv)
        ahead = rows_at(alone, integrate(alone, q, step))
        change = np.where(holonomic, at.L @ step, 0.0)
        assert np.abs(ahead.error - change).max() < 30 * np.abs(step).max() ** 2
        line = loop_closure(alone)
        near = _near_error(alone, line, integrate(alone, q, step))
        assert np.abs(near - change).max() < 30 * np.abs(step).max() ** 2


def _near_error(model: Model, line: Unrolled, q: Array) -> Array:
    return run(line, {"q": q[None], "v": np.zeros((1, model.nv))})["error"][0]


def test_half_a_turn_counts_as_open() -> None:
    """A weld that is turned by π is open by π, and a hinge turned about its axis is not."""
    turned = pose(rotation_about(np.array([0.0, 0.0, 1.0]), np.pi))
    loop = LoopJoint("x", "weld", "a", "b")
    assert np.linalg.norm(LOOP_KINDS["weld"].error(loop, turned)) == pytest.approx(np.pi)
    hinge = replace(loop, kind="revolute")
    assert np.abs(LOOP_KINDS["revolute"].error(hinge, turned)).max() < 1e-7
    across_it = pose(rotation_about(np.array([1.0, 0.0, 0.0]), 3.0))
    assert np.linalg.norm(LOOP_KINDS["revolute"].error(hinge, across_it)) == pytest.approx(3.0)


def test_normals_of_an_axis() -> None:
    """Three unit vectors at right angles, coordinate axes if the axis is one."""
    assert across((0.0, 0.0, 1.0)) == ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    rng = np.random.default_rng(0)
    for a in rng.normal(size=(20, 3)):
        a /= np.linalg.norm(a)
        basis = np.array([*across(tuple(a)), a])
        assert np.abs(basis @ basis.T - np.eye(3)).max() < 1e-14


def test_dual_numbers() -> None:
    """Derivatives of a formula along with its value, against the quotient and chain rules."""
    g = Graph()
    x = g.load("q", 0)
    found = 3.0 / (2.0 - Dual(x, 1.0) * Dual(x, 1.0) + 1.0)
    assert isinstance(found, Dual)
    constant = as_dual(2.0) - 1.0
    assert (constant.value, constant.change) == (1.0, 0.0)
    stores = [Store("y", 0, "", found.value), Store("y", 1, "", found.change)]
    line = Unrolled(Signature({"q": 1}, {"y": 2}), BasicBlock(g, stores))
    at = np.array([[0.4]])
    value, change = run(line, {"q": at})["y"][0]
    assert value == pytest.approx(3.0 / (3.0 - 0.16), rel=1e-14)
    assert change == pytest.approx(3.0 * 0.8 / (3.0 - 0.16) ** 2, rel=1e-14)


def test_a_ball_rolls_down_a_slope() -> None:
    """A uniform sphere on a slope of angle s accelerates with 5/7 g sin s, along it."""
    slope, radius = 0.3, 0.2
    builder = ModelBuilder("ball")
    builder.link("ground")
    inertia = 0.4 * 2.0 * radius**2
    builder.link("ball", 2.0, (0, 0, 0), (inertia, inertia, inertia))
    builder.joint("free", "free", "ground", "ball")
    plane = pose(rotation_about(np.array([0.0, 1.0, 0.0]), slope))
    robot = phistar.load(builder.build()).with_loops(Rolling("ball", at=plane, radius=radius))
    q = robot.neutral()
    q[:3] = plane[:3, :3] @ np.array([0.1, 0.2, radius])
    vdot = robot.forward_dynamics(q, np.zeros(6), np.zeros(6))
    down = plane[:3, 0]
    assert vdot[3:] == pytest.approx(5 / 7 * 9.81 * np.sin(slope) * down, rel=1e-12)
    found = robot.constrained_dynamics(q, np.zeros(6), np.zeros(6))
    (wrench,) = found.wrenches.values()
    normal = wrench[3:] @ plane[:3, 2]
    assert normal == pytest.approx(2.0 * 9.81 * np.cos(slope), rel=1e-12)


def test_a_point_on_a_rod_is_a_pendulum() -> None:
    """A free mass at constant distance: angular acceleration and tension of the pendulum."""
    builder = ModelBuilder("mass")
    builder.link("ground")
    builder.link("mass", 1.5, (0, 0, 0), (0.1, 0.1, 0.1))
    builder.joint("slide", "translation", "ground", "mass")
    angle, length, rate = 0.7, 1.2, 0.9
    robot = phistar.load(builder.build()).with_loops(Distance("mass", length=length, name="rod"))
    q = length * np.array([np.sin(angle), 0.0, -np.cos(angle)])
    tangent = np.array([np.cos(angle), 0.0, np.sin(angle)])
    v = rate * length * tangent
    found = robot.constrained_dynamics(q, v, np.zeros(3))
    along = -9.81 * np.sin(angle) * tangent - rate**2 * q
    assert found.vdot == pytest.approx(along, rel=1e-12)
    tension = 1.5 * (9.81 * np.cos(angle) + length * rate**2)
    assert np.linalg.norm(found.wrenches["rod"][3:]) == pytest.approx(tension, rel=1e-12)
    at = robot.linearize(q, v, np.zeros(3))
    for j in range(3):
        step = np.zeros(3)
        step[j] = 1e-6
        turned = [robot.project(q + s * step, v) for s in (1, -1)]
        if j == 1:  # sideways both ends stay on the sphere to second order
            pushed = [robot.constrained_dynamics(*x, np.zeros(3)).wrenches["rod"] for x in turned]
            change = (pushed[0] - pushed[1]) / 2e-6
            assert at.wrench_q["rod"][:, j] == pytest.approx(change, abs=1e-5)
