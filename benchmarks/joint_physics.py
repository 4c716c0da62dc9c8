# SPDX-License-Identifier: BSD-3-Clause
"""Pandas whose joints are damped and stop: steps a second, beside MuJoCo's ``rollout`` module.

Same file with damping written into it, start, step and one thread; damping implicit in both
(``implicit`` here, ``implicitfast`` there), limits on in both, which 4 of 1000 robots reach in the
50 steps of either. States are compared on robots that do not: limits are rigid here and soft there.
By itself: ``python -m benchmarks.joint_physics``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.stepping import Stepping
from benchmarks.timing import Act, Ratio, Timing, interleaved
from phistar import Robot, conventions, load, robots
from phistar.arrays import Array

ROBOT, BATCH, DT = "panda", 4096, 1e-3
DAMPING = 1.0
"""[N m s/rad] of every joint."""
PEER_BATCH, STEPS = 64, 50
TOLERANCE = 1e-9
"""Relative, of states after ``STEPS`` steps."""


def damped_text() -> str:
    """The robot's file with damping in its joints."""
    text = robots.path(ROBOT).read_text(encoding="utf-8")
    return text.replace("</joint>", f'<dynamics damping="{DAMPING}"/></joint>')


def starts(robot: Robot, count: int, share: float) -> tuple[Array, Array]:
    """States within a share of the ranges."""
    rng = np.random.default_rng(0)
    lower, upper = robot.limits.lower, robot.limits.upper
    middle, half = 0.5 * (lower + upper), 0.5 * share * (upper - lower)
    return middle + half * rng.uniform(-1, 1, (count, robot.nq)), 0.3 * rng.normal(
        size=(count, robot.nv)
    )


def measure(quick: bool = False) -> tuple[Stepping, str]:
    """Time it; the second result names a disagreement, or is empty."""
    text = damped_text()
    robot = load(text.encode())
    q, v = starts(robot, BATCH, 0.98)
    how = {"dt": DT, "scheme": "implicit", "threads": 1, "progress": False}
    acts: dict[str, Act] = {"ours": lambda: robot.simulate(q, v, steps=STEPS, **how)}
    missing, error = peers.why_not("mujoco", ROBOT), 0.0
    if not missing:
        near = starts(robot, PEER_BATCH, 0.5)
        ours = robot.simulate(*near, steps=STEPS, **how)
        found = rolled(robot, text, *near)()[0][:, -1, 1:]
        known = np.concatenate([ours.q[-1], ours.v[-1]], axis=-1)
        error = float(np.abs(found - known).max() / np.abs(known).max())
        acts["theirs"] = rolled(robot, text, q[:PEER_BATCH], v[:PEER_BATCH])
    rounds = interleaved(acts, 1.0 if quick else 6.0, least=3, most=6, tries=1)
    mine = [t / (BATCH * STEPS) for t in rounds["ours"]]
    if missing:
        return Stepping(ROBOT, BATCH, STEPS, Timing.of(mine), missing=missing), ""
    other = [t / (PEER_BATCH * STEPS) for t in rounds["theirs"]]
    ratio = Ratio.of(mine, other)
    row = Stepping(ROBOT, BATCH, STEPS, Timing.of(mine), Timing.of(other), ratio, error)
    wrong = error > TOLERANCE
    return row, f"{ROBOT}, joint physics: mujoco disagrees by {error:.1e}" if wrong else ""


def rolled(robot: Robot, text: str, q: Array, v: Array) -> Act:
    """MuJoCo's steps from these states; both have one number for a joint, in the same order."""
    import mujoco
    from mujoco import rollout

    spec = mujoco.MjSpec.from_string(text)
    for geom in list(spec.geoms):
        spec.delete(geom)
    model: Any = spec.compile()
    model.opt.timestep = DT
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    convert = conventions.mujoco(robot, model)
    parts = [np.zeros((len(q), 1)), convert.q_to_peer(q), convert.v_to_peer(q, v)]
    start, data = np.concatenate(parts, axis=-1), mujoco.MjData(model)
    return lambda: rollout.rollout(model, data, start, nstep=STEPS)


def main() -> None:
    """Print a line."""
    row, fault = measure()
    line = f"{row.batch} x {row.robot}, limits and damping: {row.ours.median * 1e6:.3f} µs a step"
    if row.theirs and row.ratio:
        line += f", MuJoCo {row.theirs.median * 1e6:.2f} µs: {row.ratio.median:.1f} x"
        line += f", states within {row.error:.1e}"
    print(line, fault)


if __name__ == "__main__":
    main()
