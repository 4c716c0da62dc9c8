# SPDX-License-Identifier: BSD-3-Clause
"""``phistar view ROBOT``: a robot in a browser, with sliders, a motion from a file, its algebra."""

from __future__ import annotations

import argparse
import contextlib
import webbrowser

from phistar.cli.options import add_loading, add_robot, add_tree, load_closing
from phistar.cli.terminal import clean
from phistar.cli.usage_errors import usage_errors
from phistar.sim import Simulation
from phistar.viewer import Viewer
from phistar.viewer.web_server import DEFAULT_PORT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_robot(parser)
    text = "motion to play, a .npz, .csv or .mcap file of phistar simulate --out"
    parser.add_argument("--trajectory", metavar="FILE", help=text)
    text = f"port on this machine (default: {DEFAULT_PORT}, or the next that is free)"
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=text)
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    add_loading(parser)
    add_tree(parser)


def run(options: argparse.Namespace) -> int:
    """Show the robot until Ctrl-C."""
    robot = load_closing(options.robot, options)
    motion = Simulation.load(options.trajectory, robot) if options.trajectory else None
    with usage_errors():
        viewer = robot.view(motion=motion, port=options.port)
    with contextlib.suppress(KeyboardInterrupt), viewer:
        _announce(robot.name, viewer, options)
        viewer.wait()
    return 0


def _announce(name: str, viewer: Viewer, options: argparse.Namespace) -> None:
    """Say where the robot is, and open a browser there."""
    if options.port and viewer.port != options.port:
        print(f"port {options.port} is in use, taking {viewer.port}")
    print(f"{clean(name)}: {viewer.url}  (Ctrl-C ends it)", flush=True)
    if not options.no_open and not webbrowser.open(viewer.url):
        print("no browser was found here: open the address above", flush=True)
