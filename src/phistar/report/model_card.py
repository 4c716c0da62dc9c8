# SPDX-License-Identifier: BSD-3-Clause
"""What a robot is, in HTML: tree, masses, limits, problems with their cures."""

from __future__ import annotations

import math

from phistar.model.components import Joint
from phistar.reprs import html_folded, html_table
from phistar.robot import Robot

MOST_ROWS = 200
"""Rows of a table; more are counted."""
NO_BREAK = "\u00a0"
"""Between a number and its unit."""
EFFORT_UNITS = {"rad": f"N{NO_BREAK}m", "m": "N"}
"""Of a joint's force, by the unit of its coordinate."""


def model_card(robot: Robot) -> str:
    """The sections about the robot itself."""
    return "".join(
        (
            html_table(("", ""), _facts(robot)),
            html_folded("tree of links", tree_text(robot), is_open=len(robot.link_names) <= 40),
            "<h3>Joints</h3>",
            _table(("joint", "kind", "range", "speed", "effort"), _joints(robot)),
            "<h3>Masses</h3>",
            _table(("link", "mass [kg]", "centre of mass [m]"), _masses(robot)),
            "<h3>Problems</h3>",
            _problems(robot),
        )
    )


def _facts(robot: Robot) -> list[tuple[str, str]]:
    return [
        ("file", robot.load_report.source),
        ("links, joints", f"{len(robot.link_names)}, {len(robot.joint_names)}"),
        ("coordinates", f"nq = {robot.nq}, nv = {robot.nv}"),
        ("mass", f"{robot.total_mass:.6g} kg"),
        ("gravity", f"{', '.join(f'{x:g}' for x in robot.gravity)} m/s²"),
        ("loops", ", ".join(loop.name for loop in robot.loops) or "none"),
    ]


def tree_text(robot: Robot) -> str:
    """A line per link, indented by its depth."""
    children: dict[str, list[Joint]] = {}
    for joint in robot.model.joints.values():
        children.setdefault(joint.parent, []).append(joint)
    carried = {joint.child for joint in robot.model.joints.values()}
    parents = dict.fromkeys([*robot.link_names, *children])
    lines: list[str] = []
    for root in (name for name in parents if name not in carried):
        lines.append(root)
        stack = [(joint, 1) for joint in reversed(children.get(root, []))]
        while stack:
            joint, depth = stack.pop()
            lines.append(f"{'  ' * depth}{joint.child}  ({joint.name}, {joint.kind})")
            stack += [(child, depth + 1) for child in reversed(children.get(joint.child, []))]
    return "\n".join(lines)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    shown = rows[:MOST_ROWS]
    if len(rows) > MOST_ROWS:
        shown.append((f"... and {len(rows) - MOST_ROWS} more", *[""] * (len(head) - 1)))
    return html_table(head, shown)


def _joints(robot: Robot) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name in robot.joint_names:
        joint = robot.joints[name]
        kind, limits = joint.joint_kind, joint.limits
        unit = kind.q_units[0] if kind.nq == 1 else ""
        span = "free"
        if kind.nq == 1 and any(map(math.isfinite, (limits.lower[0], limits.upper[0]))):
            span = f"{limits.lower[0]:.4g} … {limits.upper[0]:.4g} {unit}".replace(" ", NO_BREAK)
        units = {each for each in kind.q_units if each}
        speed = _least(limits.velocity, "/".join([*units, "s"]) if len(units) == 1 else "")
        effort = _least(limits.effort, EFFORT_UNITS[unit] if kind.nq == 1 else "")
        rows.append((name, joint.kind, span, speed, effort))
    return rows


def _least(values: tuple[float, ...], unit: str) -> str:
    finite = [x for x in values if math.isfinite(x)]
    return f"{min(finite):.4g}{NO_BREAK}{unit}".rstrip() if finite else "unlimited"


def _masses(robot: Robot) -> list[tuple[str, ...]]:
    return [
        (link.name, f"{link.mass:.5g}", ", ".join(f"{x:.4g}" for x in link.com))
        for link in robot.model.links
        if link.mass > 0.0
    ]


def _problems(robot: Robot) -> str:
    problems = robot.load_report.problems
    if not problems:
        return "<p>None was found.</p>"
    return _table(
        ("severity", "where", "what", "cure"),
        [(p.severity, p.where, p.what, p.cure) for p in problems],
    )
