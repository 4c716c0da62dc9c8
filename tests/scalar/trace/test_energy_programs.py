# SPDX-License-Identifier: BSD-3-Clause
"""Straight lines of momentum and energies, run by the interpreter, against sums over the bodies."""

import numpy as np
import pytest

import phistar
from phistar.compile.traced import trace_quantity
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.model.numpy_kinematics import body_poses, body_velocities
from phistar.model.random import random_model
from phistar.scalar.interpret import run
from phistar.scalar.program import Unrolled, count_arithmetic
from phistar.scalar.verify import verify
from phistar.spatial import force_transform, inertia_apply

CASES = [
    *("revolute", "prismatic", "helical", "cylindrical", "planar", "spherical", "translation"),
    *("free", "universal", "mixed tree", "forest", "free base", "arms", "panda_hand", "mimics"),
]

each_case = pytest.mark.parametrize("case", CASES)


@pytest.fixture(scope="module")
def robots(models: dict[str, Model]) -> dict[str, Model]:
    """Those of all scalar tests, and one with mimic joints and rotors; gravity is oblique."""
    rng = np.random.default_rng(30)
    mimics = random_model(rng, 12, topology="forest", fixed=0.3, mimic=0.6, armature=1.0)
    assert any(body.scale != 1.0 and any(body.armature) for body in mimics.bodies)
    every = {**models, "mimics": mimics}
    return {name: model.with_gravity((1.0, -2.0, -9.0)) for name, model in every.items()}


def given(model: Model) -> dict[str, np.ndarray]:
    """Two random states."""
    rng = np.random.default_rng(5)
    return {"q": random_configuration(model, rng, (2,)), "v": rng.normal(size=(2, model.nv))}


def close(program: Unrolled, expected: np.ndarray, inputs: dict[str, np.ndarray]) -> None:
    """Well formed, and equal to 1e-13 of the largest number."""
    verify(program)
    read = {name: inputs[name] for name in program.signature.inputs}
    (found,) = run(program, read).values()
    found = found.reshape(expected.shape)
    scale = np.abs(expected).max()
    assert scale > 1e-2
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * scale)


@each_case
def test_momentum(robots: dict[str, Model], case: str) -> None:
    """The sum of the bodies' momenta, each moved to the world's origin."""
    model = robots[case]
    inputs = given(model)
    momenta = inertia_apply(model.inertias, body_velocities(model, inputs["q"], inputs["v"]))
    moved = force_transform(body_poses(model, inputs["q"])) @ momenta[..., None]
    close(trace_quantity(model, "momentum"), moved.sum(axis=-3)[..., 0], inputs)


@each_case
def test_kinetic_energy(robots: dict[str, Model], case: str) -> None:
    """That of the bodies, and of a rotor for each joint rate; a follower's rate is its leader's."""
    model = robots[case]
    inputs = given(model)
    velocity = body_velocities(model, inputs["q"], inputs["v"])
    twice = (velocity * inertia_apply(model.inertias, velocity)).sum(axis=(-2, -1))
    for body in model.bodies:
        rate = body.scale * inputs["v"][:, body.v_slice]
        twice = twice + (rate**2) @ np.array(body.armature)
    close(trace_quantity(model, "kinetic_energy"), twice / 2, inputs)


@each_case
def test_potential_energy(robots: dict[str, Model], case: str) -> None:
    """Minus gravity times the first moments of the bodies in the world."""
    model = robots[case]
    inputs = given(model)
    poses, mass = body_poses(model, inputs["q"]), model.inertias[:, 0, None]
    turned = (poses[..., :3, :3] @ model.inertias[:, 1:4, None])[..., 0]
    moments = (mass * poses[..., :3, 3] + turned).sum(axis=-2)
    close(trace_quantity(model, "potential_energy"), -moments @ model.gravity, inputs)


def test_derivatives() -> None:
    """dV/dq is the gravity force and dT/dv is 𝓜v, by a complex step, to 1e-12 of the largest."""
    robot = phistar.load("panda")
    model, inputs = robot.model, given(robot.model)
    q, v = inputs["q"][0], inputs["v"][0]
    steps, still = 1e-30j * np.eye(model.nv), np.zeros((model.nv, 1))
    (height,) = run(trace_quantity(model, "potential_energy"), {"q": q + steps}).values()
    known = robot.gravity_force(q)
    scale = 1e-12 * np.abs(known).max()
    np.testing.assert_allclose(height[:, 0].imag / 1e-30, known, rtol=0, atol=scale)
    moving = {"q": q + still, "v": v + steps}
    (energy,) = run(trace_quantity(model, "kinetic_energy"), moving).values()
    known = robot.mass_matrix(q) @ v
    scale = 1e-12 * np.abs(known).max()
    np.testing.assert_allclose(energy[:, 0].imag / 1e-30, known, rtol=0, atol=scale)


@pytest.mark.parametrize(("name", "most"), [("panda", (366, 190, 44)), ("ur5", (159, 88, 17))])
def test_operation_counts(name: str, most: tuple[int, ...]) -> None:
    """Additions and multiplications of momentum, kinetic and potential energy do not grow."""
    model = phistar.load(name).model
    made = (
        trace_quantity(model, "momentum"),
        trace_quantity(model, "kinetic_energy"),
        trace_quantity(model, "potential_energy"),
    )
    counts = tuple(count_arithmetic(program.count()) for program in made)
    assert all(count <= limit for count, limit in zip(counts, most, strict=True)), counts
