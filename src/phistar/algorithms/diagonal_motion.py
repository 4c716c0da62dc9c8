# SPDX-License-Identifier: BSD-3-Clause
"""The equations of motion in the rates ζ = L*v and forces κ = L⁻¹τ, ready to be compiled.

    D ζ̇ + C_ζ + κ_g = κ        C_ζ Coriolis forces, κ_g gravity

Each joint's equation has its own inertia D(k) and no other's acceleration. What is proved along a
direction δ (``rates``, ``diagonal_rates``) is used here along v, or along L⁻*ζ where ζ is given.
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
    inertia_rate,
    phi,
    psi,
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
    "Total joint rates: a joint's own, and what its parent's motion does to it with all joints "
    "beyond it free; half of ζ*Dζ is the kinetic energy.",
    r"\zeta",
    JR95.eq("7.7"),
)
kappa = vector(
    "kappa",
    JOINT,
    "κ",
    "Working joint forces: what is left of a joint's force after holding the forces of the joints "
    "beyond it; they alone change ζ.",
    r"\kappa",
    JR95.eq("7.9"),
)
v_of_zeta = let("v", L_inv.T @ zeta)
"""Joint velocities by the total rates: outward, v = ζ - G*V⁺."""
P_dot_zeta = inertia_rate(
    "P_dot_zeta", v_of_zeta, "Ṗ_ζ", r"\dot P_\zeta", "at the velocities that belong to ζ"
)


def coriolis(velocity: Expr, rate: Expr) -> Expr:
    """C_ζ by joint velocities and the rate of P along them; no condition on the joints."""
    V = phi.T @ H.T @ velocity
    bent = P @ crm(V) @ H.T @ velocity
    return H @ psi @ (bent + crf(V) @ M @ V) - H @ bent - H @ rate @ E_psi.T @ V


new_rates = L.T @ v
old_rates = v_of_zeta
new_forces = L_inv @ tau
old_forces = L @ kappa
coriolis_force = coriolis(v, P_dot_v)
"""C_ζ."""
hinge_rate = H @ P_dot_v @ H.T
"""Ḋ."""


def total_rates(rates: Expr, velocity: Expr, rate: Expr) -> Expr:
    """ζ̇ = D⁻¹(κ - C_ζ - κ_g) by ζ, joint velocities and the rate of P along them.

    V = ψ*H*ζ                                  outward
    z = ψ(Kτ + Pa + V ×* MV + Mφ*γ - f)        inward      a = V × H*v
    ζ̇ = D⁻¹(τ - Hz + HPa + HṖ(V - H*ζ))
    """
    V = let("V", psi.T @ H.T @ rates)
    bent = let("bent", P @ crm(V) @ H.T @ velocity)
    load = let("load", crf(V) @ M @ V + M @ phi.T @ gravity - f_ext)
    z = let("z", psi @ (K @ tau + bent + load))
    return D.inv @ (tau - H @ z + H @ bent + H @ rate @ (V - H.T @ rates))


zeta_dot = total_rates(zeta, v_of_zeta, P_dot_zeta)
"""ζ̇ from ζ and τ: inertias inward, velocities outward, forces and Ṗ inward."""

V_lag = vector("V_lag", MOTION, "V′", "Link velocities found one step ago.", "V'")
v_lag = vector("v_lag", JOINT, "v′", "Joint velocities found one step ago.", "v'")
lift_lag = vector(
    "lift_lag", MOTION, "γ′", "Upward acceleration of the ground in link axes, one step ago.", "γ'"
)
P_dot_lag = inertia_rate("P_dot_lag", v_lag, "Ṗ′", r"\dot P'", "as they did one step ago")


def _lagged() -> dict[str, Expr]:
    """Algorithm 8.1 as printed, with D⁻¹: one sweep inward, one outward."""
    bent = let("bent", P @ crm(V_lag) @ H.T @ v_lag)
    z = let("z", psi @ (K @ tau + bent + crf(V_lag) @ M @ V_lag + M @ lift_lag))
    bicycle = H @ P_dot_lag @ (V_lag - H.T @ zeta)
    change = let("zeta_dot", D.inv @ (tau - H @ z + H @ bent + bicycle))
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
"""What the first step needs."""
LAGGED_STEP: Mapping[str, Expr] = _lagged()
"""The rates ζ̇, and velocities for ζ and for ζ̇: with step h those of ζ + hζ̇ are their sum."""
