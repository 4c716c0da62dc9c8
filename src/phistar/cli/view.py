# SPDX-License-Identifier: BSD-3-Clause
"""``phistar view ROBOT``: a robot in a browser, with sliders, a motion from a file, its algebra."""

from __future__ import annotations

import argparse
import contextlib
import time
import webbrowser

from phistar.cli import UsageError
from phistar.cli.options import add_loading, add_meshes, add_robot, add_tree, load_closing
from phistar.cli.terminal import clean
from phistar.cli.usage_errors import usage_errors
from phistar.errors import ArgumentError
from phistar.robot import Robot
from phistar.sim import Simulation, Simulator
from phistar.viewer import Viewer
from phistar.viewer.web_server import DEFAULT_PORT

EXAMPLE = "phistar view quadruped --trajectory motion.npz"
STEP_SECONDS = 1e-3
STEPS_OF_A_PICTURE = 16
DROP_METRES = 0.2
"""Height from which a robot with a free base falls."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_robot(parser)
    text = "motion to play, a .npz, .csv or .mcap file of phistar simulate --out"
    parser.add_argument("--trajectory", metavar="FILE", help=text)
    text = "let it fall on the ground, without joint forces: contact forces, gaps, energies"
    parser.add_argument("--ground", action="store_true", help=text)
    text = f"port on this machine (default: {DEFAULT_PORT}, or the next that is free)"
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=text)
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    add_meshes(parser)
    add_loading(parser)
    add_tree(parser)


def run(options: argparse.Namespace) -> int:
    """Show the robot until Ctrl-C."""
    if options.ground and options.trajectory:
        raise UsageError("--ground moves the robot by itself, so that --trajectory has no place")
    robot = load_closing(options.robot, options)
    motion = Simulation.load(options.trajectory, robot) if options.trajectory else None
    show = {"port": options.port, "mesh_folders": options.meshes}
    with usage_errors():
        sim = _raised(robot) if options.ground else None
        if sim is not None:
            _say_what_touches(sim)
        viewer = robot.view(motion=motion, **show) if sim is None else sim.view(**show)
    with contextlib.suppress(KeyboardInterrupt), viewer:
        _announce(robot.name, viewer, options)
        if sim is None:
            viewer.wait()
        else:
            _step_in_real_time(sim)
    return 0


def _raised(robot: Robot) -> Simulator:
    """One robot at home, a free base with its lowest point above the ground z = 0."""
    sim = robot.simulator(1, dt=STEP_SECONDS)
    free = [robot.joints[name] for name in robot.joint_names if robot.joints[name].kind == "free"]
    q = robot.home.copy()
    if free:
        lowest = float(sim.contacts.gap.min())
        q[free[0].q_slice.start + 2] += DROP_METRES - lowest
    sim.reset(q=q)
    return sim


def _say_what_touches(sim: Simulator) -> None:
    """Links whose shapes touch nothing pass through the ground, which looks like a fault."""
    try:
        names = list(dict.fromkeys(sim.contacts.names))
    except ArgumentError:
        print("nothing of this robot touches the ground: it has no shapes that could")
        return
    told = ", ".join(map(clean, names))
    print(f"the ground is touched by {told}; everything else passes through it")


def _step_in_real_time(sim: Simulator) -> None:
    """Steps as time goes by, until Ctrl-C."""
    begun, taken = time.monotonic(), 0
    while True:
        sim.step(substeps=STEPS_OF_A_PICTURE)
        taken += STEPS_OF_A_PICTURE
        time.sleep(max(begun + taken * STEP_SECONDS - time.monotonic(), 0.0))


def _announce(name: str, viewer: Viewer, options: argparse.Namespace) -> None:
    """Say where the robot is, and open a browser there."""
    if options.port and viewer.port != options.port:
        print(f"port {options.port} is in use, taking {viewer.port}")
    print(f"{clean(name)}: {viewer.url}  (Ctrl-C ends it)", flush=True)
    if not options.no_open and not webbrowser.open(viewer.url):
        print("no browser was found here: open the address above", flush=True)
