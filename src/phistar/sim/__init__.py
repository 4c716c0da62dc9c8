# SPDX-License-Identifier: BSD-3-Clause
"""Motion in time: schemes on the configuration space, compiled step loops, conserved quantities."""

from phistar.sim.contact_report import Contacts
from phistar.sim.simulation import Simulation
from phistar.sim.simulator import Simulator
from phistar.sim.simulator_options import SimulatorState
from phistar.sim.surfaces import Box, HeightField, Plane

__all__ = [
    "Box",
    "Contacts",
    "HeightField",
    "Plane",
    "Simulation",
    "Simulator",
    "SimulatorState",
]
