# SPDX-License-Identifier: BSD-3-Clause
"""Steps with contacts and joint physics of robots that are no trees: closed loops, mimic joints.

The step is that of ``unilateral_step``. 𝓜ₕ, 𝒞, the rows L of joints and pairs and the rows G of
loops are matrices here, and velocities that keep the loops are Xy, with X a basis of the null space
of G:

    𝓜ₕ⁻¹ becomes W = X(X*𝓜ₕX)⁻¹X*      Δ = LWL*      v⁺ = v + h v̇(loops) + WL*λ

Impulses λ are found by the same compiled sweeps of projected Gauss-Seidel; then the state goes to
the nearest one on the loops, as in ``simulate``.
"""

from __future__ import annotations

import numpy as np

from phistar import dynamics
from phistar.arrays import Array
from phistar.compile import traced_results
from phistar.joint_physics.implicit import implicit_numbers
from phistar.joint_physics.passive_forces import passive_force_unchecked
from phistar.kinematics import integrate_unchecked
from phistar.loops.assembly import open_loop_error, usual_rank
from phistar.loops.constrained_dynamics import require_on_loops
from phistar.loops.rank import factored
from phistar.loops.system import motion_at, rows_at
from phistar.model.kinematic_loops import active_loops
from phistar.sim.batch_stepper import BatchState, FiniteSamplesStepper
from phistar.sim.contact_points import ContactPoints
from phistar.sim.loop_stepper import onto_loops


class GeneralStepper(FiniteSamplesStepper):
    """Steps of semi-implicit Euler with the rows of any robot, in NumPy.

    Args:
        points: Pairs that may touch, and joints that rub and stop.
        dt, keep_going: As of ``FiniteSamplesStepper``.
        smooth: Springs and dampers that push, at the end of the step.
    """

    engine = "NumPy"

    def __init__(
        self, points: ContactPoints, dt: float, keep_going: bool, smooth: tuple[str, ...]
    ) -> None:
        super().__init__(points.model, dt, keep_going)
        self.points = points
        self.smooth = smooth
        self.closed = bool(active_loops(self.model.loops))

    def step(self, state: BatchState, tau: Array) -> BatchState:
        """See ``FiniteSamplesStepper``."""
        h, rows = self.dt, self.points.rows
        ahead, W = self._without_rows(state.q, state.v, tau)
        impulses = state.impulses
        if rows.count:
            L = self.points.row_matrix(state.q)
            moved = W @ np.swapaxes(L, 1, 2)
            free = (L @ ahead[..., None])[..., 0]
            impulses = self._impulses(state, L @ moved, free)
            ahead = ahead + (moved @ impulses[..., None])[..., 0]
        q = integrate_unchecked(self.model, state.q, h * ahead)
        if not self.closed:
            return BatchState(q, ahead, impulses)
        closed = onto_loops(self.model, q, ahead)
        lost = np.asarray(np.isnan(closed[0]).any(axis=-1))
        if lost.any():
            cure = "take a shorter dt, or smaller forces"
            raise open_loop_error(self.model, rows_at(self.model, q).error, lost, "step", cure)
        return BatchState(*closed, impulses)

    def _impulses(self, state: BatchState, delta: Array, free: Array) -> Array:
        places, rates = self.points.states(state.q, state.v)
        dt = np.full((len(free), 1), self.dt)
        flat = delta.reshape(len(free), -1)
        given = (flat, places, rates, free, dt, state.impulses)
        key = ("row_solver", self.points.rows)
        return traced_results(self.model, key, *given)["impulses_next"]

    def _without_rows(self, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        """v after a step without friction, stops and contacts, and W."""
        model, h = self.model, self.dt
        added, K = implicit_numbers(model, self.smooth, h)
        mass = dynamics.mass_matrix(model, q) + np.diag(added)
        total = tau - dynamics.bias_force(model, q, v)
        if self.smooth:
            total = total + passive_force_unchecked(model, q, v, self.smooth) - h * K * v
        if not self.closed:
            W = np.linalg.inv(mass)
            return v + h * (W @ total[..., None])[..., 0], W
        loops = motion_at(model, q, v)
        require_on_loops(model, loops, v, "step", float(np.finfo(float).eps))
        rows = factored(loops.L, usual_rank(model))
        start = rows.least_norm(-loops.bias)
        X, Xt = rows.X, np.swapaxes(rows.X, -1, -2)
        W = X @ np.linalg.solve(Xt @ mass @ X, Xt)
        left = total - (mass @ start[..., None])[..., 0]
        return v + h * (start + (W @ left[..., None])[..., 0]), W
