# SPDX-License-Identifier: BSD-3-Clause
"""A small robot that is known roughly, one that is true, and a motion: shared by all tests."""

from dataclasses import dataclass

import numpy as np
import pytest

import phistar
from phistar.arrays import Array
from phistar.ident import FourierSeries

DT = 4e-3


@dataclass(frozen=True)
class Recorded:
    """A motion of a true robot, without noise."""

    known: phistar.Robot
    true: phistar.Robot
    q: Array
    v: Array
    vdot: Array
    tau: Array


@pytest.fixture(scope="session")
def recorded() -> Recorded:
    """Ten seconds of a double pendulum with friction and rotors."""
    rng = np.random.default_rng(3)
    known = phistar.load("double_pendulum")
    spread = np.repeat([0.9, 1.2], 10)
    true = known.with_parameters(known.parameters * spread).with_joint_physics(
        damping=[0.2, 0.1], friction=[0.05, 0.1], armature=[0.02, 0.015]
    )
    motion = FourierSeries(np.zeros(2), rng.normal(size=(2, 10)), 5.0)
    q, v, vdot = motion.at(DT * np.arange(2500))
    return Recorded(known, true, q, v, vdot, true.inverse_dynamics(q, v, vdot, passive=True))
