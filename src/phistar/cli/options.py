# SPDX-License-Identifier: BSD-3-Clause
"""Options of several commands, and loading a robot with them."""

from __future__ import annotations

import argparse
import os
import warnings

from phistar.errors import PhistarWarning, RobotNotFoundError
from phistar.robot import Robot, load


def add_robot(parser: argparse.ArgumentParser, name: str = "robot", metavar: str = "ROBOT") -> None:
    """The robot to load."""
    text = "bundled name, or path of a URDF, MJCF or xacro file"
    parser.add_argument(name, metavar=metavar, help=text)


def add_loading(parser: argparse.ArgumentParser) -> None:
    """Options of loading."""
    parser.add_argument(
        "--floating-base",
        action=argparse.BooleanOptionalAction,
        help="put a free joint under the root link (default: as the bundled robot is meant)",
    )
    parser.add_argument(
        "--mimic",
        choices=("reduce", "independent"),
        default="reduce",
        help="mimic joints follow their leader, or keep coordinates of their own",
    )
    add_trust(parser)


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Permission to expand xacro."""
    parser.add_argument(
        "--trust-xacro",
        action="store_true",
        help="expand xacro, which may read other files and environment variables",
    )


def add_meshes(parser: argparse.ArgumentParser) -> None:
    """Folders of meshes."""
    text = "folder with meshes, besides that of the robot's file; may be repeated"
    parser.add_argument("--meshes", metavar="DIR", action="append", default=[], help=text)


def seed(text: str) -> int:
    """A seed of random numbers."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"--seed is {text}, expected a whole number from 0 on")
    return int(text)


def add_tree(parser: argparse.ArgumentParser) -> None:
    """Permission to omit the loops of a robot."""
    parser.add_argument(
        "--tree", action="store_true", help="omit the robot's loops: it moves as a tree"
    )


def load_closing(description: str, options: argparse.Namespace) -> Robot:
    """A robot for what knows loops: as ``load_robot``; --tree omits its loops."""
    robot = load_robot(description, options)
    return robot.tree if options.tree else robot


def load_robot(description: str, options: argparse.Namespace) -> Robot:
    """The robot; its warnings stay in the report, for the command to show."""
    if ("<" in description or "\n" in description) and not os.path.lexists(description):
        raise RobotNotFoundError(description, "no such file or bundled robot")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhistarWarning)
        return load(
            description,
            floating_base=options.floating_base,
            mimic=options.mimic,
            trust_xacro=options.trust_xacro,
        )
