# SPDX-License-Identifier: BSD-3-Clause
"""``robot.compile``: the robot's own methods as objects that can be looked at."""

import numpy as np
import pytest

import phistar
from phistar.algebra.spaces import FORCE
from phistar.algebra.symbols import B, D, H, M, mass_matrix, phi, psi, tau, v, vdot, vector
from phistar.backends import base
from phistar.backends.to_llvm import MachineCode
from phistar.compile import PASSES, cheapest_equivalent, kernel
from phistar.errors import (
    ArgumentError,
    InertiaWarning,
    ShapeError,
    SingularHingeError,
    SingularHingeWarning,
    SpaceError,
    UnknownNameError,
)
from phistar.model.random import random_model
from phistar.scalar.lower import LoweringOptions, to_unrolled
from phistar.scalar.program import count_arithmetic
from phistar.sweeps.costs import count_operations
from tests.helpers import chosen_backends, patch_policy

f = vector("f", FORCE)
w = vector("wrench", B.domain)


@pytest.fixture(scope="module")
def arm() -> phistar.Robot:
    """An arm with seven joints."""
    return phistar.load("panda")


def _state(robot: phistar.Robot, shape: tuple[int, ...] = ()) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return robot.random_configuration(rng, shape), *rng.normal(size=(2, *shape, robot.nv))


@pytest.mark.parametrize("backend", chosen_backends())
def test_kernels_are_the_methods(arm: phistar.Robot, backend: str) -> None:
    """A compiled program gives what the method gives, batches and dicts included."""
    q, v_, x = _state(arm, (2, 3))
    forward = arm.compile("forward_dynamics", backend=backend)
    expected = arm.forward_dynamics(q, v_, x)
    assert np.allclose(forward(q, v=v_, tau=x), expected, rtol=1e-10)
    assert forward(q[0], v=v_[1, 0], tau=x[0]).shape == (3, 7)
    inverse = arm.compile("inverse_dynamics", backend=backend)
    assert np.allclose(inverse(q, v=v_, vdot=expected), x, rtol=1e-8, atol=1e-8)
    name = arm.joint_names[2]
    some = arm.inverse_dynamics(arm.neutral(), np.zeros(7), {name: 1.0})
    assert np.allclose(inverse({}, v={}, vdot={name: 1.0}), some, rtol=1e-12)


def test_coordinates_are_in_the_robots_order() -> None:
    """Reordered joints: the kernel takes and gives the order of the robot."""
    robot = phistar.load("quadruped")
    turned = robot.reorder(robot.joint_names[::-1])
    q, v_, _ = _state(robot)
    values = robot.configuration_dict(q), robot.tangent_dict(v_)
    one, other = (
        each.tangent_dict(each.compile("bias_force")(values[0], v=values[1]))
        for each in (robot, turned)
    )
    assert all(np.allclose(one[name], other[name], rtol=1e-9, atol=1e-9) for name in one)


def test_external_forces_and_gravity(arm: phistar.Robot) -> None:
    """f_ext acts on the links in link axes; gravity may be replaced."""
    q, v_, _ = _state(arm)
    bias = arm.compile("bias_force")
    force = np.random.default_rng(1).normal(size=(7, 6))
    pushed = bias(q, v=v_, f_ext=force)
    extra = arm.compile("generalised_force")(q, f_ext=force)
    assert np.allclose(bias(q, v=v_) - pushed, extra, rtol=1e-9, atol=1e-9)
    weightless = arm.with_gravity((0, 0, 0)).bias_force(q, v_)
    assert np.allclose(bias(q, v=v_, gravity=np.zeros((7, 6))), weightless, rtol=1e-9, atol=1e-9)


def test_own_expressions(arm: phistar.Robot) -> None:
    """A vector, or several by name; link vectors come as (..., bodies, 6)."""
    q, v_, x = _state(arm, (4,))
    solved = arm.compile(mass_matrix.inv @ tau)(q, tau=x)
    assert np.allclose(solved, arm.operators(q).M.solve(x), rtol=1e-9)
    both = arm.compile({"momentum": M @ phi.T @ H.T @ v, "tau": mass_matrix @ vdot})
    assert both.inputs == ("v", "vdot")
    assert both.outputs == ("momentum", "tau")
    result = both(q, v=v_, vdot=x)
    assert result["momentum"].shape == (4, 7, 6)
    assert np.allclose(result["tau"], arm.operators(q).M @ x, rtol=1e-9)
    energy = (result["momentum"] * arm.compile("link_velocities")(q, v=v_)).sum((-2, -1)) / 2
    assert np.allclose(energy, arm.kinetic_energy(q, v_), rtol=1e-9)


def test_frames(arm: phistar.Robot) -> None:
    """B speaks of the frames named: forces in (..., frames, 6), motions out the same way."""
    frames = ("panda_link8", "panda_link4", "panda_link0")
    q, v_, _ = _state(arm, (2,))
    motion = arm.compile(B.T @ phi.T @ H.T @ v, frames=frames)(q, v=v_)
    assert motion.shape == (2, 3, 6)
    for number, name in enumerate(frames):
        expected = arm.frame_velocity(q, v_, name, "local")
        assert np.allclose(motion[:, number], expected, rtol=1e-9, atol=1e-12)
    wrench = np.random.default_rng(2).normal(size=(2, 3, 6))
    force = arm.compile(H @ phi @ B @ w, frames=frames)(q, wrench=wrench)
    work = (motion * wrench).sum((-2, -1))
    assert np.allclose((force * v_).sum(-1), work, rtol=1e-9)
    compliance = B.T @ psi.T @ H.T @ D.inv @ H @ psi @ B
    moved = arm.compile(compliance @ w, frames=frames)(q[0], wrench=wrench[0]).reshape(-1)
    known = arm.function(compliance, frames=frames)(q[0]) @ wrench[0].reshape(-1)
    assert np.allclose(moved, known, rtol=1e-9, atol=1e-9)


def test_a_kernel_can_be_looked_at(arm: phistar.Robot) -> None:
    """Inputs, outputs, sweeps, cost, source and every pass of the compiler."""
    k = arm.compile("forward_dynamics", backend="numpy")
    assert set(k.inputs) == {"v", "tau", "f_ext"}
    assert k.outputs == ("vdot",)
    assert k.backend == "numpy"
    assert k.sweeps.startswith("outward")
    assert k.cost == count_operations(k._kernel.schedule, arm.model).total == k.sweep_cost.total
    assert k.source() == k.source("numpy")
    assert "def run(" in k.source()
    assert k.source("sweeps") == k.sweeps
    passes = [each.name for each in PASSES]
    # NumPy code is made of the sweeps; scalars are for machine code and C.
    assert [stage.name for stage in k.passes] == [name for name in passes if name != "trace"]
    assert k.passes[-1].text == k.source()
    assert [stage.name for stage in arm.compile("forward_dynamics").passes] == passes
    assert str(k.passes).startswith("check -> expressions\n    vdot = ")
    assert repr(k.passes[0]) == "<check -> expressions: lines: 8>"
    assert str(k.sweep_cost).startswith(f"{k.cost}, at links: 7\n  congruence_in ")
    assert repr(k._kernel) == "<kernel forward_dynamics: vdot>"
    assert repr(k).startswith("<forward_dynamics(q, ")
    assert "'panda', backend numpy>" in repr(k)


def test_the_cost_is_that_of_the_code_that_runs(arm: phistar.Robot) -> None:
    """Machine code knows the robot's numbers: 299 multiplications where sweeps have 1092."""
    k = arm.compile("inverse_dynamics", shape="straight")
    options = LoweringOptions(regroup=True)
    given = (k._kernel.schedule, arm.model, frozenset({"f_ext", "gravity"}), frozenset())
    straight = to_unrolled(*given, options)
    assert k.cost.total == count_arithmetic(straight.count()) == 584
    assert k.sweep_cost.total.total == 2016


def test_the_decision_is_what_happens(arm: phistar.Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shape that is printed is the one that is compiled; the reason names the numbers."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    patch_policy(monkeypatch, max_link_streams_unrolled=100)
    arm = arm.with_gravity((0.0, 0.0, -3.7))  # nobody else has compiled for it
    for name in ("gravity_force", "forward_dynamics_jvp"):
        k = arm.compile(name)
        shape = {"straight": "unrolled", "rolled": "looped"}[k._executable.tiers().kernel.shape]
        assert k.decision.shape == shape
        assert f"{shape}: {len(arm.model.bodies)} links x " in str(k.decision)
    assert k.decision.shape == "looped"
    assert arm.compile(name, shape="straight").decision.shape == "unrolled"
    monkeypatch.setenv("PHISTAR_THREADS", "2")
    assert (k.decision.threads, k.decision_for(10**6).threads) == (1, 2)
    assert arm.compile(name, backend="numpy").decision.why == "NumPy: backend numpy"
    c = arm.compile("gravity_force", backend="c").decision
    assert (c.shape, c.strategy) == ("unrolled", "C source")
    patch_policy(monkeypatch, max_c_operations_unrolled=10)
    assert arm.compile("bias_force", backend="c").decision.shape == "looped"


def test_own_expressions_are_checked(arm: phistar.Robot) -> None:
    """B needs frames, and what is no expression is refused."""
    with pytest.raises(ArgumentError, match=r"contains B: name the frames"):
        arm.compile(B.T @ phi.T @ H.T @ v)
    with pytest.raises(ArgumentError, match=r"expected an operator expression, got None"):
        arm.compile(None)


def test_the_environment_names_the_backend(
    arm: phistar.Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PHISTAR_BACKEND is the default; an argument overrules it."""
    monkeypatch.setattr(base, "_default_name", "sweeps")
    assert arm.compile("bias_force").backend == "sweeps"
    assert arm.compile("bias_force", backend="numpy").backend == "numpy"


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.complex64])
def test_precision_is_kept(arm: phistar.Robot, dtype: type) -> None:
    """float32 in, float32 out, also through the robot's methods; complex likewise."""
    q, v_, x = (each.astype(dtype) for each in _state(arm))
    assert arm.compile("forward_dynamics")(q, v=v_, tau=x).dtype == dtype
    assert arm.inverse_dynamics(q, v_, x).dtype == dtype
    assert arm.forward_dynamics(q, v_, x).dtype == dtype


def test_mimic_joints() -> None:
    """Programs sum over followers; those of single joints say what to do."""
    model = random_model(np.random.default_rng(3), 6, kinds=["revolute", "prismatic"], mimic=0.6)
    robot = phistar.Robot(model)
    assert any(joint.mimic for joint in robot.joints.values())
    q, v_, x = _state(robot, (2,))
    tau_ = robot.compile("inverse_dynamics")(q, v=v_, vdot=x)
    assert np.allclose(tau_, robot.inverse_dynamics(q, v_, x), rtol=1e-12)
    expected = (robot.mass_matrix(q) @ x[..., None])[..., 0] + robot.bias_force(q, v_)
    assert np.allclose(tau_, expected, rtol=1e-9, atol=1e-9)
    product = (robot.mass_matrix(q) @ x[..., None])[..., 0]
    assert np.allclose(robot.compile(mass_matrix @ vdot)(q, vdot=x), product, rtol=1e-12)
    for wanted, cure in (
        ("hinge_inertias", "minimal"),
        ("forward_dynamics_1", '"forward_dynamics"'),
        ("linearize_split", '"linearize"'),
        (psi @ f, "minimal"),
        (vdot - mass_matrix @ vdot, r"robot\.function"),
        (mass_matrix @ mass_matrix @ vdot, r"robot\.function"),
    ):
        with pytest.raises(ArgumentError, match=rf"{cure}.*mimic='independent'"):
            robot.compile(wanted)


def test_singular_hinges_are_refused() -> None:
    """Only programs that divide by the inertia of a joint mind one that moves none."""
    builder = phistar.ModelBuilder("bare")
    builder.link("base")
    builder.link("tip")
    builder.joint("wrist", "revolute", "base", "tip")
    with pytest.warns((SingularHingeWarning, InertiaWarning)):
        bare = phistar.load(builder.build())
    for wanted in ("forward_dynamics", "hinge_inertias", psi @ f):
        with pytest.raises(SingularHingeError, match="wrist"):
            bare.compile(wanted)
    assert bare.compile("inverse_dynamics")([0.0], v=[0.0], vdot=[1.0]).tolist() == [0.0]


def test_a_robot_without_joints() -> None:
    """Nothing moves: empty results, no failure."""
    builder = phistar.ModelBuilder("stone")
    builder.link("base")
    robot = phistar.Robot(builder.build())
    assert robot.gravity_force([]).shape == (0,)
    assert robot.compile("link_velocities")(np.zeros((2, 0)), v=[]).shape == (2, 0, 6)


def test_errors_are_clear(arm: phistar.Robot) -> None:
    """Unknown names, missing inputs, NaN, shapes, batches."""
    zeros = np.zeros(7)
    with pytest.raises(UnknownNameError, match="'forward_dynamics'"):
        arm.compile("forward_dynamic")
    with pytest.raises(UnknownNameError, match="'numpy'"):
        arm.compile("forward_dynamics", backend="nunpy")
    with pytest.raises(UnknownNameError, match="panda_link8"):
        arm.compile(H @ phi @ B @ w, frames=["panda_link_8"])
    with pytest.raises(SpaceError):
        arm.compile(H @ H @ f)
    k = arm.compile("bias_force")
    with pytest.raises(ArgumentError, match="bias_force needs a value for v"):
        k(zeros)
    with pytest.raises(UnknownNameError, match="no input 'tau'"):
        k(zeros, v=zeros, tau=zeros)
    with pytest.raises(ArgumentError, match=r"q is not finite: q\[1\] is nan"):
        k([0, np.nan, 0, 0, 0, 0, 0], v=zeros)
    with pytest.raises(ArgumentError, match=r"v is not finite: v\[0\] is inf"):
        k(zeros, v=[np.inf, 0, 0, 0, 0, 0, 0])
    with pytest.raises(ShapeError, match="v has shape"):
        k(zeros, v=np.zeros(6))
    with pytest.raises(ShapeError, match=r"f_ext has shape \(6,\).*\(\.\.\., 7, 6\)"):
        k(zeros, v=zeros, f_ext=np.zeros(6))
    with pytest.raises(ArgumentError, match="f_ext is not finite"):
        k(zeros, v=zeros, f_ext=np.full((7, 6), np.nan))
    with pytest.raises(ArgumentError, match="not a dict"):
        k(zeros, v=zeros, f_ext={"panda_link8": np.zeros(6)})
    with pytest.raises(ArgumentError, match="f_ext is not an array of numbers"):
        k(zeros, v=zeros, f_ext=[["a"] * 6] * 7)
    with pytest.raises(ShapeError, match="broadcast"):
        k(np.zeros((2, 7)), v=np.zeros((3, 7)))
    with pytest.raises(ShapeError, match="broadcast"):
        k(np.zeros((2, 7)), v=zeros, f_ext=np.zeros((3, 7, 6)))
    with pytest.raises(UnknownNameError, match="independent joint"):
        k(zeros, v={"panda_joint9": 1.0})


def test_making_an_executable_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is made when it is first run; to look whether something can run does not compile it."""

    def refuse(*_: object) -> None:
        raise AssertionError("this compiles")

    monkeypatch.setattr("phistar.backends.llvm.run.tiers.compile_kernel", refuse)
    monkeypatch.setattr("phistar.backends.llvm.run.tiers.load_cached", refuse)
    robot = phistar.load("ur5", gravity=(0.0, 0.1, -9.2))
    for name in ("forward_dynamics", "mass_matrix", "linearize", "kinetic_energy"):
        assert robot.compile(name).decision.why


def test_forward_dynamics_is_what_the_method_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row counts, prints and runs the algorithm of the method, on each backend."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    robot = phistar.load("ur5")
    k = robot.compile("forward_dynamics", backend="llvm")
    q = np.linspace(-1.0, 1.0, robot.nq)
    method = robot.forward_dynamics(q, q, q)
    np.testing.assert_array_equal(k(q, v=q, tau=q), method)
    runs = kernel(cheapest_equivalent("forward_dynamics"), robot.model).executable(robot.model)
    assert isinstance(runs, MachineCode)
    assert k.cost.total == runs.cost.total
    third = robot.compile("forward_dynamics_3", backend="llvm")
    assert k.source() == third.source()
    assert k.cost.total == third.cost.total
    fourth = robot.forward_dynamics(q, q, q, method="4")
    np.testing.assert_allclose(fourth, method, rtol=1e-10, atol=1e-10)
    assert k.name == "forward_dynamics"


@pytest.mark.parametrize("name", ["operational_inertia", "damped_operational_inertia", "jacobian"])
def test_quantities_of_frames_ask_for_them(name: str) -> None:
    """Without frames there is nothing to compile: the error shows how to name one."""
    with pytest.raises(ArgumentError, match=rf'{name} is about .*frames=\["'):
        phistar.load("double_pendulum").compile(name)
