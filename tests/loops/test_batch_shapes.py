# SPDX-License-Identifier: BSD-3-Clause
"""Batches of every shape, none included, through everything that a robot with loops is asked."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from phistar.errors import LoopOpenError
from phistar.loops.routes import ROUTES
from phistar.model import Model
from tests.loops.mechanisms import four_bar

CALLS = {
    "forward_dynamics": lambda r, q, v, x: r.forward_dynamics(q, v, x),
    **{
        f"forward_dynamics {route}": lambda r, q, v, x, route=route: r.forward_dynamics(
            q, v, x, method=route
        )
        for route in sorted({*ROUTES} - {"auto"})
    },
    "passive": lambda r, q, v, x: r.forward_dynamics(q, v, x, passive=True),
    "forces": lambda r, q, v, x: r.forward_dynamics(
        q, v, x, forces={r.link_names[-1]: np.arange(6.0)}
    ),
    "constrained_dynamics": lambda r, q, v, x: r.constrained_dynamics(q, v, x),
    "constrained_inverse_dynamics": lambda r, q, v, x: r.constrained_inverse_dynamics(
        q, v, r.forward_dynamics(q, v, x)
    ),
    "linearize": lambda r, q, v, x: r.linearize(q, v, x),
    "reduced": lambda r, q, v, x: r.linearize(q, v, x).reduced(),
    "discretize": lambda r, q, v, x: r.discretize(q, v, x, 1e-3),
    "step": lambda r, q, v, x: r.step(q, v, x, 1e-3),
    "jvp": lambda r, q, v, x: r.jvp("forward_dynamics", q, v, x, dq=v),
    "vjp": lambda r, q, v, x: r.vjp("forward_dynamics", q, v, x, v),
    "hvp": lambda r, q, v, x: r.hvp("forward_dynamics", q, v, x, v, dq=v),
    "second": lambda r, q, v, x: r.forward_dynamics_second(q, v, x),
    "hybrid_dynamics": lambda r, q, v, x: r.hybrid_dynamics(
        q, v, x, r.forward_dynamics(q, v, x), [r.joint_names[0]]
    ),
    "linearize_hybrid": lambda r, q, v, x: r.linearize_hybrid(
        q, v, x, r.forward_dynamics(q, v, x), [r.joint_names[0]]
    ),
    "vdot_parameters": lambda r, q, v, x: r.vdot_parameters(q, v, x),
    "diagonal_forward_dynamics": lambda r, q, v, x: r.diagonal_forward_dynamics(
        q, r.diagonalize(q, v).zeta, x
    ),
    "reaction_forces": lambda r, q, v, x: r.reaction_forces(
        q, v, r.forward_dynamics(q, v, x), tau=x
    ),
    "loop_error": lambda r, q, v, x: np.asarray(r.loop_error(q)),
    "loop_jacobian": lambda r, q, v, x: np.asarray(r.loop_jacobian(q)),
    "assemble": lambda r, q, v, x: r.assemble(q),
    "project": lambda r, q, v, x: r.project(q, v),
}


def arrays_of(found: Any) -> Iterator[np.ndarray]:
    """Arrays of a result with an axis of samples in front."""
    if isinstance(found, np.ndarray):
        yield found
    elif isinstance(found, Mapping):
        for each in found.values():
            yield from arrays_of(each)
    elif isinstance(found, tuple):
        for each in found:
            if isinstance(each, np.ndarray):
                yield each
    elif is_dataclass(found) and not isinstance(found, Model):
        for field in fields(found):
            yield from arrays_of(getattr(found, field.name))


@pytest.mark.parametrize("call", sorted(CALLS))
def test_no_samples_give_no_results(call: str) -> None:
    """An empty batch is a batch: the shapes of three samples with nothing in them."""
    robot = four_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forces that are not determined
        rest = robot.assemble(np.full(robot.nq, 0.2))
        full = np.tile(rest, (3, 1)), np.zeros((3, robot.nv)), np.ones((3, robot.nv))
        three = list(arrays_of(CALLS[call](robot, *full)))
        none = list(arrays_of(CALLS[call](robot, *(x[:0] for x in full))))
    assert three
    for one, other in zip(three, none, strict=True):
        if one.shape[:1] == (3,):
            assert other.shape == (0, *one.shape[1:])
            assert other.dtype == one.dtype


def test_a_configuration_is_assembled_as_if_it_were_alone() -> None:
    """Starts from afar, some of which need further starts at random, do not know each other."""
    robot = four_bar()
    rng = np.random.default_rng(5)
    starts = rng.uniform(-np.pi, np.pi, size=(24, robot.nq))
    found = robot.assemble(starts)
    assert np.array_equal(robot.assemble(starts[::-1]), found[::-1])
    for start, q in zip(starts, found, strict=True):
        assert np.array_equal(robot.assemble(start[None])[0], q)


def test_a_state_is_projected_as_if_it_were_alone() -> None:
    """One that is far from the loops beside it changes no bit."""
    robot, rng = four_bar(), np.random.default_rng(3)
    q = robot.assemble(robot.configuration({"crank_joint": 0.3}))
    states = q + np.array([[1e-6], [0.2], [1e-3]]) * rng.normal(size=(3, 3))
    v = rng.normal(size=(3, 3))
    found = robot.project(states, v)
    for k in range(3):
        for one, whole in zip(robot.project(states[k : k + 1], v[k : k + 1]), found, strict=True):
            assert np.array_equal(one[0], whole[k])


@pytest.mark.parametrize("route", sorted(ROUTES))
def test_accelerations_are_those_of_the_sample_alone(route: str) -> None:
    """By every route: as many iterations as the sample needs, whatever the others need."""
    robot, rng = four_bar(), np.random.default_rng(4)
    q = robot.assemble(rng.uniform(-1.0, 1.0, size=(6, 3)))
    q, v = robot.project(q, rng.normal(size=(6, 3)))
    tau = 10.0 ** np.arange(-3.0, 3.0)[:, None] * rng.normal(size=(6, 3))
    found = robot.forward_dynamics(q, v, tau, method=route)
    for k in range(6):
        own = slice(k, k + 1)
        alone = robot.forward_dynamics(q[own], v[own], tau[own], method=route)
        assert np.array_equal(alone[0], found[k])


@pytest.mark.filterwarnings("ignore::phistar.errors.RedundantWrenchWarning")
def test_samples_that_cannot_be_closed_are_not_numbers() -> None:
    """``assemble``, ``project`` and inverse dynamics go on with the others where that is wished."""
    robot = four_bar()
    q = robot.assemble(np.full(3, 0.2))
    v = np.asarray(robot.minimal(q).X[:, 0])
    bad = np.array([False, True, True, False])
    states, speeds = np.tile(q, (4, 1)), np.tile(v, (4, 1))
    rates = np.tile(robot.forward_dynamics(q, v, v), (4, 1))
    states[1, 1] += 2.0
    states[2] = np.nan
    with pytest.raises(LoopOpenError, match=r"sample \[1\]"):
        robot.constrained_inverse_dynamics(states[:2], speeds[:2], rates[:2])
    at = robot.constrained_inverse_dynamics(states, speeds, rates, on_error="nan")
    for found in (at.effort, at.wrenches["coupler_closure"]):
        assert np.array_equal(np.isnan(found).any(axis=-1), bad)
    good = robot.constrained_inverse_dynamics(states[~bad], speeds[~bad], rates[~bad])
    assert np.array_equal(at.effort[~bad], good.effort)
    closed, moving = robot.project(states[[0, 2]], speeds[[0, 2]], on_error="nan")
    for found in (closed, moving, robot.assemble(states[[0, 2]], on_error="nan")):
        assert np.array_equal(np.isnan(found).any(axis=-1), [False, True])
