# SPDX-License-Identifier: BSD-3-Clause
"""Every program three ways: dense operators, the sweep interpreter, and what a user calls.

The witnesses share no code above the joint transforms: ``algebra.dense`` builds matrices from the
definitions, the sweeps walk the links, ``Robot`` runs whatever backend is the default.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.ir import Expr
from phistar.algebra.random_examples import vector_names
from phistar.algebra.spaces import JOINT
from phistar.algebra.symbols import SYMBOLS, D, H, mass_matrix, phi
from phistar.algorithms.programs import PROGRAMS
from phistar.backends import base
from phistar.compile import kernel
from phistar.derivatives.first import FUNCTIONS
from phistar.model.components import Body
from phistar.model.numpy_kinematics import body_poses, body_velocities
from phistar.model.random import random_model
from phistar.spatial import crf, force_transform, inertia_matrix, motion_transform, pose_inverse
from phistar.sweeps.interpret import run

MODELS: dict[str, dict[str, Any]] = {
    "serial": {"topology": "serial", "armature": 0.5},
    "tree": {"topology": "tree", "armature": 0.5, "fixed": 0.3, "massless": 0.2},
    "forest": {"topology": "forest", "armature": 0.5, "anchors": 0.5},
    "free base": {"topology": "binary", "floating_base": True, "frames": 2},
}
"""Every one of them has every joint kind."""


@dataclass(frozen=True, eq=False)
class Case:
    """A robot in a state, with external forces: once for the user's methods, once densely."""

    robot: phistar.Robot
    q: np.ndarray
    values: dict[str, np.ndarray]
    forces: dict[str, np.ndarray]

    def dense(self, expr: Expr) -> np.ndarray:
        """An expression by plain matrices; programs share most of theirs."""
        return self._dense(expr)

    @cached_property
    def _dense(self) -> Dense:
        return Dense(self.robot.model, self.q, vectors=self.values)

    def program(self, name: str) -> np.ndarray:
        """The first output of a program, densely."""
        return self.dense(next(iter(self.outputs(name).values())))

    def whole_bodies(self) -> list[Body]:
        """Bodies that carry the link that they are called after; those inside a joint do not."""
        model = self.robot.model
        return [body for body in model.bodies if model.frames[body.link].body == body.index]

    def outputs(self, name: str) -> dict[str, Expr]:
        """The expressions of a program on this robot, whose rotors may turn."""
        return dict(kernel(name, self.robot.model).outputs)


def _case(options: dict[str, Any], seed: int, imaginary: float = 0.0) -> Case:
    rng = np.random.default_rng(seed)
    robot = phistar.Robot(random_model(rng, 11, **options))
    model, count = robot.model, len(robot.model.bodies)
    q = robot.random_configuration(rng)
    if imaginary:
        q = robot.integrate(q, imaginary * 1j * rng.normal(size=robot.nv))
    v, vdot, tau = rng.normal(size=(3, robot.nv))
    forces = {name: rng.normal(size=6) for name in robot.link_names[2::3]}
    f_ext = np.zeros((count, 6))
    for name, wrench in forces.items():
        frame = model.frame(name)
        if frame.body >= 0:
            f_ext[frame.body] += force_transform(frame.body_pose) @ wrench
    a, b = rng.normal(size=(2, count * 6))
    values = {"v": v, "vdot": vdot, "tau": tau, "f_ext": f_ext.reshape(-1), "a": a, "b": b}
    values |= {n: rng.normal(size=robot.nv) for n in ("dq", "dv", "dvdot", "dtau", "w")}
    values |= {n: rng.normal(size=robot.nv) for n in ("zeta", "kappa")}
    return Case(robot, q, values, forces)


@cache
def _complex_case(model: str) -> Case:
    """A robot away from the real axis."""
    return _case(MODELS[model], seed=5, imaginary=0.1)


@pytest.fixture(scope="module", params=MODELS)
def case(request: pytest.FixtureRequest) -> Case:
    """A random robot."""
    return _case(MODELS[request.param], seed=3)


@pytest.fixture(autouse=True)
def _in_numpy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the robots are not compiled: each kind of joint is in the others, too."""
    case = getattr(request.node, "callspec", None)
    if case is not None and case.params.get("case") in ("serial", "forest"):
        monkeypatch.setattr(base, "_default_name", "numpy")


def _close(ours: Any, theirs: Any, tolerance: float) -> None:
    assert np.shape(ours) == np.shape(theirs)
    assert np.abs(ours - theirs).max() <= tolerance * np.abs(theirs).max()


# -- what a user calls, beside the dense value of the program


def _inverse(c: Case) -> tuple[Any, Any]:
    x = c.values
    ours = c.robot.inverse_dynamics(c.q, x["v"], x["vdot"], forces=c.forces, reference="local")
    return ours, c.program("inverse_dynamics")


def _bias(c: Case) -> tuple[Any, Any]:
    still = Case(c.robot, c.q, {**c.values, "f_ext": 0 * c.values["f_ext"]}, {})
    return c.robot.bias_force(c.q, c.values["v"]), still.program("bias_force")


def _gravity(c: Case) -> tuple[Any, Any]:
    still = Case(c.robot, c.q, {"f_ext": 0 * c.values["f_ext"]}, {})
    return c.robot.gravity_force(c.q), still.program("gravity_force")


def _forward(name: str, method: str) -> Callable[[Case], tuple[Any, Any]]:
    def pair(c: Case) -> tuple[Any, Any]:
        x = c.values
        ours = c.robot.forward_dynamics(
            c.q, x["v"], x["tau"], forces=c.forces, reference="local", method=method
        )
        return ours, c.program(name)

    return pair


def _hybrid(c: Case) -> tuple[Any, Any]:
    """Every second joint prescribed, against the partitioned equations of motion."""
    robot, x = c.robot, c.values
    prescribed = robot.joint_names[::2]
    held = np.zeros(robot.nv, dtype=bool)
    for name in prescribed:
        held[robot.joints[name].v_slice] = True
    matrix, free = c.dense(mass_matrix), ~held
    rest = x["tau"] - c.program("bias_force") - matrix @ np.where(held, x["vdot"], 0.0)
    vdot = x["vdot"].copy()
    vdot[free] = np.linalg.solve(matrix[np.ix_(free, free)], rest[free])
    tau = matrix @ vdot + c.program("bias_force")
    ours = robot.hybrid_dynamics(
        c.q, x["v"], x["tau"], x["vdot"], prescribed, forces=c.forces, reference="local"
    )
    return np.stack(ours), np.stack([vdot, np.where(free, x["tau"], tau)])


def _momentum(c: Case) -> tuple[Any, Any]:
    """The momenta of all links, moved to the world's origin."""
    momenta = c.program("momenta").reshape(-1, 6)
    poses = body_poses(c.robot.model, c.q)
    total = (force_transform(poses) @ momenta[..., None])[..., 0].sum(axis=0)
    return c.robot.momentum(c.q, c.values["v"]), total


def _energy(c: Case) -> tuple[Any, Any]:
    v = c.values["v"]
    return c.robot.kinetic_energy(c.q, v), v @ c.dense(mass_matrix) @ v / 2


def _poses(c: Case) -> tuple[Any, Any]:
    """Rows of the poses of all links that move: those of their bodies, and what is rigid."""
    rows = [c.dense(expr).reshape(-1, 4) for expr in c.outputs("link_poses").values()]
    bodies, frames = np.stack(rows, axis=1), c.robot.model.frames
    ours = {n: x for n, x in c.robot.link_poses(c.q).items() if frames[n].body >= 0}
    theirs = [bodies[frames[name].body] @ frames[name].body_pose for name in ours]
    return np.array(list(ours.values()))[:, :3], np.array(theirs)


def _log_determinant(c: Case) -> tuple[Any, Any]:
    """D is block diagonal: its determinant is that of the mass matrix."""
    dense = np.linalg.slogdet(c.dense(D))[1]
    assert dense == pytest.approx(np.linalg.slogdet(c.dense(mass_matrix))[1], rel=1e-9)
    return c.robot.log_determinant(c.q), dense


def _push(c: Case) -> tuple[Any, Any]:
    jacobian = c.robot.operators(c.q).J(list(c.forces), "local")
    return jacobian.T @ np.concatenate(list(c.forces.values())), c.program("generalised_force")


def _change(name: str, function: str, **options: str) -> Callable[[Case], tuple[Any, Any]]:
    def pair(c: Case) -> tuple[Any, Any]:
        x, third = c.values, FUNCTIONS[function][2]
        moves = {n: x[n] for n in ("dq", "dv", f"d{third}")}
        pushed: dict[str, Any] = {"forces": c.forces, "reference": "local"}
        ours = c.robot.jvp(function, c.q, x["v"], x[third], **pushed, **options, **moves)
        return ours, c.program(name)

    return pair


def _gradient(name: str, function: str) -> Callable[[Case], tuple[Any, Any]]:
    def pair(c: Case) -> tuple[Any, Any]:
        x, third = c.values, FUNCTIONS[function][2]
        ours = c.robot.vjp(
            function, c.q, x["v"], x[third], x["w"], forces=c.forces, reference="local"
        )
        dense = [c.dense(expr) for expr in c.outputs(name).values()]
        return np.stack(list(ours.values())), np.stack(dense)

    return pair


def _second(c: Case) -> tuple[Any, Any]:
    """Without forces on frames: those are held in the world, and have no second derivative yet."""
    still = Case(c.robot, c.q, {**c.values, "f_ext": 0 * c.values["f_ext"]}, {})
    x = c.values
    moves = {n: x[n] for n in ("dq", "dv", "dvdot")}
    ours = c.robot.hvp("inverse_dynamics", c.q, x["v"], x["vdot"], x["w"], **moves)
    dense = [still.dense(expr) for expr in c.outputs("inverse_dynamics_hvp").values()]
    return np.stack(list(ours.values())), np.stack(dense)


def _acceleration(c: Case) -> tuple[Any, Any]:
    """The last body's, in its own axes."""
    body = c.robot.model.bodies[-1]
    x = c.values
    ours = c.robot.frame_acceleration(c.q, x["v"], x["vdot"], body.link, "local")
    moved = motion_transform(pose_inverse(c.robot.model.frame(body.link).body_pose))
    return ours, moved @ c.program("link_accelerations").reshape(-1, 6)[-1]


def _reactions(c: Case) -> tuple[Any, Any]:
    """Of bodies that are whole links, in their axes."""
    x = c.values
    ours = c.robot.reaction_forces(c.q, x["v"], x["vdot"], forces=c.forces, reference="local")
    dense = c.program("link_forces").reshape(-1, 6)
    last = {body.joint: dense[body.index] for body in c.robot.model.bodies}
    return np.stack([ours[joint] for joint in last]), np.stack(list(last.values()))


def _regressor(c: Case) -> tuple[Any, Any]:
    """The force Mα + V ×* MV of each body's parameters, collected: Yπ."""
    x, robot = c.values, c.robot
    outputs = c.outputs("falling_accelerations")
    velocity, falling = (c.dense(outputs[n]).reshape(-1, 6, 1) for n in ("V", "alpha"))
    inertias = inertia_matrix(robot.model.inertias)
    forces = inertias @ falling + crf(velocity[..., 0]) @ inertias @ velocity
    ours = robot.regressor(c.q, x["v"], x["vdot"]) @ robot.parameters
    return ours, c.dense(H @ phi) @ forces.reshape(-1)


def _total_rates(c: Case) -> tuple[Any, Any]:
    """ζ̇ and v together."""
    x = c.values
    ours = c.robot.diagonal_forward_dynamics(
        c.q, x["zeta"], x["tau"], forces=c.forces, reference="local"
    )
    return np.stack(ours), np.stack([c.dense(e) for e in c.outputs("diagonal_dynamics").values()])


def _diagonal_bias(c: Case) -> tuple[Any, Any]:
    """ζ and C_ζ."""
    d = c.robot.diagonalize(c.q, c.values["v"])
    dense = [c.dense(e) for e in c.outputs("diagonal_bias").values()]
    return np.stack([d.zeta, d.coriolis_zeta]), np.stack(dense)


METHODS: dict[str, Callable[[Case], tuple[Any, Any]]] = {
    "link_velocities": lambda c: (
        body_velocities(c.robot.model, c.q, c.values["v"]).reshape(-1),
        c.program("link_velocities"),
    ),
    "inverse_dynamics": _inverse,
    "bias_force": _bias,
    "gravity_force": _gravity,
    "mass_matrix_times": lambda c: (
        c.robot.mass_matrix(c.q) @ c.values["vdot"],
        c.program("mass_matrix_times"),
    ),
    "mass_matrix_solve": lambda c: (
        c.robot.mass_matrix_inverse(c.q) @ c.values["tau"],
        c.program("mass_matrix_solve"),
    ),
    "forward_dynamics": _forward("forward_dynamics", "4"),
    "forward_dynamics_1": _forward("forward_dynamics_1", "1"),
    "forward_dynamics_2": _forward("forward_dynamics_2", "2"),
    "forward_dynamics_3": _forward("forward_dynamics_3", "3"),
    "hybrid_bias": _hybrid,
    "hybrid_dynamics": _hybrid,
    "coriolis_times": lambda c: (
        c.robot.coriolis_matrix(c.q, c.values["v"]) @ c.values["vdot"],
        c.program("coriolis_times"),
    ),
    "coriolis_adjoint_times": lambda c: (
        c.robot.coriolis_matrix(c.q, c.values["v"]).T @ c.values["vdot"],
        c.program("coriolis_adjoint_times"),
    ),
    "momenta": _energy,
    "total_momentum": _momentum,
    "link_poses": _poses,
    "world_velocities": lambda c: (
        np.concatenate(
            [c.robot.frame_velocity(c.q, c.values["v"], b.link, "world") for b in c.whole_bodies()]
        ),
        c.program("world_velocities").reshape(-1, 6)[[b.index for b in c.whole_bodies()]].ravel(),
    ),
    "momentum": lambda c: (c.robot.momentum(c.q, c.values["v"]), c.program("momentum")),
    "potential_energy": lambda c: (
        np.array([c.robot.potential_energy(c.q)]),
        c.program("potential_energy"),
    ),
    "center_of_mass": lambda c: (c.robot.center_of_mass(c.q), c.program("center_of_mass")),
    "moving_center_of_mass": lambda c: (
        c.robot.center_of_mass(c.q, fixed=False),
        c.program("moving_center_of_mass"),
    ),
    "kinetic_energy": lambda c: (
        np.array([c.robot.kinetic_energy(c.q, c.values["v"])]),
        c.program("kinetic_energy"),
    ),
    "hinge_inertias": _log_determinant,
    "generalised_force": _push,
    "link_accelerations": _acceleration,
    "link_forces": _reactions,
    "falling_accelerations": _regressor,
    "new_rates": lambda c: (
        c.robot.diagonalize(c.q).to_zeta(c.values["v"]),
        c.program("new_rates"),
    ),
    "old_rates": lambda c: (
        c.robot.diagonalize(c.q).from_zeta(c.values["zeta"]),
        c.program("old_rates"),
    ),
    "new_forces": lambda c: (
        c.robot.diagonalize(c.q).to_kappa(c.values["tau"]),
        c.program("new_forces"),
    ),
    "old_forces": lambda c: (
        c.robot.diagonalize(c.q).from_kappa(c.values["kappa"]),
        c.program("old_forces"),
    ),
    "diagonal_bias": _diagonal_bias,
    "diagonal_dynamics": _total_rates,
    "inverse_dynamics_jvp": _change("inverse_dynamics_jvp", "inverse_dynamics"),
    "inverse_dynamics_vjp": _gradient("inverse_dynamics_vjp", "inverse_dynamics"),
    "inverse_dynamics_hvp": _second,
    "mass_matrix_change": lambda c: (
        c.robot.mass_matrix_q(c.q) @ c.values["dq"] @ c.values["w"],
        c.program("mass_matrix_change"),
    ),
    "forward_dynamics_jvp": _change("forward_dynamics_jvp", "forward_dynamics"),
    "forward_dynamics_jvp_articulated": _change(
        "forward_dynamics_jvp_articulated", "forward_dynamics", method="articulated"
    ),
    "forward_dynamics_jvp_split": _change(
        "forward_dynamics_jvp_split", "forward_dynamics", method="split"
    ),
    "forward_dynamics_vjp": _gradient("forward_dynamics_vjp", "forward_dynamics"),
}
"""For each program: what a user calls that runs it, and the dense value."""


def test_every_program_is_here() -> None:
    """A new program needs a row: what a user calls, and its dense value."""
    assert set(METHODS) == set(PROGRAMS)


@pytest.mark.parametrize("name", METHODS)
def test_methods_agree_with_dense_operators(name: str, case: Case) -> None:
    """What a user calls is the operator expression, external forces included.

    Relative 1e-11 without, 1e-9 with an inverse: the mass matrices here have condition numbers of
    up to some 1e3, and both ways lose as many digits.
    """
    inverts = name.startswith(("forward", "hybrid", "mass_matrix_solve", "diagonal"))
    _close(*METHODS[name](case), 1e-9 if inverts else 1e-11)


# -- the interpreter and the default backend, complex


def _inputs(case: Case, name: str) -> dict[str, np.ndarray]:
    """The vectors that a program reads, shaped for kernels."""
    read = vector_names(case.outputs(name).values()) - {"gravity"}
    joint = {n for n in read if SYMBOLS[n].symbol.codomain is JOINT}
    return {n: case.values[n] if n in joint else case.values[n].reshape(-1, 6) for n in read}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("model", MODELS)
def test_complex_sweeps_agree_with_dense_operators(name: str, model: str) -> None:
    """Away from the real axis, too: every formula is analytic, nothing is conjugated; 1e-9."""
    case = _complex_case(model)
    program, inputs = kernel(name, case.robot.model), _inputs(case, name)
    for outputs in (
        run(program.schedule, case.robot.model, case.q, inputs),
        program(case.robot.model, case.q, inputs),
    ):
        for output, expr in case.outputs(name).items():
            # What rotors ask for depends on the velocities alone, which are real here.
            real = (name, output) == ("hybrid_bias", "tau")
            assert outputs[output].dtype == (np.float64 if real else np.complex128)
            _close(outputs[output].reshape(-1), case.dense(expr), 1e-9)


@pytest.mark.parametrize("name", PROGRAMS)
def test_complex_steps_are_derivatives(name: str, case: Case) -> None:
    """Im f(q + ih) / h is the derivative that central differences approach; 1e-6."""
    robot, inputs = case.robot, _inputs(case, name)
    program = kernel(name, robot.model)
    direction = np.random.default_rng(7).normal(size=robot.nv)

    def value(step: complex) -> np.ndarray:
        outputs = program(robot.model, robot.integrate(case.q, step * direction), inputs)
        return np.concatenate([x.reshape(-1) for x in outputs.values()])

    exact = value(1e-30j).imag / 1e-30
    ahead, behind = value(1e-6), value(-1e-6)
    _close((ahead - behind) / 2e-6, exact, 1e-6)
