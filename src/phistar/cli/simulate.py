# SPDX-License-Identifier: BSD-3-Clause
"""``phistar simulate ROBOT``: a free motion, its energy, and files with its states."""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from phistar.cli import UsageError
from phistar.cli.options import add_loading, add_robot, load_robot
from phistar.cli.text import clean, counted, did_you_mean
from phistar.robot import Robot
from phistar.sim import Simulation
from phistar.sim.simulate import NAMES
from phistar.sim.variables import VARIABLES

SUFFIXES = (".csv", ".npz")
STEP = 1e-3
"""Seconds of a step, if none are given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_robot(parser)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long (default: 1)")
    text = f"length of a step in seconds (default: {STEP}; dopri5 chooses its steps)"
    parser.add_argument("--dt", type=float, help=text)
    text = f"one of {', '.join(NAMES)} (default: rk4)"
    parser.add_argument("--scheme", metavar="NAME", default="rk4", help=text)
    text = (
        f"what is stepped beside q: {', '.join(VARIABLES)} (default: v, or what the scheme needs)"
    )
    parser.add_argument("--variables", metavar="NAME", help=text)
    for name, what in (("q", "configuration"), ("v", "velocity")):
        text = f"{what} at the start, numbers with commas between (default: by --seed)"
        parser.add_argument(f"--{name}", metavar="NUMBERS", help=text)
    text = "draw the start at random (default: the robot's home, at rest)"
    parser.add_argument("--seed", type=int, help=text)
    parser.add_argument("--every", type=int, default=1, help="keep each so many-th state")
    text = "write the states to a .csv or .npz file"
    parser.add_argument("--out", metavar="FILE", help=text)
    text = "draw energy and velocity over time into a picture (needs matplotlib)"
    parser.add_argument("--plot", metavar="FILE", help=text)
    add_loading(parser)


def run(options: argparse.Namespace) -> int:
    """Simulate, say what came of it, write the files."""
    for name, known in ((options.scheme, NAMES), (options.variables, tuple(VARIABLES))):
        if name is not None and name not in known:
            raise UsageError(
                f"no scheme or variable is called '{name}'; {did_you_mean(name, known)}"
            )
    if options.out and Path(options.out).suffix not in SUFFIXES:
        raise UsageError(f"--out is '{options.out}', expected a name that ends in .csv or .npz")
    if options.plot:
        from phistar.cli.plots import energy_plot, figure

        figure(1.0, 1.0)
    robot = load_robot(options.robot, options)
    q, v = _start(robot, options)
    fixed = options.scheme != "dopri5"
    begin = time.perf_counter()
    sim = robot.simulate(
        q,
        v,
        duration=options.seconds,
        dt=STEP if options.dt is None and fixed else options.dt,
        scheme=options.scheme,
        variables=options.variables,
        every=options.every,
    )
    _report(sim, time.perf_counter() - begin)
    if options.out:
        write(sim, options.out)
        print(f"{clean(options.out)}: {counted(len(sim.t), 'state')}")
    if options.plot:
        energy_plot(sim, options.plot)
        print(f"{clean(options.plot)}: energy and velocity over time")
    return 0


def _start(robot: Robot, options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """The state that the options ask for."""
    q, v = robot.home, np.zeros(robot.nv)
    if options.seed is not None:
        rng = np.random.default_rng(options.seed)
        q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    q = q if options.q is None else robot.normalize(_numbers("q", options.q, robot.nq))
    return q, v if options.v is None else _numbers("v", options.v, robot.nv)


def _numbers(name: str, text: str, count: int) -> np.ndarray:
    parts = text.replace(",", " ").split()
    try:
        values = np.array([float(part) for part in parts])
    except ValueError:
        raise UsageError(f"--{name} is '{text}', expected numbers with commas between") from None
    if len(values) != count:
        raise UsageError(f"--{name} has {counted(len(values), 'number')}, expected {count}")
    return values


def _report(sim: Simulation, seconds: float) -> None:
    print(
        f"{clean(sim.model.name)}: {sim.t[-1]:g} s in {counted(sim.steps, 'step')} of {sim.scheme}"
    )
    print(f"  state (q, {sim.variables}), by {sim.engine}, in {seconds:.3g} s")
    energy = sim.energy()
    print(f"  energy {energy[0]:.6g} J at the start, {energy[-1]:.6g} J at the end")
    print(f"  {sim.drift()}")


def write(sim: Simulation, path: str) -> None:
    """States as a table with a head, or as arrays ``t``, ``q``, ``v``, ``energy``."""
    energy = sim.energy()
    if path.endswith(".npz"):
        np.savez_compressed(path, t=sim.t, q=sim.q, v=sim.v, energy=energy)
        return
    head = ["t", *_names(sim, "q"), *_names(sim, "v"), "energy"]
    rows = np.column_stack([sim.t, sim.q, sim.v, energy])
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows([repr(float(x)) for x in row] for row in rows)


def _names(sim: Simulation, space: str) -> list[str]:
    """A name for each entry: ``q.joint``, or ``q.joint.2`` where a joint has several."""
    size = sim.q.shape[-1] if space == "q" else sim.v.shape[-1]
    names = [""] * size
    for joint_name in sim.model.joint_names:
        joint = sim.model.joints[joint_name]
        own = range(size)[joint.q_slice if space == "q" else joint.v_slice]
        for i, place in enumerate(own):
            names[place] = f"{space}.{joint_name}" + (f".{i}" if len(own) > 1 else "")
    return names
