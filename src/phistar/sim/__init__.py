# SPDX-License-Identifier: BSD-3-Clause
"""Motion in time: schemes on the configuration space, compiled step loops, conserved quantities."""

from phistar.sim.simulation import Simulation
from phistar.sim.unilateral_row import UNILATERAL_STEP

__all__ = ["UNILATERAL_STEP", "Simulation"]
