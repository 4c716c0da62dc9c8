# SPDX-License-Identifier: BSD-3-Clause
"""Batches in which a sample is open, too fast, not a number or singular: it is reported, and the
others have the same bits as without it."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from phistar.arrays import Array
from phistar.errors import (
    LoopOpenError,
    LoopVelocityError,
    NotFiniteError,
    SampleError,
    SingularConfigurationWarning,
)
from phistar.robot import Robot
from tests.loops.mechanisms import error, windows

BAD = 2
"""The sample that is spoiled."""
State = tuple[Array, Array, Array]


def batch() -> tuple[Robot, State]:
    """Two four-bar windows in five states on the loops; they fold where they lie flat."""
    robot, q, _ = windows(2, 0.6)
    turns = robot.tangent({name: 1.0 if name[0] == "f" else -1.0 for name in robot.joint_names})
    angles = np.array([0.3, -0.7, 1.0, 2.0, -2.5])
    rng = np.random.default_rng(0)
    speeds = rng.normal(size=5)
    state = q + angles[:, None] * turns, speeds[:, None] * turns, rng.normal(size=(5, robot.nv))
    return robot, state


def spoil(state: State, how: str, turns: Array) -> State:
    """The same with a sample that has no result, or a doubtful one."""
    q, v, tau = (np.array(x) for x in state)
    if how == "open":
        q[BAD, 0] += 0.3
    elif how == "fast":
        v[BAD, 0] += 1.0
    elif how == "nan":
        q[BAD, 1] = np.nan
    else:
        angle = np.pi / 2 + (1e-7 if how == "near" else 0.0)
        q[BAD], v[BAD] = angle * turns, 0.0
    return q, v, tau


REPORTED = {"open": LoopOpenError, "fast": LoopVelocityError, "nan": NotFiniteError}


def arrays_of(found: Any, count: int = 5) -> Iterator[tuple[str, Array]]:
    """Arrays (5, ...) of a result by name."""
    if isinstance(found, np.ndarray):
        if found.ndim and len(found) == count:
            yield "", found
    elif isinstance(found, dict):
        for name, value in found.items():
            yield name, np.asarray(value)
    elif is_dataclass(found):
        for each in fields(found):
            for name, value in arrays_of(getattr(found, each.name), count):
                yield f"{each.name} {name}".strip(), value


METHODS: dict[str, Callable[..., Any]] = {
    "forward_dynamics": Robot.forward_dynamics,
    "constrained_dynamics": Robot.constrained_dynamics,
    "linearize": Robot.linearize,
}


def run(robot: Robot, method: str, state: State, **options: Any) -> Any:
    """A method, with warm machine code."""
    call = getattr(robot, method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SingularConfigurationWarning)
        return call(*state, **options)


@pytest.fixture(scope="module")
def prepared() -> tuple[Robot, State, Array]:
    """The batch; machine code of its dynamics is ready."""
    robot, state = batch()
    for _ in range(3):
        robot.forward_dynamics(*state)
    for quantity in ("forward_dynamics", "linearize"):
        assert robot.compile(quantity).cost.total > 0  # waits for it
        getattr(robot, quantity)(*state)
    turns = robot.tangent({name: 1.0 if name[0] == "f" else -1.0 for name in robot.joint_names})
    return robot, state, turns


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("how", ["open", "fast", "nan", "singular", "near"])
def test_the_others_have_the_same_bits(
    prepared: tuple[Robot, State, Array], method: str, how: str
) -> None:
    """And the one is an error with its number, NaN if that is wished for, or a warning."""
    robot, state, turns = prepared
    spoiled = spoil(state, how, turns)
    good = dict(arrays_of(run(robot, method, state)))
    assert good
    others = [i for i in range(5) if i != BAD]
    if how in ("singular", "near"):
        with pytest.warns(SingularConfigurationWarning, match=rf"sample \[{BAD}\].*motion"):
            found = dict(arrays_of(getattr(robot, method)(*spoiled)))
        alone = dict(arrays_of(run(robot, method, tuple(x[[BAD]] for x in spoiled)), 1))  # type: ignore[arg-type]
        for name, value in alone.items():
            if value.dtype != bool:
                assert error(found[name][[BAD]], value) < 1e-9, name
    else:
        with pytest.raises(REPORTED[how]) as caught:
            getattr(robot, method)(*spoiled)
        assert isinstance(caught.value, SampleError)
        assert caught.value.bad.tolist() == [i == BAD for i in range(5)]
        found = dict(arrays_of(getattr(robot, method)(*spoiled, on_error="nan")))
        for name, value in found.items():
            if value.dtype != bool and name != "q":
                assert np.isnan(value[BAD]).all(), name
    assert found.keys() == good.keys()
    for name, value in good.items():
        assert np.array_equal(found[name][others], value[others]), name


def test_accelerations_beside_a_singular_sample_keep_the_loops(
    prepared: tuple[Robot, State, Array],
) -> None:
    """By every route: the number of rows of one sample is not that of the others."""
    robot, state, turns = prepared
    spoiled = spoil(state, "singular", turns)
    others = [i for i in range(5) if i != BAD]
    for method in ("kkt", "null", "range", "embedding", "join"):
        expected = robot.forward_dynamics(*state, method=method)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SingularConfigurationWarning)
            found = robot.forward_dynamics(*spoiled, method=method)
        assert np.array_equal(found[others], expected[others]), method


@pytest.mark.parametrize("how", ["open", "fast", "nan", "singular"])
def test_simulations(prepared: tuple[Robot, State, Array], how: str) -> None:
    """From such states; a singular one passes."""
    robot, state, turns = prepared
    q, v, _ = spoil(state, how, turns)
    options = {"dt": 1e-3, "steps": 60}
    good = robot.simulate(*state[:2], **options, passive=False)
    others = [i for i in range(5) if i != BAD]
    if how == "singular":
        v[BAD] = 0.5 * turns
    else:
        with pytest.raises(REPORTED[how]) as caught:
            robot.simulate(q, v, **options, passive=False)
        assert caught.value.bad.tolist() == [i == BAD for i in range(5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SingularConfigurationWarning)
        found = robot.simulate(q, v, on_error="nan", **options, passive=False)
    assert np.array_equal(found.q[:, others], good.q[:, others])
    assert np.array_equal(found.v[:, others], good.v[:, others])
    assert found.diverged is not None
    if how == "singular":
        assert np.isfinite(found.q).all()
        assert np.abs(np.asarray(robot.loop_error(found.q))).max() < 1e-12
    else:
        assert np.isnan(found.q[:, BAD]).all()
        assert found.diverged.tolist() == [0 if i == BAD else -1 for i in range(5)]


def test_rows_that_vanish_are_singular_too() -> None:
    """Windows that lie flat: whole rows of L are zero there, and machine code sees it."""
    robot, q, v = windows(2)
    assert robot.compile("forward_dynamics").cost.total > 0  # waits for machine code
    flat = robot.configuration(
        {name: np.pi / 2 if name[0] == "f" else -np.pi / 2 for name in robot.joint_names}
    )
    rest, tau = np.zeros(robot.nv), np.ones(robot.nv)
    for _ in range(2):
        robot.forward_dynamics(q, rest, tau)
    for near in (0.0, 1e-9):
        state = robot.project(robot.integrate(flat, near * v), rest)
        with pytest.warns(SingularConfigurationWarning, match="motion"):
            robot.forward_dynamics(*state, tau)


@pytest.mark.parametrize("method", METHODS)
def test_an_open_sample_beside_a_singular_one(
    method: str, prepared: tuple[Robot, State, Array]
) -> None:
    """Each goes its own way: the open one is named by its place in the batch, or not a number."""
    robot, state, turns = prepared
    state = spoil(state, "singular", turns)
    expected = dict(arrays_of(run(robot, method, state)))
    opened = tuple(np.array(x) for x in state)
    opened[0][BAD + 1, 0] += 0.3
    with pytest.raises(LoopOpenError, match=rf"sample \[{BAD + 1}\]"):
        run(robot, method, opened)
    found = dict(arrays_of(run(robot, method, opened, on_error="nan")))
    assert np.isnan(found["vdot" if "vdot" in found else ""][BAD + 1]).all()
    others = [0, 1, BAD, 4]
    for name in ("", "vdot"):
        if name in expected:
            assert error(found[name][others], expected[name][others]) < 1e-9
