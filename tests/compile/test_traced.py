# SPDX-License-Identifier: BSD-3-Clause
"""Quantities that are traced directly, as methods of ``Robot``: the general path is the witness.

Complex numbers, also without imaginary parts, are no machine code: they take the way through
sweeps and NumPy that was there before.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.compile import TRACED, Traced, add_traced, traced_executable
from phistar.derivatives.discrete import Discretization
from phistar.errors import (
    ArgumentError,
    NotFiniteError,
    QuaternionError,
    ShapeError,
    SingularHingeError,
    SingularPoseError,
    UnknownNameError,
)
from phistar.model.builder import ModelBuilder
from phistar.model.joint_map import joint_map
from phistar.model.model_cache import entries
from phistar.model.random import random_model

DT = 0.01
Call = Callable[..., Any]
CALLS: dict[str, Call] = {
    "integrate": lambda r, q, v, x: r.integrate(q, v),
    "difference": lambda r, q, v, x: r.difference(q, q[..., ::-1, :] if q.ndim > 1 else q),
    "jacobian_rate local": lambda r, q, v, x: r.jacobian_rate(q, v, frame(r), "local"),
    "jacobian_rate world": lambda r, q, v, x: r.jacobian_rate(q, v, frame(r), "world"),
    "jacobian_rate": lambda r, q, v, x: r.jacobian_rate(q, v, frame(r)),
    "frame_acceleration": lambda r, q, v, x: r.frame_acceleration(q, v, x, frame(r)),
    "frame_acceleration world": lambda r, q, v, x: r.frame_acceleration(q, v, x, frame(r), "world"),
    "regressor": lambda r, q, v, x: r.regressor(q, v, x),
    "log_determinant": lambda r, q, v, x: r.log_determinant(q),
    "operational_inertia": lambda r, q, v, x: r.operational_inertia(q, [frame(r)], damping=0.5),
    "operational_inertia world": lambda r, q, v, x: r.operational_inertia(
        q, [frame(r)], damping=0.5, reference="world"
    ),
    "discretize": lambda r, q, v, x: r.discretize(q, v, x, DT),
    "discretize euler": lambda r, q, v, x: r.discretize(q, v, x, DT, method="euler"),
    "step": lambda r, q, v, x: r.step(q, v, x, DT, passive=False),
    "step rk4": lambda r, q, v, x: r.step(q, v, x, DT, "rk4", passive=False),
}
COMPLEX_BOUND = 1e-9


def frame(robot: phistar.Robot) -> str:
    """One far out."""
    return robot.link_names[-1]


def arrays(found: Any) -> Iterator[np.ndarray]:
    """The arrays of a result."""
    if isinstance(found, Discretization):
        found = (found.q, found.v, found.A, found.B)
    yield from found if isinstance(found, tuple) else (found,)


def _random(seed: int, n: int, **options: Any) -> phistar.Robot:
    return phistar.Robot(random_model(np.random.default_rng(seed), n, **options))


CURVED = ["spherical", "planar", "revolute"]
ROBOTS: dict[str, Callable[[], phistar.Robot]] = {
    "panda": lambda: phistar.load("panda"),
    "panda_hand": lambda: phistar.load("panda_hand"),
    "quadruped": lambda: phistar.load("quadruped"),
    "curved": lambda: _random(2, 4, kinds=CURVED, floating_base=True, armature=0.2),
    "forest": lambda: _random(26, 4, topology="forest", armature=0.5, fixed=0.3),
    "mimic": lambda: _random(31, 6, mimic=0.6, kinds=["revolute", "prismatic"]),
}
MIMICKING = ("panda_hand", "mimic")


@pytest.fixture(scope="module")
def robots() -> dict[str, phistar.Robot]:
    """Robots of every kind of joint; two have joints that mimic others."""
    found = {name: make() for name, make in ROBOTS.items()}
    for name, robot in found.items():
        assert joint_map(robot.model).one_to_one == (name not in MIMICKING)
    return found


@pytest.fixture(autouse=True)
def _compile_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHISTAR_TIER", "wait")


def state(robot: phistar.Robot, shape: tuple[int, ...] = (3,)) -> tuple[np.ndarray, ...]:
    """A random one: q, v, and accelerations or forces."""
    rng = np.random.default_rng(5)
    return robot.random_configuration(rng, shape), *rng.normal(size=(2, *shape, robot.nv))


@pytest.mark.parametrize(
    ("name", "call"),
    # Derivatives of steps of the quadruped take seconds to compile; "curved" has its joint kinds.
    [
        (name, call)
        for name in ROBOTS
        for call in CALLS
        if name != "quadruped" or not call.startswith("discretize")
    ],
)
def test_the_general_path_agrees(name: str, call: str, robots: dict[str, phistar.Robot]) -> None:
    """Machine code gives what NumPy gives for complex numbers; single samples as in a batch."""
    robot = robots[name]
    given = state(robot)
    known = list(arrays(CALLS[call](robot, *(x.astype(complex) for x in given))))
    assert all(x.dtype.kind == "c" for x in known if call != "log_determinant")
    for _ in range(2):
        # The second time straight to machine code.
        for found, expected in zip(arrays(CALLS[call](robot, *given)), known, strict=True):
            assert found.dtype == np.float64
            assert found.shape == expected.shape
            bound = COMPLEX_BOUND * max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(found, expected.real, rtol=0, atol=bound)
    if call == "difference":
        return
    for found, expected in zip(
        arrays(CALLS[call](robot, *(x[1] for x in given))), known, strict=True
    ):
        assert found.shape == expected.shape[1:]
        bound = COMPLEX_BOUND * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(found, expected[1].real, rtol=0, atol=bound)


@pytest.mark.parametrize("call", CALLS)
def test_precisions_and_batches(call: str, robots: dict[str, phistar.Robot]) -> None:
    """float32 stays float32 and is near; batches of any axes are those of one axis."""
    # Derivatives of steps of the quadruped take seconds to compile, in each precision again.
    robot = robots["panda" if call.startswith("discretize") else "quadruped"]
    given = state(robot, (2, 3))
    flat = list(arrays(CALLS[call](robot, *(x.reshape(6, x.shape[-1]) for x in given))))
    if call != "difference":
        for found, known in zip(arrays(CALLS[call](robot, *given)), flat, strict=True):
            assert found.shape == (2, 3, *known.shape[1:])
            np.testing.assert_array_equal(found, known.reshape(found.shape))
    single = [x.reshape(6, x.shape[-1]).astype(np.float32) for x in given]
    for found, known in zip(arrays(CALLS[call](robot, *single)), flat, strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, known, rtol=0, atol=2e-3 * np.abs(known).max())


@pytest.mark.parametrize("call", [each for each in CALLS if each != "difference"])
def test_bad_samples(call: str, robots: dict[str, phistar.Robot]) -> None:
    """NaN and quaternions that are not unit are refused by name, or become NaN alone."""
    robot = robots["quadruped"]
    q, v, x = state(robot)
    CALLS[call](robot, q, v, x)
    broken = q.copy()
    broken[1, 0] = np.nan
    with pytest.raises(NotFiniteError, match=r"q is not finite: q\[1, 0\]"):
        CALLS[call](robot, broken, v, x)
    long = q.copy()
    long[1, 3:7] *= 1.1
    with pytest.raises(QuaternionError, match=r"length 1\.1"):
        CALLS[call](robot, long, v, x)
    with pytest.raises(ShapeError, match="q has shape"):
        CALLS[call](robot, q[:, :-1], v, x)


def test_nan_for_bad_samples(robots: dict[str, phistar.Robot]) -> None:
    """on_error="nan": the others are computed."""
    robot = robots["quadruped"]
    q, v, tau = state(robot)
    broken = q.copy()
    broken[1, 3:7] *= 2.0
    results = {
        "integrate": robot.integrate(broken, v, on_error="nan"),
        "log_determinant": robot.log_determinant(broken, on_error="nan"),
        "operational": robot.operational_inertia(broken, [frame(robot)], on_error="nan"),
        "regressor": robot.regressor(broken, v, tau, on_error="nan"),
        "step": robot.step(broken, v, tau, DT, on_error="nan", passive=False)[1],
        "discretize": robot.discretize(broken, v, tau, DT, on_error="nan").A,
    }
    known = {
        "integrate": robot.integrate(q, v),
        "log_determinant": robot.log_determinant(q),
        "operational": robot.operational_inertia(q, [frame(robot)]),
        "regressor": robot.regressor(q, v, tau),
        "step": robot.step(q, v, tau, DT, passive=False)[1],
        "discretize": robot.discretize(q, v, tau, DT).A,
    }
    for name, found in results.items():
        assert np.isnan(found[1]).all(), name
        np.testing.assert_allclose(found[::2], known[name][::2], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_singular_poses(dtype: type) -> None:
    """A stretched arm has no operational inertia, in either precision; with damping it has."""
    robot = phistar.load("ur5")
    q = np.zeros((2, 6), dtype)
    q[1] = 0.7
    for _ in range(2):
        robot.operational_inertia(q[1], [frame(robot)])
        with pytest.raises(SingularPoseError, match=r"sample \[0\]"):
            robot.operational_inertia(q, [frame(robot)])
    damped = robot.operational_inertia(q, [frame(robot)], damping=0.1)
    assert damped.dtype == dtype
    assert np.isfinite(damped).all()
    with pytest.raises(ArgumentError, match="damping is -1"):
        robot.operational_inertia(q[1], [frame(robot)], damping=-1.0)
    with pytest.raises(ArgumentError, match="frames is a string"):
        robot.operational_inertia(q[1], frame(robot))
    with pytest.raises(ArgumentError, match="reference must be one of"):
        robot.operational_inertia(q[1], [frame(robot)], reference=["local"])  # type: ignore[arg-type]


def test_singular_hinges() -> None:
    """A joint that moves nothing: no step and no determinant."""
    builder = ModelBuilder("vane")
    builder.link("base")
    builder.link("tip")
    builder.joint("spin", "revolute", "base", "tip", axis=(0, 0, 1))
    with pytest.warns(phistar.errors.PhistarWarning):
        robot = phistar.load(builder.build())
    for call in (
        lambda: robot.step([0.1], [0.2], [0.0], DT, passive=False),
        lambda: robot.log_determinant([0.1]),
    ):
        with pytest.raises(SingularHingeError):
            call()


def test_dictionaries_and_broadcasting(robots: dict[str, phistar.Robot]) -> None:
    """Values by joint name, and one sample for many."""
    robot = robots["panda"]
    q, v, x = state(robot)
    name = robot.joint_names[2]
    by_name = robot.integrate({name: 0.4}, {name: 0.1})
    assert by_name[2] == pytest.approx(0.5, rel=1e-15)
    assert np.count_nonzero(by_name) == 1
    many = robot.frame_acceleration(q[0], v, x[0], frame(robot))
    for k in range(3):
        one = robot.frame_acceleration(q[0], v[k], x[0], frame(robot))
        np.testing.assert_allclose(many[k], one, rtol=1e-12, atol=1e-12)
    with pytest.raises(ShapeError, match="leading axes that broadcast"):
        robot.integrate(q, np.zeros((2, robot.nv)))


def test_drifted_quaternions(robots: dict[str, phistar.Robot]) -> None:
    """Within 1e-6 of unit length they are made unit first."""
    robot = robots["quadruped"]
    q, v, tau = state(robot, ())
    robot.step(q, v, tau, DT, passive=False)
    drifted = q.copy()
    drifted[3:7] *= 1 + 4e-7
    for found, known in zip(
        (robot.integrate(drifted, v), *robot.step(drifted, v, tau, DT, passive=False)),
        (robot.integrate(q, v), *robot.step(q, v, tau, DT, passive=False)),
        strict=True,
    ):
        np.testing.assert_allclose(found, known, rtol=0, atol=1e-12 * np.abs(known).max())


def test_rows_of_others() -> None:
    """A unit above the compiler adds its row once; long robots have no program."""
    assert TRACED["step"].inputs == ("q", "v", "tau", "dt")
    with pytest.raises(AssertionError, match="step is a row already"):
        add_traced(Traced(*(getattr(TRACED["step"], n) for n in _FIELDS)))
    long = phistar.robots.chain(200)
    for key in (("integrate",), ("step", "rk4"), ("regressor",)):
        assert traced_executable(long.model, key) is None, key
    mimic = phistar.load("panda_hand")
    assert traced_executable(mimic.model, ("step", "euler")) is not None
    assert traced_executable(mimic.model, ("integrate",)) is not None


_FIELDS = ("name", "inputs", "shape", "trace", "work")


def test_entries_come_with_use() -> None:
    """Each quantity has its entry after its first result, and discretize one for both programs."""
    robot = phistar.load("double_pendulum")
    q, v, tau = state(robot, ())
    for call in ("integrate", "regressor", "log_determinant", "step", "discretize"):
        CALLS[call](robot, q, v, tau)
    found = set(entries(robot.model))
    assert {("integrate",), ("regressor",), ("log_determinant",)} <= found
    assert {("step", "semi_implicit"), ("discretize", "semi_implicit")} <= found


def test_lengths_of_steps(robots: dict[str, phistar.Robot]) -> None:
    """A number, or one for each sample; only times greater than zero."""
    robot = robots["quadruped"]
    q, v, tau = state(robot)
    lengths = np.array([0.01, 0.02, 0.03])
    q_next, v_next = robot.step(q, v, tau, lengths, passive=False)
    for k in range(3):
        one = robot.step(q[k], v[k], tau[k], float(lengths[k]), passive=False)
        np.testing.assert_allclose(q_next[k], one[0], rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(v_next[k], one[1], rtol=1e-13, atol=1e-13)
    assert robot.step(q[0], v[0], tau[0], lengths, passive=False)[0].shape == (3, robot.nq)
    for bad in (0.0, -0.1, np.nan, np.inf, 0, [0.1, 0.0, 0.1], "soon", 1j):
        with pytest.raises(ArgumentError, match="dt is"):
            robot.step(q, v, tau, bad, passive=False)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="dt has shape"):
        robot.step(q, v, tau, [0.1, 0.2], passive=False)
    with pytest.raises(UnknownNameError, match="scheme"):
        robot.step(q, v, tau, DT, "verlet", passive=False)
