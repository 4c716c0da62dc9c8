# SPDX-License-Identifier: BSD-3-Clause
"""Forward dynamics in which each loop is closed at the nearest common ancestor of its links.

The articulated-body sweep carries three things more for the loops that are still open below a link:
U (6, rows), the forces of unit multipliers as the link feels them; Λ, how rows move per multiplier;
and w, how they move without. At the ancestor of a loop ℓ its row is solved for λ_ℓ, which leaves an
articulated inertia P + U Λ⁻¹ U* of the closed subtree, and the sweep goes on as in a tree. Loops
with the ground are closed there, which is the range-space method without 𝓜. On batches, in NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.loops.rank import independent_rows
from phistar.model.components import GROUND, Coupling
from phistar.model.kinematic_loops import loop_ends
from phistar.model.loop_kinds import wrench_columns
from phistar.model.model import Model
from phistar.model.numpy_kinematics import body_velocities
from phistar.model.wrenches import link_forces
from phistar.spatial import crf_apply, crm_apply, force_transform, inertia_matrix

if TYPE_CHECKING:
    from phistar.loops.routes import LoopProblem


@dataclass
class _Joint:
    """What the inward sweep leaves at a joint: D⁻¹, G, ε, E."""

    inverse: Array
    gain: Array
    epsilon: Array
    E: Array


@dataclass
class _Closed:
    """A loop that was closed at a link: its rows, Λ⁻¹, c - w, U and Λ to the loops still open."""

    rows: slice
    inverse: Array
    wanted: Array
    U: Array
    others: Array


@dataclass
class _Sweep:
    """Values per link, the ground last."""

    P: list[Array]
    z: list[Array]
    U: list[Array]
    joints: dict[int, _Joint] = field(default_factory=dict)
    closed: dict[int, list[_Closed]] = field(default_factory=dict)


def join(problem: LoopProblem) -> Array:
    """v̇ (..., nv)."""
    model, system = problem.model, problem.system
    batch = np.broadcast_shapes(
        problem.q.shape[:-1], problem.v.shape[:-1], problem.tau.shape[:-1], problem.c.shape[:-1]
    )
    q = np.broadcast_to(problem.q, (*batch, model.nq))
    v = np.broadcast_to(problem.v, (*batch, model.nv))
    kept = _kept_rows(problem, batch)
    poses = [body.transform(q) for body in model.bodies]
    shifts = [force_transform(pose) for pose in poses]
    V = body_velocities(model, q, v)
    gamma, coupled = loop_loads(problem, kept, batch)
    sweep = _begin(problem, q, V, gamma, batch)
    coriolis = [
        crm_apply(V[..., b.index, :], v[..., b.v_slice] @ b.motion_map().T) for b in model.bodies
    ]
    stiffness = np.eye(system.count) * (1.0 - kept)[..., None, :]
    moved = np.zeros((*batch, system.count))
    right = kept * (problem.c + _ancestor_terms(problem, gamma, coriolis, shifts, batch))
    close_at = closing_links(model, problem)
    for body in reversed(model.bodies):
        k = body.index
        _close(sweep, close_at.get(k, ()), k, stiffness, moved, right)
        H = body.motion_map()
        a = coriolis[k]
        P, U = sweep.P[k], sweep.U[k]
        C = coupled[..., body.v_slice]
        D = H.T @ P @ H + np.diag(body.armature)
        inverse = np.linalg.inv(D)
        gain = P @ H @ inverse
        z = sweep.z[k] + _times(P, a)
        epsilon = problem.tau[..., body.v_slice] - _times(H.T, z)
        E = H.T @ U + np.swapaxes(C, -1, -2)
        Et = np.swapaxes(E, -1, -2)
        stiffness += Et @ inverse @ E
        moved += _times(np.swapaxes(U, -1, -2), a) + _times(Et @ inverse, epsilon)
        sweep.joints[k] = _Joint(inverse, gain, epsilon, E)
        shift = shifts[k]
        outer = P - gain @ D @ np.swapaxes(gain, -1, -2)
        outer = (outer + np.swapaxes(outer, -1, -2)) / 2
        parent = body.parent
        sweep.P[parent] = sweep.P[parent] + shift @ outer @ np.swapaxes(shift, -1, -2)
        sweep.z[parent] = sweep.z[parent] + _times(shift, z + _times(gain, epsilon))
        sweep.U[parent] = sweep.U[parent] + shift @ (U - gain @ E)
    _close(sweep, close_at.get(GROUND, ()), GROUND, stiffness, moved, right)
    return _outward(problem, sweep, shifts, coriolis, batch)


def _times(matrix: Array, x: Array) -> Array:
    return np.asarray((matrix @ x[..., None])[..., 0])


def _kept_rows(problem: LoopProblem, batch: tuple[int, ...]) -> Array:
    """(..., rows) ones for rows that are used, zeros for those that depend on them."""
    system = problem.system
    kept = np.ones((*problem.rows.L.shape[:-2], system.count))
    if problem.rank < system.count:
        kept[:] = 0.0
        picked = independent_rows(system, problem.rows.L, problem.rank)
        np.put_along_axis(kept, picked, 1.0, axis=-1)
    return np.broadcast_to(kept, (*batch, system.count))


def loop_loads(
    problem: LoopProblem, kept: Array, batch: tuple[int, ...]
) -> tuple[dict[int, Array], Array]:
    """Γ (..., 6, rows) of each link that a loop pushes, and C (..., rows, nv)."""
    model, system = problem.model, problem.system
    gamma: dict[int, Array] = {}

    def add(body: int, rows: slice, block: Array) -> None:
        whole = gamma.setdefault(body, np.zeros((*batch, 6, system.count)))
        whole[..., rows] += kept[..., None, rows] * block

    for number, loop, rows in system.joints():
        relative = problem.rows.relative[..., number, :, :]
        N = np.swapaxes(wrench_columns(loop, relative), -1, -2)
        first, second = loop_ends(model, loop)
        add(second.body, rows, force_transform(second.pose) @ N)
        add(first.body, rows, -force_transform(first.pose) @ force_transform(relative) @ N)
    coupled = np.zeros((*batch, system.count, model.nv))
    for _, rows in system.couplings():
        coupled[..., rows, :] = kept[..., rows, None] * problem.rows.L[..., rows, :]
    return gamma, coupled


def _begin(
    problem: LoopProblem, q: Array, V: Array, gamma: dict[int, Array], batch: tuple[int, ...]
) -> _Sweep:
    """Inertias, forces at zero acceleration less those on frames, and Γ, of all links."""
    model, count = problem.model, problem.system.count
    P = [np.broadcast_to(inertia_matrix(b.inertia), (*batch, 6, 6)) for b in model.bodies]
    z = [
        crf_apply(V[..., b.index, :], _times(P[b.index], V[..., b.index, :])) for b in model.bodies
    ]
    if problem.wrenches is not None:
        pushed = link_forces(problem.system.tree, q, problem.wrenches)
        z = [x - pushed[..., k, :] for k, x in enumerate(z)]
    ground = (np.zeros((*batch, 6, 6)), np.zeros((*batch, 6)))
    nothing = np.zeros((*batch, 6, count))
    links = [*range(len(model.bodies)), GROUND]
    return _Sweep([*P, ground[0]], [*z, ground[1]], [gamma.get(k, nothing) for k in links])


def _ancestor_terms(
    problem: LoopProblem,
    gamma: dict[int, Array],
    coriolis: list[Array],
    shifts: list[Array],
    batch: tuple[int, ...],
) -> Array:
    """Γ*α⁰ (..., rows), α⁰ the accelerations of links at v̇ = 0 without gravity."""
    model = problem.model
    alpha: list[Array] = []
    total = np.zeros((*batch, problem.system.count))
    for body in model.bodies:
        own = coriolis[body.index]
        if body.parent != GROUND:
            own = own + _times(np.swapaxes(shifts[body.index], -1, -2), alpha[body.parent])
        alpha.append(own)
        if body.index in gamma:
            total += _times(np.swapaxes(gamma[body.index], -1, -2), own)
    return total


def closing_links(model: Model, problem: LoopProblem) -> dict[int, list[slice]]:
    """Rows of the loops to close at each link."""
    found: dict[int, list[slice]] = {}
    for loop, rows in zip(problem.system.loops, problem.system.slices, strict=True):
        if isinstance(loop, Coupling):
            names = [loop.joint, *([loop.source] if loop.source else [])]
            ends = [model.bodies[model.joints[name].bodies[0]].parent for name in names]
        else:
            ends = [end.body for end in loop_ends(model, loop)]
        paths = [model.ancestors(end) for end in ends]
        shared = [a for a in paths[0] if all(a in path for path in paths)]
        found.setdefault(shared[-1] if shared else GROUND, []).append(rows)
    return found


def _close(
    sweep: _Sweep,
    loops: list[slice] | tuple[()],
    k: int,
    stiffness: Array,
    moved: Array,
    right: Array,
) -> None:
    """Solve the rows of loops for their multipliers at a link; Λ and w are changed in place."""
    for rows in loops:
        U = sweep.U[k]
        own = np.array(U[..., rows])
        inverse = np.linalg.inv(stiffness[..., rows, rows])
        others = np.array(stiffness[..., rows, :])
        others[..., rows] = 0.0
        wanted = right[..., rows] - moved[..., rows]
        carried = own @ inverse
        sweep.closed.setdefault(k, []).append(_Closed(rows, inverse, wanted, own, others))
        P = sweep.P[k] + carried @ np.swapaxes(own, -1, -2)
        sweep.P[k] = (P + np.swapaxes(P, -1, -2)) / 2
        sweep.z[k] = sweep.z[k] - _times(carried, wanted)
        left = U - carried @ others
        left[..., rows] = 0.0
        sweep.U[k] = left
        coupling = np.swapaxes(others, -1, -2) @ inverse
        moved += _times(coupling, wanted)
        stiffness -= coupling @ others
        stiffness[..., rows, :] = 0.0
        stiffness[..., :, rows] = 0.0


def _outward(
    problem: LoopProblem,
    sweep: _Sweep,
    shifts: list[Array],
    coriolis: list[Array],
    batch: tuple[int, ...],
) -> Array:
    model = problem.model
    multipliers = np.zeros((*batch, problem.system.count))
    result = np.empty((*batch, model.nv))
    ground = np.broadcast_to(np.concatenate([np.zeros(3), -model.gravity]), (*batch, 6))
    alpha: dict[int, Array] = {GROUND: ground}
    _release(sweep, GROUND, ground, multipliers)
    for body in model.bodies:
        k = body.index
        joint = sweep.joints[k]
        inner = _times(np.swapaxes(shifts[k], -1, -2), alpha[body.parent])
        pushed = joint.epsilon + _times(joint.E, multipliers)
        own = _times(joint.inverse, pushed) - _times(np.swapaxes(joint.gain, -1, -2), inner)
        result[..., body.v_slice] = own
        alpha[k] = inner + coriolis[k] + own @ body.motion_map().T
        _release(sweep, k, alpha[k], multipliers)
    return result


def _release(sweep: _Sweep, k: int, alpha: Array, multipliers: Array) -> None:
    """Multipliers of the loops that were closed at a link, the last one first."""
    for each in reversed(sweep.closed.get(k, ())):
        left = each.wanted - _times(np.swapaxes(each.U, -1, -2), alpha)
        left = left - _times(each.others, multipliers)
        multipliers[..., each.rows] = _times(each.inverse, left)
