# SPDX-License-Identifier: BSD-3-Clause
"""Simulations of many robots at once: steps a second, beside MuJoCo's ``rollout`` module.

Same robot, start, step, integrator (Runge-Kutta 4) and one thread; contacts, limits and damping
off. Both keep every state. Results are compared before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import cases, peers
from benchmarks.timing import Act, Ratio, Timing, interleaved
from phistar.arrays import Array

ROBOT, BATCH, DT = "panda", 4096, 1e-3
STEPS, QUICK_STEPS = 200, 25
PEER_BATCH, PEER_STEPS = 64, 50
"""MuJoCo gains nothing from more: it takes one sample after the other."""

TOLERANCE = 1e-9
"""Relative, of states after ``PEER_STEPS`` steps."""


@dataclass(frozen=True)
class Stepping:
    """What was found.

    Attributes:
        robot, batch, steps: What was simulated.
        ours: Seconds of a step of one sample.
        theirs: The same of MuJoCo; None if it is not there.
        ratio: How many times faster ours is.
        error: Relative difference of the states.
        missing: Why there is no MuJoCo.
    """

    robot: str
    batch: int
    steps: int
    ours: Timing
    theirs: Timing | None = None
    ratio: Ratio | None = None
    error: float = 0.0
    missing: str = ""


def measure(quick: bool = False) -> tuple[Stepping, str]:
    """Time it; the second result names a disagreement, or is empty."""
    robot = cases.robot(ROBOT)
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng, (BATCH,))
    v = 0.3 * rng.normal(size=(BATCH, robot.nv))
    steps = QUICK_STEPS if quick else STEPS
    acts: dict[str, Act] = {
        "ours": lambda: robot.simulate(
            q, v, dt=DT, steps=steps, threads=1, progress=False, passive=False
        )
    }
    missing = peers.why_not("mujoco", ROBOT)
    error = 0.0
    if not missing:
        theirs, converted = rolled(q[:PEER_BATCH], v[:PEER_BATCH])
        ours = robot.simulate(
            q[:PEER_BATCH], v[:PEER_BATCH], dt=DT, steps=PEER_STEPS, passive=False
        )
        found = converted(theirs())
        error = float(np.abs(found - np.concatenate([ours.q, ours.v], -1)[1:]).max())
        error /= float(np.abs(found).max())
        acts["theirs"] = theirs
    rounds = interleaved(acts, 1.0 if quick else 6.0, least=3, most=6, tries=1)
    mine = [t / (BATCH * steps) for t in rounds["ours"]]
    if missing:
        return Stepping(ROBOT, BATCH, steps, Timing.of(mine), missing=missing), ""
    other = [t / (PEER_BATCH * PEER_STEPS) for t in rounds["theirs"]]
    row = Stepping(
        ROBOT, BATCH, steps, Timing.of(mine), Timing.of(other), Ratio.of(mine, other), error
    )
    wrong = error > TOLERANCE
    return row, f"{ROBOT}, simulate: mujoco disagrees by {error:.1e}" if wrong else ""


def rolled(q: Array, v: Array) -> tuple[Act, Callable[[Any], Array]]:
    """MuJoCo's steps from these states, and the way to (steps, batch, nq + nv) as we have them."""
    from mujoco import MjData, mjtIntegrator, rollout

    peer = peers.make("mujoco", ROBOT)
    assert isinstance(peer, peers.MuJoCo)
    model, convert = peer.model, peer.convert
    model.opt.integrator = mjtIntegrator.mjINT_RK4
    model.opt.timestep = DT
    parts = [np.zeros((len(q), 1)), convert.q_to_peer(q), convert.v_to_peer(q, v)]
    start = np.concatenate(parts, axis=-1)
    data = MjData(model)

    def converted(found: Any) -> Array:
        states = found[0]
        flat = states.reshape(-1, states.shape[-1])
        places = convert.q_from_peer(flat[:, 1 : model.nq + 1])
        rates = convert.v_from_peer(places, flat[:, model.nq + 1 :])
        both = np.concatenate([places, rates], axis=-1)
        return np.swapaxes(both.reshape(*states.shape[:2], -1), 0, 1)

    return lambda: rollout.rollout(model, data, start, nstep=PEER_STEPS), converted
