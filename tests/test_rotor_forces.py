# SPDX-License-Identifier: BSD-3-Clause
"""Rotor inertia of free, planar and ball joints: MuJoCo, and chains of one-axis joints, agree."""

import mujoco
import numpy as np
import pytest

import phistar
from phistar.c_export import scalar_program
from phistar.compile import kernel
from phistar.conventions import mujoco as convention
from phistar.diagonal.lagged import lagged_start, lagged_step
from phistar.dynamics import coriolis_times
from phistar.scalar.interpret import run
from tests.helpers import chosen_backends

MJCF = b"""
<mujoco><option gravity="0.5 -1 -9.81"/><default><joint armature="0.7"/></default><worldbody>
  <body name="trunk" pos="0 0 1"><joint name="float" type="free"/>
    <inertial pos="0.1 0.2 0" mass="3" fullinertia="0.1 0.2 0.25 0.01 0 0"/>
    <body name="jaw"><joint name="hinge" type="hinge" axis="0 1 0" pos="0 0 0.2"/>
      <inertial pos="0 0 0.1" mass="0.5" diaginertia="0.01 0.01 0.01"/></body></body>
</worldbody></mujoco>"""

PUCK = b"""
<mujoco><option gravity="0 0 0"/><worldbody><body name="puck">
  <joint name="float" type="free" armature="1"/>
  <inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/></body></worldbody></mujoco>"""

METHODS = ("articulated", "1", "2", "3", "4")


@pytest.fixture(scope="module")
def robot() -> phistar.Robot:
    """A robot whose free joint and hinge have armature."""
    return phistar.load(MJCF)


@pytest.fixture(scope="module")
def state(robot: phistar.Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A configuration, velocities and accelerations or forces."""
    rng = np.random.default_rng(5)
    return robot.random_configuration(rng), *rng.normal(size=(2, robot.nv))


class Peer:
    """The same file in MuJoCo, in our coordinates."""

    def __init__(self, robot: phistar.Robot) -> None:
        self.model = mujoco.MjModel.from_xml_string(MJCF.decode())
        self.data = mujoco.MjData(self.model)
        self.convention = convention(robot, self.model)
        self.robot = robot

    def forward(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """MuJoCo's accelerations."""
        self.data.qpos = self.convention.q_to_peer(q)
        self.data.qvel = self.convention.v_to_peer(q, v)
        self.data.qfrc_applied = self.convention.tau_to_peer(q, tau)
        mujoco.mj_forward(self.model, self.data)
        return self.convention.vdot_from_peer(q, v, self.data.qacc)

    def inverse(self, q: np.ndarray, v: np.ndarray, vdot: np.ndarray) -> np.ndarray:
        """MuJoCo's forces."""
        self.data.qpos = self.convention.q_to_peer(q)
        self.data.qvel = self.convention.v_to_peer(q, v)
        self.data.qacc = self.convention.vdot_to_peer(q, v, vdot)
        mujoco.mj_inverse(self.model, self.data)
        return self.convention.tau_from_peer(q, self.data.qfrc_inverse)

    def change(self, function, q, v, x, dq, dv, dx, step=1e-5) -> np.ndarray:
        """How a result changes along a direction, by central differences of MuJoCo's."""
        ahead, behind = (
            function(self.robot.integrate(q, h * dq), v + h * dv, x + h * dx) for h in (step, -step)
        )
        return (ahead - behind) / (2 * step)


def _close(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-12) -> None:
    assert np.shape(a) == np.shape(b)
    assert np.abs(np.asarray(a) - b).max() <= tolerance * max(1.0, np.abs(b).max())


def test_forces_and_accelerations_are_those_of_mujoco(robot, state) -> None:
    """Inverse dynamics, bias, forward dynamics by all methods and hybrid dynamics."""
    q, v, x = state
    peer = Peer(robot)
    tau, vdot = peer.inverse(q, v, x), peer.forward(q, v, x)
    _close(robot.inverse_dynamics(q, v, x), tau)
    _close(robot.bias_force(q, v), peer.inverse(q, v, np.zeros(robot.nv)))
    for method in METHODS:
        _close(robot.forward_dynamics(q, v, x, method=method), vdot)
    free, forces = robot.hybrid_dynamics(q, v, tau, x, prescribed=["hinge"])
    _close(free, x)
    _close(forces, tau)


@pytest.mark.parametrize(
    ("backend", "shape"),
    [(name, "auto") for name in chosen_backends()] + [("llvm", "rolled")],
)
def test_every_backend_agrees(robot, state, backend: str, shape: str) -> None:
    """Interpreter, NumPy code and machine code of both shapes give MuJoCo's numbers."""
    q, v, x = state
    code = robot.compile("inverse_dynamics", backend=backend, shape=shape)
    _close(code(q, v=v, vdot=x), Peer(robot).inverse(q, v, x))


def test_a_free_body_flies_straight() -> None:
    """Without forces the origin of a body moves on a line, whatever its armature."""
    puck = phistar.load(PUCK)
    q, v = puck.neutral(), np.array([0.0, 0.0, 3.0, 2.0, 0.0, 0.0])
    vdot = puck.forward_dynamics(q, v, np.zeros(6))
    _close(vdot[3:] + np.cross(v[:3], v[3:]), np.zeros(3))
    path = puck.simulate(q, v, duration=1.0, dt=1e-3, passive=False)
    _close(path.q[-1, :3], np.array([2.0, 0.0, 0.0]), 1e-9)


def test_energy_is_kept(robot, state) -> None:
    """Turning rotors do no work; in every variable of integration."""
    q, v, _ = state
    start = robot.kinetic_energy(q, v) + robot.potential_energy(q)
    for variable in ("v", "zeta"):
        path = robot.simulate(q, v, steps=20, dt=1e-3, variables=variable, passive=False)
        end = robot.kinetic_energy(path.q[-1], path.v[-1]) + robot.potential_energy(path.q[-1])
        _close(end, start, 1e-9)


def test_the_coriolis_matrix_belongs_to_the_bias(robot, state) -> None:
    """C v is the bias without gravity, C + C* the rate of the mass matrix."""
    q, v, x = state
    C = robot.coriolis_matrix(q, v)
    _close(C @ v, robot.bias_force(q, v) - robot.gravity_force(q))
    _close(C + C.T, robot.mass_matrix_q(q) @ v)
    _close(coriolis_times(robot.model, q, v, x), C @ x)
    _close(coriolis_times(robot.model, q, v, x, adjoint=True), C.T @ x)


@pytest.mark.parametrize("method", ["auto", "product", "columns", "split"])
def test_linearizations_are_those_of_mujoco(robot, state, method: str) -> None:
    """Derivatives of accelerations against differences of MuJoCo's."""
    q, v, x = state
    peer, found = Peer(robot), robot.linearize(q, v, x, method=method)
    directions = np.random.default_rng(8).normal(size=(3, robot.nv))
    along = found.vdot_q @ directions[0] + found.vdot_v @ directions[1]
    along += found.vdot_tau @ directions[2]
    _close(along, peer.change(peer.forward, q, v, x, *directions), 1e-8)


def test_products_with_derivatives_belong_to_the_matrices(robot, state) -> None:
    """jvp by all methods, vjp and hvp against the linearizations, which MuJoCo confirms."""
    q, v, x = state
    dq, dv, dx, w = np.random.default_rng(9).normal(size=(4, robot.nv))
    inverse, forward = robot.linearize_inverse(q, v, x), robot.linearize(q, v, x)
    by = {
        "inverse_dynamics": (inverse.tau_q, inverse.tau_v, inverse.tau_vdot),
        "forward_dynamics": (forward.vdot_q, forward.vdot_v, forward.vdot_tau),
    }
    changed = inverse.tau_q @ dq + inverse.tau_v @ dv + inverse.tau_vdot @ dx
    peer = Peer(robot)
    _close(changed, peer.change(peer.inverse, q, v, x, dq, dv, dx), 1e-8)
    for function, matrices in by.items():
        last = "vdot" if function == "inverse_dynamics" else "tau"
        moves = {"dq": dq, "dv": dv, f"d{last}": dx}
        changed = sum(m @ d for m, d in zip(matrices, (dq, dv, dx), strict=True))
        for method in ("rigid", "articulated", "split"):
            _close(robot.jvp(function, q, v, x, method=method, **moves), changed)
        weights = robot.vjp(function, q, v, x, w)
        for name, matrix in zip(("q", "v", last), matrices, strict=True):
            _close(weights[name], matrix.T @ w)
        h = 1e-5
        second = robot.hvp(function, q, v, x, w, dv=dv)
        ahead, behind = (robot.vjp(function, q, v + s * dv, x, w) for s in (h, -h))
        for name, value in second.items():
            _close(value, (ahead[name] - behind[name]) / (2 * h), 1e-8)


def test_diagonal_rates_move_as_velocities_do(robot, state) -> None:
    """ζ̇ in (q, ζ) and one lagged step belong to the accelerations that MuJoCo gives."""
    q, v, x = state
    vdot = Peer(robot).forward(q, v, x)
    zeta = robot.diagonalize(q, v).zeta
    h = 1e-6
    ahead, behind = (
        robot.diagonalize(robot.integrate(q, s * v), v + s * vdot).zeta for s in (h, -h)
    )
    rate = (ahead - behind) / (2 * h)
    _close(robot.diagonal_forward_dynamics(q, zeta, x).zeta_dot, rate, 1e-7)
    after = lagged_step(robot, lagged_start(robot, q, v), x, h)
    _close((after.zeta - zeta) / h, rate, 1e-7)


def _carts() -> tuple[phistar.Robot, phistar.Robot]:
    """A cart on a moving base: on a planar joint, and on two slides and a hinge."""
    body = {"mass": 1.0, "com": (0.1, 0.2, 0.3), "inertia": (0.2, 0.3, 0.4)}
    robots = []
    for planar in (True, False):
        build = phistar.ModelBuilder("cart")
        for name in ("base", "lift", "cart"):
            build.link(name, **body)
        build.joint("arm", "revolute", "base", "lift", axis=(0, 1, 0), xyz=(0.1, 0, 0.3))
        place = {"xyz": (0.2, 0.1, 0.4), "rpy": (0.3, 0.2, 0.1)}
        if planar:
            build.joint("p", "planar", "lift", "cart", armature=(0.7, 0.7, 0.2), **place)
        else:
            for name in ("x_rail", "y_rail"):
                build.link(name)
            build.joint("x", "prismatic", "lift", "x_rail", axis=(1, 0, 0), armature=0.7, **place)
            build.joint("y", "prismatic", "x_rail", "y_rail", axis=(0, 1, 0), armature=0.7)
            build.joint("z", "revolute", "y_rail", "cart", axis=(0, 0, 1), armature=0.2)
        robots.append(phistar.Robot(build.build()))
    return robots[0], robots[1]


def test_a_planar_joint_is_two_slides_and_a_hinge() -> None:
    """Armature of a planar joint in the middle of a tree, against joints with one axis each."""
    planar, chain = _carts()
    q, v, tau = np.random.default_rng(3).normal(size=(3, 4))
    turn = np.eye(4)
    turn[1:3, 1:3] = [[np.cos(q[3]), -np.sin(q[3])], [np.sin(q[3]), np.cos(q[3])]]
    vdot = chain.forward_dynamics(q, turn @ v, turn @ tau)
    spin = v[3] * np.array([0.0, -v[2], v[1], 0.0])
    _close(planar.forward_dynamics(q, v, tau), turn.T @ vdot - spin)
    assert np.abs(planar.model.bodies[1].armature[0] * spin).max() > 0.1


def test_which_rotors_turn() -> None:
    """Armature alike about all axes of a ball joint, or of a single axis, asks for nothing."""
    assert not phistar.load("panda").model.turning_rotors
    assert phistar.load(PUCK).model.turning_rotors
    ball = PUCK.replace(b'"free"', b'"ball"')
    assert not phistar.load(ball).model.turning_rotors


def test_exported_programs_have_the_force_of_the_rotors(robot, state) -> None:
    """The scalar operations that become C code give MuJoCo's numbers."""
    q, v, x = state
    program = scalar_program(kernel("inverse_dynamics", robot.model), robot.model, "straight")
    (found,) = run(program, {"q": q[None], "v": v[None], "vdot": x[None]}).values()
    _close(found[0], Peer(robot).inverse(q, v, x))
