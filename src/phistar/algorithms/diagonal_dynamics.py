# SPDX-License-Identifier: BSD-3-Clause
"""The equations of motion in the rates ζ = L*v and forces κ = L⁻¹τ, ready to be compiled.

    D ζ̇ + C_ζ + κ_g = κ        C_ζ Coriolis forces, κ_g gravity

Each joint's equation has its own inertia D(k) and no other's acceleration. What is proved along a
direction δ (``operator_rates``, ``diagonal_rates``) is used here along v, or along L⁻*ζ where ζ is
given.
"""

from collections.abc import Mapping

from phistar.algebra.ir import Expr, crf, crm, let
from phistar.algebra.spaces import JOINT, MOTION
from phistar.algebra.symbols import (
    D,
    E_psi,
    H,
    K,
    M,
    P,
    P_dot_v,
    f_ext,
    gravity,
    phi,
    psi,
    register_articulated_rate,
    tau,
    v,
    vector,
)
from phistar.algorithms.innovations import L, L_inv
from phistar.refs import JR95

zeta = vector(
    "zeta",
    JOINT,
    "ζ",
    "Total joint rates: a joint's own plus the effect of its parent's motion with all joints "
    "beyond it free; half of ζ*Dζ is the kinetic energy.",
    r"\zeta",
    JR95.eq("7.7"),
)
kappa = vector(
    "kappa",
    JOINT,
    "κ",
    "Working joint forces: a joint's force less the part that balances the joints beyond it; "
    "they alone change ζ.",
    r"\kappa",
    JR95.eq("7.9"),
)
v_of_zeta = let("v", L_inv.T @ zeta)
"""Joint velocities by the total rates: outward, v = ζ - G*V⁺."""
P_dot_zeta = register_articulated_rate(
    "P_dot_zeta", v_of_zeta, "Ṗ_ζ", r"\dot P_\zeta", "at the velocities that belong to ζ"
)


def coriolis_of_zeta(velocity: Expr, rate: Expr) -> Expr:
    """C_ζ by joint velocities and the rate of P along them; no condition on the joints."""
    V = phi.T @ H.T @ velocity
    coriolis_load = P @ crm(V) @ H.T @ velocity
    return H @ psi @ (coriolis_load + crf(V) @ M @ V) - H @ coriolis_load - H @ rate @ E_psi.T @ V


new_rates = L.T @ v
old_rates = v_of_zeta
new_forces = L_inv @ tau
old_forces = L @ kappa
coriolis_force = coriolis_of_zeta(v, P_dot_v)
"""C_ζ."""
hinge_rate = H @ P_dot_v @ H.T
"""Ḋ."""


def zeta_rate(rates: Expr, velocity: Expr, links: Expr, rate: Expr) -> Expr:
    """ζ̇ = D⁻¹(κ - C_ζ - κ_g) by ζ, v, the velocities V of the links and the rate of P along v.

    z = ψ(Kτ + Pa + V ×* MV + Mφ*γ - f)        inward      a = V × H*v
    ζ̇ = D⁻¹(τ - Hz + HPa + HṖ(V - H*ζ))
    """
    V = let("V", links)
    coriolis_load = let("coriolis_load", P @ crm(V) @ H.T @ velocity)
    load = let("load", crf(V) @ M @ V + M @ phi.T @ gravity - f_ext)
    z = let("z", psi @ (K @ tau + coriolis_load + load))
    return D.inv @ (tau - H @ z + H @ coriolis_load + H @ rate @ (V - H.T @ rates))


zeta_dot = zeta_rate(zeta, v_of_zeta, psi.T @ H.T @ zeta, P_dot_zeta)
"""ζ̇ from ζ and τ: inertias inward, velocities outward, forces and Ṗ inward."""

V_lag = vector("V_lag", MOTION, "V′", "Link velocities found one step ago.", "V'")
v_lag = vector("v_lag", JOINT, "v′", "Joint velocities found one step ago.", "v'")
lift_lag = vector(
    "lift_lag", MOTION, "γ′", "Upward acceleration of the ground in link axes, one step ago.", "γ'"
)
P_dot_lag = register_articulated_rate(
    "P_dot_lag", v_lag, "Ṗ′", r"\dot P'", "as they did one step ago"
)


def _lagged_step() -> dict[str, Expr]:
    """Algorithm 8.1 as published, with D⁻¹: one sweep inward, one outward."""
    coriolis_load = let("coriolis_load", P @ crm(V_lag) @ H.T @ v_lag)
    z = let("z", psi @ (K @ tau + coriolis_load + crf(V_lag) @ M @ V_lag + M @ lift_lag))
    bicycle = H @ P_dot_lag @ (V_lag - H.T @ zeta)
    change = let("zeta_dot", D.inv @ (tau - H @ z + H @ coriolis_load + bicycle))
    return {
        "zeta_dot": change,
        "v": L_inv.T @ zeta,
        "v_change": L_inv.T @ change,
        "V": psi.T @ H.T @ zeta,
        "V_change": psi.T @ H.T @ change,
        "lift": phi.T @ gravity,
    }


LAGGED_START: Mapping[str, Expr] = {
    "zeta": new_rates,
    "V": phi.T @ H.T @ v,
    "lift": phi.T @ gravity,
}
"""Inputs of the first step."""
LAGGED_STEP: Mapping[str, Expr] = _lagged_step()
"""The rates ζ̇, and velocities for ζ and for ζ̇: with step h those of ζ + hζ̇ are their sum."""
