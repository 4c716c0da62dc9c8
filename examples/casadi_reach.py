# SPDX-License-Identifier: BSD-3-Clause
"""Panda in CasADi: bring the hand to a pose with the least effort, within all limits, by IPOPT.

Run it with ``python examples/casadi_reach.py``; ``--engine c`` runs dynamics as compiled C. It
prints what it finds, repeats the motion by the robot itself and writes a plot. ``--no-plots`` does
without matplotlib. It needs ``pip install "phistar[casadi]"``.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import phistar
from phistar.interop import casadi as pc

HAND = "panda_link8"
READY = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])  # rad
AWAY = np.array([1.0, 0.5, -0.5, 0.6, 0.3, 0.4, -0.7])  # rad, from READY to the goal
DURATION, STEPS = 1.0, 40


@dataclass(frozen=True)
class Reach:
    """A motion in steps of dt: q (n + 1, 7), v (n + 1, 7), tau (n, 7)."""

    dt: float
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    iterations: int
    seconds: float


def problem_of(
    robot: phistar.Robot, steps: int, dynamics: Any, pose: Any
) -> tuple[ca.Opti, ca.MX, ca.MX, ca.MX]:
    """The problem, with any functions for accelerations (nv, steps) and the hand's pose.

    Steps are semi-implicit: v first, then q with the new v, as ``robot.step``.
    """
    n, dt = robot.nv, DURATION / steps
    problem = ca.Opti()
    q, v = problem.variable(n, steps + 1), problem.variable(n, steps + 1)
    tau = problem.variable(n, steps)
    problem.subject_to(v[:, 1:] == v[:, :-1] + dt * dynamics(q[:, :-1], v[:, :-1], tau))
    problem.subject_to(q[:, 1:] == q[:, :-1] + dt * v[:, 1:])
    problem.subject_to(q[:, 0] == READY)
    problem.subject_to(v[:, 0] == 0)
    problem.subject_to(v[:, -1] == 0)
    goal = robot.frame_pose(READY + AWAY, HAND)
    reached = pose(q[:, -1])
    problem.subject_to(reached[:3, 3] == goal[:3, 3])
    # Two axes that point as they should: the third follows.
    problem.subject_to(reached[:3, 2].T @ goal[:3, 0] == 0)
    problem.subject_to(reached[:3, 2].T @ goal[:3, 1] == 0)
    problem.subject_to(reached[:3, 0].T @ goal[:3, 1] == 0)
    limits = robot.limits
    repeat = np.ones((1, steps + 1))
    problem.subject_to(
        problem.bounded(limits.lower[:, None] * repeat, q, limits.upper[:, None] * repeat)
    )
    effort = limits.effort[:, None] * np.ones((1, steps))
    problem.subject_to(problem.bounded(-effort, tau, effort))
    held = robot.gravity_force(READY)
    problem.minimize(ca.sumsqr((tau - held) / limits.effort) + 1e-3 * ca.sumsqr(v))
    problem.set_initial(q, READY[:, None] + AWAY[:, None] * np.linspace(0.0, 1.0, steps + 1))
    problem.set_initial(tau, held[:, None] * np.ones((1, steps)))
    return problem, q, v, tau


def solve(problem: ca.Opti, q: ca.MX, v: ca.MX, tau: ca.MX) -> Reach:
    """What IPOPT finds."""
    problem.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
    start = time.perf_counter()
    found = problem.solve()
    seconds = time.perf_counter() - start
    arrays = (found.value(x).T for x in (q, v, tau))
    steps = tau.size2()
    return Reach(DURATION / steps, *arrays, found.stats()["iter_count"], seconds)


def reach(robot: phistar.Robot, steps: int, engine: str = "callback") -> Reach:
    """The motion, with functions of the robot."""
    dynamics = pc.function(robot, "forward_dynamics", samples=steps, engine=engine)
    pose = pc.function(robot, "frame_pose", frame=HAND)
    return solve(*problem_of(robot, steps, dynamics, pose))


def missed(robot: phistar.Robot, motion: Reach) -> tuple[float, float]:
    """Where the robot ends up under the same forces: hand from its goal [m], speed [rad/s]."""
    q, v = motion.q[0], motion.v[0]
    for tau in motion.tau:
        q, v = robot.step(q, v, tau, motion.dt)
    place = robot.frame_pose(q, HAND)[:3, 3]
    goal = robot.frame_pose(READY + AWAY, HAND)[:3, 3]
    return float(np.linalg.norm(place - goal)), float(np.abs(v).max())


def plot(robot: phistar.Robot, motion: Reach, path: Path) -> None:
    """Angles and forces, as parts of their limits, over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    axes = figure.subplots(2, sharex=True)
    t = motion.dt * np.arange(len(motion.q))
    axes[0].plot(t, motion.q, label=robot.joint_names)
    axes[0].set(title="Panda: a reach with the least effort", ylabel="angles [rad]")
    axes[0].legend(fontsize=7)
    axes[1].step(t[:-1], motion.tau / robot.limits.effort, where="post")
    axes[1].set(ylabel="force / limit", xlabel="time [s]")
    for ax in axes:
        ax.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("plots"), help="folder of the plots")
    parser.add_argument("--no-plots", action="store_true")
    parser.add_argument("--engine", choices=pc.ENGINES, default="callback")
    options = parser.parse_args(arguments)
    robot = phistar.load("panda")
    motion = reach(robot, STEPS, options.engine)
    print(f"reach: {motion.iterations} iterations of IPOPT, {motion.seconds:.2f} s")
    far, speed = missed(robot, motion)
    print(f"  the robot under the same forces: {far:.1e} m from the goal, {speed:.1e} rad/s")
    share = np.abs(motion.tau / robot.limits.effort).max()
    print(f"  largest force: {100 * share:.0f} % of its limit")
    if not options.no_plots:
        options.out.mkdir(parents=True, exist_ok=True)
        plot(robot, motion, options.out / "casadi_reach.png")
        print(f"plots in {options.out}")


if __name__ == "__main__":
    main()
