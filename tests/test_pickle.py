# SPDX-License-Identifier: BSD-3-Clause
"""Robots, results and errors go to other processes and come back equal, as their data."""

import copy
import inspect
import multiprocessing
import pickle
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import control, errors
from phistar.algebra.symbols import D, H, M, phi, psi, v
from phistar.backends import base
from phistar.model.joints import JOINT_KINDS
from phistar.model.model import Model

Q, V = np.array([0.1, 0.2]), np.array([0.3, -0.4])
ROBOT = phistar.load("double_pendulum")
ARM = phistar.robots.chain(7, name="arm")
TIP = ROBOT.frame_names[-1]


@pytest.fixture(autouse=True)
def _nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_default_name", "numpy")


def _motion() -> control.Trajectory:
    return control.minimum_jerk(ROBOT, Q, Q + 0.1, 0.1, 3)[0]


def _solution() -> control.Solution:
    return control.ilqr(control.QuadraticCost(ROBOT, Q), Q, dt=0.01, steps=3)


# What users get hold of, by how they do.
THINGS: dict[str, Callable[[], Any]] = {
    "robot": lambda: ROBOT,
    "model": lambda: ROBOT.model,
    "report": lambda: ROBOT.load_report,
    "builder": phistar.ModelBuilder,
    "expression": lambda: H @ psi @ M @ phi.T @ H.T @ D.inv,
    "kernel": lambda: ROBOT.compile("forward_dynamics"),
    "own kernel": lambda: ROBOT.compile({"p": H @ phi @ M @ phi.T @ H.T @ v}),
    "function": lambda: ROBOT.function(H @ phi @ M @ phi.T @ H.T),
    "operators": lambda: ROBOT.operators(Q, V),
    "linearization": lambda: ROBOT.linearize(Q, V, V),
    "inverse linearization": lambda: ROBOT.linearize_inverse(Q, V, V),
    "discretization": lambda: ROBOT.discretize(Q, V, V, dt=0.01),
    "second order": lambda: ROBOT.forward_dynamics_second(Q, V, V),
    "diagonal": lambda: ROBOT.diagonalize(Q, V),
    "curvature": lambda: ROBOT.curvature(Q),
    "simulation": lambda: ROBOT.simulate(Q, V, dt=0.01, steps=3),
    "adaptive simulation": lambda: ROBOT.simulate(Q, V, duration=0.05, scheme="dopri5"),
    "PD with gravity": lambda: control.pd_gravity(ROBOT, Q),
    "computed torque": lambda: control.computed_torque(ROBOT, Q),
    "gravity compensation": lambda: control.gravity_compensation(ROBOT),
    "following": lambda: control.follow(control.pd_gravity(ROBOT, Q), np.stack([Q, Q])),
    "rates": lambda: control.rate_feedback(ROBOT),
    "pose": lambda: control.pose_control(ROBOT, TIP, np.eye(4)),
    "operational space": lambda: control.operational_space(ARM, "link7", np.eye(4)),
    "regulator": lambda: control.lqr(ROBOT, Q, tau=ROBOT.gravity_force(Q)),
    "regulation": lambda: control.regulate(control.pd_gravity(ROBOT, Q), Q, duration=0.01),
    "trajectory": _motion,
    "tracker": lambda: control.tv_lqr(ROBOT, _motion()),
    "cost": lambda: control.QuadraticCost(ROBOT, Q),
    "actuation": lambda: control.QuadraticCost(ROBOT, Q).actuation,
    "DH row": lambda: phistar.DHRow(a=0.1, mass=1.0),
    "goal": lambda: control.FrameGoal(TIP, np.eye(4)),
    "solution": _solution,
}


def same(a: Any, b: Any) -> bool:
    """Whether two things hold equal data, to the bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f") and a.dtype == b.dtype
    if isinstance(a, Mapping):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Model) or not hasattr(a, "__dict__"):
        return bool(a == b)
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    public = [name for name in vars(a) if not name.startswith("_")]
    return all(same(vars(a)[name], vars(b)[name]) for name in public)


WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "old pickle": lambda thing: pickle.loads(pickle.dumps(thing, protocol=2)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


class _Made(dict[str, Any]):
    """Made once, when asked for."""

    def __missing__(self, name: str) -> Any:
        self[name] = THINGS[name]()
        return self[name]


_made = _Made()


@pytest.fixture
def things() -> dict[str, Any]:
    """All of them."""
    return _made


@pytest.mark.parametrize("name", THINGS)
def test_everything_comes_back_equal(name: str, things: dict[str, Any]) -> None:
    """By pickle and by copies."""
    for way in WAYS.values():
        assert same(way(things[name]), things[name])


def test_every_public_class_is_here(things: dict[str, Any]) -> None:
    """A class that users can name has an example above; protocols and bases have none."""
    names = {*((phistar, n) for n in phistar.__all__), *((control, n) for n in control.__all__)}
    public = {getattr(module, name) for module, name in names}
    classes = {each for each in public if inspect.isclass(each)}
    made = {type(things[name]) for name in THINGS}
    bases = {base for kind in made for base in kind.__mro__[1:]}
    assert classes - made - bases == {control.Cost, control.Expansion}


def test_a_robot_is_the_same_robot() -> None:
    """Its fingerprint, hash and read-only numbers; machine code and fast paths are its own."""
    robot = pickle.loads(pickle.dumps(ROBOT))
    assert robot.model == ROBOT.model
    assert hash(robot.model) == hash(ROBOT.model)
    assert robot.model.fingerprint == ROBOT.model.fingerprint
    assert robot._entries is not ROBOT._entries
    assert set(vars(robot.model)) <= {*vars(ROBOT.model), "_own_tables"}
    arrays = [robot.model.gravity, *robot.model.configurations.values()]
    for parts in (robot.model.links, robot.model.bodies, robot.model.frames.values()):
        arrays += [x for part in parts for x in vars(part).values() if isinstance(x, np.ndarray)]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    with pytest.raises(TypeError):
        robot.model.joints["x"] = None
    assert copy.deepcopy(ROBOT).model is ROBOT.model


def test_every_joint_kind_comes_back() -> None:
    """Equal, and a model of all of them with the same fingerprint."""
    model = phistar.random_model(np.random.default_rng(0), len(JOINT_KINDS) - 1)
    assert pickle.loads(pickle.dumps(model)).fingerprint == model.fingerprint


def test_results_still_work(things: dict[str, Any]) -> None:
    """What came back can be asked again, with the same answers."""

    def back(name: str) -> Any:
        return WAYS["pickle"](things[name])

    assert same(back("linearization").A, things["linearization"].A)
    assert same(back("adaptive simulation")(0.02), things["adaptive simulation"](0.02))
    assert same(back("kernel")(Q, v=V, tau=V), things["kernel"](Q, v=V, tau=V))
    assert same(back("function")(Q), things["function"](Q))
    assert same(back("operators").M.dense(), things["operators"].M.dense())
    for law in ("PD with gravity", "computed torque", "rates"):
        assert same(back(law)(0, Q, V), things[law](0, Q, V))


def test_linear_maps_say_what_to_pickle(things: dict[str, Any]) -> None:
    """They are functions; copies are themselves."""
    mass = things["operators"].M
    with pytest.raises(TypeError, match=r"robot\.operators"):
        pickle.dumps(mass)
    assert copy.copy(mass) is mass
    assert copy.deepcopy(mass) is mass


ERRORS: list[errors.PhistarError] = [
    errors.ModelError("no root"),
    errors.RobotNotFoundError("x.urdf", "no such file"),
    errors.UnknownNameError("frame", "hnd", ("hand", "foot"), "'arm'"),
    errors.ShapeError("q", (3,), "(..., 2)", "arm"),
    errors.ArgumentError("too large"),
    errors.EquilibriumError("it falls", np.ones(2)),
    errors.StabilityError("none", [(1.0 + 2.0j, "joint1")]),
    errors.MissingExtraError("mujoco", "mujoco", "reading MJCF"),
    errors.DerivativeError("arm", {"tau_q": 1.0}, 1e-6),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_come_back(error: errors.PhistarError) -> None:
    """With their message and data: a pool of processes hangs on errors that do not."""
    for way in WAYS.values():
        back = way(error)
        assert type(back) is type(error)
        assert str(back) == str(error)
        assert same(vars(back), vars(error))


def _forces(robot: phistar.Robot) -> tuple[Any, str]:
    return robot.gravity_force(Q), robot.model.fingerprint


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_other_processes(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A robot goes into a process that was just born, and works there."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    monkeypatch.setattr(base, "_default_name", "llvm")
    with multiprocessing.get_context(method).Pool(1) as pool:
        force, fingerprint = pool.apply(_forces, (ROBOT,))
    assert fingerprint == ROBOT.model.fingerprint
    # Looped code may run there and unrolled code here.
    np.testing.assert_allclose(force, ROBOT.gravity_force(Q), rtol=1e-13)
