# SPDX-License-Identifier: BSD-3-Clause
"""``phistar info ROBOT``: the tree, the joints with units, the masses and the warnings."""

from __future__ import annotations

import argparse
import math
from itertools import islice

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from phistar import robots
from phistar.cli.loop_report import MAX_COORDINATES, mobility_text
from phistar.cli.options import add_loading, add_robot, load_robot
from phistar.cli.terminal import (
    axis_text,
    clean,
    heading,
    make_console,
    make_table,
    number,
    print_line,
    problem_text,
    vector,
)
from phistar.cli.tree_drawing import TreeLine, loop_text, tree_lines
from phistar.errors import pluralize
from phistar.model import Joint
from phistar.model.kinematic_loops import active_loops
from phistar.model.unused import ARMATURE, PROPERTIES, join_values, range_parts
from phistar.robot import Robot

EXAMPLE = "phistar info panda"
MAX_ROWS = 40
"""Rows of each section without --all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_robot(parser)
    add_loading(parser)
    parser.add_argument("--all", action="store_true", help="every row, however many there are")


def run(options: argparse.Namespace) -> int:
    """Print everything about the robot."""
    robot = load_robot(options.robot, options)
    console = make_console()
    limit = None if options.all else MAX_ROWS
    _print_header(console, robot, options.robot)
    print_tree(console, robot, limit)
    _print_joints(console, robot, limit)
    _print_limits(console, robot, limit)
    _print_actuators(console, robot, limit)
    _print_masses(console, robot, limit)
    _print_problems(console, robot, limit)
    return 0


def _print_header(console: Console, robot: Robot, description: str) -> None:
    joints = list(robot.joints.values())
    fixed = sum(joint.kind == "fixed" for joint in joints)
    mimics = sum(joint.mimic is not None for joint in joints)
    kinds = [f"{len(robot.joint_names)} moving", f"{fixed} fixed"]
    kinds += [f"{mimics} mimic"] if mimics else []
    report = robot.load_report
    console.print(Text(clean(robot.name), style="bold"), Text(f"({report.format})", style="dim"))
    rows = {
        "source": clean(report.source) + (" (bundled)" if description in robots.names() else ""),
        "links": f"{len(robot.link_names)}",
        "joints": f"{len(joints)} ({', '.join(kinds)})",
        "coordinates": f"nq {robot.nq}, nv {robot.nv}",
        "mass": f"{number(robot.total_mass)} kg",
        "gravity": f"{vector(robot.gravity)} m/s^2",
        "loops": _loop_count(robot),
    }
    if robot.configurations:
        rows["named poses"] = clean(", ".join(robot.configurations))
    grid = Table.grid(padding=(0, 2))
    for key, value in rows.items():
        grid.add_row(Text(f"  {key}", style="dim"), value)
    console.print(grid)


def _loop_count(robot: Robot) -> str:
    off = len(robot.loops) - len(active_loops(robot.loops))
    return f"{len(robot.loops) or 'none'}" + (f" ({off} switched off)" if off else "")


def print_tree(console: Console, robot: Robot, limit: int | None) -> None:
    """The tree of links, the loops below it and how the robot can move."""
    plain = console.options.ascii_only
    heading(console, "Tree")
    rows = 1 + len(robot.joints)
    for line in islice(tree_lines(robot.model, plain), limit):
        _print_branch(console, line)
    _print_hidden_count(console, rows, limit, "link")
    if robot.loops:
        heading(console, "Loops (dynamics keeps them closed)")
        for loop in robot.loops[:limit]:
            style = "magenta" if loop.active else "dim"
            console.print(loop_text(loop, plain), style=style)
        _print_hidden_count(console, len(robot.loops), limit, "loop")
    if active_loops(robot.loops):
        console.print(clean(mobility_text(robot, limit and MAX_COORDINATES)))


def _print_branch(console: Console, line: TreeLine) -> None:
    """A line of the tree; what does not fit continues below, beside the guides."""
    if cell_len(line.plain) <= console.width:
        console.print(Text.assemble((line.guides, "dim"), line.text))
        return
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(line.guides, style="dim"), line.text)
    console.print(grid)


def _print_hidden_count(console: Console, count: int, limit: int | None, noun: str) -> None:
    if limit is not None and count > limit:
        console.print(f"... {pluralize(count - limit, 'more ' + noun)} (--all shows them)")


def _moving(robot: Robot) -> list[Joint]:
    """Joints that move, the independent ones in the order of their coordinates."""
    followers = [joint for joint in robot.joints.values() if joint.mimic]
    return [robot.joints[name] for name in robot.joint_names] + followers


def _print_joints(console: Console, robot: Robot, limit: int | None) -> None:
    joints = _moving(robot)
    if not joints:
        return
    heading(console, "Joints that move")
    arrow = "->" if console.options.ascii_only else "→"
    table = make_table("joint", "kind", "axis", "q", "v", f"parent {arrow} child", right=("q", "v"))
    for joint in joints[:limit]:
        axis = getattr(joint.joint_kind, "axis", None)
        table.add_row(
            Text(clean(joint.name), style="cyan"),
            f"{joint.kind} (mimic)" if joint.mimic else joint.kind,
            axis_text(axis) if axis else "",
            _indices(joint.q_slice),
            _indices(joint.v_slice),
            clean(f"{joint.parent} {arrow} {joint.child}"),
        )
    console.print(table)
    _print_hidden_count(console, len(joints), limit, "joint")


def _indices(coordinates: slice) -> str:
    if coordinates.stop - coordinates.start == 1:
        return f"{coordinates.start}"
    return f"{coordinates.start}:{coordinates.stop}"


_COLUMNS = (*PROPERTIES[:2], ARMATURE, *PROPERTIES[2:])


def _print_limits(console: Console, robot: Robot, limit: int | None) -> None:
    """Ranges, and the columns for which the robot has a value."""
    joints = [joint for joint in _moving(robot) if _has_limits(joint)]
    if not joints:
        return
    used = [column for column in _COLUMNS if any(column.is_given(joint) for joint in joints)]
    heading(console, "Limits and drives (simulate uses ranges, damping, friction, stiffness)")
    table = make_table("joint", "range", *(column.name for column in used))
    for joint in joints[:limit]:
        cells = [join_values(range_parts(joint, number))]
        cells += [join_values(column.parts(joint, number)) for column in used]
        table.add_row(Text(clean(joint.name), style="cyan"), *cells)
    console.print(table)
    _print_hidden_count(console, len(joints), limit, "joint")


def _print_actuators(console: Console, robot: Robot, limit: int | None) -> None:
    """Name, kind, joint, gear and ranges of what the file says of motors."""
    actuators = robot.actuators
    if not len(actuators):
        return
    heading(console, "Actuators (robot.actuators)")
    table = make_table("actuator", "kind", "joint", "gear", "control", "force", right=("gear",))
    rows = zip(
        actuators.names,
        actuators.kind,
        actuators.joint,
        actuators.gear,
        actuators.ctrlrange,
        actuators.forcerange,
        strict=True,
    )
    for name, kind, joint, gear, control, force in islice(rows, limit):
        ranges = [
            f"{number(low)} .. {number(high)}" if math.isfinite(low) or math.isfinite(high) else ""
            for low, high in (control, force)
        ]
        table.add_row(Text(clean(name), style="cyan"), kind, clean(joint), number(gear), *ranges)
    console.print(table)
    _print_hidden_count(console, len(actuators), limit, "actuator")


def _has_limits(joint: Joint) -> bool:
    ends = (*joint.limits.lower, *joint.limits.upper)
    return any(map(math.isfinite, ends)) or any(column.is_given(joint) for column in _COLUMNS)


def _print_masses(console: Console, robot: Robot, limit: int | None) -> None:
    heavy = [link for link in robot.links.values() if link.mass]
    heading(console, f"Masses ({number(robot.total_mass)} kg)")
    table = make_table("link", "mass [kg]", "centre of mass in the link [m]", right=("mass [kg]",))
    for link in heavy[:limit]:
        table.add_row(clean(link.name), number(link.mass), vector(link.com))
    if heavy:
        console.print(table)
    _print_hidden_count(console, len(heavy), limit, "link")
    bare = len(robot.links) - len(heavy)
    if bare:
        console.print(f"{pluralize(bare, 'link')} without mass", style="dim")


def _print_problems(console: Console, robot: Robot, limit: int | None) -> None:
    report = robot.load_report
    if not report.problems:
        return
    heading(console, "Warnings and notes")
    max_lines = None if limit is None else limit // 4
    for problem in report.problems[:max_lines]:
        print_line(console, problem_text(problem, report.source))
    _print_hidden_count(console, len(report.problems), max_lines, "problem")
