# SPDX-License-Identifier: BSD-3-Clause
"""Motion in time: schemes on the configuration space, compiled step loops, conserved quantities."""

from phistar.sim.simulation import Simulation

__all__ = ["Simulation"]
