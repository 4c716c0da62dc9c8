# SPDX-License-Identifier: BSD-3-Clause
"""``phistar simulate ROBOT``: a free motion, its energy, and files with its states."""

from __future__ import annotations

import argparse
import math
import sys
import time

import numpy as np

from phistar.cli import UsageError
from phistar.cli.loop_report import onto_loops
from phistar.cli.options import add_loading, add_robot, add_tree, load_closing, seed
from phistar.cli.series import check_target
from phistar.cli.terminal import clean, did_you_mean
from phistar.cli.usage_errors import usage_errors
from phistar.errors import pluralize
from phistar.model.kinematic_loops import active_loops
from phistar.robot import Robot
from phistar.sim import Simulation
from phistar.sim.result_size import large_simulation_text
from phistar.sim.run import SCHEME_NAMES
from phistar.sim.scheme_choice import AUTO
from phistar.sim.variables import VARIABLES

EXAMPLE = "phistar simulate quadruped --seconds 1 --out motion.npz"
DEFAULT_STEP_SECONDS = 1e-3
"""Seconds of a step, if none are given."""
MAX_EVENTS = 5
"""Passages near singular configurations that are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_robot(parser)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long (default: 1)")
    text = (
        f"length of a step in seconds (default: {DEFAULT_STEP_SECONDS}; dopri5 chooses its steps)"
    )
    parser.add_argument("--dt", type=float, help=text)
    text = f"one of {', '.join(SCHEME_NAMES)} (default: auto, rk4 unless joints are stiff)"
    parser.add_argument("--scheme", metavar="NAME", default=AUTO, help=text)
    text = "leave out springs, damping, dry friction and limits of the joints"
    parser.add_argument("--rigid", action="store_true", help=text)
    text = (
        f"what is stepped beside q: {', '.join(VARIABLES)} (default: v, or what the scheme needs)"
    )
    parser.add_argument("--variables", metavar="NAME", help=text)
    for name, what in (("q", "configuration"), ("v", "velocity")):
        text = f"{what} at the start, numbers with commas between (default: by --seed)"
        parser.add_argument(f"--{name}", metavar="NUMBERS", help=text)
    text = "draw the start at random (default: the robot's home, at rest)"
    parser.add_argument("--seed", type=seed, help=text)
    parser.add_argument("--every", type=int, default=1, help="store one state in so many steps")
    text = "write the motion to a .csv, .npz or .mcap file"
    parser.add_argument("--out", metavar="FILE", help=text)
    text = "draw joints, velocity and energy over time into a picture (needs matplotlib)"
    parser.add_argument("--plot", metavar="FILE", help=text)
    add_loading(parser)
    add_tree(parser)


def run(options: argparse.Namespace) -> int:
    """Simulate, print a report, write the files."""
    schemes = (AUTO, *SCHEME_NAMES)
    for name, known in ((options.scheme, schemes), (options.variables, tuple(VARIABLES))):
        if name is not None and name not in known:
            raise UsageError(
                f"no scheme or variable is called '{name}'; {did_you_mean(name, known)}"
            )
    if options.out:
        check_target("--out", options.out, (".csv", ".npz", ".mcap"))
    if options.plot:
        from phistar.drawing.figures import suffixes

        check_target("--plot", options.plot, suffixes())
    robot = load_closing(options.robot, options)
    q, v = _start(robot, options)
    if active_loops(robot.loops):
        q, v = onto_loops(robot, q, v)
    fixed = options.scheme != "dopri5"
    dt = DEFAULT_STEP_SECONDS if options.dt is None and fixed else options.dt
    _tell_of_many_states(robot, options, dt)
    begin = time.perf_counter()
    with usage_errors():
        sim = robot.simulate(
            q,
            v,
            duration=options.seconds,
            dt=dt,
            scheme=options.scheme,
            variables=options.variables,
            every=options.every,
            passive=not options.rigid,
        )
    _report(sim, time.perf_counter() - begin)
    if options.out:
        sim.save(options.out)
        print(f"{clean(options.out)}: {pluralize(len(sim.t), 'state')}")
    if options.plot:
        sim.plot(options.plot)
        print(f"{clean(options.plot)}: joints, velocity and energy over time")
    return 0


def _tell_of_many_states(robot: Robot, options: argparse.Namespace, dt: float | None) -> None:
    """A line before the work if the states take much memory; those that do not fit are refused."""
    steps = options.seconds / dt if dt else 0.0
    if not 0.0 < steps < math.inf or options.every < 1:
        return
    text = large_simulation_text(int(steps), options.every, 8 * (robot.nq + robot.nv))
    if text:
        print(f"phistar: keeping {text}; --every keeps fewer", file=sys.stderr)


def _start(robot: Robot, options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """The initial state of the options."""
    q, v = robot.home, np.zeros(robot.nv)
    if options.seed is not None:
        rng = np.random.default_rng(options.seed)
        q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    if options.q is not None:
        with usage_errors():
            q = robot.normalize(_numbers("q", options.q, robot.nq))
    return q, v if options.v is None else _numbers("v", options.v, robot.nv)


def _numbers(name: str, text: str, count: int) -> np.ndarray:
    words = text.replace(",", " ").split()
    try:
        values = np.array([float(word) for word in words])
    except ValueError:
        raise UsageError(f"--{name} is '{text}', expected numbers with commas between") from None
    if len(values) != count:
        raise UsageError(f"--{name} has {pluralize(len(values), 'number')}, expected {count}")
    return values


def _report(sim: Simulation, seconds: float) -> None:
    steps = pluralize(sim.steps, "step")
    print(f"{clean(sim.model.name)}: {sim.t[-1]:g} s in {steps} of {sim.scheme}")
    print(f"  state (q, {sim.variables}), by {sim.engine}, in {seconds:.3g} s")
    if sim.passive:
        print(f"  {', '.join(sim.passive)} of the joints act; --rigid leaves them out")
    energy = sim.energy()
    print(f"  energy {energy[0]:.6g} J at the start, {energy[-1]:.6g} J at the end")
    print(f"  {sim.drift()}")
    if active_loops(sim.model.loops):
        _report_loops(sim)


def _report_loops(sim: Simulation) -> None:
    """Largest loop error, and passages near singular configurations."""
    error = np.abs(sim.loop_error()).max(initial=0.0)
    count = pluralize(len(active_loops(sim.model.loops)), "loop")
    print(f"  {count} open by at most {error:.1e} [m, rad]")
    for event in sim.events[:MAX_EVENTS]:
        print(f"  {clean(event)}")
    if len(sim.events) > MAX_EVENTS:
        print(f"  ... {pluralize(len(sim.events) - MAX_EVENTS, 'more event')}")
    if not sim.events:
        print("  no passage near a singular configuration")
