# SPDX-License-Identifier: BSD-3-Clause
"""Straight lines of kinematics, run by the interpreter, against ``model.kinematics``."""

import numpy as np
import pytest

import phistar
from phistar.compile import joint_map, kernel
from phistar.compile.traced import trace_quantity
from phistar.model import Model, ModelBuilder
from phistar.model import numpy_kinematics as witness
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.scalar.interpret import run
from phistar.scalar.lower_frames import frame_jacobian, frame_velocity
from phistar.scalar.program import Unrolled, count_arithmetic
from phistar.scalar.trace.kinematics_programs import jacobian, velocity
from phistar.scalar.verify import verify
from phistar.sweeps.interpret import run as sweep

REFERENCES = ("local", "world", "world_aligned")
CASES = [
    *("revolute", "prismatic", "helical", "cylindrical", "planar", "spherical", "translation"),
    *("free", "universal", "mixed tree", "forest", "free base", "arms", "panda_hand"),
    *("mimics", "anchored"),
]

each_case = pytest.mark.parametrize("case", CASES)


@pytest.fixture(scope="module")
def robots(models: dict[str, Model]) -> dict[str, Model]:
    """Those of all scalar tests, and some with more mimic joints, fixed joints and frames."""
    rich = {"fixed": 0.3, "mimic": 0.4, "anchors": 0.4, "frames": 4}
    mimics = random_model(np.random.default_rng(30), 12, **rich)  # type: ignore[arg-type]
    anchored = random_model(np.random.default_rng(31), 9, topology="forest", **rich)  # type: ignore[arg-type]
    return {**models, "mimics": mimics, "anchored": anchored}


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
    scale = max(np.abs(expected).max(initial=0.0), 1e-3)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * scale)


@each_case
def test_poses(robots: dict[str, Model], case: str) -> None:
    """Each frame alone, those at rest included, and all links at once."""
    model = robots[case]
    inputs = given(model)
    for frame in model.frame_names:
        expected = witness.frame_pose(model, inputs["q"], frame)
        close(trace_quantity(model, "frame_pose", frame), expected, inputs)
    every = np.stack(list(witness.link_poses(model, inputs["q"]).values()), axis=-3)
    close(trace_quantity(model, "link_poses"), every, inputs)


@each_case
@pytest.mark.parametrize("reference", REFERENCES)
def test_jacobians_and_velocities(robots: dict[str, Model], case: str, reference: str) -> None:
    """For each reference, columns in the robot's order, mimic joints summed into their leaders."""
    model = robots[case]
    inputs = given(model)
    for frame in model.frame_names:
        jacobian = witness.jacobian(model, inputs["q"], frame, reference)
        close(trace_quantity(model, "jacobian", frame, reference), jacobian, inputs)
        velocity = witness.frame_velocity(model, inputs["q"], inputs["v"], frame, reference)
        close(trace_quantity(model, "frame_velocity", frame, reference), velocity, inputs)


@each_case
def test_derived_programs_agree_with_walks(robots: dict[str, Model], case: str) -> None:
    """Where a walk along the path takes fewer operations, streams are its witness: 1e-12."""
    model = robots[case]
    inputs = given(model)
    q, v = inputs["q"], joint_map(model).spread(inputs["v"])
    world = sweep(kernel("world_velocities").schedule, model, q, {"v": v})["V0"]
    for frame in model.frame_names:
        body = model.frame(frame).body
        known = {"world": world[:, body] if body >= 0 else np.zeros((2, 6))}
        aligned = frame_velocity(model, frame, "world_aligned")
        (known["world_aligned"],) = run(aligned, inputs).values()
        for reference, expected in known.items():
            (found,) = run(velocity(model, frame, reference), inputs).values()
            scale = max(np.abs(expected).max(), 1e-2)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * scale)
        derived = frame_jacobian(model, frame)
        assert (derived is None) is not joint_map(model).is_identity
        if derived is not None:
            (expected,) = run(derived, {"q": q}).values()
            (found,) = run(jacobian(model, frame, "local"), {"q": q}).values()
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(found).max())


@each_case
@pytest.mark.parametrize("fixed", [True, False])
def test_center_of_mass(robots: dict[str, Model], case: str, fixed: bool) -> None:
    """With and without the links that are welded to the ground."""
    model = robots[case]
    inputs = given(model)
    expected = witness.center_of_mass(model, inputs["q"], fixed=fixed)
    close(trace_quantity(model, "center_of_mass", fixed), expected, inputs)


def test_derivatives() -> None:
    """The Jacobian's program is the derivative of the pose's, by a complex step, to 1e-13."""
    model = phistar.load("ur5").model
    q, frame = given(model)["q"], model.frame_names[-1]
    (rows,) = run(trace_quantity(model, "jacobian", frame, "world_aligned"), {"q": q}).values()
    rows = rows.reshape(2, 6, model.nv)
    pose = trace_quantity(model, "frame_pose", frame)
    for k in range(model.nv):
        moved = q + 1e-30j * np.eye(model.nq)[k]
        (found,) = run(pose, {"q": moved}).values()
        rate = found.imag.reshape(2, 4, 4) / 1e-30
        np.testing.assert_allclose(rows[:, 3:, k], rate[:, :3, 3], atol=1e-13)


def test_only_the_path_is_walked() -> None:
    """A foot reads the coordinates of the base and of its own leg, not of the other legs."""
    model = phistar.load("quadruped").model
    frame = max(model.frame_names, key=lambda name: len(model.ancestors(model.frame(name).body)))
    path = [model.bodies[k] for k in model.ancestors(model.frame(frame).body)]
    mine = {i for body in path for i in range(model.nq)[body.q_slice]}
    program = trace_quantity(model, "frame_pose", frame)
    graph = program.block.graph
    read = {graph.nodes[n][1][1] for n in program.block.live_nodes if graph.nodes[n][0] == "load"}
    assert read == mine
    assert len(read) < model.nq


@pytest.mark.parametrize(
    ("name", "most"), [("panda", (118, 122, 110, 60)), ("ur5", (97, 88, 79, 29))]
)
def test_operation_counts(name: str, most: tuple[int, ...]) -> None:
    """Additions and multiplications of pose, Jacobian, velocity and centre of mass do not grow."""
    model = phistar.load(name).model
    frame = max(model.frame_names, key=lambda name: len(model.ancestors(model.frame(name).body)))
    made = (
        trace_quantity(model, "frame_pose", frame),
        trace_quantity(model, "jacobian", frame, "world_aligned"),
        trace_quantity(model, "frame_velocity", frame, "world_aligned"),
        trace_quantity(model, "center_of_mass", False),
    )
    counts = tuple(count_arithmetic(program.count()) for program in made)
    assert all(count <= limit for count, limit in zip(counts, most, strict=True)), counts


@pytest.mark.parametrize("axis", range(3))
def test_small_angles_are_kept(axis: int) -> None:
    """A placement turned by 1e-9 rad, whose cosine is 1 to rounding, stays turned, to 1e-16."""
    rpy = np.zeros(3)
    rpy[axis] = 1e-9
    builder = ModelBuilder("askew")
    builder.link("base")
    builder.link("a", 1.0, inertia=(1, 1, 1))
    builder.joint("slide", "prismatic", "base", "a", axis=(0, 0, 1), rpy=rpy)
    builder.frame("tip", "a", xyz=(1, 1, 1), rpy=rpy)
    model = builder.build()
    (found,) = run(trace_quantity(model, "frame_pose", "tip"), {"q": np.zeros((1, 1))}).values()
    expected = witness.frame_pose(model, [0.0], "tip").ravel()
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=3e-16)
    assert np.abs(expected - np.round(expected)).max() > 1e-9
