# SPDX-License-Identifier: BSD-3-Clause
"""Steps with contacts and joint physics of any robot, in matrices: mimic joints, redundant loops.

The step is that of ``unilateral_step``, with W of ``mobility`` in the place of 𝓜ₕ⁻¹:

    Δ = LWL*      v⁺ = v + h v̇ + WL*λ

Impulses λ are found by the same compiled sweeps of projected Gauss-Seidel; then the state goes to
the nearest one on the loops, as in ``simulate``.
"""

from __future__ import annotations

import numpy as np

from phistar import dynamics
from phistar.arrays import Array
from phistar.compile import traced_results
from phistar.errors import SampleError
from phistar.joint_physics.implicit import implicit_numbers
from phistar.joint_physics.passive_forces import passive_force_unchecked
from phistar.kinematics import integrate_unchecked
from phistar.loops.assembly import open_loop_error
from phistar.loops.system import rows_at
from phistar.model.floating_roots import carried_velocity, settled_state
from phistar.model.kinematic_loops import active_loops
from phistar.sim.contact_points import ContactPoints
from phistar.sim.divergence import diverged_samples, park_lost
from phistar.sim.force_to_motion import free_rates
from phistar.sim.loop_stepper import onto_loops
from phistar.sim.numpy_stepper import NumpyLoop
from phistar.sim.stepper import StepSpan


class GeneralStepper(NumpyLoop):
    """Steps of semi-implicit Euler with the rows of any robot, in NumPy.

    Args:
        points: Pairs that may touch, and joints that rub and stop.
        smooth: Springs and dampers that push, at the end of the step.
        keep_going: Whether samples without a state after a step are lost rather than an error.
    """

    def __init__(self, points: ContactPoints, smooth: tuple[str, ...], keep_going: bool) -> None:
        super().__init__(points.model, keep_going)
        self.points = points
        self.smooth = smooth
        self.closed = bool(active_loops(self.model.loops))
        self.cost_ns = 2e6
        self._impulses: Array = np.zeros((0, 0))

    def run(self, span: StepSpan) -> bool:
        """See ``Stepper``."""
        assert span.impulses is not None
        self._impulses = np.array(span.impulses)
        return super().run(span)

    def carried(self) -> tuple[Array, ...]:
        """The impulses of the last step."""
        return (self._impulses,)

    def advance(
        self, q: Array, x: Array, tau: Array, dt: float, t: float, lost: Array
    ) -> tuple[Array, Array]:
        """See ``NumpyLoop``."""
        lost |= diverged_samples(self._impulses, tau)
        parked = park_lost(self.model, q, x, lost)
        ahead = np.full_like(parked[0], np.nan), np.full_like(parked[1], np.nan)
        self._step_some(np.flatnonzero(~lost), parked, tau, dt, ahead)
        lost |= diverged_samples(*ahead, self._impulses)
        return ahead

    def _step_some(
        self,
        chosen: Array,
        state: tuple[Array, Array],
        tau: Array,
        dt: float,
        ahead: tuple[Array, Array],
    ) -> None:
        """A step of some samples; those without a state after it are left out and stay NaN."""
        if not chosen.size:
            return
        q, v = (each[chosen] for each in state)
        try:
            found = self._step(q, v, self._impulses[chosen], tau[chosen], dt)
        except SampleError as error:
            good = chosen[~np.broadcast_to(error.bad, len(chosen))]
            if not self.keep_going or len(good) == len(chosen):
                raise
            self._step_some(good, state, tau, dt, ahead)
            return
        ahead[0][chosen], ahead[1][chosen], self._impulses[chosen] = found

    def _step(
        self, q: Array, v: Array, impulses: Array, tau: Array, h: float
    ) -> tuple[Array, Array, Array]:
        """q, v and impulses after a step of finite samples."""
        ahead, W = self._without_rows(q, v, tau, h)
        if self.points.rows.count:
            L = self.points.row_matrix(q)
            moved = W @ np.swapaxes(L, 1, 2)
            free = (L @ ahead[..., None])[..., 0]
            impulses = self._solved(q, v, impulses, L @ moved, free, h)
            ahead = ahead + (moved @ impulses[..., None])[..., 0]
        moved = integrate_unchecked(self.model, q, h * ahead)
        later, ahead = settled_state(self.model, q, ahead, h, moved)
        if not self.closed:
            return later, ahead, impulses
        closed = onto_loops(self.model, later, ahead)
        lost = np.asarray(np.isnan(closed[0]).any(axis=-1))
        if lost.any():
            cure = "take a shorter dt, or smaller forces"
            raise open_loop_error(self.model, rows_at(self.model, later).error, lost, "step", cure)
        return *closed, impulses

    def _solved(
        self, q: Array, v: Array, impulses: Array, delta: Array, free: Array, h: float
    ) -> Array:
        places, rates = self.points.states(q, v)
        dt = np.full((len(free), 1), h)
        flat = delta.reshape(len(free), -1)
        given = (flat, places, rates, free, dt, impulses)
        key = ("row_solver", self.points.rows)
        return traced_results(self.model, key, *given)["impulses_next"]

    def _without_rows(self, q: Array, v: Array, tau: Array, h: float) -> tuple[Array, Array]:
        """v after a step without friction, stops and contacts, and W."""
        model = self.model
        added, K = implicit_numbers(model, self.smooth, h)
        mass = dynamics.mass_matrix(model, q) + np.diag(added)
        total = tau - dynamics.bias_force(model, q, v)
        if self.smooth:
            total = total + passive_force_unchecked(model, q, v, self.smooth) - h * K * v
        rate, W = free_rates(model, q, v, mass, total)
        return v + h * rate + carried_velocity(model, v, h), W
