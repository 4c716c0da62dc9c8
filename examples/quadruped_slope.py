# SPDX-License-Identifier: BSD-3-Clause
"""Quadrupeds on slopes: they stand below the cone of friction and slide beyond it.

Run it with ``python examples/quadruped_slope.py``; it prints how far the robots slide, checks the
cone, and writes a plot. ``--no-plots`` does without matplotlib.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import phistar
from phistar.sim import Plane

MU = 0.6
ANGLES = (10.0, 20.0, 35.0)  # degrees; the cone ends at 31
DT, SECONDS = 1e-3, 1.0
KP, KD = 4.0, 0.1  # N m/rad, N m s/rad
FOOT_RADIUS = 0.0125


def standing(robot: phistar.Robot, angle: float) -> np.ndarray:
    """All feet on a slope that goes down along x."""
    q = robot.neutral()
    q[7:] = np.tile([0.0, 0.7, -1.4], 4)
    height = FOOT_RADIUS - robot.frame_pose(q, "FL_FOOT")[2, 3]
    q[:3] = height * np.array([np.sin(angle), 0.0, np.cos(angle)])
    q[3:7] = [0.0, np.sin(angle / 2), 0.0, np.cos(angle / 2)]
    return np.asarray(q)


def holding(robot: phistar.Robot, q: np.ndarray) -> np.ndarray:
    """Joint forces that hold the robot if its feet share its weight: gravity compensation."""
    feet = [name for name in robot.frame_names if name.endswith("FOOT")]
    weight = 9.81 * sum(link.mass for link in robot.model.links)
    tau = robot.gravity_force(q)
    for foot in feet:
        tau = tau - robot.jacobian(q, foot, "world_aligned")[5] * weight / len(feet)
    tau[:6] = 0.0
    return np.asarray(tau)


def slide(robot: phistar.Robot, degrees: float) -> tuple[np.ndarray, np.ndarray]:
    """Times, and how far the trunk has come down the slope."""
    angle = np.radians(degrees)
    start = standing(robot, angle)
    sim = robot.simulator(1, dt=DT, ground=Plane.slope(angle), friction=MU)
    sim.reset(q=start)
    hold = holding(robot, start)
    down = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    times, places = [], []
    for _ in range(round(SECONDS / DT / 2)):
        tau = hold.copy()
        tau[6:] += KP * (start[7:] - sim.q[0, 7:]) - KD * sim.v[0, 6:]
        state = sim.step(tau, substeps=2)
        times.append(state.time[0])
        places.append((state.q[0, :3] - start[:3]) @ down)
        feet = sim.contacts
        assert (feet.tangential_force <= MU * feet.normal_force + 1e-6).all(), "outside the cone"
    return np.array(times), np.array(places)


def plot(found: dict[float, tuple[np.ndarray, np.ndarray]], path: Path) -> None:
    """Distance over time."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    for degrees, (t, x) in found.items():
        axes.plot(t, x, label=f"{degrees:g}°")
    axes.set_xlabel("time [s]")
    axes.set_ylabel("down the slope [m]")
    axes.set_title(f"quadruped on slopes, friction {MU:g}")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)
    print(f"written: {path}")


def main(arguments: Sequence[str] | None = None) -> None:
    """All slopes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("plots"), help="folder of the plots")
    parser.add_argument("--no-plots", action="store_true")
    options = parser.parse_args(arguments)
    robot = phistar.load("quadruped")
    found = {degrees: slide(robot, degrees) for degrees in ANGLES}
    for degrees, (t, x) in found.items():
        limit = "below" if np.tan(np.radians(degrees)) < MU else "beyond"
        print(f"{degrees:g} degrees, {limit} the cone: {x[-1]:.3f} m in {t[-1]:.2g} s")
    if not options.no_plots:
        options.out.mkdir(parents=True, exist_ok=True)
        plot(found, options.out / "quadruped_slope.png")


if __name__ == "__main__":
    main()
