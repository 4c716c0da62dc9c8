# SPDX-License-Identifier: BSD-3-Clause
"""Panda: pick up a payload, once with a law that knows of it and once with one that does not.

Inverse kinematics finds where to grasp and where to lift to, ``with_payload`` makes the robot that
holds the load. Run it with ``python examples/panda_payload.py``; it prints how far the hand is off,
checks the motors' work, and writes a plot. ``--no-plots`` does without matplotlib.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import phistar
from phistar.control import Trajectory, rollout, work
from phistar.model import make_pose

HAND = "panda_link8"
MASS, COM, INERTIA = 2.0, (0.0, 0.0, 0.12), (0.006, 0.006, 0.004)  # kg, m, kg m^2 in the hand
PLACES = {"above": (0.5, 0.0, 0.45), "grasp": (0.5, 0.0, 0.25), "lifted": (0.35, 0.35, 0.55)}  # m
STIFFNESS, DAMPING = 60.0, 15.0  # 1/s^2, 1/s
DT, STEPS = 0.002, 750  # a motion from one place to the next


def find_places(arm: phistar.Robot) -> dict[str, np.ndarray]:
    """Configurations with the hand at the places, pointing down, all in one batch."""
    goals = np.array([make_pose(place, (np.pi, 0.0, 0.0)) for place in PLACES.values()])
    found = arm.inverse_kinematics({HAND: goals}, arm.home)
    print(found)
    if not found:
        raise SystemExit("a place is out of reach")
    return dict(zip(PLACES, found.q, strict=True))


def blend(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and v̇ (steps, n) from rest to rest: the polynomial of fifth degree in time."""
    s = np.linspace(0.0, 1.0, STEPS)[:, None]
    time = DT * (STEPS - 1)
    way = end - start
    place = 10 * s**3 - 15 * s**4 + 6 * s**5
    speed = (30 * s**2 - 60 * s**3 + 30 * s**4) / time
    change = (60 * s - 180 * s**2 + 120 * s**3) / time**2
    return start + way * place, way * speed, way * change


def follow(
    plant: phistar.Robot, known: phistar.Robot, q: np.ndarray, v: np.ndarray, end: np.ndarray
) -> tuple[Trajectory, np.ndarray]:
    """Move the plant from q to an end by the computed torque of the robot that is known.

    Returns:
        The motion, and the distance of the hand from its path (steps,) [m].
    """
    places, speeds, changes = blend(q, end)

    def law(k: int, at: np.ndarray, moving: np.ndarray) -> np.ndarray:
        wanted = changes[k] + STIFFNESS * (places[k] - at) + DAMPING * (speeds[k] - moving)
        return known.inverse_dynamics(at, moving, wanted)

    motion = rollout(plant, q, v, law, DT, STEPS)
    path = plant.frame_pose(places, HAND)[:, :3, 3]
    off = plant.frame_pose(motion.q[:-1], HAND)[:, :3, 3] - path
    return motion, np.linalg.norm(off, axis=-1)


def check_work(plant: phistar.Robot, motion: Trajectory) -> float:
    """How far energy and work of a motion differ, relative to the largest energy; O(dt)."""
    energy, done = work(plant, motion)
    gap = float(np.abs(energy - done).max() / np.abs(energy).max())
    if gap > 10.0 * DT:
        raise SystemExit(f"energy and work differ by {gap:.1e}, more than steps of this length do")
    return gap


def plot(lifts: dict[str, tuple[Trajectory, np.ndarray]], effort: np.ndarray, path: Path) -> None:
    """Errors of the hand, and the shoulder's torque, of both laws."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    axes = figure.subplots(2, sharex=True)
    for name, (motion, off) in lifts.items():
        axes[0].semilogy(motion.t[:-1], 1e3 * np.maximum(off, 1e-9), label=name)
        axes[1].plot(motion.t[:-1], motion.tau[:, 1], label=name)
    axes[0].set(title=f"Panda lifts {MASS:g} kg", ylabel="hand off its path [mm]")
    axes[1].axhline(-effort[1], color="0.7", ls="--")
    axes[1].set(xlabel="time [s]", ylabel="torque of joint 2 [N m]")
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
    arm = phistar.load("panda")
    places = find_places(arm)
    holding = arm.with_payload(HAND, MASS, COM, INERTIA)
    print(holding.load_report.edited[-1])

    rest = np.zeros(arm.nv)
    down, off = follow(arm, arm, places["above"], rest, places["grasp"])
    print(f"down to the load: the hand is off by {1e3 * off.max():.3f} mm at most")
    lifts = {
        name: follow(holding, known, down.q[-1], down.v[-1], places["lifted"])
        for name, known in (("knows the payload", holding), ("does not", arm))
    }
    for name, (motion, off) in lifts.items():
        print(f"lifting, law {name}: off by {1e3 * off.max():.3f} mm at most")
        print(f"  energy and work differ by {check_work(holding, motion):.1e}, relative")

    if not options.no_plots:
        options.out.mkdir(parents=True, exist_ok=True)
        effort = np.array([arm.joints[name].limits.effort[0] for name in arm.joint_names])
        plot(lifts, effort, options.out / "panda_payload.png")
        print(f"plot in {options.out}")


if __name__ == "__main__":
    main()
