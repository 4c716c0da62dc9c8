# SPDX-License-Identifier: BSD-3-Clause
"""``phistar convert IN OUT``: a robot as URDF; reports what plain URDF cannot express."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from pathlib import Path

from phistar.cli import UsageError
from phistar.cli.options import add_loading, add_robot, load_robot
from phistar.cli.terminal import clean
from phistar.errors import pluralize
from phistar.loaders import load_model
from phistar.robot import Robot

EXAMPLE = "phistar convert in.xml out.urdf"
_DIALECT_TAG = re.compile(r'<phistar:(\w+)|type="phistar:(?=\w)')
_DIALECT_MEANINGS = {
    "actuator": "actuators",
    "": "joint types that others must reject",
    "gravity": "gravity",
    "frame": "extra frames",
    "loop": "loop joints",
    "coupling": "couplings",
    "order": "order of coordinates",
    "configuration": "named configurations",
    "axis2": "second axes",
    "pitch": "pitches",
    "child_origin": "joints beside the link's origin",
    "reference": "joint references",
    "limits": "limits",
    "dynamics": "armatures, rotors, springs",
    "visual": "shapes",
    "collision": "shapes",
}
MAX_LOST_LISTED = 8
"""Largest number of ignored elements listed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_robot(parser, "source", "IN")
    parser.add_argument("target", metavar="OUT", help="URDF file to write; - is standard output")
    parser.add_argument("--force", action="store_true", help="overwrite OUT")
    add_loading(parser)


def run(options: argparse.Namespace) -> int:
    """Write the robot; messages go to standard error."""
    target = options.target
    _require_target(target, options.force)
    robot = load_robot(options.source, options)
    text = robot.to_urdf()
    again, _ = load_model(text.encode())
    same = again == robot.model
    if target == "-":
        sys.stdout.write(text)
    else:
        Path(target).write_text(text, encoding="utf-8", newline="\n")
    for line in (*_lost(robot), *_dialect(text), *_meshes(robot)):
        _say(line)
    verdict = "reads back as the same robot" if same else "reads back as a DIFFERENT robot"
    _say(f"wrote {target}: {pluralize(len(robot.link_names), 'link')}, nv {robot.nv}; {verdict}")
    return 0 if same else 1


def _say(line: str) -> None:
    print(clean(line), file=sys.stderr)


def _require_target(target: str, force: bool) -> None:
    """Raise before any work is done."""
    if target == "-":
        return
    suffix = Path(target).suffix
    if suffix != ".urdf":
        raise UsageError(f"OUT is '{target}', but only URDF is written; end its name in .urdf")
    if os.path.lexists(target) and not force:
        raise UsageError(f"'{target}' exists; --force overwrites it")


def _lost(robot: Robot) -> list[str]:
    """What the reader of the source ignored."""
    ignored = robot.load_report.ignored
    lines = [f"not carried over: {entry}" for entry in ignored[:MAX_LOST_LISTED]]
    if len(ignored) > MAX_LOST_LISTED:
        remaining = len(ignored) - MAX_LOST_LISTED
        lines.append(f"not carried over: {remaining} more (phistar check --report lists all)")
    return lines


def _dialect(text: str) -> list[str]:
    """What plain URDF cannot express, by name and count."""
    counts = Counter(
        _DIALECT_MEANINGS[tag] for tag in _DIALECT_TAG.findall(text) if tag in _DIALECT_MEANINGS
    )
    if not counts:
        return []
    listed = ", ".join(f"{words} ({count})" for words, count in counts.items())
    return [f"plain URDF cannot express: {listed}; kept in phistar: tags, which other readers skip"]


def _meshes(robot: Robot) -> list[str]:
    """Mesh files are named, not copied."""
    links = robot.links.values()
    meshes = {s.mesh for link in links for s in (*link.visuals, *link.collisions) if s.mesh}
    if not meshes:
        return []
    return [f"{pluralize(len(meshes), 'mesh file')} named as in the source, not copied"]
