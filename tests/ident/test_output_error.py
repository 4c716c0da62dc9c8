# SPDX-License-Identifier: BSD-3-Clause
"""Identification from positions alone: simulations have to meet them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar import ident
from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.ident import FourierSeries
from phistar.ident.logs import even_runs
from phistar.ident.output_error import Windows
from tests.ident.conftest import Recorded

DT = 0.01
SECONDS = 6.0
NOISE = np.array([0.004, 0.008])
"""Of positions [rad]: so large that accelerations cannot be told."""


@dataclass(frozen=True)
class Driven:
    """A motion of the true robot under forces that are held from sample to sample."""

    q: Array
    tau: Array
    measured: Array


@pytest.fixture(scope="module")
def driven(recorded: Recorded) -> Driven:
    """Forces of a smooth motion, which friction and rotors leave a little."""
    rng = np.random.default_rng(11)
    steps = round(SECONDS / DT)
    motion = FourierSeries(np.zeros(2), 1.2 * rng.normal(size=(2, 10)), 6.0)
    wanted = motion.at(DT * np.arange(steps))
    tau = recorded.true.inverse_dynamics(*wanted, passive=True)
    sim = recorded.true.simulate(
        wanted[0][0], wanted[1][0], dt=DT, steps=steps, tau_steps=tau, scheme="rk4",
        passive={"springs", "damping", "friction"}, progress=False,
    )  # fmt: skip
    q = sim.q[:-1]
    return Driven(q, tau, q + NOISE * rng.normal(size=q.shape))


def true_beta(recorded: Recorded, base: ident.BaseParameters) -> Array:
    """The base parameters of the true robot."""
    return np.asarray(base.matrix @ ident.Columns.of(recorded.true).values)


@pytest.fixture(scope="module")
def found(recorded: Recorded, driven: Driven) -> ident.Identification:
    """From noisy positions."""
    return ident.identify(
        recorded.known, driven.measured, tau=driven.tau, dt=DT, method="output_error"
    )


def test_noisy_positions(recorded: Recorded, driven: Driven, found: ident.Identification) -> None:
    """The noise is found, true values are in the ellipsoid, bodies are possible."""
    assert found.fit.noise == pytest.approx(NOISE, rel=0.05)
    beta = true_beta(recorded, found.base)
    assert found.contains(beta, 0.99)
    assert not found.contains(beta + 6.0 * found.fit.deviation)
    assert ident.is_possible(found.robot.parameters.reshape(-1, 10)).all()
    assert found.sample.correlation == pytest.approx([1.0, 1.0], abs=0.3)
    assert found.sample.signal == "position"
    assert "positions alone: 11 windows of 0.5 s" in found.notes[-1]


def test_better_than_differentiated_positions(
    recorded: Recorded, driven: Driven, found: ident.Identification
) -> None:
    """Forces of unseen motions: noise of accelerations spoils the estimate by forces, not this."""
    by_forces = ident.identify(
        recorded.known, driven.measured, tau=driven.tau, dt=DT, cutoff=8.0, folds=1
    )
    motion = FourierSeries(np.ones(2), np.random.default_rng(8).normal(size=(2, 8)), 4.0)
    state = motion.at(np.linspace(0.0, 4.0, 500))
    wanted = recorded.true.inverse_dynamics(*state, passive=True)
    errors = [np.sqrt(np.mean((each.predict(*state) - wanted) ** 2)) for each in (by_forces, found)]
    assert errors[1] < 0.4 * errors[0]


def test_exact_positions(recorded: Recorded, driven: Driven) -> None:
    """Without noise the base parameters are those of the simulation, 1e-9: slopes are exact."""
    near = recorded.true.with_parameters(1.05 * recorded.true.parameters)
    found = ident.identify(near, driven.q, tau=driven.tau, dt=DT, method="output_error")
    beta = true_beta(recorded, found.base)
    assert np.abs(found.fit.beta - beta).max() < 1e-9
    assert found.fit.noise.max() < 1e-7


def test_runs_of_a_log(recorded: Recorded, driven: Driven, tmp_path: Path) -> None:
    """No window goes across a gap."""
    path = tmp_path / "log.npz"
    t = DT * np.arange(len(driven.q))
    t[330:] += 3.0
    names = np.array(recorded.known.joint_names)
    np.savez(path, t=t, q=driven.measured, tau=driven.tau, names=names)
    runs = even_runs(ident.read_log(path, recorded.known))
    assert [(first, len(q)) for first, q, _ in runs] == [(0, 330), (330, 270)]
    windows = Windows.of(runs, DT, 0.5)
    assert windows.first.tolist() == [*range(0, 300, 50), *range(330, 540, 50)]
    np.testing.assert_array_equal(windows.q[:, 6], driven.measured[330:381])
    np.testing.assert_array_equal(windows.tau[:, 6], driven.tau[330:380])


def test_page(found: ident.Identification) -> None:
    """It speaks of positions."""
    page = found.page()
    assert "position, rms" in page
    assert "Positions and residuals" in page
    assert found.group_units == ("rad", "rad")


def test_what_is_refused(recorded: Recorded, driven: Driven) -> None:
    """Windows that do not fit the log, robust losses, joints with several coordinates."""
    log = {"q": driven.measured, "tau": driven.tau, "dt": DT, "method": "output_error"}
    with pytest.raises(ArgumentError, match="at least 12 samples"):
        ident.identify(recorded.known, **log, window=0.05)
    with pytest.raises(ArgumentError, match="a window of 20 s; the longest has 600"):
        ident.identify(recorded.known, **log, window=20.0)
    with pytest.raises(ArgumentError, match="leave out loss="):
        ident.identify(recorded.known, **log, loss="huber")
    quadruped = phistar.load("quadruped")
    with pytest.raises(ArgumentError, match="several coordinates"):
        ident.identify(quadruped, np.zeros((9, quadruped.nq)), method="output_error")
