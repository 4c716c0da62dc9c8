# SPDX-License-Identifier: BSD-3-Clause
"""Steps of a robot with loops: rates on the loops, the state projected onto them after each step.

The number of independent rows is that of regular configurations, never decided anew at stages,
where loops are a little open; see ``loops.rank``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.compile import run_traced, run_traced_results
from phistar.loops.assembly import nearest_configuration, nearest_velocity, usual_rank
from phistar.loops.programs import ANYWHERE
from phistar.loops.routes import LoopProblem, accelerations
from phistar.loops.system import motion_at
from phistar.model.model import Model
from phistar.model.wrenches import Wrenches
from phistar.sim.numpy_stepper import NumpyStepper
from phistar.sim.schemes import Scheme
from phistar.sim.variables import RatePrograms, Velocity

PROJECTION_ITERATIONS = 3
"""Newton steps after a step of time; they converge quadratically."""
GAP_AFTER_WHICH_CLOSED = 1e-8
"""Error without units before a Newton step that leaves nothing but rounding."""


@dataclass(frozen=True)
class LoopVelocity(Velocity):
    """x = v on the loops."""

    @property
    def program(self) -> RatePrograms | None:
        """None: its rates are no single program."""
        return None

    def rate(self, q: Array, x: Array, tau: Array) -> tuple[Array, Array]:
        """v and forward dynamics on the loops."""
        return x, loop_accelerations(self.model, q, x, tau, self.wrenches)


def loop_accelerations(
    model: Model, q: Array, v: Array, tau: Array, wrenches: Wrenches | None = None
) -> Array:
    """v̇ (..., nv) at states that may be a little off the loops."""
    if wrenches is None:
        found = run_traced(model, ("loop_dynamics", ANYWHERE), q, v, tau)
        if found is not None:
            return found
    rows = motion_at(model, q, v)
    rank = usual_rank(model)
    return accelerations(LoopProblem(model, q, v, tau, wrenches, rows, rank, -rows.bias))


def onto_loops(model: Model, q: Array, v: Array) -> tuple[Array, Array]:
    """The nearest state (..., nq), (..., nv) on the loops, from nearby."""
    for _ in range(PROJECTION_ITERATIONS):
        found = run_traced_results(model, ("loop_projection",), q, v)
        if found is None:
            break
        q, v = found["q_next"], found["v_next"]
        if (found["gap"] < GAP_AFTER_WHICH_CLOSED**2).all():
            return q, v
    rank = usual_rank(model)
    q = nearest_configuration(model, q, rank, PROJECTION_ITERATIONS)
    return q, nearest_velocity(model, q, v, rank)


class LoopStepper(NumpyStepper):
    """Steps of a scheme, each followed by a projection."""

    def __init__(
        self, model: Model, variable: LoopVelocity, scheme: Scheme, keep_going: bool = False
    ) -> None:
        super().__init__(model, variable, scheme, keep_going)
        self.cost_ns = 2e5

    def step(self, q: Array, x: Array, tau: Array, dt: float) -> tuple[Array, Array]:
        """One step; samples that diverge in it are NaN after it."""
        q, x = super().step(q, x, tau, dt)
        fine = np.isfinite(q).all(axis=-1) & np.isfinite(x).all(axis=-1)
        if fine.any():
            q[fine], x[fine] = onto_loops(self.model, q[fine], x[fine])
        return q, x
