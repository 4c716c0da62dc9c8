# SPDX-License-Identifier: BSD-3-Clause
"""``phistar report ROBOT [MOTION]``: a robot and its motion on one page."""

from __future__ import annotations

import argparse

from phistar.cli.options import add_loading, add_meshes, add_robot, add_tree, load_closing
from phistar.cli.series import check_target
from phistar.cli.terminal import clean
from phistar.report import write_report
from phistar.sim import Simulation

EXAMPLE = "phistar report quadruped motion.npz --out report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_robot(parser)
    text = "a .npz, .csv or .mcap file of phistar simulate --out"
    parser.add_argument("motion", metavar="FILE", nargs="?", help=text)
    text = "the page to write (default: report.html)"
    parser.add_argument("--out", metavar="FILE", default="report.html", help=text)
    add_meshes(parser)
    parser.add_argument("--no-timings", action="store_true", help="do not time programs here")
    add_loading(parser)
    add_tree(parser)


def run(options: argparse.Namespace) -> int:
    """Write the page."""
    check_target("--out", options.out, (".html",))
    robot = load_closing(options.robot, options)
    sim = Simulation.load(options.motion, robot) if options.motion else None
    path = write_report(
        robot, options.out, sim, mesh_folders=options.meshes, timings=not options.no_timings
    )
    print(f"{clean(path)}: {clean(robot.name)}, {path.stat().st_size / 1e6:.1f} MB")
    return 0
