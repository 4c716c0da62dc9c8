# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the commands: the only module that imports matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from phistar.errors import MissingExtraError
from phistar.sim import Simulation


def figure(width: float, height: float) -> Any:
    """An empty figure of a size in inches; no window is opened.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "examples", "Drawing a plot") from None
    return Figure(figsize=(width, height), layout="constrained")


def energy_plot(sim: Simulation, path: str) -> None:
    """Energy less its first value, and the size of v, over time; writes the file."""
    page = figure(7.0, 5.0)
    upper, lower = page.subplots(2, 1, sharex=True)
    energy = sim.energy()
    upper.plot(sim.t, energy - energy[0])
    upper.set_ylabel("energy gained [J]")
    upper.set_title(f"{sim.model.name}, {sim.scheme} in (q, {sim.variables})")
    lower.plot(sim.t, np.linalg.norm(sim.v, axis=-1))
    lower.set_ylabel("|v| [rad/s, m/s]")
    lower.set_xlabel("time [s]")
    page.savefig(path)
