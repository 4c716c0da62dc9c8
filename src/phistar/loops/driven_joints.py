# SPDX-License-Identifier: BSD-3-Clause
"""Dynamics on loops with the motion of some joints prescribed, and its derivatives.

A prescribed coordinate is one more row e_y; its multiplier is the force of its drive.

    𝓜v̇ + 𝒞 = τ_F + L*λ + E*τ_P,    Lv̇ = -L̇v,    Ev̇ = v̇_P
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from phistar.arguments import checked_state
from phistar.arrays import Array, DType
from phistar.derivatives.first import linearize_inverse
from phistar.derivatives.hybrid import HybridLinearization
from phistar.errors import (
    LoopVelocityError,
    SampleError,
    UnknownNameError,
    first_index,
    sample_text,
)
from phistar.loops.apart import ApartError, each_its_way
from phistar.loops.constrained_dynamics import posed
from phistar.loops.linearization import has_dependent_rows, solve_columns
from phistar.loops.rank import RANK_TOLERANCE, Factored, factored
from phistar.loops.routes import LoopProblem, solve_saddle
from phistar.loops.system import tangents_at
from phistar.loops.traced_rows import RATE_TOLERANCE
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.wrenches import Wrenches
from phistar.spatial.reproducible_products import matvec


@dataclass(frozen=True)
class _Driven:
    """Hybrid dynamics at states.

    Attributes:
        problem: What was asked, with the forces of the free joints.
        dtype: Precision of the results.
        entries: Numbers of the prescribed coordinates.
        rows: (..., rows + prescribed, nv) L, and e_y below it.
        factor: Of these.
        rank: Of these.
        vdot: (..., nv).
        multipliers: (..., rows + prescribed).
    """

    problem: LoopProblem
    dtype: DType
    entries: Array
    rows: Array
    factor: Factored
    rank: int
    vdot: Array
    multipliers: Array

    @property
    def tau(self) -> Array:
        """(..., nv) forces of all joints."""
        found = np.array(np.broadcast_to(self.problem.tau, self.vdot.shape))
        found[..., self.entries] = self.multipliers[..., self.problem.system.count :]
        return found


def _entries(model: Model, prescribed: Sequence[str]) -> Array:
    chosen: list[int] = []
    for name in prescribed:
        if name not in model.joint_names:
            raise UnknownNameError("independent joint", name, model.joint_names, model.name)
        own = model.joints[name].v_slice
        chosen += range(own.start, own.stop)
    return np.array(chosen, dtype=int)


def _driven(
    purpose: str,
    model: Model,
    states: tuple[Coordinates, Coordinates, Coordinates],
    vdot: Coordinates,
    prescribed: Sequence[str],
    wrenches: Wrenches | None,
) -> _Driven:
    """Accelerations and drives' forces.

    Raises:
        LoopVelocityError: The loops do not allow the prescribed accelerations.
    """
    problem, dtype = posed(model, *states, wrenches, purpose)
    (given,) = checked_state(model, v=vdot)
    entries = _entries(model, prescribed)
    unit, free = np.eye(model.nv)[entries], np.ones(model.nv)
    free[entries] = 0.0
    L, c = problem.rows.L, problem.c
    batch = np.broadcast_shapes(L.shape[:-2], c.shape[:-1], given.shape[:-1])
    rows = np.concatenate([np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (L, unit)], axis=-2)
    wanted = np.concatenate(
        [
            np.broadcast_to(c, (*batch, c.shape[-1])),
            np.broadcast_to(given, (*batch, model.nv))[..., entries],
        ],
        axis=-1,
    )
    system = problem.system
    scale = np.concatenate([system.row_scale, 1.0 / system.column_scale[entries]])
    scaled = scale[:, None] * rows * system.column_scale
    U, values, Vt = np.linalg.svd(scaled, full_matrices=False)
    kept = values > RANK_TOLERANCE * values[..., :1]
    # First: samples that are named are those of the whole batch, before it is taken apart.
    target = scale * wanted
    along = np.where(kept, matvec(np.swapaxes(U, -1, -2), target), 0.0)
    least = matvec(np.swapaxes(Vt, -1, -2), along / np.where(kept, values, 1.0))
    left = np.abs(target - matvec(U, along))
    size = np.abs(target).max(axis=-1, initial=0.0) + np.abs(least).max(axis=-1, initial=0.0)
    bad = np.asarray(left.max(axis=-1, initial=0.0) > RATE_TOLERANCE * (size + 1e-12))
    if bad.any():
        torn = left[first_index(bad)][: system.count]
        row = int(np.argmax(torn))
        raise LoopVelocityError(
            model.name,
            purpose,
            system.label(row),
            f"accelerations prescribed for {', '.join(prescribed)}",
            float(torn[row] / scale[row]),
            bad,
            "prescribe fewer joints, or accelerations on the loops (robot.minimal)",
        )
    ranks = kept.sum(axis=-1)
    if ranks.size and (ranks != ranks.flat[0]).any():
        raise ApartError(ranks)
    rank = int(ranks.flat[0]) if ranks.size else problem.rank + len(entries)
    problem = replace(problem, tau=np.where(free > 0.0, problem.tau, 0.0))
    mass, force = problem.mass_and_force()
    factor = factored(rows, rank)
    found, multipliers = solve_saddle(mass, factor, force, wanted)
    return _Driven(problem, dtype, entries, rows, factor, rank, found, multipliers)


@each_its_way
def hybrid_dynamics(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    vdot: Coordinates,
    prescribed: Sequence[str],
    wrenches: Wrenches | None = None,
) -> tuple[Array, Array]:
    """(vdot, tau), each (..., nv): some joints' accelerations are given, the others' forces."""
    at = _driven("hybrid_dynamics", model, (q, v, tau), vdot, prescribed, wrenches)
    return at.vdot.astype(at.dtype), at.tau.astype(at.dtype)


@each_its_way
def linearize_hybrid(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    vdot: Coordinates,
    prescribed: Sequence[str],
    wrenches: Wrenches | None = None,
) -> HybridLinearization:
    """Derivatives of hybrid dynamics on the loops.

    Raises:
        ArgumentError: Prescribed coordinates follow from each other, so that forces of their
            drives are not determined, nor is what single changes of their accelerations do.
    """
    here = _driven("linearize_hybrid", model, (q, v, tau), vdot, prescribed, wrenches)
    problem, entries = here.problem, here.entries
    if here.rank < problem.rank + len(entries):
        bad = np.ones(here.rows.shape[:-2], dtype=bool)
        raise SampleError(
            f"linearize_hybrid of robot '{model.name}'{sample_text(first_index(bad))}: the loops "
            f"tie the prescribed joints {', '.join(prescribed)} to each other ({len(entries)} "
            f"coordinates, of which {here.rank - problem.rank} move on their own), so that forces "
            "of their drives are not determined; prescribe as many of them "
            "(robot.minimal(q).independent has names)",
            bad,
        )
    at = linearize_inverse(problem.system.tree, problem.q, problem.v, here.vdot, wrenches)
    count, nv = problem.system.count, model.nv
    tangents = tangents_at(model, problem.q, problem.v, here.vdot, here.multipliers[..., :count])
    square = np.zeros_like(at.tau_q)
    still = np.zeros((*square.shape[:-2], here.rows.shape[-2], nv))
    free, drives, by_q, by_v = square.copy(), still.copy(), still.copy(), still.copy()
    kept = np.setdiff1d(np.arange(nv), entries)
    free[..., kept, kept] = 1.0
    drives[..., count + np.arange(len(entries)), entries] = 1.0
    by_q[..., :count, :] = -tangents["acceleration_q"]
    by_v[..., :count, :] = -tangents["acceleration_v"]
    sides = {
        "q": (tangents["force_q"] - at.tau_q, by_q),
        "v": (-at.tau_v, by_v),
        "tau": (free, still),
        "vdot": (square, drives),
    }
    found = {}
    for name, (force, c) in sides.items():
        change, push = solve_columns(at.tau_vdot, here.factor, force, c)
        felt = free.copy() if name == "tau" else square.copy()
        felt[..., entries, :] = push[..., count:, :]
        found[f"vdot_{name}"], found[f"tau_{name}"] = change, felt
    if has_dependent_rows(model, problem.rank):
        X = factored(problem.rows.L, problem.rank).X
        along = X @ np.swapaxes(X, -1, -2)
        for name in ("vdot_q", "tau_q"):
            found[name] = found[name] @ along
    arrays = {name: x.astype(here.dtype) for name, x in found.items()}
    return HybridLinearization(here.vdot.astype(here.dtype), here.tau.astype(here.dtype), **arrays)
