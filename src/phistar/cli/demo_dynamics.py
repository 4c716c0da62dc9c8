# SPDX-License-Identifier: BSD-3-Clause
"""Steps of ``phistar demo`` about motion: linearized, controlled, simulated, in other rates."""

from __future__ import annotations

import numpy as np
from rich.console import Console

from phistar.cli.chart import chart
from phistar.cli.demo_step import DemoStep, Names


def _show_linear(console: Console, names: Names, seconds: float) -> None:
    values = names["values"]
    texts = ", ".join(f"{x:.2f}" for x in values[:3])
    console.print(f"A has shape {names['at'].A.shape}; real parts of its eigenvalues:", end=" ")
    console.print(f"{texts} ... 1/s,")
    console.print("so under the torques that hold it the arm falls from there all the same")
    console.print(f"vdot_q next to a finite difference  {names['error']:.1e}, relative")


def _show_balance(console: Console, names: Names, seconds: float) -> None:
    motion, values = names["motion"], np.sort(names["hold"].eigenvalues.real)[::-1]
    console.print("closed-loop eigenvalues " + ", ".join(f"{x:.2f}" for x in values) + " 1/s")
    for k in range(0, len(motion.t), 100):
        cart, angle = motion.q[k]
        console.print(f"t = {motion.t[k]:.0f} s   pole {angle:+8.4f} rad   cart {cart:+8.4f} m")
    console.print(f"{len(motion.t) - 1} steps of the robot itself, not of its linearization")


def _show_simulation(console: Console, names: Names, seconds: float) -> None:
    sim = names["sim"]
    for line in chart("kinetic energy [J]", sim.t, names["kinetic"], height=6):
        console.print(line, soft_wrap=True)
    console.print(f"{sim.steps} steps by {sim.engine}; total energy conserved within", end=" ")
    console.print(f"{sim.drift().relative_energy:.1e}, relative")


def _show_rates(console: Console, names: Names, seconds: float) -> None:
    sim, d = names["sim"], names["d"]
    console.print(f"{'joint':<14}{'v':>10}{'eta':>10}   at t = {sim.t[names['k']]:.1f} s")
    for name, rate, new in zip(
        names["arm"].joint_names, sim.v[names["k"]], d.eta[names["k"]], strict=True
    ):
        console.print(f"{name:<14}{rate:>10.3f}{new:>10.3f}")
    console.print(f"half the sum of eta squared is the kinetic energy within {names['error']:.1e},")
    console.print(f"relative; Coriolis forces in eta do no work: {names['work']:.1e} of |eta| |C|")


def _show_pose(console: Console, names: Names, seconds: float) -> None:
    run = names["run"]
    for line in chart("Lyapunov function [J]", run.t, run.lyapunov, logarithmic=True, height=6):
        console.print(line, soft_wrap=True)
    for line in run.describe().splitlines():
        console.print(line, soft_wrap=True)


DYNAMICS_STEPS = (
    DemoStep(
        "Derivatives by the same algebra: the arm linearized",
        """\
q, still = np.array([0, -0.5, 0, -2, 0, 1.6, 0.8]), np.zeros(arm.nv)
tau = arm.gravity_force(q)
at = arm.linearize(q, still, tau)
values = sorted(np.linalg.eigvals(at.A).real, reverse=True)
steps = 1e-6 * np.eye(arm.nv)
ahead, behind = (arm.forward_dynamics(q + dq, still, tau) for dq in (steps, -steps))
error = abs(at.vdot_q - (ahead - behind).T / 2e-6).max() / abs(at.vdot_q).max()""",
        _show_linear,
    ),
    DemoStep(
        "What it is good for: a cart-pole balanced by LQR, from a tilt of 0.3 rad",
        """\
cart = phistar.load("cartpole")
hold = phistar.control.lqr(cart, cart.neutral(), Q=[1, 10, 1, 1], R=0.1, actuated=["slider"])
push = lambda step, q, v: hold(q, v)
motion = phistar.control.rollout(cart, {"hinge": 0.3}, np.zeros(2), push, dt=0.01, steps=600)""",
        _show_balance,
    ),
    DemoStep(
        "Let it fall: Runge-Kutta steps in one call of machine code",
        """\
sim = arm.simulate(q, still, dt=0.001, duration=3, every=10, passive=False)
kinetic = arm.kinetic_energy(sim.q, sim.v)""",
        _show_simulation,
    ),
    DemoStep(
        "The same motion in rates that decouple the joints",
        """\
d, k = arm.diagonalize(sim.q, sim.v), 100
error = abs((d.eta**2).sum(axis=-1) / 2 - kinetic).max() / kinetic.max()
size = np.linalg.norm(d.eta, axis=-1) * np.linalg.norm(d.coriolis, axis=-1)
work = abs((d.eta * d.coriolis).sum(axis=-1)[1:] / size[1:]).max()""",
        _show_rates,
    ),
    DemoStep(
        "A hand goes to a pose, and a Lyapunov function never rises",
        """\
ur5 = phistar.load("ur5")
start = np.array([0.3, -1.2, 1.4, -1.0, -1.2, 0.2])
goal = ur5.frame_pose(start + 0.3, "tool0")
law = phistar.control.pose_control(ur5, "tool0", goal)
run = phistar.control.regulate(law, start, duration=2, dt=0.004)""",
        _show_pose,
    ),
)
