# SPDX-License-Identifier: BSD-3-Clause
"""Cart-pole: balance by LQR, swing up by iLQR, and stay on that motion by time-varying LQR.

Run it with ``python examples/cart_pole.py``; it prints what it finds, checks that energy and work
agree, and writes two plots. ``--no-plots`` does without matplotlib.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import phistar
from phistar.control import (
    Policy,
    QuadraticCost,
    Regulator,
    Solution,
    Tracker,
    Trajectory,
    ilqr,
    lqr,
    rollout,
    tv_lqr,
    work,
)

MOTOR = ["slider"]
PUSH = 10.0  # N, as in the robot's file
PLANNED = 8.0  # N, what a plan may use; the rest is for feedback
TILTS = (0.1, 0.2, 0.3)  # rad
KICK = 0.6  # rad/s
DT, STEPS = 0.02, 120  # of the swing-up
BALANCE_WEIGHTS = [1.0, 10.0, 1.0, 1.0]  # cart, pole, their velocities


def balance(robot: phistar.Robot) -> tuple[Regulator, Trajectory]:
    """Start with the pole tilted, several tilts in one batch, and let LQR bring it back."""
    hold = lqr(robot, robot.neutral(), BALANCE_WEIGHTS, 0.1, actuated=MOTOR)
    start = robot.configuration({"hinge": np.array(TILTS)})
    still = np.zeros((len(TILTS), robot.nv))
    motion = rollout(robot, start, still, held(hold), 0.005, 1200)
    return hold, motion


def held(hold: Regulator) -> Policy:
    """A regulator as the policy of a roll-out, with what the motor can do."""
    return lambda _, q, v: np.clip(hold(q, v), -PUSH, PUSH)


def swing_up(robot: phistar.Robot, *, progress: bool = True) -> Solution:
    """From hanging to standing."""
    cost = QuadraticCost(
        robot,
        robot.neutral(),
        Q=[0.1, 0.1, 0.01, 0.01],
        R=0.01,
        Q_final=100.0,
        actuated=MOTOR,
    )
    hanging = robot.configuration({"hinge": np.pi})
    return ilqr(cost, hanging, dt=DT, steps=STEPS, limits=PLANNED, progress=progress)


def track(
    robot: phistar.Robot, found: Solution
) -> tuple[Tracker, Trajectory, Trajectory, Trajectory]:
    """Push the start aside and repeat the motion: with feedback, and with the same forces alone."""
    nominal = found.trajectory
    tracker = tv_lqr(
        robot, nominal, [10.0, 10.0, 1.0, 1.0], 0.1, Q_final=100.0, actuated=MOTOR, limits=PUSH
    )
    rng = np.random.default_rng(0)
    q = nominal.q[0] + rng.normal(scale=0.1, size=(8, robot.nq))
    v = rng.normal(scale=0.1, size=(8, robot.nv))
    closed = rollout(robot, q, v, tracker, nominal.dt, nominal.steps)
    opened = rollout(robot, q, v, lambda k, *_: nominal.tau[k], nominal.dt, nominal.steps)
    hold = lqr(robot, robot.neutral(), BALANCE_WEIGHTS, 0.1, actuated=MOTOR, dt=nominal.dt)
    kicked = closed.v[-1] + np.array([0.0, KICK])
    after = rollout(robot, closed.q[-1], kicked, held(hold), nominal.dt, 200)
    return tracker, closed, opened, after


def check_energy(robot: phistar.Robot, motion: Trajectory) -> float:
    """Largest disagreement of energy and work, relative to the largest energy; it must be O(dt)."""
    energy, done = work(robot, motion)
    gap = float(np.abs(energy - done).max() / np.abs(energy).max())
    if gap > 2.0 * motion.dt:
        raise SystemExit(f"energy and work differ by {gap:.1e}, more than steps of this length do")
    return gap


def plot_balance(motion: Trajectory, path: Path) -> None:
    """Angle, cart and push over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 7), layout="constrained")
    axes = figure.subplots(3, sharex=True)
    for i, tilt in enumerate(TILTS):
        label = f"start at {tilt:.1f} rad"
        axes[0].plot(motion.t, motion.q[:, i, 1], label=label)
        axes[1].plot(motion.t, motion.q[:, i, 0], label=label)
        axes[2].plot(motion.t[:-1], motion.tau[:, i, 0], label=label)
    axes[0].set(title="Cart-pole balanced by LQR", ylabel="pole angle [rad]")
    axes[1].set(ylabel="cart [m]")
    axes[2].set(ylabel="push [N]", xlabel="time [s]")
    for ax in axes:
        ax.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(path, dpi=120)


def plot_swing_up(
    robot: phistar.Robot,
    found: Solution,
    closed: Trajectory,
    opened: Trajectory,
    after: Trajectory,
    path: Path,
) -> None:
    """The motion, perturbed with and without feedback; forces; energy."""
    from matplotlib.figure import Figure

    nominal = found.trajectory
    figure = Figure(figsize=(9, 9), layout="constrained")
    axes = figure.subplots(3)
    end = nominal.t[-1]
    axes[0].plot(opened.t, opened.q[..., 1], color="tab:red", alpha=0.5, lw=1)
    axes[0].plot(closed.t, closed.q[..., 1], color="tab:blue", alpha=0.6, lw=1)
    axes[0].plot(end + after.t, after.q[..., 1], color="tab:green", alpha=0.6, lw=1)
    axes[0].plot(nominal.t, nominal.q[:, 1], "k--", lw=2)
    lines = [axes[0].lines[i] for i in (-1, 8, 0, 16)]
    names = [
        "iLQR plan",
        "with TV-LQR",
        "same forces, no feedback",
        f"kicked by {KICK} rad/s, LQR",
    ]
    axes[0].legend(lines, names, loc="best")
    axes[0].set(
        title="Cart-pole swing-up, eight disturbed starts",
        ylabel="pole angle [rad]",
        ylim=(-3, 4.5),
    )
    axes[1].plot(closed.t[:-1], closed.tau[..., 0], color="tab:blue", alpha=0.4, lw=1)
    axes[1].plot(end + after.t[:-1], after.tau[..., 0], color="tab:green", alpha=0.4, lw=1)
    axes[1].plot(nominal.t[:-1], nominal.tau[:, 0], "k--", lw=2)
    axes[1].axhline(PUSH, color="gray", ls=":")
    axes[1].axhline(-PUSH, color="gray", ls=":")
    axes[1].legend(
        [axes[1].lines[i] for i in (-3, 0, 8, -1)],
        ["iLQR plan", "with TV-LQR", "LQR", "limit of the motor"],
    )
    axes[1].set(ylabel="push [N]")
    energy, done = work(robot, nominal)
    axes[2].plot(nominal.t, energy, label="energy gained")
    axes[2].plot(nominal.t, done, "--", label="work of the push")
    axes[2].legend()
    axes[2].set(title="Energy of the plan", ylabel="energy [J]", xlabel="time [s]")
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.set_xlim(0, end + after.t[-1])
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("plots"), help="folder of the plots")
    parser.add_argument("--no-plots", action="store_true")
    options = parser.parse_args(arguments)
    robot = phistar.load("cartpole")

    hold, balanced = balance(robot)
    print("LQR at the top: closed-loop eigenvalues", np.round(hold.eigenvalues, 3), "1/s")
    for i, tilt in enumerate(TILTS):
        left = np.abs(hold.error(balanced.q[-1, i], balanced.v[-1, i])).max()
        print(f"  from {tilt:.1f} rad: largest error after {balanced.t[-1]:.0f} s is {left:.1e}")
    print(f"  energy and work differ by {check_energy(robot, balanced):.1e}, relative")

    found = swing_up(robot)
    print("iLQR swing-up,", found)
    tracker, closed, opened, after = track(robot, found)
    with_feedback, without = (np.abs(tracker.errors(x)[-1]).max() for x in (closed, opened))
    print(f"  largest final error of 8 disturbed starts: {with_feedback:.3f} with TV-LQR, ", end="")
    print(f"{without:.3f} without; {np.abs(after.q[-1]).max():.1e} after a kick and 4 s of LQR")
    print(f"  energy and work differ by {check_energy(robot, found.trajectory):.1e}, relative")

    if not options.no_plots:
        options.out.mkdir(parents=True, exist_ok=True)
        plot_balance(balanced, options.out / "cart_pole_balance.png")
        path = options.out / "cart_pole_swing_up.png"
        plot_swing_up(robot, found, closed, opened, after, path)
        print(f"plots in {options.out}")


if __name__ == "__main__":
    main()
