# SPDX-License-Identifier: BSD-3-Clause
"""Diagonal rates: what cannot be asked says so, and why."""

import re

import numpy as np
import pytest

import phistar
from phistar.diagonal import lagged_start
from phistar.errors import ArgumentError, ShapeError, SingularHingeError, UnknownNameError
from phistar.model.random import random_model
from tests.diagonal.witness import case


def test_rates_need_a_velocity() -> None:
    """Without v there are transforms, but no rates."""
    c = case("tree")
    d = c.robot.diagonalize(c.q)
    assert d.to_eta(c.v).shape == c.v.shape
    for name in ("eta", "zeta", "coriolis", "coriolis_zeta", "kinetic_energy", "D_rate", "R_rate"):
        with pytest.raises(ArgumentError, match=re.escape("diagonalize(q, v)")):
            getattr(d, name)


def test_unknown_roots() -> None:
    """The names that exist are listed."""
    c = case("tree")
    with pytest.raises(UnknownNameError, match="cholesky"):
        c.robot.diagonalize(c.q, c.v, root="choleski")


def test_the_symmetric_root_is_real() -> None:
    """Eigenvectors are not analytic: complex steps take Cholesky's root."""
    c = case("free base")
    with pytest.raises(ArgumentError, match="cholesky"):
        _ = c.robot.diagonalize(c.q + 0j, c.v, root="symmetric").eta


def test_reduced_mimic_joints_are_refused() -> None:
    """S*𝓜S has no such factors; the cure is in the message."""
    rng = np.random.default_rng(0)
    model = random_model(rng, 6, kinds=["revolute"], mimic=1.0)
    robot = phistar.Robot(model)
    q, v = robot.neutral(), np.zeros(robot.nv)
    for ask in (
        lambda: robot.diagonalize(q, v),
        lambda: robot.diagonal_forward_dynamics(q, v, v),
        lambda: lagged_start(robot, q, v),
    ):
        with pytest.raises(ArgumentError, match=r"minimal\(q\)\.operators.*mimic='independent'"):
            ask()


def test_singular_hinges_are_refused() -> None:
    """A joint that moves no inertia has D = 0."""
    builder = phistar.ModelBuilder("needle")
    builder.link("base")
    builder.link("needle", 1.0, (0.0, 0.0, 0.5), np.diag([1.0, 1.0, 0.0]))
    builder.joint("spin", "revolute", "base", "needle", axis=(0, 0, 1))
    robot = phistar.Robot(builder.build())
    with pytest.raises(SingularHingeError, match="spin"):
        robot.diagonalize([0.0], [1.0])
    with pytest.raises(SingularHingeError, match="spin"):
        robot.diagonal_forward_dynamics([0.0], [1.0], [0.0])


def test_shapes_and_numbers() -> None:
    """Names, values and what was expected are told."""
    c = case("branched, one axis")
    d = c.robot.diagonalize(c.q, c.v)
    with pytest.raises(ShapeError, match="eta"):
        d.from_eta(np.zeros(c.robot.nv + 1))
    with pytest.raises(ShapeError, match="leading axes that broadcast"):
        d.to_epsilon(np.zeros((3, c.robot.nv)))
    with pytest.raises(ArgumentError, match="kappa is not finite"):
        d.from_kappa(np.full(c.robot.nv, np.nan))
    with pytest.raises(ArgumentError, match="zeta is not finite"):
        c.robot.diagonal_forward_dynamics(c.q, np.full(c.robot.nv, np.nan), c.tau)
