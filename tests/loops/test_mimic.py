# SPDX-License-Identifier: BSD-3-Clause
"""Robots whose mimic joints are reduced: dynamics over nodes of links that move together.

Witnesses: the dense operators of ``algebra.dense`` over all joints, reduced by the matrix X of the
mimic laws, and differences; neither knows nodes.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.ir import I, crf, crm
from phistar.algebra.symbols import (
    B,
    D,
    H,
    M,
    gravity,
    mass_matrix,
    phi,
    psi,
    tau,
    v,
    vdot,
)
from phistar.arrays import Array
from phistar.backends.policy import NUMPY, UNROLLED
from phistar.errors import ArgumentError, SingularHingeError
from phistar.model import ModelBuilder
from phistar.model.components import Mimic
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.model.node_tree import NodeTree
from phistar.model.nodes import mimic_nodes
from phistar.model.random import random_model
from phistar.robot import Robot
from phistar.scalar.program import count_arithmetic
from phistar.spatial import pose
from tests.helpers import SHARED, needs_shared, patch_policy
from tests.loops.mechanisms import error

RANDOM = {
    "hinges": {"kinds": ["revolute", "prismatic"], "mimic": 0.6},
    "all kinds": {"mimic": 0.5},
    "free base": {"mimic": 0.7, "floating_base": True},
}


def _random(name: str, seed: int) -> Robot:
    return Robot(random_model(np.random.default_rng(seed), 9, **RANDOM[name]))  # type: ignore[arg-type]


def _law(model: Model) -> Array:
    """X (joints, nv): rates of all joints, in body order, per unit of v."""
    joints = joint_map(model)
    X = np.zeros((len(joints.v_indices), model.nv))
    X[np.arange(len(X)), joints.v_indices] = joints.scales
    return X


def _dense_mass(robot: Robot, q: Array) -> Array:
    """X*𝓜X of each sample, 𝓜 = HφMφ*H* + A of all joints by plain matrices."""
    X = _law(robot.model)
    return np.stack([X.T @ Dense(robot.model, each)(mass_matrix) @ X for each in q])


def _state(robot: Robot, samples: int = 3) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(5)
    v_, tau_ = rng.normal(size=(2, samples, robot.nv))
    return robot.random_configuration(rng, (samples,)), v_, tau_


def _times(matrix: Array, x: Array) -> Array:
    return np.asarray((matrix @ x[..., None])[..., 0])


def gripper_chain(count: int, fingers: int = 1, mimic: str = "reduce") -> Robot:
    """Links in a row, each with two fingers of some links in a row that move together."""
    build = ModelBuilder("grippers", gravity=(0.1, 0.2, -9.8))
    build.link("base")
    carrier = "base"
    for i in range(count):
        arm = f"arm{i}"
        build.link(arm, 2.0, com=(0.1, 0.02, 0.03), inertia=(0.02, 0.03, 0.04))
        place = pose(translation=(0.3, 0.0, 0.05)) if i else None
        axis = ((0, 0, 1), (0, 1, 0))[i % 2]
        build.joint(f"{arm}_joint", "revolute", carrier, arm, axis=axis, origin=place)
        for side, sign in (("left", 1.0), ("right", -1.0)):
            on = arm
            for j in range(fingers):
                tip = f"{arm}_{side}{j}"
                build.link(tip, 0.2, com=(0.03, 0.01, 0.0), inertia=(2e-4, 3e-4, 4e-4))
                leads = side == "left" and j == 0
                law = None if leads else Mimic(f"{arm}_left0_joint", sign * (0.7 + 0.1 * j), 0.05)
                build.joint(
                    f"{tip}_joint", "revolute", on, tip, axis=(0, 0, 1),
                    origin=pose(translation=(0.1, 0.05 * sign, 0.0)), mimic=law,
                )  # fmt: skip
                on = tip
        carrier = arm
    return Robot(build.build(mimic=mimic))  # type: ignore[arg-type]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code is made by the first call, not after some samples."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", RANDOM)
def test_machine_code_against_dense_operators(name: str, seed: int) -> None:
    """v̇, 𝓜⁻¹ and log det of random trees with chains of mimics; relative 1e-9."""
    robot = _random(name, seed)
    q, v_, tau_ = _state(robot)
    mass = _dense_mass(robot, q)
    rest = tau_ - robot.inverse_dynamics(q, v_, np.zeros_like(v_))
    expected = np.linalg.solve(mass, rest[..., None])[..., 0]
    for backend in ("llvm", "numpy"):
        found = robot.compile("forward_dynamics", backend=backend)(q, v=v_, tau=tau_)
        assert error(found, expected) < 1e-9
    solved = robot.compile("mass_matrix_solve")(q, tau=tau_)
    assert error(solved, np.linalg.solve(mass, tau_[..., None])[..., 0]) < 1e-9
    assert error(robot.compile("mass_matrix_inverse")(q), np.linalg.inv(mass)) < 1e-9
    logarithm = np.linalg.slogdet(mass)[1]
    assert np.abs(robot.compile("log_determinant")(q) - logarithm).max() < 1e-9
    assert error(robot.forward_dynamics(q, v_, tau_), expected) < 1e-9


@pytest.mark.parametrize("name", RANDOM)
def test_sweeps_in_numpy_against_dense_operators(name: str) -> None:
    """The same by NumPy over nodes, which large robots and long doubles take."""
    robot = _random(name, 7)
    q, _, tau_ = _state(robot)
    mass = _dense_mass(robot, q)
    tree = NodeTree.of_mimics(robot.model, q)
    assert error(tree.solve(tau_), np.linalg.solve(mass, tau_[..., None])[..., 0]) < 1e-10
    assert error(tree.mass_times(tau_), _times(mass, tau_)) < 1e-12
    assert np.abs(tree.log_determinant() - np.linalg.slogdet(mass)[1]).max() < 1e-10
    long = robot.operators(q.astype(np.longdouble)).M.solve(tau_)
    assert long.dtype == np.longdouble
    assert error(np.asarray(long, float), tree.solve(tau_)) < 1e-12


def test_nodes_are_as_small_as_can_be() -> None:
    """Two fingers are one node, a finger of coupled links another; arms stay links."""
    robot = gripper_chain(3, fingers=2)
    sizes = [(len(node.bodies), len(node.entries)) for node in mimic_nodes(robot.model)]
    assert sizes == [(1, 1), (4, 1)] * 3 or sorted(sizes) == sorted([(1, 1)] * 3 + [(4, 1)] * 3)
    apart = gripper_chain(2, mimic="independent")
    assert all(len(node.bodies) == 1 for node in mimic_nodes(apart.model))


def _operations(robot: Robot) -> int:
    """Of forward dynamics as a straight line."""
    k = robot.compile("forward_dynamics", backend="llvm")
    return count_arithmetic(k._program.traced("straight").count())


@pytest.mark.parametrize("fingers", [1, 3])
def test_operations_grow_linearly(fingers: int) -> None:
    """On a row of grippers each one more takes the same, and less than with free fingers."""
    costs = {}
    for count in (4, 8, 12):
        costs[count] = _operations(gripper_chain(count, fingers))
        assert costs[count] < _operations(gripper_chain(count, fingers, "independent"))
    assert abs((costs[12] - costs[8]) - (costs[8] - costs[4])) <= 0.01 * (costs[8] - costs[4])


MIMIC_FILES = [
    "humanoid/jvrc__urdf__jvrc1.urdf",
    "humanoid/pepper__urdf__pepper.urdf",
    "humanoid/unitree_ros__robots__h1_2_description__h1_2.urdf",
    "hand/unitree_ros__robots__g1_description__inspire_hand__DFQ_left_hand.urdf",
    "hand/dex_urdf__robots__assembly__rm75_inspire__rm75_inspire_left_hand.urdf",
    "arm/moveit_resources__panda_description__urdf__panda.urdf",
]


def _load(path: Path, **options: str) -> Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return phistar.load(path, **options)  # type: ignore[arg-type]


@needs_shared
@pytest.mark.parametrize("file", MIMIC_FILES)
def test_robots_of_the_collection(file: str) -> None:
    """v̇ over nodes, against 𝓜 and its golden; fewer operations than the tree with free joints."""
    path = SHARED / "robots" / file
    robot = _load(path)
    q, v_, tau_ = _state(robot)
    if robot.singular_hinges:
        with pytest.raises(SingularHingeError):
            robot.forward_dynamics(q, v_, tau_)
        return
    mass = _dense_mass(robot, q)
    rest = tau_ - robot.inverse_dynamics(q, v_, np.zeros_like(v_))
    found = NodeTree.of_mimics(robot.model, q).solve(rest)
    assert error(found, np.linalg.solve(mass, rest[..., None])[..., 0]) < 1e-8
    assert error(robot.forward_dynamics(q, v_, tau_), found) < 1e-8
    assert _operations(robot) < _operations(_load(path, mimic="independent"))


@needs_shared
@pytest.mark.parametrize("file", MIMIC_FILES)
def test_inverse_against_the_golden_mass_matrix(file: str) -> None:
    """𝓜⁻¹ over nodes times Pinocchio's 𝓜 of the mimic model is the identity, to 1e-8."""
    path = SHARED / "robots" / file
    robot = _load(path)
    with np.load(path.with_name(path.name + ".npz")) as stored:
        arrays = {name: stored[name] for name in ("mimic_q", "mimic_M") if name in stored.files}
    if "mimic_M" not in arrays or arrays["mimic_M"].shape[-1] != robot.nv:
        pytest.skip("the golden is of another base")
    if robot.singular_hinges:
        pytest.skip("a joint of it moves no inertia")
    law = json.loads(path.with_name(path.name + ".json").read_text())["mimic"]
    if law["base"] != "fixed" or any(
        robot.joints[n].kind not in ("revolute", "prismatic") for n in law["independent"]
    ):
        pytest.skip("q is written in another way there")
    ordered = robot.reorder(law["independent"])
    q, mass = np.atleast_2d(arrays["mimic_q"]), arrays["mimic_M"]
    mass = mass.reshape(-1, robot.nv, robot.nv)
    product = NodeTree.of_mimics(ordered.model, q[:, None, :]).solve(mass)
    assert np.abs(product - np.eye(robot.nv)).max() < 1e-8


def test_against_pinocchio() -> None:
    """v̇ from 𝓜 and 𝒞 of its mimic joints, which its own forward dynamics refuses; rel. 1e-9."""
    pin = pytest.importorskip("pinocchio")
    robot = phistar.load("panda_hand")
    peer = pin.buildModelFromUrdf(str(phistar.robots.path("panda_hand")), mimic=True)
    assert peer.nv == robot.nv
    data = peer.createData()
    for q, v_, tau_ in zip(*_state(robot), strict=True):
        mass = pin.crba(peer, data, q)
        mass = np.triu(mass) + np.triu(mass, 1).T
        bias = pin.rnea(peer, data, q, v_, np.zeros(robot.nv))
        expected = np.linalg.solve(mass, tau_ - bias)
        found = robot.compile("forward_dynamics")(q, v=v_, tau=tau_)
        assert error(found, expected) < 1e-9


@pytest.mark.usefixtures("at_once")
def test_derivatives_against_differences() -> None:
    """linearize, jvp and vjp of machine code; central differences of v̇, relative 1e-6."""
    robot = gripper_chain(2, fingers=2)
    q, v_, tau_ = _state(robot)
    at = robot.compile("linearize")(q, v=v_, tau=tau_)
    step = 1e-6
    for name in ("q", "v", "tau"):
        columns = []
        for k in range(robot.nv):
            ends = []
            for sign in (1, -1):
                x = {"q": q.copy(), "v": v_.copy(), "tau": tau_.copy()}
                x[name][:, k] += sign * step
                rest = x["tau"] - robot.inverse_dynamics(x["q"], x["v"], np.zeros_like(v_))
                mass = robot.mass_matrix(x["q"])
                ends.append(np.linalg.solve(mass, rest[..., None])[..., 0])
            columns.append((ends[0] - ends[1]) / (2 * step))
        assert error(at[f"vdot_{name}"], np.stack(columns, -1)) < 1e-6, name
    rng = np.random.default_rng(0)
    dq, dv, dtau, w = rng.normal(size=(4, *v_.shape))
    along = robot.compile("forward_dynamics_jvp")(q, v=v_, tau=tau_, dq=dq, dv=dv, dtau=dtau)
    matrices = [at["vdot_q"], at["vdot_v"], at["vdot_tau"]]
    expected = sum(_times(A, x) for A, x in zip(matrices, (dq, dv, dtau), strict=True))
    assert error(along, np.asarray(expected)) < 1e-11
    back = robot.compile("forward_dynamics_vjp")(q, v=v_, tau=tau_, w=w)
    for name, A in zip(("q", "v", "tau"), matrices, strict=True):
        assert error(back[f"w_{name}"], _times(np.swapaxes(A, -1, -2), w)) < 1e-11
    public = robot.linearize(q, v_, tau_)
    assert error(public.vdot_q, at["vdot_q"]) < 1e-11
    assert error(robot.jvp("forward_dynamics", q, v_, tau_, dq=dq), _times(matrices[0], dq)) < 1e-11
    assert error(robot.vjp("forward_dynamics", q, v_, tau_, w)["v"], back["w_v"]) < 1e-11


@pytest.mark.usefixtures("at_once")
def test_products_by_loops_after_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """As robots with more coordinates than products are unrolled for; relative 1e-10."""
    patch_policy(monkeypatch, max_product_rows_unrolled=0)
    robot = gripper_chain(3)
    q, v_, tau_ = _state(robot)
    inverse = np.linalg.inv(_dense_mass(robot, q))
    for backend in ("numpy", "llvm"):
        k = robot.compile("linearize", backend=backend)
        assert len(k.scalar_program().products) == 2  # type: ignore[union-attr]
        at = k(q, v=v_, tau=tau_)
        forces = robot.linearize_inverse(q, v_, at["vdot"])
        assert error(at["vdot_q"], -inverse @ forces.tau_q) < 1e-10
        assert error(at["vdot_v"], -inverse @ forces.tau_v) < 1e-10


@pytest.mark.usefixtures("at_once")
def test_forces_on_frames_and_prescribed_joints() -> None:
    """External wrenches by J*f, and hybrid dynamics by inverse dynamics; relative 1e-10."""
    robot = gripper_chain(2, fingers=2)
    q, v_, tau_ = _state(robot)
    wrench = np.random.default_rng(1).normal(size=(3, 6))
    link = "arm1_right1"
    push = _times(np.swapaxes(robot.jacobian(q, link), -1, -2), wrench)
    found = robot.forward_dynamics(q, v_, tau_, forces={link: wrench})
    assert error(found, robot.forward_dynamics(q, v_, tau_ + push)) < 1e-10
    names = ["arm1_joint", "arm0_left0_joint"]
    told = np.random.default_rng(2).normal(size=v_.shape)
    accelerations, forces = robot.hybrid_dynamics(q, v_, tau_, told, names)
    held = [robot.joints[name].v_slice.start for name in names]
    free = [i for i in range(robot.nv) if i not in held]
    assert error(accelerations[:, held], told[:, held]) == 0.0
    assert error(forces[:, free], tau_[:, free]) < 1e-10
    assert error(forces, robot.inverse_dynamics(q, v_, accelerations)) < 1e-12


@pytest.mark.usefixtures("at_once")
def test_operational_inertia() -> None:
    """(J𝓜⁻¹J*)⁻¹ by dense matrices, in all references, compiled or not; relative 1e-8."""
    robot = phistar.load("panda_hand")
    q, _, _ = _state(robot)
    inverse = np.linalg.inv(_dense_mass(robot, q))
    for reference in ("local", "world", "world_aligned"):
        J = robot.jacobian(q, "panda_hand", reference=reference)
        expected = np.linalg.inv(J @ inverse @ np.swapaxes(J, -1, -2))
        found = robot.operational_inertia(q, ["panda_hand"], reference=reference)
        assert error(found, expected) < 1e-8
        k = robot.compile("operational_inertia", frames=["panda_hand"], reference=reference)
        assert error(k(q), expected) < 1e-8
        slow = robot.operational_inertia(q.astype(complex), ["panda_hand"], reference=reference)
        assert error(slow.real, expected) < 1e-8


@pytest.mark.usefixtures("at_once")
def test_own_expressions_in_pieces() -> None:
    """H is X*H: products, inverses, identities and numbers against matrices; relative 1e-11."""
    robot = gripper_chain(2, fingers=2)
    q, v_, tau_ = _state(robot)
    mass = _dense_mass(robot, q)
    x = np.random.default_rng(3).normal(size=v_.shape)
    for expr, expected in (
        (mass_matrix, mass),
        (mass_matrix @ mass_matrix, mass @ mass),
        (mass_matrix.inv, np.linalg.inv(mass)),
        ((I + mass_matrix.inv) @ mass_matrix, mass + np.eye(robot.nv)),
    ):
        f = robot.function(expr)
        assert error(f(q), expected) < 1e-11, str(expr)
        assert error(f(q, x), _times(expected, x)) < 1e-11, str(expr)
    f = robot.function(mass_matrix)
    joint = robot.joints["arm1_joint"].v_slice
    assert error(f.row(q, "arm1_joint"), mass[:, joint]) < 1e-12
    assert error(f.column(q, "arm1_joint"), mass[:, :, joint]) < 1e-12
    assert error(f.block(q, "arm0_joint", "arm1_joint")[:, 0, 0], mass[:, 0, joint.start]) < 1e-12
    assert error(f.diagonal(q), np.diagonal(mass, axis1=-2, axis2=-1)) < 1e-12
    energy = robot.function(v.T @ mass_matrix @ v / 2)(q, v=v_)
    assert error(energy, np.einsum("ki,kij,kj->k", v_, mass, v_) / 2) < 1e-12
    rest = robot.function(tau - mass_matrix @ vdot)(q, tau=tau_, vdot=x)
    assert error(rest, tau_ - _times(mass, x)) < 1e-12
    V = phi.T @ H.T @ v
    bias = H @ phi @ (M @ phi.T @ (crm(V) @ H.T @ v + gravity) + crf(V) @ M @ V)
    assert error(robot.function(bias)(q, v=v_), robot.bias_force(q, v_)) < 1e-12
    forward = robot.function(mass_matrix.inv @ (tau - bias))
    assert error(forward(q, v=v_, tau=tau_), robot.forward_dynamics(q, v_, tau_)) < 1e-10
    reach = robot.function(B.T @ phi.T @ H.T, frames=["arm1_left1"])
    assert error(reach(q), robot.jacobian(q, "arm1_left1", reference="local")) < 1e-12


def test_operators_of_single_joints_say_what_to_use() -> None:
    """One clear error each, with the cure."""
    robot = phistar.load("panda_hand")
    for expr in (D, psi, H @ psi, psi.T @ H.T @ D.inv @ H @ psi):
        with pytest.raises(ArgumentError, match=r"minimal\(q\)\.operators\(\)"):
            robot.function(expr)
    with pytest.raises(ArgumentError, match="function"):
        robot.compile(mass_matrix @ mass_matrix @ vdot)
    with pytest.raises(ArgumentError, match=r"minimal\(q\)\.operators\(\)"):
        robot.compile("new_rates")


def test_what_is_compiled_and_what_is_not() -> None:
    """Large robots say that NumPy sweeps over nodes; inverse dynamics gives τ back, 1e-10 of 𝒞."""
    small, large = gripper_chain(3), gripper_chain(210)
    assert small.compile("forward_dynamics").decision.shape == UNROLLED
    k = large.compile("forward_dynamics")
    assert k.decision.shape == NUMPY
    assert k.decision.strategy == "sweeps over nodes"
    assert "at most" in k.decision.why
    q, v_, tau_ = _state(large, 2)
    found = large.forward_dynamics(q, v_, tau_)
    left = np.abs(large.inverse_dynamics(q, v_, found) - tau_).max()
    assert left < 1e-10 * np.abs(large.bias_force(q, v_)).max()


@pytest.mark.usefixtures("at_once")
def test_precisions_and_batches() -> None:
    """float32 stays float32, complex steps go through, a bad sample spoils no other."""
    robot = phistar.load("panda_hand")
    q, v_, tau_ = _state(robot, 64)
    found = robot.forward_dynamics(q, v_, tau_)
    single = robot.forward_dynamics(*(x.astype(np.float32) for x in (q, v_, tau_)))
    assert single.dtype == np.float32
    assert error(single, found) < 1e-4
    step = 1e-30
    bent = robot.forward_dynamics(q, v_, tau_ + 1j * step * np.eye(robot.nv)[2]).imag / step
    assert error(bent, robot.mass_matrix_inverse(q)[..., 2]) < 1e-10
    bad = tau_.copy()
    bad[5, 2] = np.nan
    kept = robot.forward_dynamics(q, v_, bad, on_error="nan")
    assert np.isnan(kept[5]).all()
    good = np.arange(64) != 5
    assert (kept[good] == robot.forward_dynamics(q, v_, tau_)[good]).all()


@pytest.mark.usefixtures("at_once")
def test_steps_are_compiled() -> None:
    """One program for a step, as stage by stage in long doubles; relative 1e-12."""
    robot = gripper_chain(2)
    q, v_, tau_ = _state(robot, 40)
    found = robot.compile("step", scheme="rk4")(q, v=v_, tau=tau_, dt=1e-3)
    slow = robot.step(q.astype(np.longdouble), v_, tau_, 1e-3, "rk4", passive=False)
    assert error(found["q_next"], np.asarray(slow[0], float)) < 1e-12
    assert error(found["v_next"], np.asarray(slow[1], float)) < 1e-12


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("scheme", ["euler", "semi_implicit"])
def test_derivatives_of_steps(scheme: str) -> None:
    """``discretize`` against central differences of steps; relative 1e-7."""
    robot = gripper_chain(2)
    q, v_, tau_ = _state(robot, 3)
    at = robot.discretize(q, v_, tau_, 1e-2, method=scheme)
    columns, size = [], 1e-5
    for k in range(robot.nv):
        ends = [
            robot.step(q, v_ + x * np.eye(robot.nv)[k], tau_, 1e-2, scheme, passive=False)
            for x in (size, -size)
        ]
        columns.append(
            np.concatenate([(a - b) / (2 * size) for a, b in zip(*ends, strict=True)], -1)
        )
    assert error(at.A[..., robot.nv :], np.stack(columns, -1)) < 1e-7


@pytest.mark.usefixtures("at_once")
def test_joints_that_never_move() -> None:
    """A follower with factor zero is rigid; one without inertia is refused."""
    build = ModelBuilder("still")
    build.link("base")
    for name in ("arm", "tip"):
        build.link(name, 1.0, com=(0.1, 0.0, 0.0), inertia=(0.01, 0.02, 0.03))
    build.joint("elbow", "revolute", "base", "arm", axis=(0, 0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        build.joint(
            "wrist", "revolute", "arm", "tip", axis=(0, 0, 1), mimic=Mimic("elbow", 0.0, 0.3)
        )
        robot = Robot(build.build())
    q, v_, tau_ = _state(robot)
    rest = tau_ - robot.bias_force(q, v_)
    expected = rest / _dense_mass(robot, q)[..., 0]
    assert error(robot.compile("forward_dynamics")(q, v=v_, tau=tau_), expected) < 1e-12
    bare = ModelBuilder("bare")
    for name in ("base", "arm", "tip"):
        bare.link(name)
    bare.joint("elbow", "revolute", "base", "arm", axis=(0, 0, 1))
    bare.joint("wrist", "revolute", "arm", "tip", axis=(0, 0, 1), mimic=Mimic("elbow", 1.0, 0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        empty = Robot(bare.build())
    for call in (lambda: empty.forward_dynamics([0.0], [0.0], [0.0]),
                 lambda: empty.compile("forward_dynamics")):  # fmt: skip
        with pytest.raises(SingularHingeError, match="elbow"):
            call()
