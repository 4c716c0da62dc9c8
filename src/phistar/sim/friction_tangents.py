# SPDX-License-Identifier: BSD-3-Clause
"""Dry friction that is held during steps of time, and how it follows what the steps begin with.

``joint_rows`` finds the forces λ: a joint that slides has λ = -F sign(v'), one that is held has the
force that leads to v' = 0. Where no joint changes between the two, λ is a smooth function of state,
joint forces and parameters:

    slides   δλ = -sign(v') δF
    held     δλ such that δv + h δv̇ = 0,  𝓜ₕ δv̇ = (∂) δq + (∂) δv + δτ - C δp + δλ
"""

from __future__ import annotations

import numpy as np

from phistar import dynamics
from phistar.arrays import Array
from phistar.derivatives.first import linearize_inverse
from phistar.derivatives.parameter_columns import ParameterColumns
from phistar.joint_physics.implicit import implicit_acceleration, implicit_numbers
from phistar.joint_physics.passive_forces import passive_derivatives, with_passive_force
from phistar.model.joint_physics import passive_numbers
from phistar.sim.joint_rows import JointRows
from phistar.sim.variables import Velocity


def held_friction(
    columns: ParameterColumns,
    state: tuple[Array, Array, Array],
    dt: float,
    parts: tuple[str, ...],
    implicit: bool,
    acts: bool,
) -> tuple[Array, Array]:
    """λ (..., nv) of steps, and how it follows (q, v, τ, p), (..., nv, 3 nv + parameters).

    Args:
        columns: The robot and its parameters; friction is ``coulomb.joint`` among them. Where a
            joint has none, derivatives are those of the first bit of it.
        state: q (..., nq), v and tau (..., nv) at the start of each step.
        dt: Length of the steps [s].
        parts: Springs and dampers that push.
        implicit: Whether these push as they do at the end of the step.
        acts: Whether friction acted; without, λ is zero.
    """
    model = columns.model
    batch = state[1].shape[:-1]
    q, v, tau = (x.reshape(-1, x.shape[-1]) for x in state)
    implicit = implicit and bool(parts)
    force = np.zeros_like(v)
    if acts:
        rows = JointRows(Velocity(model, None, parts), ("friction",), implicit)
        force = rows.forces(q, v, tau, dt)
    if implicit:
        vdot = implicit_acceleration(model, q, v, tau + force, dt, parts, None)
    else:
        pushed = with_passive_force(model, q, v, tau + force, parts) if parts else tau + force
        vdot = dynamics.forward_dynamics(model, q, v, pushed)
    held = np.abs(force) < passive_numbers(model).friction if acts else np.zeros(v.shape, bool)
    slides = _sliding(columns, np.where(held, 0.0, np.sign(v + dt * vdot)))
    along = slides + _held(columns, (q, v, vdot), dt, parts, implicit, held, slides)
    return force.reshape(*batch, model.nv), along.reshape(*batch, *along.shape[1:])


def _sliding(columns: ParameterColumns, direction: Array) -> Array:
    """(B, nv, 3 nv + parameters) of joints that move in a direction."""
    nv = columns.model.nv
    found = np.zeros((len(direction), nv, 3 * nv + len(columns)))
    for place, entry in columns.entries("coulomb"):
        found[:, entry, 3 * nv + place] = -direction[:, entry]
    return found


def _held(
    columns: ParameterColumns,
    at: tuple[Array, Array, Array],
    dt: float,
    parts: tuple[str, ...],
    implicit: bool,
    held: Array,
    slides: Array,
) -> Array:
    """(B, nv, 3 nv + parameters) of joints at rest."""
    found = np.zeros_like(slides)
    some = held.any(axis=-1)
    if not some.any():
        return found
    model, nv = columns.model, columns.model.nv
    q, v, vdot = (x[some] for x in at)
    inverse_dynamics = linearize_inverse(model, q, v, vdot)
    along_q, along_v = passive_derivatives(model, q, v, parts)
    mass, by_v = inverse_dynamics.tau_vdot, along_v - inverse_dynamics.tau_v
    if implicit:
        added, stiffness = implicit_numbers(model, parts, dt)
        mass, by_v = mass + np.diag(added), by_v - dt * np.diag(stiffness)
    felt = columns.at(q, v, vdot, ahead=dt if implicit else 0.0)
    one = np.broadcast_to(np.eye(nv), by_v.shape)
    pushes = np.concatenate([along_q - inverse_dynamics.tau_q, by_v, one, -felt], axis=-1)
    inverse = np.linalg.inv(mass)
    moved = inverse @ (pushes + slides[some])
    # Rows of the joints at rest: δv/h + δv̇ + (𝓜ₕ⁻¹ δλ) = 0; the others have δλ = 0 here.
    moved[..., nv : 2 * nv] += np.eye(nv) / dt
    rest = held[some]
    both = rest[:, :, None] & rest[:, None, :]
    left = np.where(both, inverse, np.eye(nv))
    found[some] = np.linalg.solve(left, np.where(rest[..., None], -moved, 0.0))
    return found
