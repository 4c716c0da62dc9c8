# SPDX-License-Identifier: BSD-3-Clause
"""Panda: reach a pose from several starts by iLQR, stay on the motion when disturbed by TV-LQR.

Run it with ``python examples/panda_reach.py``; it prints what it finds, checks that energy and work
agree, and writes two plots. ``--no-plots`` does without matplotlib.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import phistar
from phistar.control import (
    FrameGoal,
    QuadraticCost,
    Solution,
    Tracker,
    Trajectory,
    ilqr,
    rollout,
    tv_lqr,
    work,
)

HAND = "panda_link8"
READY = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])  # rad
AWAY = np.array([1.0, 0.5, -0.5, 0.6, 0.3, 0.4, -0.7])  # rad, from READY to the goal
STARTS = READY + np.random.default_rng(1).normal(scale=0.2, size=(4, 7))
DT, STEPS = 0.01, 100


def goal(robot: phistar.Robot) -> np.ndarray:
    """Where the hand should be: a pose (4, 4)."""
    return robot.frame_pose(READY + AWAY, HAND)


def reach(robot: phistar.Robot, *, progress: bool = True) -> Solution:
    """Forces that bring the hand to the goal and the arm to rest, for all starts together."""
    n = robot.nv
    cost = QuadraticCost(
        robot,
        READY,
        Q=np.r_[np.full(n, 1e-3), np.full(n, 1e-2)],
        R=1e-3,
        Q_final=np.r_[np.full(n, 1e-3), np.full(n, 10.0)],
        frames=[FrameGoal(HAND, goal(robot), weight=0.0, final=1e3)],
    )
    return ilqr(cost, STARTS, dt=DT, steps=STEPS, limits="robot", progress=progress)


def missed(robot: phistar.Robot, q: np.ndarray) -> np.ndarray:
    """Distance of the hand from the goal [m]."""
    place = robot.frame_pose(q, HAND)[..., :3, 3]
    return np.linalg.norm(place - goal(robot)[:3, 3], axis=-1)


def track(robot: phistar.Robot, nominal: Trajectory) -> tuple[Tracker, Trajectory, Trajectory]:
    """Push the arm aside and repeat a motion: with feedback, and with the same forces alone."""
    n = robot.nv
    weights = np.r_[np.full(n, 1e3), np.full(n, 10.0)]
    tracker = tv_lqr(robot, nominal, weights, 0.01, limits="robot")
    rng = np.random.default_rng(2)
    q = nominal.q[0] + rng.normal(scale=0.03, size=(6, n))
    v = rng.normal(scale=0.03, size=(6, n))
    closed = rollout(robot, q, v, tracker, nominal.dt, nominal.steps)
    opened = rollout(robot, q, v, lambda k, *_: nominal.tau[k], nominal.dt, nominal.steps)
    return tracker, closed, opened


def first_of(found: Solution) -> Trajectory:
    """The motion from the first start."""
    batch = found.trajectory
    return Trajectory(batch.t, batch.q[:, 0], batch.v[:, 0], batch.tau[:, 0])


def check_energy(robot: phistar.Robot, motion: Trajectory) -> float:
    """Largest disagreement of energy and work, relative to the largest energy; it must be O(dt)."""
    energy, done = work(robot, motion)
    gap = float(np.abs(energy - done).max() / np.abs(energy).max())
    if gap > 2.0 * motion.dt:
        raise SystemExit(f"energy and work differ by {gap:.1e}, more than steps of this length do")
    return gap


def plot_reach(robot: phistar.Robot, found: Solution, path: Path) -> None:
    """How the hands arrive, what the motors do, how the iteration went."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 9), layout="constrained")
    axes = figure.subplots(3)
    motion = found.trajectory
    distance = 1e3 * missed(robot, motion.q)
    effort = np.array([robot.joints[name].limits.effort[0] for name in robot.joint_names])
    use = np.abs(motion.tau / effort).max(axis=-1)
    for i in range(distance.shape[1]):
        label = f"start {i}"
        axes[0].semilogy(motion.t, distance[:, i], label=label)
        axes[1].plot(motion.t[:-1], 100 * use[:, i], label=label)
        axes[2].semilogy(found.history[: found.iterations[i] + 1, i], label=label)
    axes[0].set(
        title="Panda reaches a pose, four starts in one batch",
        ylabel="hand to goal [mm]",
        xlabel="time [s]",
    )
    axes[1].set(
        title="Most loaded motor",
        ylabel="torque [% of its limit]",
        xlabel="time [s]",
        ylim=(0, 105),
    )
    axes[2].set(title="Convergence of iLQR", ylabel="cost", xlabel="iteration")
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.legend()
    figure.savefig(path, dpi=120)


def plot_tracking(
    robot: phistar.Robot,
    nominal: Trajectory,
    tracker: Tracker,
    closed: Trajectory,
    opened: Trajectory,
    path: Path,
) -> None:
    """Errors with and without feedback, one joint, and the energy."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 9), layout="constrained")
    axes = figure.subplots(3, sharex=True)
    n = robot.nv
    for motion, color in ((opened, "tab:red"), (closed, "tab:blue")):
        error = np.abs(tracker.errors(motion)[..., :n]).max(axis=-1)
        axes[0].semilogy(motion.t, error, color=color, alpha=0.6)
        axes[1].plot(motion.t, motion.q[..., 3], color=color, alpha=0.6, lw=1)
    axes[1].plot(nominal.t, nominal.q[:, 3], "k--", lw=2)
    axes[0].set(title="Panda, six disturbed starts: largest joint error", ylabel="error [rad]")
    axes[0].legend([axes[0].lines[i] for i in (0, 6)], ["same torques alone", "with TV-LQR"])
    axes[1].set(title=robot.joint_names[3], ylabel="angle [rad]")
    axes[1].legend(
        [axes[1].lines[i] for i in (-1, 0, 6)], ["iLQR plan", "same torques alone", "with TV-LQR"]
    )
    energy, done = work(robot, closed)
    axes[2].plot(closed.t, energy[:, 0], label="energy gained")
    axes[2].plot(closed.t, done[:, 0], "--", label="work of the motors")
    axes[2].set(
        title="Energy, first disturbed start with TV-LQR", ylabel="energy [J]", xlabel="time [s]"
    )
    axes[2].legend()
    for ax in axes:
        ax.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("plots"), help="folder of the plots")
    parser.add_argument("--no-plots", action="store_true")
    options = parser.parse_args(arguments)
    robot = phistar.load("panda")

    found = reach(robot)
    print("iLQR reach,", found)
    for i, distance in enumerate(missed(robot, found.trajectory.q[-1])):
        print(f"  start {i}: the hand ends {1e3 * distance:.2f} mm from the goal")

    nominal = first_of(found)
    tracker, closed, opened = track(robot, nominal)
    n = robot.nv
    for motion, name in ((closed, "with TV-LQR"), (opened, "same torques alone")):
        error = np.abs(tracker.errors(motion)[..., :n]).max(axis=(1, 2))
        print(f"{name}: largest joint error {error[0]:.3f} rad first, {error[-1]:.2g} rad at last")
    print(f"energy and work differ by {check_energy(robot, closed):.1e}, relative")

    if not options.no_plots:
        options.out.mkdir(parents=True, exist_ok=True)
        plot_reach(robot, found, options.out / "panda_reach.png")
        path = options.out / "panda_tracking.png"
        plot_tracking(robot, nominal, tracker, closed, opened, path)
        print(f"plots in {options.out}")


if __name__ == "__main__":
    main()
