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
    UnderactuatedError,
)
from phistar.model import ModelBuilder
from phistar.robot import Robot
from phistar.spatial import pose
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


def slider_crank() -> tuple[Robot, Array]:
    """A crank of 1 m and a rod of 2 m in the plane, and two configurations: one where the crank
    leads, and the dead centre, where rod and crank are in line and the slider feels nothing."""
    builder = ModelBuilder("slider crank", gravity=(0.0, -9.81, 0.0))
    builder.link("ground")
    for link, length in (("crank", 1.0), ("rod", 2.0), ("slider", 0.0)):
        builder.link(link, 1.0, (length / 2, 0, 0), (0.1, 0.1, 0.1))
    builder.joint("turn", "continuous", "ground", "crank", axis=(0, 0, 1))
    builder.joint("knee", "continuous", "crank", "rod", xyz=(1, 0, 0), axis=(0, 0, 1))
    builder.joint("slide", "prismatic", "ground", "slider", xyz=(3, 0, 0), axis=(1, 0, 0))
    tip = pose(translation=(2.0, 0, 0))
    builder.loop("pin", "spherical", "rod", "slider", predecessor_pose=tip)
    robot = Robot(builder.build())
    turned = robot.assemble(robot.configuration({"turn": 0.5}), fixed=["turn"])
    return robot, np.stack([turned, robot.neutral()])


def test_a_dead_centre_cannot_be_driven() -> None:
    """The slider holds the weight of the crank (by virtual work, 1e-12), not at the dead centre:
    that sample is named with its motion, or keeps what is missing; the other has the same bits."""
    robot, q = slider_crank()
    rest = np.zeros((2, 3))
    alone = robot.constrained_inverse_dynamics(q[0], rest[0], rest[0], actuated=["slide"])
    X = robot.minimal(q[0]).X[:, 0]
    weight = X @ robot.tree.inverse_dynamics(q[0], rest[0], rest[0])
    assert alone.effort[0] == pytest.approx(weight / X[2], rel=1e-12)
    with pytest.raises(UnderactuatedError, match=r"sample \[1\].*cannot drive .*turn") as caught:
        robot.constrained_inverse_dynamics(q, rest, rest, actuated=["slide"])
    assert caught.value.bad.tolist() == [False, True]
    assert caught.value.motion["turn"] / caught.value.motion["knee"] == pytest.approx(-2 / 3)
    found = robot.constrained_inverse_dynamics(
        q, rest, rest, actuated=["slide"], allow_residual=True
    )
    assert np.array_equal(found.effort[0], alone.effort)
    assert found.effort[1] == 0.0
    assert abs(found.residual[1, 0]) > 1.0
    assert np.abs(found.internal[:, 0, 0]).tolist() == [0.0, 1.0]


def test_a_slider_is_not_driven_at_its_dead_centre() -> None:
    """Hybrid dynamics: there the slider has no acceleration but that of the loop, its drive no
    force; the other sample keeps its bits."""
    robot, q = slider_crank()
    rest, wanted = np.zeros((2, 3)), np.array([[0.0, 0, 1.0], [0.0, 0, 0.0]])
    alone = robot.hybrid_dynamics(q[0], rest[0], rest[0], wanted[0], ["slide"])
    vdot, tau = robot.hybrid_dynamics(q, rest, rest, wanted, ["slide"])
    assert np.array_equal(vdot[0], alone[0])
    assert np.array_equal(tau[0], alone[1])
    free = robot.forward_dynamics(q[1], rest[1], rest[1])
    assert error(vdot[1], free) < 1e-12
    assert np.abs(tau[1]).max() < 1e-9
    wanted[1, 2] = 1.0
    with pytest.raises(LoopVelocityError, match=r"sample \[1\].*slide") as caught:
        robot.hybrid_dynamics(q, rest, rest, wanted, ["slide"])
    assert caught.value.bad.tolist() == [False, True]
    kept, _ = robot.hybrid_dynamics(q, rest, rest, wanted, ["slide"], on_error="nan")
    assert np.array_equal(kept[0], alone[0])
    assert np.isnan(kept[1]).all()


def test_errors_beside_a_singular_sample_are_those_of_the_batch() -> None:
    """What is found out where samples are worked out by themselves has the numbers of all."""
    robot, state = batch()
    turns = robot.tangent({name: 1.0 if name[0] == "f" else -1.0 for name in robot.joint_names})
    q, v, tau = spoil(state, "singular", turns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SingularConfigurationWarning)
        vdot = robot.forward_dynamics(q, v, tau)
        with pytest.raises(UnderactuatedError, match=r"sample \[0\]") as caught:
            robot.constrained_inverse_dynamics(q, v, vdot, actuated=[])
    assert caught.value.bad.tolist() == [True] * 5


def test_all_that_begins_at_a_singular_configuration_says_so() -> None:
    """Each call names itself and the motion, at the user's line; links in one system have the same
    accelerations there, 1e-10."""
    robot, (_, _, tau) = batch()
    turns = robot.tangent({name: 1.0 if name[0] == "f" else -1.0 for name in robot.joint_names})
    q, rest, push = np.pi / 2 * turns, np.zeros(robot.nv), tau[0]
    calls: dict[str, Callable[[], Any]] = {
        "forward_dynamics": lambda: robot.forward_dynamics(q, rest, push),
        "step": lambda: robot.step(q, rest, push, 1e-3),
        "simulate": lambda: robot.simulate(q, rest, dt=1e-3, steps=1, on_error="nan"),
        "minimal": lambda: robot.minimal(q),
        "system": lambda: robot.system(q, rest, push).solve().vdot,
    }
    for name, call in calls.items():
        with pytest.warns(SingularConfigurationWarning, match=f"^{name} .*the motion ") as said:
            found = call()
        assert all(each.filename == __file__ for each in said), name
        if name == "forward_dynamics":
            vdot = found
    assert error(found, vdot) < 1e-10
