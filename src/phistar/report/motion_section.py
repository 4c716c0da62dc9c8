# SPDX-License-Identifier: BSD-3-Clause
"""A motion of a robot in HTML: curves, balance of energy and momentum, extremes against limits."""

from __future__ import annotations

import io

import numpy as np

from phistar.drawing.figures import motion_figure
from phistar.report.model_card import NO_BREAK
from phistar.reprs import html_folded, html_picture, html_table
from phistar.robot import Robot
from phistar.sim import Simulation

NOISE = 1e-12
"""Coordinates and speeds [rad, m, rad/s, m/s] that are rounding."""


def motion_section(robot: Robot, sim: Simulation) -> str:
    """Curves, what is conserved, and where joints come near their limits."""
    return "".join(
        (
            _picture(sim),
            "<h3>Energy and momentum</h3>",
            html_table(("", "at first", "at last", "change"), _energies(robot, sim)),
            html_folded("what this motion conserves", sim.drift(), is_open=True),
            "<h3>Ranges</h3>",
            html_table(("joint", "from", "to", "fastest", "within limits"), _ranges(robot, sim)),
        )
    )


def _picture(sim: Simulation) -> str:
    file = io.BytesIO()
    motion_figure(sim).savefig(file, format="svg")
    return html_picture(file.getvalue(), "joints, speed and energy over time")


def _energies(robot: Robot, sim: Simulation) -> list[tuple[str, ...]]:
    """Kinetic, potential and total energy [J] of the first sample."""
    first = (0,) * (sim.q.ndim - 2)
    ends = [(sim.q[(k, *first)], sim.v[(k, *first)]) for k in (0, -1)]
    total = [float(sim.energy()[(k, *first)]) for k in (0, -1)]
    kinetic = [float(robot.kinetic_energy(q, v)) for q, v in ends]
    potential = [x - y for x, y in zip(total, kinetic, strict=True)]
    rows = {"kinetic": kinetic, "potential": potential, "total": total}
    return [
        (name, *(f"{x:.6g} J" for x in (*values, values[1] - values[0])))
        for name, values in rows.items()
    ]


def _ranges(robot: Robot, sim: Simulation) -> list[tuple[str, ...]]:
    """Least and largest coordinate and speed of joints with one coordinate."""
    rows: list[tuple[str, ...]] = []
    for name in robot.joint_names:
        joint = robot.joints[name]
        if joint.joint_kind.nq != 1:
            continue
        q, v = sim.q[..., joint.q_slice], np.abs(sim.v[..., joint.v_slice])
        low, high, fast = float(np.nanmin(q)), float(np.nanmax(q)), float(np.nanmax(v))
        limits = joint.limits
        over = [
            *(["position"] if low < limits.lower[0] or high > limits.upper[0] else []),
            *(["speed"] if fast > limits.velocity[0] else []),
        ]
        kept = f"no: {' and '.join(over)}" if over else "yes"
        unit = joint.joint_kind.q_units[0]
        spans = (_number(low, unit), _number(high, unit), _number(fast, f"{unit}/s"))
        rows.append((name, *spans, kept))
    return rows


def _number(x: float, unit: str) -> str:
    """Four digits and a unit; what rounding leaves of zero is zero."""
    return f"{x if abs(x) > NOISE else 0.0:.4g}{NO_BREAK}{unit}"
