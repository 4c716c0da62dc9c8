# SPDX-License-Identifier: BSD-3-Clause
"""Options that several commands share, and loading a robot as they say."""

from __future__ import annotations

import argparse
import warnings

from phistar.errors import PhistarWarning
from phistar.robot import Robot, load


def add_robot(parser: argparse.ArgumentParser, name: str = "robot", metavar: str = "ROBOT") -> None:
    """The robot to load."""
    text = "bundled name, or path of a URDF, MJCF or xacro file"
    parser.add_argument(name, metavar=metavar, help=text)


def add_loading(parser: argparse.ArgumentParser) -> None:
    """How to load it."""
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
    """Leave to expand xacro."""
    parser.add_argument(
        "--trust-xacro",
        action="store_true",
        help="expand xacro, which may read other files and environment variables",
    )


def load_robot(description: str, options: argparse.Namespace) -> Robot:
    """The robot; its warnings are left in the report, for the command to show."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhistarWarning)
        return load(
            description,
            floating_base=options.floating_base,
            mimic=options.mimic,
            trust_xacro=options.trust_xacro,
        )
