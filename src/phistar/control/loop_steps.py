# SPDX-License-Identifier: BSD-3-Clause
"""Steps of a robot with loops and their derivatives, the projection onto the loops included.

``robot.step`` ends with Newton steps in the mass metric, from q off the loops by e, and of v at the
new q' in the metric of the old q:

    𝓜s = L*μ,   Ls = -e,    q' = q ⊕ s
    𝓜c = L'*ν,  L'c = -L'v,  v' = v + c

Both are differentiated as they stand; what is off the loops by O(dt²) matters, because a motion has
1/dt steps. Where rows depend on each other as many are taken as are independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.control.loop_states import LoopStates
from phistar.derivatives.lie_jacobians import right_jacobian, step_adjoint
from phistar.loops.assembly import usual_rank
from phistar.loops.linearization import motion_tangents
from phistar.loops.rank import independent_rows, take_rows
from phistar.loops.system import loop_system, motion_at, rows_at, tangents_at
from phistar.model.joint_physics import Passive
from phistar.robot import Robot

_PROJECTIONS = 3
"""Newton steps; they converge quadratically, and further ones change nothing."""
_DIFFERENCE = 1e-5
"""Step of the differences that give the derivative of the loops' errors, off by 1e-10."""


@dataclass(frozen=True)
class ReducedSteps:
    """Steps of ``robot.step`` and their derivatives in independent coordinates.

    Attributes:
        q, v: (..., nq), (..., nv) states after the steps.
        A: (..., 2 n, 2 n).
        B: (..., 2 n, nv) for the forces of all joints.
    """

    q: Array
    v: Array
    A: Array
    B: Array


def reduced_steps(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    dt: float,
    start: LoopStates,
    end_entries: Array,
    passive: Passive = False,
) -> ReducedSteps:
    """Steps from states on the loops, linearized.

    Args:
        robot: The robot.
        q, v, tau: (..., nq), (..., nv), (..., nv).
        dt: Length of the steps [s].
        start: Independent changes there.
        end_entries: (..., n) independent coordinates at the ends.
        passive: As in ``robot.linearize``.
    """
    model, nv = robot.model, robot.nv
    at = robot.linearize(q, v, tau, passive=passive)
    free_v = v + dt * at.vdot
    # Changes by (δq_R, δv_R, δτ) before the projection.
    n, starts = start.X.shape[-1], start.expand
    rates = np.concatenate([at.vdot_q, at.vdot_v], axis=-1) @ starts
    change_v = np.concatenate([starts[..., nv:, :] + dt * rates, dt * at.vdot_tau], axis=-1)
    change_q = dt * right_jacobian(model, dt * free_v) @ change_v
    change_q[..., : 2 * n] += step_adjoint(model, dt * free_v) @ starts[..., :nv, :]
    moving = _Moving(robot.integrate(q, dt * free_v), free_v, change_q, change_v)
    for _ in range(_PROJECTIONS):
        moving = _projected(robot, moving)
    picked = [
        np.take_along_axis(x, end_entries[..., None], axis=-2) for x in (moving.dq, moving.dv)
    ]
    change = np.concatenate(picked, axis=-2)
    if passive is not False:
        tau = tau + robot.passive_force(q, v, passive=passive)
    ahead = robot.step(q, v, tau, dt, "semi_implicit", passive=False)
    return ReducedSteps(*ahead, change[..., : 2 * n], change[..., 2 * n :])


@dataclass(frozen=True)
class _Moving:
    """States (..., nq), (..., nv), and their changes (..., nv, k) along k directions."""

    q: Array
    v: Array
    dq: Array
    dv: Array


@dataclass(frozen=True)
class _Rows:
    """Independent rows of the loops: their numbers (..., r), L (..., r, nv)."""

    chosen: Array
    L: Array

    @classmethod
    def at(cls, robot: Robot, L: Array) -> _Rows:
        chosen = independent_rows(loop_system(robot.model), L, usual_rank(robot.model))
        return cls(chosen, take_rows(L, chosen))

    def spread(self, robot: Robot, multipliers: Array) -> Array:
        """Multipliers (..., rows) of all rows."""
        whole = np.zeros((*multipliers.shape[:-1], loop_system(robot.model).count))
        np.put_along_axis(whole, self.chosen, multipliers, axis=-1)
        return whole


def _projected(robot: Robot, at: _Moving) -> _Moving:
    """One Newton step of q and v onto the loops."""
    model, mass = robot.model, robot.mass_matrix(at.q)
    found = rows_at(model, at.q)
    rows = _Rows.at(robot, found.L)
    error = np.take_along_axis(found.error, rows.chosen, axis=-1)
    s, mu = _saddle(mass, rows.L, np.zeros_like(at.v)[..., None], -error[..., None])
    step = s[..., 0]
    q = robot.integrate(at.q, step)
    ahead = motion_at(model, q, at.v)
    later = _Rows.at(robot, ahead.L)
    rate = np.take_along_axis(ahead.rate, later.chosen, axis=-1)
    c, nu = _saddle(mass, later.L, np.zeros_like(at.v)[..., None], -rate[..., None])
    v = at.v + c[..., 0]
    # Their changes.
    mass_s, mass_c = _mass_changes(robot, at.q, step, c[..., 0])
    pull = mass_s - _pull_changes(robot, at.q, rows, mu[..., 0])
    opened = _error_changes(robot, at.q) + motion_tangents(model, at.q, step)
    ds, _ = _saddle(mass, rows.L, -pull @ at.dq, -take_rows(opened, rows.chosen) @ at.dq)
    dq = step_adjoint(model, step) @ at.dq + right_jacobian(model, step) @ ds
    force = _pull_changes(robot, q, later, nu[..., 0]) @ dq - mass_c @ at.dq
    turned = take_rows(motion_tangents(model, q, v), later.chosen)
    dc, _ = _saddle(mass, later.L, force, -later.L @ at.dv - turned @ dq)
    return _Moving(q, v, dq, at.dv + dc)


def _saddle(mass: Array, L: Array, force: Array, c: Array) -> tuple[Array, Array]:
    """x (..., nv, k) and λ (..., r, k) with 𝓜x - L*λ = force and Lx = c."""
    nv, r = L.shape[-1], L.shape[-2]
    matrix = np.zeros((*L.shape[:-2], nv + r, nv + r))
    matrix[..., :nv, :nv] = mass
    matrix[..., :nv, nv:] = -np.swapaxes(L, -1, -2)
    matrix[..., nv:, :nv] = L
    solution = np.linalg.solve(matrix, np.concatenate([force, c], axis=-2))
    return solution[..., :nv, :], solution[..., nv:, :]


def _mass_changes(robot: Robot, q: Array, *vectors: Array) -> list[Array]:
    """∂(𝓜x)/∂q (..., nv, nv) for each x (..., nv)."""
    still = np.zeros_like(vectors[0])
    accelerations = np.stack([still, *vectors])
    shape = accelerations.shape[:-1]
    at = robot.tree.linearize_inverse(
        np.broadcast_to(q, (*shape, robot.nq)), np.zeros_like(accelerations), accelerations
    )
    return [x - at.tau_q[0] for x in at.tau_q[1:]]


def _pull_changes(robot: Robot, q: Array, rows: _Rows, multipliers: Array) -> Array:
    """∂(L*λ)/∂q (..., nv, nv)."""
    still = np.zeros((*multipliers.shape[:-1], robot.nv))
    whole = rows.spread(robot, multipliers)
    return np.asarray(tangents_at(robot.model, q, still, still, whole)["force_q"])


def _error_changes(robot: Robot, q: Array) -> Array:
    """∂e/∂q (..., rows, nv) of the loops' errors, by central differences; L on the loops."""
    steps = _DIFFERENCE * np.eye(robot.nv)
    around = np.broadcast_to(q[..., None, :], (*q.shape[:-1], robot.nv, robot.nq))
    ahead, behind = (
        rows_at(robot.model, robot.integrate(around, sign * steps)).error for sign in (1.0, -1.0)
    )
    return np.asarray(np.swapaxes(ahead - behind, -1, -2) / (2 * _DIFFERENCE))
