# SPDX-License-Identifier: BSD-3-Clause
"""Balances without accelerations: energies, momenta and their rates are the robot's own."""

import numpy as np
import pytest

import phistar
from phistar.errors import ArgumentError
from phistar.ident import Columns, identify
from phistar.ident.balances import energy_columns, momentum_columns, velocity_columns
from tests.ident.conftest import DT, Recorded

FEW = slice(0, 60, 10)


def test_energy_and_momentum_columns(recorded: Recorded) -> None:
    """Times the parameters they are what ``kinetic_energy``, ``mass_matrix`` and so on give."""
    robot, q, v = recorded.true, recorded.q[FEW], recorded.v[FEW]
    columns = Columns.of(robot)
    energy = robot.kinetic_energy(q, v) + robot.potential_energy(q)
    assert energy_columns(columns, q, v) @ columns.values == pytest.approx(energy, rel=1e-12)
    momentum = np.einsum("nij,nj->ni", robot.mass_matrix(q), v)
    assert momentum_columns(columns, q, v) @ columns.values == pytest.approx(momentum, rel=1e-12)


def test_slope_of_the_kinetic_energy(recorded: Recorded) -> None:
    """∂T/∂q against imaginary steps of the kinetic energy, which are exact."""
    robot, q, v = recorded.true, recorded.q[FEW], recorded.v[FEW]
    columns = Columns.of(robot)
    found = velocity_columns(columns, q, v) @ columns.values
    step = 1e-30
    for i, unit in enumerate(np.eye(2)):
        slope = robot.kinetic_energy(q + 1j * step * unit, v.astype(complex)).imag / step
        assert found[:, i] == pytest.approx(slope, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("method", ["momentum", "energy"])
@pytest.mark.parametrize("partly", [False, True])
def test_balances_identify_without_accelerations(
    recorded: Recorded, method: str, partly: bool
) -> None:
    """To the error of the trapezoidal rule, in which a sign changes half a step too early or late;
    what is not identified is taken from the robot.
    """
    given = {"friction": ("viscous",), "rotors": False, "bodies": ["lower_rod"]} if partly else {}
    robot = recorded.true if partly else recorded.known
    found = identify(
        robot, recorded.q, recorded.v, None, recorded.tau, dt=DT, method=method, **given
    )
    true = Columns.of(recorded.true)
    beta = found.base.matrix @ [true.values[true.names.index(n)] for n in found.columns.names]
    assert np.abs(found.fit.beta - beta).max() < 0.5 * DT * np.abs(beta).max()
    assert found.sample.signal == method
    assert found.group_units == (("N m s",) * 2 if method == "momentum" else ("J",))


def test_what_is_refused(recorded: Recorded) -> None:
    """Floating bases, windows without a step, no time."""
    log = (recorded.q, recorded.v, None, recorded.tau)
    with pytest.raises(ArgumentError, match="window"):
        identify(recorded.known, *log, dt=DT, method="energy", window=1e-4)
    with pytest.raises(ArgumentError, match="dt is missing"):
        identify(recorded.known, *log, method="energy")
    quadruped = phistar.load("quadruped")
    from phistar.ident.balances import require_single_axes

    with pytest.raises(ArgumentError, match="several axes"):
        require_single_axes(quadruped)
