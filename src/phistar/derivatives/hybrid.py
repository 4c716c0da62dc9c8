# SPDX-License-Identifier: BSD-3-Clause
"""Linearized dynamics with the motion of some joints prescribed, e.g. of the base.

With F the free joints and P the prescribed ones, inverse dynamics δτ = 𝓜δv̇ + A δv + B δq in blocks:

    δv̇_F = 𝓜_FF⁻¹ (δτ_F - 𝓜_FP δv̇_P - A_F δv - B_F δq)
    δτ_P = 𝓜_PF δv̇_F + 𝓜_PP δv̇_P + A_P δv + B_P δq
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phistar import dynamics
from phistar.arguments import names_in
from phistar.arrays import Array
from phistar.derivatives.first import linearize_inverse
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.wrenches import Wrenches
from phistar.reprs import one_line_repr


@one_line_repr
@dataclass(frozen=True)
class HybridLinearization:
    """Accelerations and joint forces of all joints, and their derivatives.

        δv̇ = vdot_q δq + vdot_v δv + vdot_tau δτ + vdot_vdot δv̇
        δτ = tau_q δq + tau_v δv + tau_tau δτ + tau_vdot δv̇

    On the right δτ counts for the free joints and δv̇ for the prescribed ones; columns of the
    others are zero. Rows of what is given are those of the identity.

    Attributes:
        vdot, tau: (..., nv).
        vdot_q, vdot_v, vdot_tau, vdot_vdot: (..., nv, nv); q along tangent steps.
        tau_q, tau_v, tau_tau, tau_vdot: (..., nv, nv).
    """

    vdot: Array
    tau: Array
    vdot_q: Array
    vdot_v: Array
    vdot_tau: Array
    vdot_vdot: Array
    tau_q: Array
    tau_v: Array
    tau_tau: Array
    tau_vdot: Array


def linearize_hybrid(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    vdot: Coordinates,
    prescribed: Sequence[str],
    wrenches: Wrenches | None = None,
) -> HybridLinearization:
    """Derivatives of hybrid dynamics."""
    moved, felt = dynamics.hybrid_dynamics(model, q, v, tau, vdot, prescribed, wrenches)
    at = linearize_inverse(model, q, v, moved, wrenches)
    held = np.zeros(model.nv, dtype=bool)
    for name in names_in("prescribed", prescribed):
        held[model.joints[name].v_slice] = True
    mass = at.tau_vdot
    # Columns of what is given: rows of the free joints are solved for, those of the others kept.
    given = {
        "q": (-at.tau_q, np.zeros_like(mass)),
        "v": (-at.tau_v, np.zeros_like(mass)),
        "tau": (_diagonal(~held, mass), np.zeros_like(mass)),
        "vdot": (-np.where(held, mass, 0.0), _diagonal(held, mass)),
    }
    free = np.flatnonzero(~held)
    inner = mass[..., free[:, None], free]
    found: dict[str, Array] = {}
    for name, (pushed, moving) in given.items():
        change = moving.copy()
        change[..., free, :] = np.linalg.solve(inner, pushed[..., free, :])
        reaction = mass @ change
        if name in ("q", "v"):
            reaction = reaction - pushed
        reaction[..., free, :] = _diagonal(~held, mass)[..., free, :] if name == "tau" else 0.0
        found[f"vdot_{name}"], found[f"tau_{name}"] = change, reaction
    return HybridLinearization(moved, felt, **found)


def _diagonal(chosen: Array, like: Array) -> Array:
    """Ones on the diagonal for some joints, (..., nv, nv)."""
    return np.broadcast_to(np.diag(chosen.astype(like.dtype)), like.shape)
