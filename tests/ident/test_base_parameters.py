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


def bent(bend: float) -> phistar.Robot:
    """Three joints through one point; the last turns about the axis of the one before, but for a
    bend [rad] as it is left by the digits of a file."""
    rolls = (0.0, np.pi / 2.0, np.pi + bend)
    parts = [
        f'<link name="l{k}"><inertial><mass value="1"/><origin xyz="0.1 0.05 0.2"/><inertia '
        'ixx="0.2" iyy="0.3" izz="0.25" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        f'<joint name="j{k}" type="continuous"><parent link="l{k - 1}"/><child link="l{k}"/>'
        f'<origin xyz="0 0 0" rpy="{roll!r} 0 0"/><axis xyz="0 0 1"/></joint>'
        for k, roll in enumerate(rolls, 1)
    ]
    text = f'<robot name="bent"><link name="l0"/>{"".join(parts)}</robot>'
    return phistar.load(text.encode())


@pytest.mark.parametrize("bend", [1e-6, 5e-8, 5e-9])
def test_angles_that_a_file_rounds(bend: float) -> None:
    """Columns as short as the bend have few digits at unit length, and pivots of rounding up to
    1e-7: the widest gap decides how many count, not a number."""
    exact, rounded = (
        base_parameters(Columns.of(bent(each), friction=False, rotors=False))
        for each in (0.0, bend)
    )
    assert len(rounded) == len(exact)
    assert exact.gap[1] < 1e-13
    assert rounded.gap[0] > 1e-2
    assert 1e-12 < rounded.gap[1] < 1e-6
    assert f"{rounded.gap[1]:.1e}" in repr(rounded)


def test_nothing_to_identify(recorded: Recorded) -> None:
    """No body and no joint column is wanted."""
    with pytest.raises(ArgumentError, match="nothing to identify"):
        base_parameters(Columns(recorded.known, (), (), ()))
