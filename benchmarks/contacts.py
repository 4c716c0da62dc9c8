# SPDX-License-Identifier: BSD-3-Clause
"""Quadrupeds that stand on four feet: steps a second, beside MuJoCo's ``rollout`` module.

Same robot, start, step, joint forces, friction and one thread; semi-implicit Euler; joint limits,
which the robot does not reach, on in both or off in both. Contacts are rigid here and soft there,
so that places agree within millimetres only. By itself: ``python -m benchmarks.contacts``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.stepping import Stepping
from benchmarks.timing import Act, Ratio, Timing, interleaved
from phistar import Robot, conventions, load, robots
from phistar.arrays import Array

ROBOT, BATCH, DT = "quadruped", 4096, 1e-3
STEPS, QUICK_STEPS = 50, 10
PEER_BATCH, PEER_STEPS = 64, 50
FRICTION, FOOT_RADIUS = 0.8, 0.0125
TOLERANCE = 5e-3
"""[m] of the base's place after ``PEER_STEPS`` steps: the ground of MuJoCo gives way."""


def standing(robot: Robot) -> tuple[Array, Array]:
    """A configuration with all feet on the plane z = 0, and joint forces that hold it."""
    q = robot.neutral()
    q[7:] = np.tile([0.0, 0.7, -1.4], 4)
    feet = [name for name in robot.frame_names if name.endswith("FOOT")]
    q[2] = FOOT_RADIUS - min(robot.frame_pose(q, foot)[2, 3] for foot in feet)
    mass = sum(link.mass for link in robot.model.links)
    tau = robot.gravity_force(q)
    for foot in feet:
        tau = tau - robot.jacobian(q, foot, "world_aligned")[5] * mass * 9.81 / len(feet)
    tau[:6] = 0.0
    return q, tau


def measure(quick: bool = False, limits: bool = True) -> tuple[Stepping, str]:
    """Time it; the second result names a disagreement, or is empty.

    Args:
        quick: Fewer steps.
        limits: Whether both simulate joint limits.
    """
    robot = load(ROBOT)
    start, tau = standing(robot)
    rng = np.random.default_rng(0)
    v = 0.02 * rng.normal(size=(BATCH, robot.nv))
    q = np.tile(start, (BATCH, 1))
    steps = QUICK_STEPS if quick else STEPS
    sim = robot.simulator(BATCH, dt=DT, threads=1, passive={"limits"} if limits else False)
    touching = _touching(sim, q, v, tau)

    def ours() -> None:
        sim.reset(q=q, v=v)
        sim.step(tau, substeps=steps)

    acts: dict[str, Act] = {"ours": ours}
    missing, error = peers.why_not("mujoco", ROBOT), 0.0
    if not missing:
        theirs = rolled(robot, q[:PEER_BATCH], v[:PEER_BATCH], tau, limits)
        found = theirs()[0][:, -1]
        sim.reset(q=q, v=v)
        place = sim.step(tau, substeps=PEER_STEPS).q[:PEER_BATCH, :3]
        error = float(np.abs(found[:, 1:4] - place).max())
        acts["theirs"] = theirs
    rounds = interleaved(acts, 1.0 if quick else 6.0, least=3, most=6, tries=1)
    mine = [t / (BATCH * steps) for t in rounds["ours"]]
    fault = "" if touching >= 3.0 else f"{ROBOT}: {touching:.1f} feet on the ground, expected 4"
    if missing:
        return Stepping(ROBOT, BATCH, steps, Timing.of(mine), missing=missing), fault
    other = [t / (PEER_BATCH * PEER_STEPS) for t in rounds["theirs"]]
    row = Stepping(
        ROBOT, BATCH, steps, Timing.of(mine), Timing.of(other), Ratio.of(mine, other), error
    )
    if error > TOLERANCE:
        fault = f"{ROBOT}, contacts: mujoco disagrees by {error:.1e} m"
    return row, fault


def _touching(sim: Any, q: Array, v: Array, tau: Array) -> float:
    """Feet on the ground, mean over the batch and a run."""
    sim.reset(q=q, v=v)
    found = []
    for _ in range(5):
        sim.step(tau, substeps=STEPS // 5)
        found.append(sim.contacts.touching.sum(axis=1).mean())
    return float(np.mean(found))


def rolled(robot: Robot, q: Array, v: Array, tau: Array, limits: bool) -> Act:
    """MuJoCo's steps from these states."""
    import mujoco
    from mujoco import rollout

    spec = mujoco.MjSpec.from_string(robots.path(ROBOT).read_text(encoding="utf-8"))
    spec.bodies[1].add_freejoint(name="root_joint")
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1])
    for geom in list(spec.geoms):
        geom.friction[0] = FRICTION
    model = spec.compile()
    model.opt.timestep = DT
    if not limits:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    convert = conventions.mujoco(robot, model)
    parts = [np.zeros((len(q), 1)), convert.q_to_peer(q), convert.v_to_peer(q, v)]
    start = np.concatenate(parts, axis=-1)
    applied = mujoco.mjtState.mjSTATE_QFRC_APPLIED
    force = np.broadcast_to(tau, (len(q), PEER_STEPS, robot.nv)).copy()
    data = mujoco.MjData(model)
    return lambda: rollout.rollout(
        model, data, start, force, control_spec=applied.value, nstep=PEER_STEPS
    )


def main() -> None:
    """Print a line without and one with joint limits."""
    for limits in (False, True):
        row, fault = measure(limits=limits)
        line = f"{row.batch} x {row.robot} on four feet, limits {'on' if limits else 'off'}: "
        line += f"{row.ours.median * 1e6:.3f} µs a step"
        if row.theirs and row.ratio:
            line += f", MuJoCo {row.theirs.median * 1e6:.2f} µs: {row.ratio.median:.1f} x"
            line += f", base within {row.error * 1e3:.2f} mm"
        print(line, fault)


if __name__ == "__main__":
    main()
