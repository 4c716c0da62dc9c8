# SPDX-License-Identifier: BSD-3-Clause
"""Two-link arm: what the rates η and ζ and the forces ε and κ mean, in numbers and a picture.

Run it with ``python examples/two_link_eta.py``; it prints what it finds, checks that energy and
power agree, and writes a plot. ``--no-plots`` does without matplotlib.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import phistar

DT, STEPS = 0.005, 1200  # s
START, SPEED = [0.3, -1.9], [3.0, 4.0]  # rad, rad/s
PUSH = np.array([0.0, -0.12])  # N m, at the elbow alone, in the last third
JOINTS = ("shoulder", "elbow")


@dataclass
class Motion:
    """A motion of the arm: time first."""

    t: np.ndarray
    q: np.ndarray
    zeta: np.ndarray
    tau: np.ndarray


def strike(robot: phistar.Robot) -> None:
    """Strike one joint of the arm at rest: what jumps, and what does not."""
    d = robot.diagonalize(START)
    print("a blow of 1 N m s on the arm at rest:")
    for i, name in enumerate(JOINTS):
        blow = np.eye(2)[i]
        zeta = np.linalg.solve(d.D, d.to_kappa(blow))
        v = d.from_zeta(zeta)
        print(f"  on the {name:8}: v jumps by {_pair(v)} rad/s, ζ by {_pair(zeta)} rad/s")


def alone(robot: phistar.Robot) -> None:
    """Forces that work at one joint, and what the other has to hold for that."""
    d = robot.diagonalize(START)
    print("joint forces for a unit of ε at one joint and none at the other:")
    for i, name in enumerate(JOINTS):
        print(f"  at the {name:8}: τ = {_pair(d.from_epsilon(np.eye(2)[i]))} N m")


def move(robot: phistar.Robot) -> Motion:
    """Free for two thirds of the time, then pushed: fourth-order steps in (q, ζ)."""
    zeta = np.empty((STEPS + 1, 2))
    q = np.empty_like(zeta)
    tau = np.where(np.arange(STEPS)[:, None] < _free(), 0.0, PUSH)
    q[0], zeta[0] = START, robot.diagonalize(START).to_zeta(SPEED)
    for k in range(STEPS):
        q[k + 1], zeta[k + 1] = _step(robot, q[k], zeta[k], tau[k])
    return Motion(DT * np.arange(STEPS + 1), q, zeta, tau)


def _step(
    robot: phistar.Robot, q: np.ndarray, zeta: np.ndarray, tau: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    a = robot.diagonal_forward_dynamics(q, zeta, tau)
    b = robot.diagonal_forward_dynamics(q + DT / 2 * a.v, zeta + DT / 2 * a.zeta_dot, tau)
    c = robot.diagonal_forward_dynamics(q + DT / 2 * b.v, zeta + DT / 2 * b.zeta_dot, tau)
    d = robot.diagonal_forward_dynamics(q + DT * c.v, zeta + DT * c.zeta_dot, tau)
    moved = q + DT / 6 * (a.v + 2 * b.v + 2 * c.v + d.v)
    return moved, zeta + DT / 6 * (a.zeta_dot + 2 * b.zeta_dot + 2 * c.zeta_dot + d.zeta_dot)


def check(robot: phistar.Robot, motion: Motion) -> tuple[float, float]:
    """Drift of the energy while free, and what the power of ε misses when pushed; relative.

    η*ε is compared with the change of energy over each step, so it misses what a step bends.
    """
    d = robot.diagonalize(motion.q)
    eta = d.to_eta(d.from_zeta(motion.zeta))
    energy = (eta**2).sum(axis=-1) / 2
    pushed = _free()
    free = energy[: pushed + 1]
    drift = float(np.abs(free / free[0] - 1).max())
    epsilon = d.to_epsilon(np.vstack([motion.tau, motion.tau[-1:]]))
    power = (eta * epsilon).sum(axis=-1)[pushed:]
    work = np.concatenate([[0.0], np.cumsum((power[1:] + power[:-1]) / 2) * DT])
    gained = energy[pushed:] - energy[pushed]
    gap = float(np.abs(gained - work).max() / np.abs(gained).max())
    if drift > 10 * DT**2 or gap > 10 * DT:
        raise SystemExit(f"energy drifts by {drift:.1e}, power misses {gap:.1e}: too much")
    return drift, gap


def plot(robot: phistar.Robot, motion: Motion, path: Path) -> None:
    """v and η beside each other, energies of the joints, power of ε."""
    from matplotlib.figure import Figure

    d = robot.diagonalize(motion.q)
    v = d.from_zeta(motion.zeta)
    at = robot.diagonalize(motion.q, v)
    free, end = _free(), motion.t[-1]
    figure = Figure(figsize=(9, 8), layout="constrained")
    grid = figure.subplots(3, 2)
    for ax, rates, name in ((grid[0, 0], v, "v [rad/s]"), (grid[0, 1], at.eta, "η [√J]")):
        for i, joint in enumerate(JOINTS):
            ax.plot(motion.t, rates[:, i], label=joint)
        ax.set(ylabel=name, xlabel="time [s]", xlim=(0, end))
        ax.axvline(motion.t[free], color="gray", ls=":")
    grid[0, 0].legend()
    grid[0, 0].set(title="joint rates")
    grid[0, 1].set(title="normalised rates")
    for ax, rates in ((grid[1, 0], v), (grid[1, 1], at.eta)):
        ax.plot(*rates[: free + 1].T, lw=1, label="free")
        ax.plot(*rates[free:].T, lw=1, label="elbow pushed")
    grid[1, 0].set(xlabel="v, shoulder", ylabel="v, elbow", title="free motion in v")
    grid[1, 1].set(xlabel="η, shoulder", ylabel="η, elbow", title="and in η: a circle")
    grid[1, 1].set_aspect("equal", "datalim")
    grid[1, 1].legend()
    shares = at.eta**2 / 2
    grid[2, 0].stackplot(motion.t, shares.T, labels=JOINTS, alpha=0.6)
    grid[2, 0].plot(motion.t, robot.kinetic_energy(motion.q, v), "k", lw=1, label="kinetic energy")
    grid[2, 0].set(xlabel="time [s]", ylabel="½η² [J]", title="energy is a sum", xlim=(0, end))
    grid[2, 0].legend(loc="upper left")
    epsilon = at.to_epsilon(np.vstack([motion.tau, motion.tau[-1:]]))
    for i, joint in enumerate(JOINTS):
        grid[2, 1].plot(motion.t, at.eta[:, i] * epsilon[:, i], label=f"ηε, {joint}")
    power = v[:, 1] * np.append(motion.tau[:, 1], motion.tau[-1, 1])
    grid[2, 1].plot(motion.t, power, "k--", lw=1, label="vτ of the motor")
    grid[2, 1].set(xlabel="time [s]", ylabel="power [W]", title="power", xlim=(0, end))
    grid[2, 1].legend()
    for ax in grid.flat:
        ax.grid(alpha=0.3)
    figure.savefig(path, dpi=90)


def _free() -> int:
    """Steps without a push."""
    return 2 * STEPS // 3


def _pair(x: np.ndarray) -> str:
    return "(" + ", ".join(f"{0.0 if abs(e) < 1e-12 else e:.3f}" for e in x) + ")"


def main(arguments: list[str] | None = None) -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("plots"), help="folder of the plot")
    parser.add_argument("--no-plots", action="store_true")
    options = parser.parse_args(arguments)
    robot = phistar.load("double_pendulum").with_gravity([0.0, 0.0, 0.0])

    strike(robot)
    alone(robot)
    motion = move(robot)
    start = robot.diagonalize(START, SPEED)
    drift, gap = check(robot, motion)
    print(f"free motion from v = {_pair(np.array(SPEED))} rad/s, η = {_pair(start.eta)}:")
    print(f"  the sum of squares of η drifts by {drift:.1e} in {motion.t[_free()]:.0f} s")
    print(f"  Coriolis forces {_pair(start.coriolis)}, their power {_power(start):.1e} W")
    print(f"  pushed at the elbow: energy and the work of ε differ by {gap:.1e}, relative")

    if not options.no_plots:
        options.out.mkdir(parents=True, exist_ok=True)
        plot(robot, motion, options.out / "two_link_eta.png")
        print(f"plot in {options.out}")


def _power(at: phistar.diagonal.Diagonal) -> float:
    return abs(float(at.eta @ at.coriolis))


if __name__ == "__main__":
    main()
