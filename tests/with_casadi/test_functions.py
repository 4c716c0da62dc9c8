# SPDX-License-Identifier: BSD-3-Clause
"""Functions of CasADi: values of the robot, exact derivatives, sparse as the tree."""

import gc
import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import phistar
from phistar import Robot
from phistar.errors import (
    ArgumentError,
    LoopError,
    MissingExtraError,
    PackageVersionError,
    PhistarWarning,
    UnknownNameError,
)
from phistar.interop import casadi as pc
from phistar.interop.casadi import c_library
from phistar.interop.casadi.derivatives import SymbolOps
from phistar.model.joints.number_ops import ARRAY_OPS
from tests.helpers import SHARED, needs_shared

BUNDLED = phistar.robots.names()
DYNAMICS = ("forward_dynamics", "inverse_dynamics")
OF_Q = ("frame_pose", "center_of_mass", "potential_energy")
REFERENCE = (
    "arm/example_robot_data__robots__ur_description__urdf__ur5_robot.urdf",
    "humanoid/brax__brax__envs__assets__hopper.xml",
    "humanoid/brax__brax__envs__assets__walker2d.xml",
    "humanoid/pepper__urdf__pepper.urdf",
    "humanoid/dm_control__dm_control__suite__walker.xml",
    "humanoid/example_robot_data__robots__alexander_description__urdf__alexander_v1.lowerBodyOnly.urdf",
    "hand/mujoco_menagerie__wonik_allegro__left_hand.xml",
    "hand/rl_models__jaco_description__urdf__j2s7s300_hand.urdf",
    "hand/rl_models__franka_description__urdf__hand.urdf",
    "quadruped/example_robot_data__robots__solo_description__robots__solo12.urdf",
    "quadruped/brax__brax__envs__assets__ant.xml",
    "quadruped/mujoco_menagerie__unitree_a1__a1.xml",
    "quadruped/example_robot_data__robots__hyq_description__robots__hyq_no_sensors.urdf",
)
"""Arms, hands with several fingers on the ground, mimic joints, free and planar bases."""
EXACT, DIFFERENCES = 1e-12, 2e-6
"""Relative to the largest entry: against the robot's own results, against differences."""


def tree_of(name: str) -> Robot:
    """A bundled robot without loops: off them it has no dynamics."""
    return phistar.load(name).tree


def reference(name: str) -> Robot:
    """A robot of ../shared/robots, its loops open."""
    path = SHARED / "robots" / name
    if not path.exists():
        pytest.skip(f"{name} is not in ../shared/robots")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhistarWarning)
        return phistar.load(path).tree


def state(robot: Robot, f: Any, seed: int = 0) -> list[np.ndarray]:
    """Random arguments of a function, a column for each sample."""
    rng = np.random.default_rng(seed)
    samples = f.size2_in(0)
    given = [robot.random_configuration(rng, samples).T]
    return given + [rng.normal(size=(robot.nv, samples)) for _ in range(f.n_in() - 1)]


class Derivatives:
    """A function's Jacobian, and gradient and Hessian of a weighted sum of its result."""

    def __init__(self, f: Any, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.weights = rng.normal(size=f.size_out(0))
        x = [ca.MX.sym(f"x{k}", f.sparsity_in(k)) for k in range(f.n_in())]
        flat = ca.vertcat(*[ca.vec(each) for each in x])
        y = f(*x)
        self._value = ca.Function("value", x, [ca.vec(y)])
        self._jacobian = ca.Function("jacobian", x, [ca.jacobian(y, each) for each in x])
        gradients = [ca.gradient(ca.sum1(ca.vec(self.weights * y)), each) for each in x]
        gradient = ca.vertcat(*[ca.vec(each) for each in gradients])
        self._gradient = ca.Function("gradient", x, [gradient])
        rows = [ca.jacobian(gradient, each) for each in x]
        self._hessian = ca.Function("hessian", x, [ca.horzcat(*rows)])
        self.sizes = [each.shape for each in x]
        assert flat.numel() == sum(a * b for a, b in self.sizes)

    def jacobian(self, given: list[np.ndarray]) -> np.ndarray:
        blocks = self._jacobian.call(given)
        return np.hstack([block.full() for block in blocks])

    def jacobian_entries(self, k: int) -> int:
        """How many entries of the block of argument k are kept."""
        return self._jacobian.nnz_out(k)

    def gradient(self, given: list[np.ndarray]) -> np.ndarray:
        return self._gradient.call(given)[0].full().ravel()

    def hessian(self, given: list[np.ndarray]) -> np.ndarray:
        return self._hessian.call(given)[0].full()

    def hessian_entries(self) -> int:
        return self._hessian.nnz_out(0)

    def differences(
        self, given: list[np.ndarray], step: float = 1e-6
    ) -> tuple[np.ndarray, np.ndarray]:
        """Jacobian and Hessian by central differences of value and gradient, number by number."""
        flat = np.concatenate([x.ravel(order="F") for x in given])
        columns, rows = [], []
        for k in range(flat.size):
            ends = []
            for sign in (1.0, -1.0):
                moved = flat.copy()
                moved[k] += sign * step
                ends.append(self._split(moved))
            values = [self._value.call(end)[0].full().ravel() for end in ends]
            slopes = [self.gradient(end) for end in ends]
            columns.append((values[0] - values[1]) / (2 * step))
            rows.append((slopes[0] - slopes[1]) / (2 * step))
        return np.stack(columns, axis=1), np.stack(rows, axis=1)

    def _split(self, flat: np.ndarray) -> list[np.ndarray]:
        parts, at = [], 0
        for rows, columns in self.sizes:
            parts.append(flat[at : at + rows * columns].reshape((rows, columns), order="F"))
            at += rows * columns
        return parts


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest deviation in parts of the largest entry."""
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-9))


def assert_derivatives(robot: Robot, f: Any) -> Derivatives:
    """First and second derivatives agree with differences, the Hessian is symmetric."""
    given = state(robot, f)
    found = Derivatives(f)
    jacobian, hessian = found.jacobian(given), found.hessian(given)
    by_differences = found.differences(given)
    assert error(jacobian, by_differences[0]) < DIFFERENCES
    assert error(found.gradient(given), jacobian.T @ found.weights.ravel(order="F")) < EXACT
    assert error(hessian, by_differences[1]) < DIFFERENCES
    assert error(hessian, hessian.T) < 1e-10
    return found


@pytest.mark.parametrize("quantity", DYNAMICS)
@pytest.mark.parametrize("name", BUNDLED)
def test_dynamics_of_bundled_robots(name: str, quantity: str) -> None:
    """Values are the robot's, derivatives those of differences in the numbers of q."""
    robot = tree_of(name)
    f = pc.function(robot, quantity)
    given = state(robot, f)
    expected = getattr(robot, quantity)(*(x[:, 0] for x in given))
    assert error(f.call(given)[0].full().ravel(), expected) < EXACT
    assert_derivatives(robot, f)


@pytest.mark.parametrize("name", ["panda", "quadruped", "delta"])
@pytest.mark.parametrize("quantity", OF_Q)
def test_quantities_of_configurations(name: str, quantity: str) -> None:
    """Poses, centres of mass and energies, too."""
    robot = tree_of(name)
    frame = robot.frame_names[-1] if quantity == "frame_pose" else None
    f = pc.function(robot, quantity, frame=frame)
    (q,) = state(robot, f)
    arguments = () if frame is None else (frame,)
    expected = getattr(robot, quantity)(q[:, 0], *arguments)
    assert error(f(q).full(), np.reshape(expected, f.size_out(0))) < EXACT
    assert_derivatives(robot, f)


@needs_shared
@pytest.mark.parametrize("name", REFERENCE, ids=lambda name: Path(name).stem[-24:])
def test_dynamics_of_reference_robots(name: str) -> None:
    """The Jacobian is the robot's linearization, and first and second ones that of differences."""
    robot = reference(name)
    f = pc.function(robot, "forward_dynamics")
    q, v, tau = given = state(robot, f)
    at = robot.linearize(q[:, 0], v[:, 0], tau[:, 0])
    jacobian = Derivatives(f).jacobian(given)
    assert error(f.call(given)[0].full().ravel(), at.vdot) < EXACT
    assert error(jacobian[:, robot.nq :], np.hstack([at.vdot_v, at.vdot_tau])) < EXACT
    assert_derivatives(robot, f)


def test_quaternions_of_any_length() -> None:
    """F(q) = f(normalize(q)): the length changes nothing, and derivatives are those of F."""
    robot = phistar.load("quadruped")
    f = pc.function(robot, "forward_dynamics")
    given = state(robot, f)
    long = [x.copy() for x in given]
    long[0][3:7] *= 1.7
    assert error(f.call(long)[0].full(), f.call(given)[0].full()) < EXACT
    found = Derivatives(f)
    by_differences = found.differences(long)
    jacobian = found.jacobian(long)
    assert error(jacobian, by_differences[0]) < DIFFERENCES
    assert error(found.hessian(long), by_differences[1]) < DIFFERENCES
    assert np.abs(jacobian[:, 3:7] @ long[0][3:7, 0]).max() < 1e-9


@pytest.mark.parametrize("quantity", ["forward_dynamics", "inverse_dynamics"])
def test_samples_side_by_side(quantity: str) -> None:
    """Columns are independent states: the same numbers, block-diagonal derivatives."""
    robot = phistar.load("quadruped")
    many, one = pc.function(robot, quantity, samples=3), pc.function(robot, quantity)
    given = state(robot, many)
    columns = [one.call([x[:, k] for x in given])[0].full() for k in range(3)]
    assert error(many.call(given)[0].full(), np.hstack(columns)) < EXACT
    found, single = assert_derivatives(robot, many), Derivatives(one)
    assert found.jacobian_entries(1) == 3 * single.jacobian_entries(1)
    assert found.hessian_entries() == 3 * single.hessian_entries()


@pytest.mark.parametrize(("name", "samples"), [("quadruped", None), ("double_pendulum", 2)])
@pytest.mark.parametrize("quantity", DYNAMICS)
def test_jacobians_of_jacobians(name: str, samples: int | None, quantity: str) -> None:
    """Second derivatives without weights, too: against differences of Jacobians, 1e-7."""
    robot = phistar.load(name)
    f = pc.function(robot, quantity, samples=samples)
    x = [ca.MX.sym(f"x{k}", f.sparsity_in(k)) for k in range(3)]
    first = ca.jacobian(f(*x), x[0])
    slopes = [ca.jacobian(first, each) for each in x]
    both = ca.Function("both", x, [first, *slopes])
    given = state(robot, f)
    rng = np.random.default_rng(3)
    along = [rng.normal(size=each.shape) for each in given]
    ends = [both.call([a + s * 1e-5 * b for a, b in zip(given, along, strict=True)])[0].full()
            for s in (1.0, -1.0)]  # fmt: skip
    products = zip(both.call(given)[1:], along, strict=True)
    found = sum(slope.full() @ step.ravel(order="F") for slope, step in products)
    expected = (ends[0] - ends[1]) / 2e-5
    assert error(found.reshape(expected.shape, order="F"), expected) < 1e-7


def test_weights_side_by_side() -> None:
    """``reverse(3)`` is three products; CasADi asks for as many as it likes."""
    robot = phistar.load("panda")
    f = pc.function(robot, "forward_dynamics")
    given, weights = state(robot, f), np.random.default_rng(1).normal(size=(7, 3))
    together = f.reverse(3)(*given, 0, weights)
    for k in range(3):
        alone = f.reverse(1)(*given, 0, weights[:, k])
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_array_equal(a.full()[:, k], b.full().ravel())


def test_third_derivatives_are_refused() -> None:
    """By name."""
    f = pc.function(phistar.load("cartpole"), "forward_dynamics")
    q = ca.MX.sym("q", 2)
    hessian, _ = ca.hessian(ca.sum1(f(q, 0, 0)), q)
    with pytest.raises(RuntimeError, match="cannot be calculated for forward_dynamics_second"):
        ca.jacobian(hessian, q)


def test_sparsity_is_that_of_the_tree() -> None:
    """Legs of a robot do not feel each other in τ; fingers on the ground never."""
    quadruped = phistar.load("quadruped")
    inverse = Derivatives(pc.function(quadruped, "inverse_dynamics"))
    legs, base = 4 * 3 * 3, 6 * 6 + 2 * 6 * 12
    assert inverse.jacobian_entries(2) == legs + base
    two = phistar.robots.tree(2, 2)
    apart = Derivatives(pc.function(two, "forward_dynamics"))
    inertia = two.linearize(two.home, np.zeros(6), np.zeros(6)).vdot_tau
    assert apart.jacobian_entries(2) == 2 * 3 * 3 == np.count_nonzero(inertia)


def test_results_are_nan_where_there_are_none() -> None:
    """A solver that tries something impossible is told so, and goes on."""
    robot = phistar.load("quadruped")
    f = pc.function(robot, "forward_dynamics")
    given = state(robot, f)
    given[0][3:7] = 0.0
    assert np.isnan(f.call(given)[0].full()).all()
    given = state(robot, f)
    given[1][0] = np.inf
    assert np.isnan(f.call(given)[0].full()).any()


@pytest.mark.parametrize("name", ["quadruped", "panda"])
def test_coordinate_rates(name: str) -> None:
    """q̇ of v is what small steps give."""
    robot = phistar.load(name)
    rng = np.random.default_rng(0)
    q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    steps = [robot.integrate(q, sign * 1e-6 * v) for sign in (1, -1)]
    expected = (steps[0] - steps[1]) / 2e-6
    assert error(pc.coordinate_rates(robot)(q, v).full().ravel(), expected) < 1e-8


def test_functions_outlive_their_names() -> None:
    """A solver may be all that is left of a function; the same request gives the same one."""

    def made() -> Any:
        robot = phistar.load("cartpole")
        x = ca.MX.sym("x", 2)
        return ca.Function("F", [x], [pc.function(robot, "forward_dynamics")(x, x, x)])

    f = made()
    gc.collect()
    assert np.isfinite(f([0.1, 0.2]).full()).all()
    first, second = (pc.function(phistar.load("cartpole"), "forward_dynamics") for _ in range(2))
    assert first is second


def test_release_ends_them() -> None:
    """What was kept can be given back, of one robot or all."""
    robot = phistar.load("cartpole")
    pc.function(robot, "potential_energy")
    assert pc.release(robot) >= 1
    assert pc.release(robot) == 0


def test_memory_is_flat() -> None:
    """Two hundred robots, wrapped and dropped, leave nothing behind."""
    base = phistar.load("cartpole")

    def once(seed: int) -> None:
        robot = base.with_gravity([0.0, 0.0, -9.0 - 0.001 * seed])
        assert pc.function(robot, "forward_dynamics").jacobian().n_out() == 3
        pc.release(robot)

    for seed in range(20):
        once(seed)
    gc.collect()
    tracemalloc.start()
    for seed in range(20, 60):
        once(seed)
    gc.collect()
    early, _ = tracemalloc.get_traced_memory()
    for seed in range(60, 200):
        once(seed)
    gc.collect()
    late, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert late - early < 2e6


def test_loops_are_refused() -> None:
    """Off its loops a robot has no dynamics: use the tree and constraints."""
    with pytest.raises(LoopError, match=r"robot\.tree"):
        pc.function(phistar.load("four_bar"), "forward_dynamics")


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"name": "forwards"}, UnknownNameError, "forward_dynamics"),
        ({"name": "frame_pose"}, ArgumentError, "needs a frame"),
        ({"name": "frame_pose", "frame": "hnd"}, UnknownNameError, "hnd"),
        ({"name": "inverse_dynamics", "frame": "tip"}, ArgumentError, "has no frame"),
        ({"name": "inverse_dynamics", "samples": 0}, ArgumentError, "samples is 0"),
        ({"name": "inverse_dynamics", "engine": "rust"}, ArgumentError, "'callback' or 'c'"),
        ({"name": "inverse_dynamics", "directory": "x"}, ArgumentError, "engine 'c'"),
    ],
)
def test_wrong_requests(arguments: dict[str, Any], kind: type[Exception], text: str) -> None:
    """One clear error each."""
    name = arguments.pop("name")
    with pytest.raises(kind, match=text):
        pc.function(phistar.load("cartpole"), name, **arguments)


def test_something_else_than_a_robot() -> None:
    """A model is not the user's object."""
    with pytest.raises(ArgumentError, match=r"expected a phistar\.Robot"):
        pc.function(phistar.load("cartpole").model, "forward_dynamics")  # type: ignore[arg-type]


def test_old_or_missing_package_after_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at in every call, as of the other adapters; before 3.6 Jacobians had another form."""
    robot = phistar.load("cartpole")
    pc.function(robot, "forward_dynamics")
    with monkeypatch.context() as patch:
        patch.setattr(ca, "__version__", "3.5.5")
        with pytest.raises(PackageVersionError, match=r"version 3\.5\.5, .*needs 3\.6 or newer"):
            pc.function(robot, "forward_dynamics")
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(MissingExtraError, match=r"pip install \"phistar\[casadi\]\""):
        pc.function(robot, "forward_dynamics")


def test_missing_package() -> None:
    """Without CasADi the error says how to get it."""
    script = (
        "import sys; sys.modules['casadi'] = None\n"
        "import phistar\nfrom phistar.interop import casadi as pc\n"
        "try:\n    pc.function(phistar.load('cartpole'), 'forward_dynamics')\n"
        "except phistar.errors.MissingExtraError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert 'pip install "phistar[casadi]"' in done.stdout, done.stderr
    assert issubclass(MissingExtraError, ImportError)


@pytest.mark.parametrize(
    ("name", "quantity"),
    [
        *(("cartpole", quantity) for quantity in (*DYNAMICS, *OF_Q)),
        ("panda_hand", "forward_dynamics"),
        ("panda_hand", "center_of_mass"),
        ("quadruped", "frame_pose"),
    ],
)
def test_compiled_c(name: str, quantity: str, tmp_path: Path) -> None:
    """The library has the same values and derivatives, and Python is not asked."""
    robot = phistar.load(name)
    frame = robot.frame_names[-1] if quantity == "frame_pose" else None
    compiled = pc.function(robot, quantity, frame=frame, engine="c", directory=tmp_path)
    called = pc.function(robot, quantity, frame=frame)
    given = state(robot, compiled)
    assert compiled.class_name() == "External"
    assert error(compiled.call(given)[0].full(), called.call(given)[0].full()) < EXACT
    own, other = Derivatives(compiled), Derivatives(called)
    assert error(own.jacobian(given), other.jacobian(given)) < 1e-10
    assert error(own.gradient(given), other.gradient(given)) < 1e-10
    assert error(own.hessian(given), other.hessian(given)) < 1e-9
    assert own.hessian_entries() == other.hessian_entries()


def test_compiled_c_of_a_free_base(tmp_path: Path) -> None:
    """Quaternions and several samples in C; the library is loaded by its path alone."""
    robot = phistar.robots.chain(2, axes="xy", floating_base=True)
    samples = 2
    pc.function(robot, "inverse_dynamics", engine="c", directory=tmp_path, samples=samples)
    compiled = ca.external("inverse_dynamics", str(tmp_path / "inverse_dynamics.so"))
    called = pc.function(robot, "inverse_dynamics", samples=samples)
    given = state(robot, compiled)
    given[0][3:7, 0] *= 0.6
    own, other = Derivatives(compiled), Derivatives(called)
    assert error(compiled.call(given)[0].full(), called.call(given)[0].full()) < EXACT
    assert error(own.jacobian(given), other.jacobian(given)) < 1e-10
    assert error(own.hessian(given), other.hessian(given)) < 1e-9


def test_compiled_c_of_two_frames(tmp_path: Path) -> None:
    """Each frame has files of its own, loaded by their paths alone; quaternions of any length."""
    robot = phistar.robots.chain(2, axes="xy", floating_base=True)
    frames = robot.frame_names[-2:]
    for frame in frames:
        pc.function(robot, "frame_pose", frame=frame, engine="c", directory=tmp_path, samples=2)
    for frame in frames:
        name = f"frame_pose_{frame}"
        compiled = ca.external(name, str(tmp_path / f"{name}.so"))
        (q,) = state(robot, compiled)
        expected = [robot.frame_pose(x, frame) for x in q.T]
        assert error(compiled(q).full(), np.hstack(expected)) < EXACT
        q[3:7, 0] *= 0.6
        found = Derivatives(compiled)
        by_differences = found.differences([q])
        assert error(found.jacobian([q]), by_differences[0]) < DIFFERENCES
        assert error(found.hessian([q]), by_differences[1]) < DIFFERENCES


def test_missing_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said before anything is written."""
    monkeypatch.setattr(c_library.shutil, "which", lambda name: None)
    with pytest.raises(ArgumentError, match="needs a C compiler, and none of cc, gcc, clang"):
        pc.function(phistar.load("cartpole"), "forward_dynamics", engine="c")


def test_arc_of_symbols_is_that_of_arrays() -> None:
    """Functions of angles that kinds of joints may call, with slopes at zero that are numbers."""
    square = ca.SX.sym("square")
    squares = np.array([0.0, 1e-9, 0.2499, 0.2501, 4.0, 9.0])
    for name in ("half_cosine", "half_sine_ratio", "sine_ratio", "versine_ratio", "sine_defect"):
        value = getattr(SymbolOps().arc(square), name)
        run = ca.Function("arc", [square], [value, ca.jacobian(value, square)])
        found = np.array([[float(x) for x in run(each)] for each in squares])
        wanted = getattr(ARRAY_OPS.arc(squares), name)
        assert np.allclose(found[:, 0], wanted, rtol=1e-13, atol=0.0), name
        moved = getattr(ARRAY_OPS.arc(squares + 1e-30j), name).imag / 1e-30
        assert np.allclose(found[:, 1], moved, rtol=1e-9, atol=0.0), name
