# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the commands: the only module that imports matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from phistar.cli.terminal import clean
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


MAX_LEGEND_LINES = 12
"""Largest number of lines in the legend."""


def suffixes() -> tuple[str, ...]:
    """Suffixes of the pictures that can be written; .png first."""
    known = sorted(f".{name}" for name in figure(1.0, 1.0).canvas.get_supported_filetypes())
    return tuple(sorted(known, key=lambda ending: ending != ".png"))


def motion_plot(sim: Simulation, path: str) -> None:
    """Joint coordinates, the norm of v, and energy less its first value, over time."""
    page = figure(7.0, 7.5)
    upper, middle, lower = page.subplots(3, 1, sharex=True, height_ratios=(2, 1, 1))
    upper.set_title(_plain(f"{sim.model.name}, {sim.scheme} in (q, {sim.variables})"))
    for name in sim.model.joint_names:
        joint = sim.model.joints[name]
        for k, unit in enumerate(joint.joint_kind.q_units):
            index = f".{k}" if joint.joint_kind.nq > 1 else ""
            label = _plain(f"{name}{index}{f' [{unit}]' if unit else ''}")
            upper.plot(sim.t, sim.q[:, joint.q_slice.start + k], label=label)
    upper.set_ylabel("q [rad, m]")
    if 0 < sim.q.shape[-1] <= MAX_LEGEND_LINES:
        upper.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    middle.plot(sim.t, np.linalg.norm(sim.v, axis=-1))
    middle.set_ylabel("|v| [rad/s, m/s]")
    energy = sim.energy()
    lower.plot(sim.t, energy - energy[0])
    lower.set_ylabel("energy gained [J]")
    lower.set_xlabel("time [s]")
    page.savefig(path)


def _plain(text: str) -> str:
    """Text escaped so that it is neither a formula nor hidden from the legend."""
    return clean(text).replace("$", r"\$").lstrip("_")
