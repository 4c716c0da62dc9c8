# SPDX-License-Identifier: BSD-3-Clause
"""Energy and momentum of ``Robot``: machine code says what passes say, or leaves it to them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import phistar
from phistar import energies
from phistar.backends import base
from phistar.compile import evaluate
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.model import ModelBuilder
from phistar.model.model_cache import entries
from phistar.model.random import random_model
from phistar.robot import Robot
from phistar.thresholds import POLICY

KEYS = (("momentum",), ("kinetic_energy",), ("potential_energy",))
WITNESS = {
    "momentum": energies.momentum_by_sweeps,
    "kinetic_energy": energies.kinetic_energy_by_sweeps,
    "potential_energy": energies.potential_energy_by_sweeps,
}


def _refuse(*args: object, **options: object) -> None:
    raise AssertionError("another way was asked")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is compiled at once, and nothing else may answer."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    for function in WITNESS.values():
        monkeypatch.setattr(energies, function.__name__, _refuse)


def _robots() -> dict[str, Robot]:
    rich: dict[str, Any] = {"fixed": 0.3, "mimic": 0.5, "armature": 0.8, "anchors": 0.4}
    forest = random_model(np.random.default_rng(42), 7, topology="forest", **rich)
    assert any(body.scale != 1.0 and any(body.armature) for body in forest.bodies)
    return {
        "panda_hand": phistar.load("panda_hand"),
        "quadruped": phistar.load("quadruped"),
        "forest": Robot(forest.with_gravity((1.0, -2.0, -9.0))),
    }


ROBOTS = _robots()
each_robot = pytest.mark.parametrize("name", ROBOTS)


def ours(robot: Robot, q: Any, v: Any) -> dict[str, Any]:
    """What the robot's methods say."""
    return {
        "momentum": robot.momentum(q, v),
        "kinetic_energy": robot.kinetic_energy(q, v),
        "potential_energy": robot.potential_energy(q),
    }


@pytest.fixture
def known() -> Iterator[Callable[[Robot, Any, Any], dict[str, Any]]]:
    """What passes say, run by NumPy."""
    with pytest.MonkeyPatch.context() as patch:

        def say(robot: Robot, q: Any, v: Any) -> dict[str, Any]:
            patch.setattr(base, "_default_name", "numpy")
            found = {
                "momentum": WITNESS["momentum"](robot.model, q, v),
                "kinetic_energy": WITNESS["kinetic_energy"](robot.model, q, v),
                "potential_energy": WITNESS["potential_energy"](robot.model, q),
            }
            patch.undo()
            return found

        yield say


Known = Callable[[Robot, Any, Any], dict[str, Any]]


def agree(found: dict[str, Any], expected: dict[str, Any], tolerance: float) -> None:
    """Same types, shapes and dtypes; numbers equal to a tolerance relative to the largest."""
    for name, x in expected.items():
        assert isinstance(found[name], np.ndarray), name
        assert found[name].shape == x.shape, name
        assert found[name].dtype == x.dtype, name
        scale = max(np.abs(x).max(initial=0.0), 1.0)
        np.testing.assert_allclose(found[name], x, rtol=0, atol=tolerance * scale, err_msg=name)


def states(robot: Robot, seed: int, shape: tuple[int, ...] = ()) -> tuple[Any, Any]:
    """Random q and v."""
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng, shape), rng.normal(size=(*shape, robot.nv))


@pytest.mark.usefixtures("compiled")
@each_robot
def test_machine_code_agrees(name: str, known: Known) -> None:
    """Single samples, batches of several axes and empty ones, to 1e-12; float32 to 3e-6."""
    robot = ROBOTS[name]
    for shape in ((), (1,), (5,), (3, 2), (0,), (2, 0, 3)):
        q, v = states(robot, 1, shape)
        agree(ours(robot, q, v), known(robot, q, v), 1e-12)
    q, v = (x.astype(np.float32) for x in states(robot, 2, (3,)))
    agree(ours(robot, q, v), known(robot, q, v), 3e-6)


@pytest.mark.usefixtures("compiled")
def test_batches_broadcast(known: Known) -> None:
    """q (3, 1, nq) and v (2, nv) give (3, 2, 6); one q serves many v and the other way round."""
    robot = ROBOTS["quadruped"]
    for left, right in (((3, 1), (2,)), ((), (4,)), ((4,), ()), ((1,), (4,))):
        q, v = states(robot, 3, left)[0], states(robot, 4, right)[1]
        agree(ours(robot, q, v), known(robot, q, v), 1e-12)


@pytest.mark.usefixtures("compiled")
@each_robot
def test_single_samples_take_the_quick_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first call each method runs its lean function, with the same bits as before."""
    robot = ROBOTS[name]
    q, v = states(robot, 5)
    first = ours(robot, q, v)
    assert set(KEYS) <= set(entries(robot.model))
    for function in ("momentum", "kinetic_energy", "potential_energy"):
        monkeypatch.setattr(energies, function, _refuse)
    second = ours(robot, q, v)
    for key, x in second.items():
        assert x.shape == first[key].shape
        np.testing.assert_array_equal(x, first[key])
        assert x.flags.writeable


@pytest.mark.usefixtures("compiled")
def test_out_of_the_ordinary_arrays() -> None:
    """Lists, dicts, integers and strides: all the same."""
    robot = ROBOTS["panda_hand"]
    q, v = states(robot, 6, (4,))
    expected = ours(robot, q, v)
    wide = np.zeros((8, 3 * robot.nq))
    wide[::2, ::3] = q
    named = robot.configuration_dict(q), robot.tangent_dict(v)
    for given in ((q.tolist(), v.tolist()), (wide[::2, ::3], np.asfortranarray(v)), named):
        agree(ours(robot, *given), expected, 0.0)
    whole = np.arange(robot.nq), np.arange(robot.nv)
    agree(ours(robot, *whole), ours(robot, *(x * 1.0 for x in whole)), 0.0)


@pytest.mark.parametrize("tier", ["auto", "wait"])
def test_rest_is_left_to_passes(monkeypatch: pytest.MonkeyPatch, tier: str, known: Known) -> None:
    """Complex numbers: the bits of the passes, and real parts that are the machine code's."""
    monkeypatch.setenv("PHISTAR_TIER", tier)
    robot = ROBOTS["panda_hand"]
    q, v = states(robot, 7)
    rng = np.random.default_rng(8)
    a, b = q + 1e-30j * rng.normal(size=q.shape), v + 1e-30j * rng.normal(size=v.shape)
    found = ours(robot, a, b)
    agree(found, known(robot, a, b), 0.0)
    agree(ours(robot, q, v), {name: x.real for name, x in found.items()}, 1e-12)


def test_other_backends_do_not_compile(monkeypatch: pytest.MonkeyPatch, known: Known) -> None:
    """With PHISTAR_BACKEND=numpy no program is made."""
    robot = phistar.load("ur5")
    q, v = states(robot, 9, (2 * POLICY.samples_before_compile,))
    expected = known(robot, q, v)
    monkeypatch.setattr(base, "_default_name", "numpy")
    monkeypatch.setattr(evaluate, "kernel", _refuse)
    agree(ours(robot, q, v), expected, 0.0)


def test_first_samples_and_long_robots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes give the first samples; beyond LARGEST links there is no program at all."""
    monkeypatch.delenv("PHISTAR_TIER", raising=False)
    robot = phistar.load("double_pendulum").with_gravity((0.0, 0.0, -1.5))
    q, v = states(robot, 10, (POLICY.samples_before_compile,))
    ours(robot, q[0], v[0])
    assert not entries(robot.model)
    ours(robot, q, v)
    assert set(entries(robot.model)) == set(KEYS)
    long = phistar.robots.chain(POLICY.max_path_links_unrolled + 1)
    assert all(evaluate.traced_executable(long.model, key) is None for key in KEYS)


Z = np.zeros(7)
NAN = np.array([np.nan, *Z[1:]])
Call = Callable[[Robot], Any]
FAULTS: dict[str, tuple[Call, type[Exception], str]] = {
    "momentum q": (lambda r: r.momentum(NAN, Z), ArgumentError, r"q\[0\] is nan"),
    "momentum v": (lambda r: r.momentum(Z, NAN), ArgumentError, r"v\[0\] is nan"),
    "kinetic v": (lambda r: r.kinetic_energy(Z, [*Z[:6], np.inf]), ArgumentError, r"v\[6\] is inf"),
    "kinetic batch": (
        lambda r: r.kinetic_energy(np.stack([Z, NAN]), Z),
        ArgumentError,
        r"q\[1, 0\] is nan",
    ),
    "potential": (lambda r: r.potential_energy(NAN), ArgumentError, r"q\[0\] is nan"),
    "shape of q": (lambda r: r.potential_energy(Z[1:]), ShapeError, "^q has shape"),
    "shape of v": (lambda r: r.momentum(Z, Z[1:]), ShapeError, "^v has shape"),
    "batches": (
        lambda r: r.momentum(np.zeros((2, 7)), np.zeros((3, 7))),
        ShapeError,
        "^v has shape",
    ),
    "text": (lambda r: r.potential_energy(["a"] * 7), ArgumentError, "q"),
    "joint": (lambda r: r.potential_energy({"nobody": 1.0}), UnknownNameError, "nobody"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of numbers that do not matter (a turn about the vertical), and on the quick way."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    robot = phistar.load("panda")
    ours(robot, Z, Z)
    assert set(KEYS) <= set(entries(robot.model))
    call, kind, message = FAULTS[fault]
    with pytest.raises(kind, match=message):
        call(robot)


@pytest.mark.usefixtures("compiled")
def test_nothing_to_compute() -> None:
    """Without mass, or without gravity, energies are zero, one a sample."""
    builder = ModelBuilder("ghost")
    builder.link("base", 2.0, inertia=(1, 1, 1))
    builder.link("a")
    builder.joint("j", "revolute", "base", "a", axis=(0, 0, 1))
    ghost = Robot(builder.build())
    agree(
        ours(ghost, np.ones((3, 1)), np.ones((3, 1))),
        {
            "momentum": np.zeros((3, 6)),
            "kinetic_energy": np.zeros(3),
            "potential_energy": np.zeros(3),
        },
        0.0,
    )
    afloat = ROBOTS["panda_hand"].with_gravity((0.0, 0.0, 0.0))
    assert not afloat.potential_energy(states(afloat, 11, (2,))[0]).any()


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", ["panda_hand", "quadruped"])
def test_pinocchio_agrees(name: str) -> None:
    """Energies and momentum about the world's origin of some samples; relative 1e-11."""
    robot = phistar.load(name, mimic="independent")
    base = [pin.JointModelFreeFlyer()] if phistar.robots.floats(name) else []
    peer = pin.buildModelFromUrdf(str(phistar.robots.path(name)), *base)
    data, convert = peer.createData(), phistar.conventions.pinocchio(robot, peer)
    q, v = states(robot, 12, (3,))
    found = ours(robot, q, v)
    for i in range(3):
        theirs = convert.q_to_peer(q[i]), convert.v_to_peer(q[i], v[i])
        central = pin.computeCentroidalMomentum(peer, data, *theirs)
        angular = central.angular + np.cross(data.com[0], central.linear)
        expected = {
            "momentum": np.concatenate([angular, central.linear]),
            "kinetic_energy": np.array(pin.computeKineticEnergy(peer, data, *theirs)),
            "potential_energy": np.array(pin.computePotentialEnergy(peer, data, theirs[0])),
        }
        agree({key: np.asarray(x[i]) for key, x in found.items()}, expected, 1e-11)


@pytest.mark.usefixtures("compiled")
@each_robot
def test_power_is_the_rate_of_energy(name: str) -> None:
    """d(T + V)/dt = τ·v along the motion that τ drives; differences are good to 1e-7."""
    robot = ROBOTS[name]
    q, v = states(robot, 13)
    vdot = np.random.default_rng(14).normal(size=robot.nv)
    power = float(robot.inverse_dynamics(q, v, vdot) @ v)

    def energy(h: float) -> Any:
        later, speed = robot.integrate(q, h * v + h * h / 2 * vdot), v + h * vdot
        return robot.kinetic_energy(later, speed) + robot.potential_energy(later)

    assert (energy(1e-5) - energy(-1e-5)) / 2e-5 == pytest.approx(power, rel=1e-7)
