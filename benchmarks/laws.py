# SPDX-License-Identifier: BSD-3-Clause
"""Rollouts under control laws beside ``simulate`` of the same robot: how much longer they take.

Same robot, starts, steps, scheme (semi-implicit Euler) and one thread; both keep every state, and
rollouts keep the joint forces, too. Beside them the same law called from Python once a step, for
fewer samples, with which the motion is compared before anything is timed. By itself:
``python -m benchmarks.laws``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import cases
from benchmarks.timing import Act, Ratio, Timing, interleaved
from phistar import Robot, control
from phistar.arrays import Array

BATCH, CALLED_BATCH, DT = 4096, 256, 1e-3
STEPS, QUICK_STEPS = 50, 10
TOLERANCE = 1e-12
"""Relative, of states and forces after ``QUICK_STEPS`` steps."""
MAIN = ("quadruped", "computed torque")
"""What has a goal."""


@dataclass(frozen=True)
class LawRow:
    """What was found.

    Attributes:
        robot, law, batch, steps: What was rolled out.
        ours: Seconds of a step of one sample.
        simulated: The same of ``simulate``.
        over: How many times longer ours takes than ``simulate``.
        called: Seconds of a step of one sample where Python calls the law.
        error: Relative difference of the motions.
    """

    robot: str
    law: str
    batch: int
    steps: int
    ours: Timing
    simulated: Timing
    over: Ratio
    called: Timing
    error: float


def plan(robot: Robot, steps: int) -> tuple[control.Trajectory, Array]:
    """A motion from home, and its accelerations."""
    away = 0.3 * np.random.default_rng(1).normal(size=robot.nv)
    start = robot.home
    return control.minimum_jerk(robot, start, robot.integrate(start, away), steps * DT, steps)


def _following(robot: Robot, steps: int) -> control.Following:
    motion, vdot = plan(robot, steps)
    law = control.computed_torque(robot, motion.q[-1])
    return control.follow(law, motion.q, motion.v, vdot)


def _tracking(robot: Robot, steps: int) -> control.Tracker:
    return control.tv_lqr(robot, plan(robot, steps)[0])


def _reaching(robot: Robot, steps: int) -> control.OperationalSpace:
    frame = robot.frame_names[-1]
    return control.operational_space(robot, frame, robot.frame_pose(robot.home, frame))


LAWS: dict[tuple[str, str], Callable[[Robot, int], Any]] = {
    ("quadruped", "computed torque"): lambda robot, steps: control.computed_torque(
        robot, robot.home
    ),
    ("quadruped", "computed torque, moving goal"): _following,
    ("quadruped", "PD and gravity"): lambda robot, steps: control.pd_gravity(robot, robot.home),
    ("quadruped", "TV-LQR"): _tracking,
    ("panda", "LQR"): lambda robot, steps: control.lqr(robot, robot.home),
    ("panda", "TV-LQR"): _tracking,
    ("panda", "operational space"): _reaching,
}
"""Robots and controllers for so many steps."""


def starts(robot: Robot, batch: int) -> tuple[Array, Array]:
    """States around home."""
    rng = np.random.default_rng(0)
    away, v = 0.1 * rng.normal(size=(2, batch, robot.nv))
    return robot.integrate(robot.home, away), v


def difference(robot: Robot, controller: Any, batch: int) -> float:
    """How far machine code is from calls of the law, relative, after a few steps."""
    q, v = starts(robot, batch)
    ours = control.rollout(robot, q, v, controller, DT, QUICK_STEPS)
    if ours.engine != "machine code":
        return np.inf
    theirs = control.rollout(robot, q, v, _called(controller), DT, QUICK_STEPS)
    pairs = ((getattr(ours, name), getattr(theirs, name)) for name in ("q", "v", "tau"))
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)


def _called(controller: Any) -> control.Policy:
    return lambda k, q, v: controller.at_step(k, q, v)


def measure(quick: bool = False) -> tuple[list[LawRow], list[str]]:
    """Time all; the second result names disagreements."""
    rows, faults = [], []
    for name, law in LAWS:
        row = _measure(name, law, quick)
        rows.append(row)
        if row.error > TOLERANCE:
            faults.append(f"{name}, {law}: machine code and calls differ by {row.error:.1e}")
    return rows, faults


def _measure(name: str, law: str, quick: bool) -> LawRow:
    robot = cases.robot(name)
    steps = QUICK_STEPS if quick else STEPS
    controller = LAWS[name, law](robot, steps)
    error = difference(robot, controller, 32)
    q, v = starts(robot, BATCH)
    tau = np.zeros(v.shape)
    acts: dict[str, Act] = {
        "ours": lambda: control.rollout(robot, q, v, controller, DT, steps, threads=1),
        "simulated": lambda: robot.simulate(
            q, v, dt=DT, steps=steps, tau=tau, scheme="semi_implicit", passive=False, threads=1,
            progress=False,
        ),
        "called": lambda: control.rollout(
            robot, q[:CALLED_BATCH], v[:CALLED_BATCH], _called(controller), DT, QUICK_STEPS
        ),
    }  # fmt: skip
    rounds = interleaved(acts, 0.5 if quick else 3.0, least=3, most=8, tries=1)
    ours, simulated = ([t / (BATCH * steps) for t in rounds[x]] for x in ("ours", "simulated"))
    called = Timing.of(rounds["called"], CALLED_BATCH * QUICK_STEPS)
    over = Ratio.of(simulated, ours)
    return LawRow(
        name, law, BATCH, steps, Timing.of(ours), Timing.of(simulated), over, called, error
    )


def main() -> None:
    """Print a line for each law."""
    os.environ["PHISTAR_TIER"] = "wait"
    rows, faults = measure()
    for row in rows:
        print(
            f"{row.batch} x {row.robot}, {row.law}: {row.ours.median * 1e9:.0f} ns a step, "
            f"simulate {row.simulated.median * 1e9:.0f} ns: {row.over.median:.2f} x "
            f"({row.over.low:.2f} to {row.over.high:.2f}, best {row.over.best:.2f}), called "
            f"{row.called.median * 1e9:.0f} ns, within {row.error:.0e}"
        )
    for fault in faults:
        print(fault)


if __name__ == "__main__":
    main()
