# SPDX-License-Identifier: BSD-3-Clause
"""Second derivatives and driven joints on loops, against dense systems and along the loops."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.arrays import Array
from phistar.constraints import Distance, Gear, Point, Rolling
from phistar.errors import ArgumentError, LoopOpenError, LoopVelocityError, UnknownNameError
from phistar.loops.second_derivatives import LoopForwardSecond
from phistar.loops.system import motion_at
from phistar.model.builder import ModelBuilder
from phistar.model.configuration import integrate_unchecked
from phistar.robot import Robot
from tests.loops.mechanisms import error, four_bar, four_bar_state, mechanism, needs_loops

STEP = 1e-4
MOVED = ("qq", "qv", "vv", "q_tau")


def _state(robot: Robot, q: Array, seed: int = 5) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    q, v = robot.project(robot.assemble(q), rng.normal(size=robot.nv))
    return q, v, rng.normal(size=robot.nv)


def _floating() -> tuple[Robot, tuple[Array, Array, Array]]:
    """A body that rolls on the floor with a rod to its pendulum: joints with several axes, rows
    whose directions turn, rows of velocities alone."""
    builder = ModelBuilder("roller")
    builder.link("ground")
    builder.link("ball", 2.0, (0.02, 0.0, 0.01), (0.02, 0.025, 0.03))
    builder.joint("free", "free", "ground", "ball")
    builder.link("rod", 0.5, (0.0, 0.0, -0.2), (0.01, 0.012, 0.002))
    builder.joint("swivel", "spherical", "ball", "rod", xyz=(0.1, 0.0, 0.2))
    builder.frame("tip", "rod", xyz=(0.0, 0.1, -0.4))
    robot = Robot(builder.build())
    q = robot.random_configuration(3)
    q[2] = 0.3
    robot = robot.with_loops(Rolling("ball", radius=0.3), Distance("tip", at=(2.0, 1.0, 1.0)), q=q)
    return robot, _state(robot, q)


CASES = ("four_bar", "floating", "arm")


@cache
def _case(name: str) -> tuple[Robot, tuple[Array, Array, Array]]:
    if name == "four_bar":
        return four_bar(), four_bar_state(2)
    if name == "floating":
        return _floating()
    arm = phistar.load("ur5")
    q = arm.random_configuration(4)
    names = arm.joint_names
    geared = arm.with_loops(Point(arm.frame_names[-1]), Gear(names[1], names[2], ratio=0.5), q=q)
    return geared, _state(geared, q)


def _saddle(robot: Robot, kept: Array, q: Array, v: Array, tau: Array) -> Array:
    """v̇ with some rows, by one dense system in any dtype; no state has to be on the loops."""
    mass, bias = robot.tree.mass_matrix(q), robot.tree.bias_force(q, v)
    rows = motion_at(robot.model, q, v)
    L = rows.L[..., kept, :]
    n, r = robot.nv, len(kept)
    whole = np.zeros((*q.shape[:-1], n + r, n + r), q.dtype)
    whole[..., :n, :n], whole[..., n:, :n] = mass, L
    whole[..., :n, n:] = np.swapaxes(L, -1, -2)
    right = np.zeros((*q.shape[:-1], n + r), q.dtype)
    right[..., :n], right[..., n:] = tau - bias, -rows.bias[..., kept]
    return np.linalg.solve(whole, right[..., None])[..., :n, 0]


def _first(robot: Robot, kept: Array, q: Array, v: Array, tau: Array) -> dict[str, Array]:
    """First derivatives (nv, nv) of that by complex steps."""
    step, found = 1e-30, {}
    one = 1j * step * np.eye(robot.nv)
    still = np.zeros_like(one)
    for name, moves in {"q": (one, still, still), "v": (still, one, still)}.items():
        at = np.broadcast_to(q.astype(complex), (robot.nv, len(q)))
        ahead = integrate_unchecked(robot.model, at, moves[0])
        found[name] = _saddle(robot, kept, ahead, v + moves[1], tau + moves[2]).imag.T / step
    return found


@pytest.mark.parametrize("name", CASES)
def test_tensors_are_derivatives_of_a_dense_system(name: str) -> None:
    """Central differences of complex steps of the saddle point system, relative 1e-6, every entry;
    where all rows count, first derivatives are those of ``linearize``."""
    robot, (q, v, tau) = _case(name)
    found = robot.forward_dynamics_second(q, v, tau)
    kept = found.rows

    def slope(k: int, along: str, first: str) -> Array:
        unit = STEP * np.eye(robot.nv)[k]
        ends = []
        for sign in (1.0, -1.0):
            dq, dv, dtau = (sign * unit if along == x else 0.0 * unit for x in ("q", "v", "tau"))
            ahead = integrate_unchecked(robot.model, q, dq)
            ends.append(_first(robot, kept, ahead, v + dv, tau + dtau)[first])
        return (ends[0] - ends[1]) / (2 * STEP)

    for field in MOVED:
        first, along = (field[0], field[1:].lstrip("_"))
        expected = np.stack([slope(k, along, first) for k in range(robot.nv)], axis=-1)
        assert error(getattr(found, field), expected) < 1e-6, field
    at = robot.linearize(q, v, tau)
    assert not at.tangential
    for field in ("vdot_q", "vdot_v", "vdot_tau"):
        assert error(getattr(found, field), getattr(at, field)) < 1e-9, field
    assert error(found.qq, robot.tree.forward_dynamics_second(q, v, tau).qq) > 0.1


def _reduced_slopes(robot: Robot, q: Array, v: Array, tau: Array, **pushed: Any) -> None:
    """Changes of the reduced pair along the loops, by tensors and by differences: 1e-6."""
    found = robot.forward_dynamics_second(q, v, tau, **pushed)
    at = robot.linearize(q, v, tau, **pushed).reduced()
    free, n = at.entries, len(at.entries)
    minimal = robot.minimal(q)
    assert np.array_equal(minimal.entries, free)
    start = minimal.coordinates(q), minimal.velocities(v)
    for k in range(n):
        ends = []
        for sign in (STEP, -STEP):
            there = start[0] + sign * np.eye(n)[k]
            ends.append(robot.linearize(*minimal.expand(there, start[1]), tau, **pushed).reduced())
        X_k, Y_k, A_k = (
            (getattr(ends[0], x) - getattr(ends[1], x)) / (2 * STEP) for x in ("X", "Xdot", "A")
        )
        dq, dv = at.X[:, k], at.Xdot[:, k]
        by_q = found.qq @ dq + found.qv @ dv
        by_v = np.einsum("ijk,j->ik", found.qv, dq) + found.vv @ dv
        change = by_q @ at.X + found.vdot_q @ X_k + by_v @ at.Xdot + found.vdot_v @ Y_k
        assert error(change[free], A_k[n:, :n]) < 1e-6
        faster = by_v @ at.X + found.vdot_v @ X_k
        assert error(faster[free], A_k[n:, n:]) < 1e-6


@pytest.mark.parametrize("name", ["four_bar", "arm"])
def test_reduced_pair_changes_as_the_tensors_say(name: str) -> None:
    """The way to minimal coordinates, differentiated once more."""
    robot, state = _case(name)
    _reduced_slopes(robot, *state)


@needs_loops
def test_dependent_rows() -> None:
    """Over-constrained loops: rows that are left out change nothing along the loops."""
    robot = mechanism("bricard").robot
    q, v, tau = (x[0] for x in mechanism("bricard").state)
    assert robot.linearize(q, v, tau).tangential
    _reduced_slopes(robot, q, v, tau)


@pytest.mark.parametrize("name", CASES)
def test_products_are_those_of_the_tensors(name: str) -> None:
    """``hvp`` beside contracted tensors, relative 1e-9; wrenches on frames too."""
    robot, (q, v, tau) = _case(name)
    rng = np.random.default_rng(8)
    w, dq, dv, dtau = rng.normal(size=(4, robot.nv))
    forces = {robot.frame_names[-1]: rng.normal(size=6)}
    for pushed in ({}, {"forces": forces}):
        t = robot.forward_dynamics_second(q, v, tau, **pushed)
        found = robot.hvp("forward_dynamics", q, v, tau, w, dq=dq, dv=dv, dtau=dtau, **pushed)
        expected = {
            "q": np.einsum("i,ijk,k->j", w, t.qq, dq)
            + np.einsum("i,ijk,k->j", w, t.qv, dv)
            + np.einsum("i,ijk,k->j", w, t.q_tau, dtau),
            "v": np.einsum("i,ijk,j->k", w, t.qv, dq) + np.einsum("i,ijk,k->j", w, t.vv, dv),
            "tau": np.einsum("i,ijk,j->k", w, t.q_tau, dq),
        }
        for key, value in expected.items():
            assert error(found[key], value) < 1e-9, key
    with pytest.raises(UnknownNameError, match="dx"):
        robot.hvp("forward_dynamics", q, v, tau, w, dx=dq)


def test_forces_on_frames_are_held() -> None:
    """With a wrench in axes of the world, and one that turns with its frame."""
    robot, state = _case("four_bar")
    push = {robot.frame_names[-1]: np.array([0.1, 0.2, 0.3, 1.0, -2.0, 0.5])}
    for reference in ("world_aligned", "local"):
        _reduced_slopes(robot, *state, forces=push, reference=reference)


def test_bad_samples() -> None:
    """Batches of which one sample is open: the others the same bits."""
    robot = phistar.load("four_bar")
    q, v, tau = four_bar_state(2)
    both = np.stack([q, q + np.array([0.3, 0.0, 0.0])])
    with pytest.raises(LoopOpenError):
        robot.forward_dynamics_second(both, v, tau)
    found = robot.forward_dynamics_second(both, v, tau, on_error="nan")
    alone = robot.forward_dynamics_second(q[None], v, tau)
    assert isinstance(found, LoopForwardSecond)
    for field in MOVED:
        assert np.array_equal(getattr(found, field)[0], getattr(alone, field)[0])
        assert np.isnan(getattr(found, field)[1]).all()
    with pytest.raises(LoopVelocityError):
        robot.forward_dynamics_second(q, v + np.array([1.0, 0.0, 0.0]), tau)
    result = robot.hvp("forward_dynamics", both, v, tau, v, dq=v, on_error="nan")
    assert np.isfinite(result["q"][0]).all()
    assert np.isnan(result["q"][1]).all()


def _hybrid(robot: Robot, kept: Array, driven: Array, *state: Array) -> tuple[Array, Array]:
    """v̇ and τ with some coordinates driven, by one dense system in any dtype."""
    q, v, tau, vdot = state
    rows, n, r = motion_at(robot.model, q, v), robot.nv, len(kept)
    L = np.zeros((*q.shape[:-1], r + len(driven), n), q.dtype)
    L[..., :r, :], L[..., r:, :] = rows.L[..., kept, :], np.eye(n)[driven]
    whole = np.zeros((*q.shape[:-1], n + L.shape[-2], n + L.shape[-2]), q.dtype)
    whole[..., :n, :n], whole[..., n:, :n] = robot.tree.mass_matrix(q), L
    whole[..., :n, n:] = -np.swapaxes(L, -1, -2)
    push = tau * ~np.isin(np.arange(n), driven) - robot.tree.bias_force(q, v)
    right = np.concatenate([push, -rows.bias[..., kept], vdot[..., driven]], axis=-1)
    found = np.linalg.solve(whole, right[..., None])[..., 0]
    forces = np.array(tau)
    forces[..., driven] = found[..., n + r :]
    return found[..., :n], forces


@pytest.mark.parametrize("name", CASES)
def test_hybrid_linearization(name: str) -> None:
    """All eight matrices beside complex steps of one dense system with rows of drives: 1e-8."""
    robot, (q, v, tau) = _case(name)
    minimal = robot.minimal(q)
    (joint,) = {n.split("[")[0] for n in minimal.independent[:1]}
    whole = robot.joints[joint].v_slice
    joint = joint if whole.stop - whole.start == 1 else "swivel"
    driven = np.arange(robot.nv)[robot.joints[joint].v_slice]
    told = np.random.default_rng(1).normal(size=robot.nv)
    kept = robot.forward_dynamics_second(q, v, tau).rows
    found = robot.linearize_hybrid(q, v, tau, told, [joint])
    state, step = (q, v, tau, told), 1e-30
    for place, name_ in enumerate(("q", "v", "tau", "vdot")):
        moves = [np.zeros((robot.nv, robot.nv), complex) for _ in state]
        moves[place] = 1j * step * np.eye(robot.nv)
        at = np.broadcast_to(q.astype(complex), (robot.nv, len(q)))
        ahead = integrate_unchecked(robot.model, at, moves[0])
        moved = (x + dx for x, dx in zip(state[1:], moves[1:], strict=True))
        results = _hybrid(robot, kept, driven, ahead, *moved)
        for field, x in zip(("vdot", "tau"), results, strict=True):
            ours, theirs = getattr(found, f"{field}_{name_}"), x.imag.T / step
            assert np.abs(ours - theirs).max() < 1e-8 * max(1.0, np.abs(theirs).max())
    vdot, forces = robot.hybrid_dynamics(q, v, tau, told, [joint])
    assert np.array_equal(found.vdot, vdot)
    assert np.array_equal(found.tau, forces)
    none, plain = robot.linearize_hybrid(q, v, tau, told, []), robot.linearize(q, v, tau)
    assert error(none.vdot_q, plain.vdot_q) < 1e-9


def test_joints_that_loops_tie_are_not_driven_both() -> None:
    """The error says how many of the prescribed coordinates move on their own."""
    robot, (q, v, tau) = _case("four_bar")
    vdot = robot.forward_dynamics(q, v, tau)
    with pytest.raises(ArgumentError, match=r"3 coordinates, of which 1 move"):
        robot.linearize_hybrid(q, v, tau, vdot, robot.joint_names)


@pytest.mark.parametrize("name", ["four_bar", "floating"])
def test_total_rates_on_the_loops(name: str) -> None:
    """ζ̇ beside differences of ζ along the motion on the loops, relative 1e-6; not the tree's."""
    robot, (q, v, tau) = _case(name)
    zeta = robot.diagonalize(q, v).zeta
    found = robot.diagonal_forward_dynamics(q, zeta, tau)
    assert error(found.v, v) < 1e-12
    vdot = robot.forward_dynamics(q, v, tau)
    ahead, behind = (
        robot.tree.diagonalize(robot.integrate(q, h * v), v + h * vdot).zeta for h in (STEP, -STEP)
    )
    assert error(found.zeta_dot, (ahead - behind) / (2 * STEP)) < 1e-6
    assert error(robot.tree.diagonal_forward_dynamics(q, zeta, tau).zeta_dot, found.zeta_dot) > 1e-2
    with pytest.raises(LoopVelocityError):
        robot.diagonal_forward_dynamics(q, zeta + 1.0, tau)
