# SPDX-License-Identifier: BSD-3-Clause
"""Diagonalised dynamics: rates η and ζ in which every joint has an inertia of its own."""

from phistar.diagonal.forward import TotalRates
from phistar.diagonal.lagged import LaggedState, lagged_start, lagged_step
from phistar.diagonal.state import Diagonal

__all__ = ["Diagonal", "LaggedState", "TotalRates", "lagged_start", "lagged_step"]
