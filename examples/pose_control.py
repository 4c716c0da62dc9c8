# SPDX-License-Identifier: BSD-3-Clause
"""UR5 and Panda: bring the hand to a pose by a law with a Lyapunov function, and three others.

Run it with ``python examples/pose_control.py``; it prints how each motion ends, also where the law
must fail (gravity left alone, a stretched arm), and writes a plot for each robot. ``--no-plots``
does without matplotlib.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import phistar
from phistar.control import (
    Regulation,
    computed_torque,
    operational_space,
    pd_gravity,
    pose_control,
    regulate,
)

TIPS = {"ur5": "tool0", "panda": "panda_link8"}
READY = {
    "ur5": np.array([0.0, -1.2, 1.5, -0.8, 1.0, 0.3]),  # rad
    "panda": np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8]),
}
AWAY = 0.4 * np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0])  # rad, from READY to the goal
DT, DURATION = 0.004, 4.0


def goal(robot: phistar.Robot) -> np.ndarray:
    """Joint angles at which the hand is where it should be."""
    return READY[robot.name] + AWAY[: robot.nv]


def from_many_starts(robot: phistar.Robot, count: int = 4) -> Regulation:
    """The corrected Control 8.2 from several starts, in one batch."""
    tip = TIPS[robot.name]
    rng = np.random.default_rng(0)
    starts = READY[robot.name] + rng.normal(scale=0.2, size=(count, robot.nv))
    law = pose_control(robot, tip, robot.frame_pose(goal(robot), tip))
    return regulate(law, starts, duration=DURATION, dt=DT, progress=True)


def side_by_side(robot: phistar.Robot) -> dict[str, Regulation]:
    """Four laws from the same start, and the first one with gravity left alone."""
    tip, place = TIPS[robot.name], goal(robot)
    pose = robot.frame_pose(place, tip)
    laws = {
        "pose (8.2)": pose_control(robot, tip, pose),
        "operational space": operational_space(robot, tip, pose),
        "computed torque": computed_torque(robot, place),
        "PD with gravity": pd_gravity(robot, place),
        "pose, gravity left alone": pose_control(robot, tip, pose, gravity=False),
    }
    return {
        name: regulate(law, READY[robot.name], duration=DURATION, dt=DT)
        for name, law in laws.items()
    }


def stretched(robot: phistar.Robot) -> Regulation:
    """A stretched pendulum told to pull its end straight in: no joint can, exactly there."""
    tip = robot.link_names[-1]
    q = np.array([0.3, 0.0])
    pose = robot.frame_pose(q, tip)
    pose[:3, 3] = 0.8 * pose[:3, 3]
    law = pose_control(robot, tip, pose, length=0.0)
    beside = np.array([[0.0, 0.0], [0.0, 0.01]])
    return regulate(law, q + beside, duration=DURATION, dt=DT)


def apart(robot: phistar.Robot, found: Regulation) -> np.ndarray:
    """Distance of the hand from its place [m]."""
    tip = TIPS[robot.name]
    place = robot.frame_pose(goal(robot), tip)
    return np.linalg.norm(robot.frame_pose(found.q, tip)[..., :3, 3] - place[:3, 3], axis=-1)


def plot(robot: phistar.Robot, starts: Regulation, laws: dict[str, Regulation], path: Path) -> None:
    """Lyapunov function and error of all starts, and the laws beside each other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 9), layout="constrained")
    axes = figure.subplots(3, sharex=True)
    for k in range(starts.outcome.size):
        axes[0].semilogy(starts.t, starts.lyapunov[:, k], label=f"start {k}")
        axes[1].semilogy(starts.t, starts.error[:, k], label=f"start {k}")
    for name, found in laws.items():
        axes[2].semilogy(found.t, 1e3 * apart(robot, found), label=name)
    title = f"{robot.name}: Lyapunov function of pose control, ½ η·η + ½ c₂ e·e"
    axes[0].set(title=title, ylabel="V [J]")
    axes[1].set(title="Error of the hand's origin and axes", ylabel="|e| [m]")
    axes[2].set(title="Laws beside each other", ylabel="hand to goal [mm]", xlabel="time [s]")
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.legend()
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("plots"), help="folder of the plots")
    parser.add_argument("--no-plots", action="store_true")
    options = parser.parse_args(arguments)
    for name in TIPS:
        robot = phistar.load(name)
        starts, laws = from_many_starts(robot), side_by_side(robot)
        print(starts)
        for law, found in laws.items():
            print(f"  {law}: {found.describe()}")
        if not options.no_plots:
            options.out.mkdir(parents=True, exist_ok=True)
            plot(robot, starts, laws, options.out / f"{name}_pose_control.png")
    print("stretched, the goal on its own ray, exactly and 0.01 rad beside:")
    print(stretched(phistar.load("double_pendulum")))
    if not options.no_plots:
        print(f"plots in {options.out}")


if __name__ == "__main__":
    main()
