# SPDX-License-Identifier: BSD-3-Clause
"""Articulated bodies: their inertia, bias force, and both across a joint.

A link and all beyond it, joints free, resist an acceleration α of the link with the force Pα + z,
on trees as on chains.
"""

from phistar.algebra.ir import let
from phistar.algebra.phases import row
from phistar.algebra.proof import Theorem
from phistar.algebra.symbols import D, E_phi, G, H, K, M, P, mass_matrix, psi, tau
from phistar.algorithms.catalogue import algorithm
from phistar.algorithms.innovations import L_inv, mass_matrix_inverse
from phistar.algorithms.inverse_dynamics import a, b, bias_force
from phistar.refs import FO00, JR93, RK92

P_plus = P - G @ D @ G.T
"""P⁺: the inertia across the joint, as it acts on the parent."""

_vdot = mass_matrix.inv @ (tau - bias_force)
_RULES = (mass_matrix_inverse.rule, row("riccati_mixed"))
_source = let("source", K @ tau + P @ a + b)


@algorithm
def articulated_inertia() -> Theorem:
    """P = M + Σ φP⁺φ* over the children."""
    return Theorem(
        "articulated_inertia",
        definition=M + E_phi @ P_plus @ E_phi.T,
        result=P,
        doc="the inertia of a link, and what its children's joints transmit",
        ref=FO00.eq("12"),
    )


@algorithm
def articulated_bias() -> Theorem:
    """z = Pa + b + Σ φ(z + G(τ - Hz)) over the children."""
    z = let("z", psi @ _source)
    return Theorem(
        "articulated_bias",
        definition=P @ a + b + E_phi @ (z + G @ (tau - H @ z)),
        result=z,
        doc="bias forces of articulated bodies inward; a child's joint takes its own force",
        ref=FO00.eq("13"),
    )


@algorithm
def articulated_acceleration() -> Theorem:
    """Dv̇ = τ - H(P E*α + z): each joint accelerates against its articulated body."""
    z = let("z", psi @ _source)
    alpha = let("alpha", psi.T @ (H.T @ D.inv @ (tau - H @ z) + a))
    return Theorem(
        "articulated_acceleration",
        definition=_vdot,
        result=D.inv @ (tau - H @ (P @ E_phi.T @ alpha + z)),
        doc="joint accelerations from the parent's link: the last pass of the algorithm",
        ref=FO00.eq("14"),
        rules=_RULES,
    )


@algorithm
def filter_and_smoother() -> Theorem:
    """v̇ = L⁻*D⁻¹(τ - Hψ(Kτ + Pa + b)) - K*ψ*a: the bias enters both sweeps."""
    epsilon = let("epsilon", tau - H @ psi @ _source)
    return Theorem(
        "filter_and_smoother",
        definition=_vdot,
        result=L_inv.T @ D.inv @ epsilon - K.T @ psi.T @ a,
        doc="forward dynamics as one filter and one smoother",
        ref=JR93.eq("4.10"),
        rules=_RULES,
    )


@algorithm
def articulated_shift() -> Theorem:
    """ψP = P + ψEφP⁺: inertias take part in the filter as forces do."""
    return Theorem(
        "articulated_shift",
        definition=psi @ P,
        result=P + psi @ E_phi @ P_plus,
        doc="Pa may be added before a joint is crossed, or P⁺a after",
        ref=RK92.eq("67"),
    )
