# SPDX-License-Identifier: BSD-3-Clause
"""Singular hinges: found where D = 0, and nowhere else."""

import numpy as np
import pytest

from phistar import Robot
from phistar.model import Mimic, Model, ModelBuilder
from phistar.model.random import random_model
from phistar.model.singular import singular_hinges, singular_problems
from tools.golden import dense_mass_matrix


def _arm(tip: dict[str, object], kind: str = "revolute", **joint: object) -> Model:
    builder = ModelBuilder("arm")
    builder.link("base")
    builder.link("upper", 1.0, (0, 0, 0.5), (0.1, 0.1, 0.01))
    builder.link("tip", **tip)
    builder.joint("shoulder", "revolute", "base", "upper", axis=(0, 1, 0))
    builder.joint("wrist", kind, "upper", "tip", xyz=(0, 0, 1), **joint)
    return builder.build()


def test_massless_leaf_is_named() -> None:
    """A leaf without mass: joint, link, direction and cure are said."""
    (hinge,) = singular_hinges(_arm({}, axis=(0, 1, 0)))
    assert (hinge.joint, hinge.link) == ("wrist", "tip")
    assert np.allclose(np.abs(hinge.direction), [0, 1, 0, 0, 0, 0])
    text = str(hinge)
    for word in ("wrist", "tip", "rotation about", "armature", "weld"):
        assert word in text
    assert singular_problems(_arm({}))[0].severity == "warning"


def test_point_mass_on_the_axis() -> None:
    """A point mass on a revolute axis does not resist; beside the axis it does."""
    point = {"mass": 1.0, "inertia": (0, 0, 0)}
    assert singular_hinges(_arm({**point, "com": (0, 0, 0.3)}, axis=(0, 0, 1)))
    assert not singular_hinges(_arm({**point, "com": (0.1, 0, 0.3)}, axis=(0, 0, 1)))


def test_armature_and_mass_are_cures() -> None:
    """Armature on the joint or a small mass on the link cures it."""
    assert not singular_hinges(_arm({}, armature=1e-4))
    assert not singular_hinges(_arm({"mass": 1e-4, "inertia": (1e-9, 1e-9, 1e-9)}))


def test_only_the_dead_direction_of_a_joint_is_reported() -> None:
    """A point mass on a cylindrical joint slides with inertia and turns without."""
    (hinge,) = singular_hinges(_arm({"mass": 1.0}, "cylindrical"))
    assert np.allclose(np.abs(hinge.direction), [0, 0, 1, 0, 0, 0])


def test_two_parallel_joints_with_a_massless_link_between() -> None:
    """Interior massless links are fine unless two joints do the same thing."""

    def twin(axis: tuple[float, float, float]) -> Model:
        builder = ModelBuilder("twin")
        builder.link("base")
        builder.link("middle")
        builder.link("tip", 1.0, (0.2, 0.1, 0.3), (0.1, 0.1, 0.1))
        builder.joint("one", "revolute", "base", "middle", axis=(0, 0, 1))
        builder.joint("two", "revolute", "middle", "tip", axis=axis)
        return builder.build()

    assert singular_hinges(twin((0.0, 0.0, 1.0)))
    assert not singular_hinges(twin((0.0, 1.0, 0.0)))


@pytest.mark.parametrize("mass", [0.0, 0.2])
def test_mimic_follower_can_carry_the_inertia(mass: float) -> None:
    """A massless leader is fine if its follower has mass; without any it is singular."""
    builder = ModelBuilder("gripper")
    builder.link("palm")
    builder.link("left")
    builder.link("right", mass, (0, 0.1, 0), (mass, mass, mass))
    builder.joint("lead", "prismatic", "palm", "left", axis=(0, 1, 0))
    builder.joint("follow", "prismatic", "palm", "right", axis=(0, 1, 0), mimic=Mimic("lead", -1.0))
    found = singular_hinges(builder.build())
    assert [hinge.joint for hinge in found] == ([] if mass else ["lead"])


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_the_dense_mass_matrix(seed: int) -> None:
    """No hinge is reported where the dense mass matrix is regular, massless links included."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, 8, massless=0.5, fixed=0.3, mimic=0.2, topology="tree")
    matrix = dense_mass_matrix(Robot(model), Robot(model).random_configuration(rng))
    scale = 1.0 / np.sqrt(np.diag(matrix))
    smallest = np.linalg.eigvalsh(scale[:, None] * matrix * scale)[0]
    assert smallest > 1e-9, "random_model promises sound inertias"
    assert singular_hinges(model) == ()


def test_kinematics_works_on_a_singular_model() -> None:
    """A singular hinge does not keep poses and Jacobians from being computed."""
    robot = Robot(_arm({}, axis=(1, 0, 0)))
    assert robot.singular_hinges
    q = robot.random_configuration(0, 4)
    assert np.isfinite(robot.frame_pose(q, "tip")).all()
    assert np.isfinite(robot.jacobian(q, "tip")).all()
