# SPDX-License-Identifier: BSD-3-Clause
"""``phistar robots``: the robots that come with phistar."""

from __future__ import annotations

import argparse
import re
from importlib.resources import files

from rich.text import Text

from phistar import robots
from phistar.cli.terminal import clean, make_console, make_table, number
from phistar.robot import load

EXAMPLE = "phistar robots"
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command: none."""


def run(options: argparse.Namespace) -> int:
    """Print one row per robot."""
    console = make_console()
    sources = mass_sources()
    right = ("joints", "nq", "nv", "mass [kg]")
    table = make_table("robot", *right, "base", "loops", "numbers from", right=right)
    for name in robots.names():
        robot = load(name)
        floats = robots.floats(name)
        table.add_row(
            Text(name, style="cyan"),
            f"{sum(joint.kind != 'fixed' for joint in robot.joints.values()) - floats}",
            f"{robot.nq}",
            f"{robot.nv}",
            number(robot.total_mass),
            "free" if floats else "fixed",
            f"{len(robot.loops) or ''}",
            clean(sources.get(name, "")),
        )
    console.print(table)
    console.print()
    console.print(
        'In Python: phistar.load("panda"). Of any size: phistar.robots.chain(n), tree(depth).'
    )
    return 0


def mass_sources() -> dict[str, str]:
    """Source of each robot's masses, by the table beside the files."""
    text = (files("phistar.robots") / "data" / "SOURCES.md").read_text(encoding="utf-8")
    sources: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        if len(cells) != 5 or not cells[4] or cells[4].startswith(("-", "published")):
            continue
        name = cells[0] or name
        if "mass" in cells[3] or name not in sources:
            sources[name] = _cite(cells[4])
    return sources


def _cite(reference: str) -> str:
    """Authors and year, or who published it."""
    authors = reference.partition("*")[0].partition(" (")[0].rstrip(", ;")
    year = _YEAR.search(reference)
    return f"{authors}, {year.group()}" if year else authors.partition(",")[0]
