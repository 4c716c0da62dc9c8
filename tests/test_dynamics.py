# SPDX-License-Identifier: BSD-3-Clause
"""Dynamics of the user's object: laws of mechanics, Pinocchio, closed forms, clear errors."""

import numpy as np
import pinocchio as pin
import pytest

import phistar
from phistar.errors import (
    ArgumentError,
    InertiaWarning,
    ShapeError,
    SingularHingeError,
    SingularHingeWarning,
    UnknownNameError,
)
from phistar.model.random import random_model
from tools.golden import dense_mass_matrix

BUNDLED = phistar.robots.names()


def _close(ours: np.ndarray, theirs: np.ndarray, tolerance: float = 1e-10) -> None:
    assert np.shape(ours) == np.shape(theirs)
    assert np.abs(ours - theirs).max() <= tolerance * max(np.abs(theirs).max(), 1e-6)


def _state(robot: phistar.Robot, seed: int, shape: tuple[int, ...] = ()) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    v, vdot = rng.normal(size=(2, *shape, robot.nv))
    return robot.random_configuration(rng, shape), v, vdot


def _random_robot(seed: int, **options: object) -> phistar.Robot:
    return phistar.Robot(random_model(np.random.default_rng(seed), 8, fixed=0.2, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["panda", "panda_hand", "ur5", "quadruped", "humanoid"])
def test_agrees_with_pinocchio(name: str) -> None:
    """Torques, mass matrix and accelerations of the bundled robots; relative 1e-10."""
    floating = phistar.robots.floats(name)
    robot = phistar.load(name, mimic="independent")
    base = [pin.JointModelFreeFlyer()] if floating else []
    peer = pin.buildModelFromUrdf(str(phistar.robots.path(name)), *base)
    data = peer.createData()
    convert = phistar.conventions.pinocchio(robot, peer)
    q, v, vdot = _state(robot, 1)
    q2, v2, a2 = convert.q_to_peer(q), convert.v_to_peer(q, v), convert.vdot_to_peer(q, v, vdot)
    tau = pin.rnea(peer, data, q2, v2, a2)
    _close(convert.tau_to_peer(q, robot.inverse_dynamics(q, v, vdot)), tau)
    _close(convert.matrix_to_peer(q, robot.mass_matrix(q)), pin.crba(peer, data, q2))
    expected = pin.aba(peer, data, q2, v2, tau)
    ours = robot.forward_dynamics(q, v, convert.tau_from_peer(q, tau))
    _close(convert.vdot_to_peer(q, v, ours), expected, 1e-8)
    _close(convert.tau_to_peer(q, robot.bias_force(q, v)), pin.nonLinearEffects(peer, data, q2, v2))
    gravity = pin.computeGeneralizedGravity(peer, data, q2)
    _close(convert.tau_to_peer(q, robot.gravity_force(q)), gravity)
    assert robot.kinetic_energy(q, v) == pytest.approx(pin.computeKineticEnergy(peer, data, q2, v2))
    potential = pin.computePotentialEnergy(peer, data, q2)
    assert robot.potential_energy(q) == pytest.approx(potential, abs=1e-9)


@pytest.mark.parametrize("method", ["articulated", "1", "2", "3", "4"])
@pytest.mark.parametrize("topology", ["serial", "tree", "forest"])
def test_forward_undoes_inverse(method: str, topology: str) -> None:
    """Every algorithm inverts inverse dynamics, on every joint kind, with rotors; relative 1e-8."""
    robot = _random_robot(len(topology), topology=topology, armature=0.5, massless=0.2)
    q, v, vdot = _state(robot, 1, (3,))
    tau = robot.inverse_dynamics(q, v, vdot)
    _close(robot.forward_dynamics(q, v, tau, method=method), vdot, 1e-8)


def test_mass_matrix_and_its_inverse() -> None:
    """𝓜 is the sum over bodies, symmetric and positive; 𝓜⁻¹ from the factors inverts it."""
    robot = _random_robot(4, armature=0.5, floating_base=True)
    q = robot.random_configuration(5, (2,))
    matrix = robot.mass_matrix(q)
    _close(matrix, dense_mass_matrix(robot, q))
    assert np.linalg.eigvalsh(matrix).min() > 0
    product = matrix @ robot.mass_matrix_inverse(q)
    _close(product, np.broadcast_to(np.eye(robot.nv), product.shape), 1e-8)


def test_power_balance() -> None:
    """Joint power is the rate of energy: d(T + V)/dt = τ·v along the true motion; 1e-6."""
    robot = _random_robot(6, armature=0.5, floating_base=True)
    q, v, vdot = _state(robot, 7)
    tau = robot.inverse_dynamics(q, v, vdot)

    def energy(h: float) -> float:
        later, speed = robot.integrate(q, h * v + h * h / 2 * vdot), v + h * vdot
        return float(robot.kinetic_energy(later, speed) + robot.potential_energy(later))

    rate = (energy(1e-5) - energy(-1e-5)) / 2e-5
    assert rate == pytest.approx(float(tau @ v), rel=1e-6)


def test_coriolis_matrix() -> None:
    """C v is the bias force; C + C* is the rate of 𝓜; Pinocchio has the same matrix."""
    robot = _random_robot(13, kinds=["revolute", "prismatic", "helical"], topology="tree")
    q, v, _ = _state(robot, 14)
    matrix = robot.coriolis_matrix(q, v)
    _close(matrix @ v, robot.bias_force(q, v) - robot.gravity_force(q), 1e-9)
    h = 1e-6
    ahead, behind = (robot.mass_matrix(robot.integrate(q, s * v)) for s in (h, -h))
    _close(matrix + matrix.T, (ahead - behind) / (2 * h), 1e-6)
    panda = phistar.load("panda")
    peer = pin.buildModelFromUrdf(str(phistar.robots.path("panda")))
    q, v, _ = _state(panda, 15)
    _close(panda.coriolis_matrix(q, v), pin.computeCoriolisMatrix(peer, peer.createData(), q, v))


def test_coriolis_matrix_of_multi_dof_joints() -> None:
    """On every joint kind C v is the bias force; batches work."""
    robot = _random_robot(16, floating_base=True)
    q, v, _ = _state(robot, 17, (2,))
    product = (robot.coriolis_matrix(q, v) @ v[..., None])[..., 0]
    _close(product, robot.bias_force(q, v) - robot.gravity_force(q), 1e-9)


def test_quick_coriolis_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once compiled, plain arrays take the quick way: same bits, and faults are named as before."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    robot = phistar.load("double_pendulum")
    q, v, _ = _state(robot, 21, (3,))
    first = robot.coriolis_matrix(q, v)
    assert robot._entries["coriolis_matrix"] is not None
    with pytest.raises(ArgumentError, match=r"v\[1\] is nan"):
        robot.coriolis_matrix(q[0], np.array([0.0, np.nan]))
    with pytest.raises(ShapeError, match=r"^v has shape"):
        robot.coriolis_matrix(q[0], v[0, 1:])
    monkeypatch.setattr(phistar.dynamics, "coriolis_matrix", None)
    np.testing.assert_array_equal(robot.coriolis_matrix(q, v), first)
    np.testing.assert_array_equal(robot.coriolis_matrix(q[1], v[1]), first[1])


def test_log_determinant() -> None:
    """log det 𝓜 from the factors is that of the matrix."""
    robot = _random_robot(18, armature=0.5)
    q = robot.random_configuration(19, (3,))
    _close(robot.log_determinant(q), np.linalg.slogdet(robot.mass_matrix(q))[1])
    assert {body.joint_kind.nv for body in robot.model.bodies} > {1, 3}
    short = robot.log_determinant(q.astype(np.float32))
    assert short.dtype == np.float32
    _close(short, robot.log_determinant(q), 1e-4)


def test_momentum() -> None:
    """Its linear part is mass times the velocity of the centre of mass; Pinocchio agrees."""
    robot = phistar.load("humanoid")
    q, v, _ = _state(robot, 20)
    h = 1e-6
    ahead, behind = (robot.center_of_mass(robot.integrate(q, s * v)) for s in (h, -h))
    _close(robot.momentum(q, v)[3:], robot.total_mass * (ahead - behind) / (2 * h), 1e-7)
    peer = pin.buildModelFromUrdf(str(phistar.robots.path("humanoid")), pin.JointModelFreeFlyer())
    convert, data = phistar.conventions.pinocchio(robot, peer), peer.createData()
    central = pin.computeCentroidalMomentum(
        peer, data, convert.q_to_peer(q), convert.v_to_peer(q, v)
    )
    linear = central.linear
    angular = central.angular + np.cross(data.com[0], linear)
    _close(robot.momentum(q, v), np.concatenate([angular, linear]), 1e-9)


def test_operational_inertia() -> None:
    """Λ is the inverse of J 𝓜⁻¹ J* for frames on two branches."""
    robot = phistar.load("humanoid")
    q = robot.random_configuration(21)
    frames = ("left_hand", "right_hand")
    jacobian = np.concatenate([robot.jacobian(q, name, "local") for name in frames])
    expected = np.linalg.inv(jacobian @ robot.mass_matrix_inverse(q) @ jacobian.T)
    _close(robot.operational_inertia(q, frames), expected, 1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_hybrid_dynamics(seed: int) -> None:
    """Given accelerations are kept, given forces are kept, and both fit the equations of motion."""
    robot = _random_robot(seed, topology="tree", armature=0.5, floating_base=seed % 2 == 0)
    q, v, vdot = _state(robot, seed, (2,))
    tau = robot.inverse_dynamics(q, v, vdot)
    prescribed = list(robot.joint_names[::2])
    held = np.zeros(robot.nv, dtype=bool)
    for name in prescribed:
        held[robot.joints[name].v_slice] = True
    wanted = np.where(held, vdot, 7.0)
    given = np.where(held, -3.0, tau)
    acceleration, force = robot.hybrid_dynamics(q, v, given, wanted, prescribed)
    _close(acceleration, vdot, 1e-7)
    _close(force, tau, 1e-7)


def test_hybrid_dynamics_at_its_ends() -> None:
    """Nothing prescribed is forward dynamics, everything prescribed is inverse dynamics."""
    robot = _random_robot(22, armature=0.5)
    q, v, vdot = _state(robot, 23)
    tau = robot.inverse_dynamics(q, v, vdot)
    _close(robot.hybrid_dynamics(q, v, tau, 0 * vdot, [])[0], vdot, 1e-8)
    _close(robot.hybrid_dynamics(q, v, 0 * tau, vdot, robot.joint_names)[1], tau, 1e-10)
    with pytest.raises(UnknownNameError, match="joint1"):
        robot.hybrid_dynamics(q, v, tau, vdot, ["jont1"])


def test_external_forces_act_through_the_jacobian() -> None:
    """A wrench f on a frame changes τ by -J* f, in each reference, batches included."""
    robot = phistar.load("quadruped")
    q, v, vdot = _state(robot, 8, (2,))
    wrench = np.random.default_rng(9).normal(size=(2, 6))
    free = robot.inverse_dynamics(q, v, vdot)
    for reference in ("local", "world", "world_aligned"):
        loaded = robot.inverse_dynamics(q, v, vdot, forces={"HR_FOOT": wrench}, reference=reference)
        pushed = np.swapaxes(robot.jacobian(q, "HR_FOOT", reference), -1, -2) @ wrench[..., None]
        _close(free - loaded, pushed[..., 0], 1e-9)
        back = robot.forward_dynamics(q, v, loaded, forces={"HR_FOOT": wrench}, reference=reference)
        _close(back, vdot, 1e-7)


def test_mimic_joints_are_reduced() -> None:
    """τ = S* τ_full and 𝓜 = S* 𝓜_full S; forward dynamics inverts the reduced equations."""
    reduced = _random_robot(10, kinds=["revolute", "prismatic", "free"], mimic=0.5, armature=0.5)
    assert any(joint.mimic for joint in reduced.joints.values())
    q, v, vdot = _state(reduced, 11)
    _close(reduced.mass_matrix(q), dense_mass_matrix(reduced, q))
    tau = reduced.inverse_dynamics(q, v, vdot)
    bias = reduced.bias_force(q, v)
    _close(tau, reduced.mass_matrix(q) @ vdot + bias, 1e-9)
    _close(reduced.forward_dynamics(q, v, tau), vdot, 1e-8)
    _close(reduced.mass_matrix_inverse(q) @ (tau - bias), vdot, 1e-8)


def test_double_pendulum_closed_form() -> None:
    """Mass matrix of two rods, from first principles."""
    robot = phistar.load("double_pendulum")
    upper, lower = (robot.links[name] for name in robot.link_names if robot.links[name].mass)
    l1 = abs(robot.joints[robot.joint_names[1]].origin[2, 3])
    c1, c2 = abs(upper.com[2]), abs(lower.com[2])
    i1, i2 = upper.inertia[1, 1], lower.inertia[1, 1]
    q = np.array([0.3, -0.7])
    coupling = lower.mass * l1 * c2 * np.cos(q[1])
    m22 = i2 + lower.mass * c2**2
    m11 = i1 + upper.mass * c1**2 + lower.mass * l1**2 + m22 + 2 * coupling
    _close(robot.mass_matrix(q), np.array([[m11, m22 + coupling], [m22 + coupling, m22]]), 1e-12)


@pytest.mark.parametrize("name", BUNDLED)
def test_batches_are_loops(name: str) -> None:
    """Leading axes broadcast; every sample is what it is alone."""
    robot = phistar.load(name)
    q, v, vdot = _state(robot, 12, (2, 1))
    tau = robot.inverse_dynamics(q, v[0], vdot)
    assert tau.shape == (2, 1, robot.nv)
    _close(tau[1, 0], robot.inverse_dynamics(q[1, 0], v[0, 0], vdot[1, 0]))


def test_aliases_and_lists() -> None:
    """Lists, dicts and the names people know work."""
    robot = phistar.load("double_pendulum")
    tau = robot.rnea([0.1, 0.2], [0.0, 0.0], {robot.joint_names[0]: 1.0})
    assert np.allclose(robot.aba([0.1, 0.2], [0, 0], tau), [1.0, 0.0])
    assert robot.crba([0, 0]).shape == (2, 2)


def test_errors_are_clear() -> None:
    """NaN, wrong shapes, unknown methods and frames, singular hinges."""
    robot = phistar.load("panda")
    zeros = np.zeros(7)
    with pytest.raises(ArgumentError, match=r"v is not finite: v\[2\] is nan"):
        robot.inverse_dynamics(zeros, [0, 0, np.nan, 0, 0, 0, 0], zeros)
    with pytest.raises(ShapeError, match="vdot has shape"):
        robot.inverse_dynamics(zeros, zeros, np.zeros(6))
    with pytest.raises(ShapeError, match="broadcast"):
        robot.inverse_dynamics(np.zeros((2, 7)), np.zeros((3, 7)), zeros)
    with pytest.raises(UnknownNameError, match="articulated"):
        robot.forward_dynamics(zeros, zeros, zeros, method="articulatd")
    with pytest.raises(UnknownNameError, match="panda_link8"):
        robot.inverse_dynamics(zeros, zeros, zeros, forces={"panda_link_8": np.zeros(6)})
    with pytest.raises(ShapeError, match=r"forces\['panda_link8'\]"):
        robot.inverse_dynamics(zeros, zeros, zeros, forces={"panda_link8": np.zeros(3)})
    builder = phistar.ModelBuilder("bare")
    builder.link("base")
    builder.link("tip")
    builder.joint("wrist", "revolute", "base", "tip")
    with pytest.warns((SingularHingeWarning, InertiaWarning)):
        bare = phistar.load(builder.build())
    with pytest.raises(SingularHingeError, match="wrist"):
        bare.forward_dynamics([0.0], [0.0], [1.0])
    assert bare.inverse_dynamics([0.0], [0.0], [1.0]).tolist() == [0.0]
