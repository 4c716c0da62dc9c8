# SPDX-License-Identifier: BSD-3-Clause
"""Cart-pole with dry friction and end stops: how the same push ends with and without them.

Run it with ``python examples/cart_pole_friction.py``; it prints what it finds, checks the laws of
friction and limits, and writes a plot. ``--no-plots`` does without matplotlib.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import phistar
from phistar.model import ModelBuilder

FRICTION, DAMPING, REACH = 0.8, 0.05, 0.4  # N, N s/m, m
DT, SECONDS = 1e-3, 6.0
START = [2.0, 1.0]  # m/s of the cart, rad/s of the pole


def cart_pole() -> phistar.Robot:
    """A cart of 1 kg on a rail with stops, and a pole of 0.3 kg that hangs from it."""
    builder = ModelBuilder("cart_pole_with_friction")
    builder.link("rail")
    builder.link("cart", 1.0, inertia=(0.01, 0.01, 0.01))
    builder.link("pole", 0.3, com=(0, 0, -0.3), inertia=(0.009, 0.009, 1e-4))
    builder.joint(
        "slider", "prismatic", "rail", "cart", axis=(1, 0, 0), lower=-REACH, upper=REACH,
        friction=FRICTION, damping=DAMPING,
    )  # fmt: skip
    builder.joint("hinge", "continuous", "cart", "pole", axis=(0, 1, 0), damping=0.004)
    return phistar.load(builder.build())


def motions(robot: phistar.Robot) -> dict[str, phistar.sim.Simulation]:
    """The same start with more and more of the joints' physics."""
    parts = {
        "rigid bodies": False,
        "damping": {"damping"},
        "and friction": {"damping", "friction"},
        "and end stops": True,
    }
    how = {"dt": DT, "duration": SECONDS, "scheme": "implicit"}
    q = robot.neutral()
    return {name: robot.simulate(q, START, passive=p, **how) for name, p in parts.items()}


def check(robot: phistar.Robot, sim: phistar.sim.Simulation) -> None:
    """The cart stays between its stops, friction is within its bound and energy only decreases."""
    assert np.abs(sim.q[:, 0]).max() <= REACH
    rate = np.diff(sim.v, axis=0) / DT
    tau = robot.inverse_dynamics(sim.q[:-1], sim.v[:-1], rate)[:, 0] + DAMPING * sim.v[1:, 0]
    inside = np.abs(sim.q[1:, 0]) < REACH - 1e-9
    assert np.abs(tau[inside]).max() <= FRICTION * (1 + 1e-6)
    energy = sim.energy()
    # First-order steps of the free pole change energy by O(dt).
    assert np.diff(energy).max() < 1e-4 * np.ptp(energy)


def plot(found: dict[str, phistar.sim.Simulation], path: Path) -> None:
    """Cart and pole over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for name, sim in found.items():
        above.plot(sim.t, np.clip(sim.q[:, 0], -1.5, 1.5), label=name)
        below.plot(sim.t, sim.q[:, 1])
    for side in (-REACH, REACH):
        above.axhline(side, color="grey", linewidth=0.8, linestyle="--")
    above.set_ylabel("cart [m]")
    above.legend(loc="upper right")
    below.set_ylabel("pole [rad]")
    below.set_xlabel("time [s]")
    figure.savefig(path)


def main(arguments: list[str] | None = None) -> None:
    """Simulate, check, tell and plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("plots"), help="folder of the plots")
    parser.add_argument("--no-plots", action="store_true")
    options = parser.parse_args(arguments)
    robot = cart_pole()
    print(robot.limits)
    found = motions(robot)
    for name, sim in found.items():
        cart, acted = sim.q[:, 0], ", ".join(sim.passive) or "nothing"
        print(f"{name:14} cart from {cart.min():+.3f} to {cart.max():+.3f} m; acted: {acted}")
    check(robot, found["and end stops"])
    print("between the stops, friction within its bound, energy never rises")
    if not options.no_plots:
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / "cart_pole_friction.png"
        plot(found, path)
        print(path)


if __name__ == "__main__":
    main()
