# SPDX-License-Identifier: BSD-3-Clause
"""Motions for identification: exact slopes, limits kept, better conditioned than random ones."""

import numpy as np
import pytest

import phistar
from phistar import ident
from phistar.errors import ArgumentError, UnknownNameError
from phistar.ident import excitation as excitation_call
from phistar.ident.excitation import PRICE, MotionLimits, _Search
from phistar.ident.regressor_slope import regressor_slope, shifts_of


@pytest.mark.parametrize("name", ["cartpole", "double_pendulum"])
def test_slopes_against_imaginary_steps(name: str) -> None:
    """Values of the compiled regressor give its slope as imaginary steps do: to rounding."""
    rng = np.random.default_rng(0)
    robot = phistar.load(name)
    columns = ident.Columns.of(robot, springs=True)
    state = rng.normal(size=(3, 4, robot.nv))
    weights = rng.normal(size=(4, robot.nv, len(columns)))
    found = regressor_slope(columns, weights, *state)
    for k, kind in enumerate(("spring", "viscous", "rotor")):
        for i, joint in enumerate(robot.joint_names):
            moved = state.astype(complex)
            moved[k, :, i] += 1e-30j
            rows = robot.regressor(*moved).imag / 1e-30
            slope = np.einsum("njp,njp->n", weights[..., : columns.inertial], rows)
            slope += weights[:, i, columns.names.index(f"{kind}.{joint}")]
            assert np.abs(found[k][:, i] - slope).max() <= 1e-12 * np.abs(slope).max()


@pytest.fixture(scope="module")
def robot() -> phistar.Robot:
    """A pendulum whose motors are weak."""
    pendulum = phistar.load("double_pendulum")
    return pendulum.with_limits(lower=-2.0, upper=2.5, velocity=3.0, effort=[7.0, 2.0])


@pytest.mark.parametrize("criterion", ["condition", "logdet"])
def test_gradient_of_the_search(robot: phistar.Robot, criterion: str) -> None:
    """Along a random direction, against a central difference of the criterion."""
    search = _Search(robot, 5.0, 3, criterion, ("viscous",), True, np.ones(2), 40, 0.5)
    rng = np.random.default_rng(1)
    x, way = search.random(rng)[None], rng.normal(size=(1, 2, 7))

    def value(x: np.ndarray) -> float:
        flat = search.regressor(x).reshape(1, -1, len(search.base))[0]
        values = np.linalg.svd(flat, compute_uv=False) ** 2
        if criterion == "logdet":
            return -0.5 * float(np.log(values).sum())
        return float(np.log(np.sum(values**4.0)) + np.log(np.sum(values**-4.0))) / 8.0

    def price(x: np.ndarray) -> float:
        q, v, vdot = search.states(x)
        limits, tau = search.limits, robot.inverse_dynamics(q, v, vdot, passive=True)
        half = (limits.upper - limits.lower) / 2.0
        parts = (q - (limits.upper + limits.lower) / 2.0, half), (v, limits.velocity)
        over = [np.maximum(np.abs(x) / y - 1.0, 0.0) for x, y in (*parts, (tau, limits.effort))]
        assert all(each.any() for each in over) == tight
        return PRICE / len(search.t) * 0.5 * sum(float(np.sum(each**2)) for each in over)

    for tight in (False, True):
        factor = 0.7 if tight else 1e3
        own = MotionLimits.of(robot.with_limits(lower=-2.0, upper=2.0), 1.0)
        search.limits = MotionLimits(
            0.3 * factor * own.lower, 0.3 * factor * own.upper, 0.5 * factor * own.velocity,
            0.5 * factor * own.effort,
        )  # fmt: skip
        ends = [value(x + sign * 1e-6 * way) + price(x + sign * 1e-6 * way) for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / 2e-6
        assert np.sum(search.gradient(x) * way) == pytest.approx(slope, rel=1e-6)


def test_better_than_random_and_within_limits(robot: phistar.Robot) -> None:
    """The condition number falls, and no limit is left at any time of the period."""
    found = excitation_call(robot, period=5.0, harmonics=4, starts=2, steps=40, samples=30)
    assert found.condition < 0.5 * found.first_condition
    q, v, vdot = found.at(np.linspace(0.0, 5.0, 2777))
    limits = robot.limits
    assert (q >= limits.lower).all()
    assert (q <= limits.upper).all()
    assert (np.abs(v) <= limits.velocity).all()
    assert (np.abs(robot.inverse_dynamics(q, v, vdot)) <= limits.effort).all()
    assert "4 harmonics" in repr(found)


def test_what_is_refused(robot: phistar.Robot) -> None:
    """Unknown criteria, joints with several axes, motors too weak to hold the robot."""
    with pytest.raises(UnknownNameError, match="logdet"):
        excitation_call(robot, criterion="trace")
    with pytest.raises(ArgumentError, match="periodic motions"):
        shifts_of(phistar.load("quadruped"))
    weak = robot.with_limits(lower=1.2, upper=1.4, effort=0.01)
    with pytest.raises(ArgumentError, match="effort limits"):
        excitation_call(weak, harmonics=2, starts=1, steps=1, samples=30)
