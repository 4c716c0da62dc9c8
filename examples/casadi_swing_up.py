# SPDX-License-Identifier: BSD-3-Clause
"""Cart-pole in CasADi: from hanging to standing in the shortest time, by IPOPT.

Run it with ``python examples/casadi_swing_up.py``; it prints what it finds, repeats the motion by
``scipy.integrate.solve_ivp``, and writes a plot. ``--no-plots`` does without matplotlib. It needs
``pip install "phistar[casadi]"``.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

import phistar
from phistar.interop import casadi as pc
from phistar.interop import scipy as ps

PUSH = 10.0  # N, as in the robot's file
TRACK = 2.4  # m to either side
INTERVALS = 50


@dataclass(frozen=True)
class Motion:
    """Knots and middles of intervals, alternating: t, push (2n + 1,), q, v (2n + 1, 2)."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    push: np.ndarray
    iterations: int


def swing_up(robot: phistar.Robot, intervals: int) -> Motion:
    """The motion, by Hermite-Simpson collocation: states are cubics between knots."""
    n = intervals
    at_knots = pc.function(robot, "forward_dynamics", samples=n + 1)
    at_middles = pc.function(robot, "forward_dynamics", samples=n)
    problem = ca.Opti()
    time = problem.variable()
    q, v = problem.variable(2, n + 1), problem.variable(2, n + 1)
    push, push_middle = problem.variable(1, n + 1), problem.variable(1, n)
    h = time / n

    def motor(u: ca.MX) -> ca.MX:
        return ca.vertcat(u, ca.MX.zeros(1, u.size2()))

    rate = at_knots(q, v, motor(push))
    q_middle = (q[:, :-1] + q[:, 1:]) / 2 + h / 8 * (v[:, :-1] - v[:, 1:])
    v_middle = (v[:, :-1] + v[:, 1:]) / 2 + h / 8 * (rate[:, :-1] - rate[:, 1:])
    rate_middle = at_middles(q_middle, v_middle, motor(push_middle))
    problem.subject_to(q[:, 1:] == q[:, :-1] + h / 6 * (v[:, :-1] + 4 * v_middle + v[:, 1:]))
    problem.subject_to(
        v[:, 1:] == v[:, :-1] + h / 6 * (rate[:, :-1] + 4 * rate_middle + rate[:, 1:])
    )
    problem.subject_to(problem.bounded(-PUSH, push, PUSH))
    problem.subject_to(problem.bounded(-PUSH, push_middle, PUSH))
    problem.subject_to(problem.bounded(-TRACK, q[0, :], TRACK))
    problem.subject_to(problem.bounded(0.5, time, 6.0))
    for x, start, end in ((q, [0.0, np.pi], [0.0, 0.0]), (v, [0.0, 0.0], [0.0, 0.0])):
        problem.subject_to(x[:, 0] == start)
        problem.subject_to(x[:, -1] == end)
    problem.minimize(time)
    along = np.linspace(0.0, 1.0, n + 1)
    problem.set_initial(time, 2.5)
    problem.set_initial(q, np.stack([np.sin(2 * np.pi * along), np.pi * (1 - along)]))
    problem.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
    found = problem.solve()

    def joined(knots: ca.MX, middles: ca.MX) -> np.ndarray:
        result = np.empty((2 * n + 1, knots.size1()))
        result[::2] = np.reshape(found.value(knots), (-1, n + 1)).T
        result[1::2] = np.reshape(found.value(middles), (-1, n)).T
        return result

    t = np.linspace(0.0, found.value(time), 2 * n + 1)
    forces = joined(push, push_middle)[:, 0]
    count = found.stats()["iter_count"]
    return Motion(t, joined(q, q_middle), joined(v, v_middle), forces, count)


def repeated(robot: phistar.Robot, motion: Motion) -> np.ndarray:
    """Where the same push leads by other means (4,): q and v at the end."""
    knots, forces = motion.t[::2], motion.push
    state = np.r_[motion.q[0], motion.v[0]]
    for k in range(len(knots) - 1):
        start, length = knots[k], knots[k + 1] - knots[k]
        parabola = np.polyfit([0.0, 0.5, 1.0], forces[2 * k : 2 * k + 3], 2)

        def tau(t: float, *_: object, start=start, length=length, parabola=parabola) -> np.ndarray:
            return np.array([np.polyval(parabola, (t - start) / length), 0.0])

        ode = ps.ode(robot, tau=tau)
        steps = solve_ivp(ode, (start, start + length), state, rtol=1e-9, atol=1e-9)
        state = steps.y[:, -1]
    return state


def plot(motion: Motion, path: Path) -> None:
    """Angle, cart and push over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 7), layout="constrained")
    axes = figure.subplots(3, sharex=True)
    axes[0].plot(motion.t, motion.q[:, 1])
    axes[0].set(title=f"Cart-pole: up in {motion.t[-1]:.3f} s", ylabel="pole angle [rad]")
    axes[1].plot(motion.t, motion.q[:, 0])
    axes[1].set(ylabel="cart [m]")
    axes[2].plot(motion.t, motion.push)
    axes[2].set(ylabel="push [N]", xlabel="time [s]")
    for ax in axes:
        ax.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("plots"), help="folder of the plots")
    parser.add_argument("--no-plots", action="store_true")
    options = parser.parse_args(arguments)
    robot = phistar.load("cartpole")
    motion = swing_up(robot, INTERVALS)
    bang = np.mean(np.abs(motion.push) > 0.99 * PUSH)
    print(f"up after {motion.t[-1]:.4f} s, {motion.iterations} iterations of IPOPT")
    print(f"  {100 * bang:.0f} % of the time at full push")
    end = repeated(robot, motion)
    print(f"  the same push by solve_ivp: largest error at the end {np.abs(end).max():.1e}")
    if not options.no_plots:
        options.out.mkdir(parents=True, exist_ok=True)
        plot(motion, options.out / "casadi_swing_up.png")
        print(f"plots in {options.out}")


if __name__ == "__main__":
    main()
