# SPDX-License-Identifier: BSD-3-Clause
"""Wrenches on frames in scalar programs: right in all link frames, by the cheaper way."""

import numpy as np
import pytest

import phistar
from phistar.compile import kernel
from phistar.model.numpy_kinematics import Reference, jacobian
from phistar.model.random import random_model
from phistar.model.wrenches import WrenchFrames, check_wrenches, link_forces
from phistar.scalar.interpret import run
from phistar.scalar.lower import LoweringOptions, link_number_choices, to_unrolled
from phistar.scalar.program import Unrolled, count_arithmetic
from phistar.scalar.trace.frame_wrenches import LinkWrenches, SeatedWrenches, link_wrenches
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.wrench_programs import link_force_program, stiffness_program
from phistar.scalar.verify import verify

REFERENCES: tuple[Reference, ...] = ("local", "world", "world_aligned")
GRAVITY = frozenset({"gravity"})


def _robot() -> phistar.Robot:
    rng = np.random.default_rng(8)
    return phistar.Robot(random_model(rng, 6, topology="tree", frames=3, fixed=0.2))


def _moving(robot: phistar.Robot) -> tuple[str, ...]:
    names = (name for name, frame in robot.model.frames.items() if frame.body >= 0)
    return tuple(sorted(names))[:5]


def _run(program: Unrolled, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    verify(program)
    return run(program, {name: x[None] for name, x in inputs.items()})


@pytest.mark.parametrize("frames", ["file", "square", "normal"])
@pytest.mark.parametrize("reference", REFERENCES)
def test_link_frames(reference: Reference, frames: str) -> None:
    """J* f whatever the link frames, with and without regrouped inertia; relative 1e-12."""
    robot, rng = _robot(), np.random.default_rng(9)
    at = WrenchFrames(_moving(robot), reference)
    q, given = robot.random_configuration(rng), rng.normal(size=(len(at.frames), 6))
    jacobians = [jacobian(robot.model, q, name, reference) for name in at.frames]
    expected = sum(J.T @ f for J, f in zip(jacobians, given, strict=True))
    for regroup in (False, True):
        options = LoweringOptions(frames=frames, regroup=regroup)
        schedule = kernel("generalised_force").schedule
        program = to_unrolled(schedule, robot.model, GRAVITY, options=options, wrenches=at)
        assert list(program.signature.inputs) == ["q", *at.inputs]
        found = _run(program, q=q, **dict(zip(at.inputs, given, strict=True)))["tau"][0]
        assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("reference", REFERENCES)
def test_small_programs(reference: Reference) -> None:
    """Forces on bodies are those of NumPy, and stiffness the change of J* f; 1e-12 and 1e-6."""
    robot, rng = _robot(), np.random.default_rng(10)
    model, names = robot.model, _moving(robot)
    at = WrenchFrames(names, reference)
    q, given = robot.random_configuration(rng), rng.normal(size=(len(names), 6))
    inputs = dict(zip(at.inputs, given, strict=True))
    forces = dict(zip(names, given, strict=True))
    wrenches = check_wrenches(model, q, forces, reference)
    assert wrenches is not None
    expected = link_forces(model, q, wrenches)[at.bodies(model)].ravel()
    found = _run(link_force_program(model, at), q=q, **inputs)["result"][0]
    assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()

    def held(step: np.ndarray) -> np.ndarray:
        """Joint forces of wrenches that are held, less those of wrenches that turn with links."""
        moved = robot.integrate(q, step)
        here = [jacobian(model, moved, name, reference).T @ forces[name] for name in names]
        local = [
            jacobian(model, moved, name, "local").T @ (_to_local(robot, q, name, reference) @ f)
            for name, f in forces.items()
        ]
        return np.sum(here, axis=0) - np.sum(local, axis=0)

    h = 1e-6
    units = h * np.eye(robot.nv)
    slopes = np.stack([(held(e) - held(-e)) / (2 * h) for e in units], axis=-1)
    stiffness = _run(stiffness_program(model, at), q=q, **inputs)["result"].reshape(slopes.shape)
    assert np.abs(stiffness - slopes).max() <= 1e-6 * max(np.abs(expected).max(), 1.0)


def _to_local(robot: phistar.Robot, q: np.ndarray, name: str, reference: str) -> np.ndarray:
    """The matrix that takes a wrench to the frame's own axes."""
    local = jacobian(robot.model, q, name, "local")
    pose = robot.frame_pose(q, name)
    R, p = pose[:3, :3], pose[:3, 3]
    if reference == "local":
        return np.eye(6)
    result = np.kron(np.eye(2), R.T)
    if reference == "world":
        x, y, z = p
        skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        result[:3, 3:] = -R.T @ skew
    there = jacobian(robot.model, q, name, reference)
    assert np.allclose(result.T @ local, there)
    return result


@pytest.mark.parametrize("reference", ["world", "world_aligned"])
def test_the_cheaper_way(reference: Reference) -> None:
    """Few wrenches are taken along their paths; orientations are composed for many.

    They are for one, too, where all axes are parallel: most of their entries are zero.
    """
    arm, chain = phistar.load("panda"), phistar.robots.chain(8)
    cases = (
        (arm, arm.link_names[-1:], False),
        (arm, arm.link_names[1:], True),
        (chain, chain.link_names[-1:], True),
    )
    for robot, names, composed in cases:
        at = WrenchFrames(tuple(sorted(names)), reference)
        seated = SeatedWrenches(robot.model, at)
        links = link_number_choices(robot.model, frozenset(), LoweringOptions(frames="square"))[0]
        costs = {way: _cost(LinkWrenches(TracedLinks(links), seated, way)) for way in (0, 1)}
        assert (costs[1] < costs[0]) == composed
        assert _cost(link_wrenches(TracedLinks(links), seated)) == min(costs.values())


def _cost(wrenches: LinkWrenches) -> int:
    numbers = [x for k in wrenches.on_link for x in wrenches.force(k)]
    values = [x for x in numbers if not isinstance(x, float)]
    return count_arithmetic(wrenches.robot.graph.count(values))
