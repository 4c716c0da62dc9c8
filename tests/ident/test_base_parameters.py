# SPDX-License-Identifier: BSD-3-Clause
"""Base parameters: as many as the rank, the same forces, the textbook's combinations."""

import numpy as np
import pytest

import phistar
from phistar.errors import ArgumentError
from phistar.ident import Columns, base_parameters
from tests.ident.conftest import Recorded


def test_names_of_a_double_pendulum(recorded: Recorded) -> None:
    """The outer mass counts with the inner rod, half a metre from its axis."""
    base = base_parameters(Columns.of(recorded.known, friction=False, rotors=False))
    assert base.names == (
        "hx.upper_rod",
        "hz.upper_rod - 0.5 m.lower_rod",
        "Iyy.upper_rod + 0.25 m.lower_rod",
        "hx.lower_rod",
        "hz.lower_rod",
        "Iyy.lower_rod",
    )
    assert base.units == ("kg m", "kg m", "kg m^2") * 2
    assert base.gap[0] > 0.1
    assert base.gap[1] < 1e-13
    assert "6 of 20" in repr(base)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_forces_follow_base_parameters_alone(seed: int) -> None:
    """At other states Yθ is Y[kept]β, and the rank is that of singular values."""
    rng = np.random.default_rng(seed)
    robot = phistar.Robot(phistar.random_model(rng, 4))
    columns = Columns.of(robot)
    base = base_parameters(columns)
    q = np.stack([robot.random_configuration(rng) for _ in range(80)])
    v, vdot = rng.normal(size=(2, 80, robot.nv))
    rows = columns.at(q, v, vdot).dense()
    theta = rng.normal(size=len(columns))
    forces = rows @ theta
    short = rows[..., base.kept] @ (base.matrix @ theta)
    assert np.abs(short - forces).max() <= 1e-11 * np.abs(forces).max()
    flat = rows.reshape(-1, len(columns))
    lengths = np.linalg.norm(flat, axis=0)
    values = np.linalg.svd(flat / np.where(lengths > 0, lengths, 1.0), compute_uv=False)
    assert (values > 1e-9 * values[0]).sum() == len(base)


def test_nothing_to_identify(recorded: Recorded) -> None:
    """No body and no joint column is wanted."""
    with pytest.raises(ArgumentError, match="nothing to identify"):
        base_parameters(Columns(recorded.known, (), (), ()))
