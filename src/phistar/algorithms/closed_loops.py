# SPDX-License-Identifier: BSD-3-Clause
"""Closed loops: a spanning tree, and forces that keep its loops closed.

A loop is a set of rows L = Γ*φ*H* + C_ℓ on joint rates: Γ has the forces on two links per unit of
multiplier, C_ℓ the rows of gears. The motion is that of the tree with the forces of the loops,

    𝓜v̇ + 𝒞 = τ + L*λ,  L v̇ = c,

and λ comes first: Δλ = c - L a₀ with Δ = L𝓜⁻¹L* and a₀ = 𝓜⁻¹(τ - 𝒞), the tree's own acceleration.
𝓜 is never formed: with Z = HψΓ + (I - HψK)C_ℓ*, one inward sweep of the columns of Γ and C_ℓ*, it
is Δ = Z*D⁻¹Z. Rows must be independent where Δ is inverted; ``constraint_embedding`` does without.
"""

from phistar.algebra.ir import let, zero
from phistar.algebra.loop_symbols import (
    Gamma,
    coupling,
    loop_acceleration,
    loop_compliance,
    loop_jacobian,
    multipliers,
    self_stress,
)
from phistar.algebra.phases import row
from phistar.algebra.proof import Theorem
from phistar.algebra.spaces import JOINT, LOOP
from phistar.algebra.symbols import D, E_phi, G, H, K, P, Upsilon, Xi, mass_matrix, phi, psi, tau, v
from phistar.algebra.traverse import substitute
from phistar.algorithms.catalogue import algorithm
from phistar.algorithms.decompositions import psi_tilde
from phistar.algorithms.forward_dynamics import forward_dynamics
from phistar.algorithms.innovations import L_inv, mass_matrix_inverse
from phistar.algorithms.inverse_dynamics import a, b, bias_force
from phistar.algorithms.operational_space import Omega
from phistar.refs import FO00

L, Delta = loop_jacobian, loop_compliance

Z = H @ psi @ Gamma + L_inv @ coupling.T
"""The forces of the loops, whitened: joint innovations per unit of multiplier."""
U = psi @ (Gamma - K @ coupling.T)
"""Forces that the loops hand inward through free joints, per unit of multiplier."""

tree_acceleration = mass_matrix.inv @ (tau - bias_force)
"""a₀: what the tree would do with its loops open."""
loop_multipliers = Delta.inv @ (loop_acceleration - L @ tree_acceleration)
"""λ: the multipliers that keep the loops closed."""
closed_acceleration = tree_acceleration + mass_matrix.inv @ L.T @ loop_multipliers
"""v̇ of the closed robot."""
closed_response = mass_matrix.inv - mass_matrix.inv @ L.T @ Delta.inv @ L @ mass_matrix.inv
"""∂v̇/∂τ of the closed robot."""

_ROWS = (row("loop_jacobian_definition"),)
_FACTORS = (*_ROWS, mass_matrix_inverse.rule)
_INDEPENDENT = frozenset({"independent"})
_UNCOUPLED = frozenset({"uncoupled"})


@algorithm
def loop_forces() -> Theorem:
    """L* = HφΓ + C_ℓ*: one inward sweep of the loops' forces gives the joint forces."""
    return Theorem(
        "loop_forces",
        definition=L.T,
        result=H @ phi @ Gamma + coupling.T,
        doc="joint forces of the loops per unit of multiplier, by one inward sweep",
        ref=FO00.eq("19"),
        rules=_ROWS,
    )


@algorithm
def loop_whitening() -> Theorem:
    """(I - HψK)L* = Z: the filter of the tree turns φ into ψ."""
    return Theorem(
        "loop_whitening",
        definition=L_inv @ L.T,
        result=Z,
        doc="the loops' joint forces through the inverse innovations factor, by one inward sweep",
        ref=FO00.eq("21"),
        rules=_ROWS,
    )


@algorithm
def loop_compliance_factored() -> Theorem:
    """Δ = L𝓜⁻¹L* = Z*D⁻¹Z."""
    return Theorem(
        "loop_compliance_factored",
        definition=Delta,
        result=Z.T @ D.inv @ Z,
        doc="the compliance of the loops as a Gram matrix of one sweep, without the mass matrix",
        ref=FO00.eq("21"),
        rules=_FACTORS,
    )


@algorithm
def loop_compliance_of_links() -> Theorem:
    """Without couplings Δ = Γ*ΩΓ: the extended operational space of the loops' links."""
    return Theorem(
        "loop_compliance_of_links",
        definition=Delta,
        result=Gamma.T @ Omega @ Gamma,
        doc="loops between links see the compliance that frames see in operational space",
        ref=FO00.eq("21"),
        rules=_FACTORS,
        needs=_UNCOUPLED,
    )


@algorithm
def loop_compliance_split() -> Theorem:
    """The same by Υ: links meet in themselves, in an ancestor, or through siblings."""
    kernel = Upsilon + psi_tilde.T @ Upsilon + Upsilon @ psi_tilde + psi.T @ Xi @ psi
    return Theorem(
        "loop_compliance_split",
        definition=Delta,
        result=Gamma.T @ kernel @ Gamma,
        doc="each entry is Υ of the nearest common ancestor of two links, moved out to them",
        ref=FO00.eq("21"),
        rules=(*_FACTORS, row("compliance_recursion")),
        needs=_UNCOUPLED,
    )


@algorithm
def loop_response() -> Theorem:
    """𝓜⁻¹L* = (I - HψK)*D⁻¹Z: an outward sweep after the inward one."""
    return Theorem(
        "loop_response",
        definition=mass_matrix.inv @ L.T,
        result=L_inv.T @ D.inv @ Z,
        doc="joint accelerations per unit of multiplier, by two sweeps",
        ref=FO00.eq("21"),
        rules=_FACTORS,
    )


@algorithm
def loop_forces_dynamics() -> Theorem:
    """The articulated-body algorithm takes Γλ as external forces and C_ℓ*λ as joint forces."""
    return Theorem(
        "loop_forces_dynamics",
        definition=mass_matrix.inv @ (tau - bias_force + L.T @ multipliers),
        result=substitute(
            forward_dynamics.result,
            {b: b - Gamma @ multipliers, tau: tau + coupling.T @ multipliers},
        ),
        doc="once the multipliers are known, forward dynamics of the tree gives the motion",
        ref=FO00.eq("15"),
        rules=(*_FACTORS, row("riccati_mixed")),
    )


@algorithm
def loop_row_accelerations() -> Theorem:
    """L𝓜⁻¹(τ - 𝒞 + L*λ) = L a₀ + Δλ: to be c, λ must solve Δλ = c - L a₀."""
    return Theorem(
        "loop_row_accelerations",
        definition=L @ mass_matrix.inv @ (tau - bias_force + L.T @ multipliers),
        result=L @ tree_acceleration + Delta @ multipliers,
        doc="accelerations across the loops are affine in the multipliers",
        ref=FO00.eq("21"),
    )


@algorithm
def closed_loops_hold() -> Theorem:
    """L v̇ = c for v̇ = a₀ + 𝓜⁻¹L*λ, λ = Δ⁻¹(c - L a₀)."""
    return Theorem(
        "closed_loops_hold",
        definition=L @ closed_acceleration,
        result=loop_acceleration,
        doc="the multipliers keep the loops closed: the second row of the KKT system",
        ref=FO00.eq("18"),
        needs=_INDEPENDENT,
    )


@algorithm
def closed_loop_motion() -> Theorem:
    """𝓜v̇ + 𝒞 = τ + L*λ for the same v̇ and λ."""
    return Theorem(
        "closed_loop_motion",
        definition=mass_matrix @ closed_acceleration + bias_force,
        result=tau + L.T @ loop_multipliers,
        doc="the tree moves under the forces of its loops: the first row of the KKT system",
        ref=FO00.eq("20"),
        needs=_INDEPENDENT,
    )


@algorithm
def closed_loop_acceleration() -> Theorem:
    """v̇ is linear in τ - 𝒞 and c: ∂v̇/∂τ = 𝓜⁻¹ - 𝓜⁻¹L*Δ⁻¹L𝓜⁻¹."""
    return Theorem(
        "closed_loop_acceleration",
        definition=closed_acceleration,
        result=closed_response @ (tau - bias_force)
        + mass_matrix.inv @ L.T @ Delta.inv @ loop_acceleration,
        doc="the closed robot's response to joint forces, and to motion that loops prescribe",
        ref=FO00.eq("20"),
        needs=_INDEPENDENT,
    )


@algorithm
def response_keeps_the_loops() -> Theorem:
    """L ∂v̇/∂τ = 0."""
    return Theorem(
        "response_keeps_the_loops",
        definition=L @ closed_response,
        result=zero(LOOP, JOINT),
        doc="no joint force opens a loop",
        ref=FO00.eq("20"),
        needs=_INDEPENDENT,
    )


@algorithm
def response_ignores_loop_forces() -> Theorem:
    """∂v̇/∂τ L* = 0."""
    return Theorem(
        "response_ignores_loop_forces",
        definition=closed_response @ L.T,
        result=zero(JOINT, LOOP),
        doc="joint forces that the loops could transmit move nothing",
        ref=FO00.eq("20"),
        needs=_INDEPENDENT,
    )


@algorithm
def response_of_inertia() -> Theorem:
    """∂v̇/∂τ 𝓜 ∂v̇/∂τ = ∂v̇/∂τ: a generalised inverse of the mass matrix."""
    return Theorem(
        "response_of_inertia",
        definition=closed_response @ mass_matrix @ closed_response,
        result=closed_response,
        doc="along the loops the response inverts the mass matrix",
        ref=FO00.eq("20"),
        needs=_INDEPENDENT,
    )


epsilon = let("epsilon", tau - H @ let("z", psi @ (K @ tau + P @ a + b)))
"""Innovations of the tree's forward dynamics."""
open_accelerations = U.T @ a + Z.T @ D.inv @ epsilon
"""Accelerations across the open loops, collected inward beside the bias forces."""


@algorithm
def loop_open_accelerations() -> Theorem:
    """L a₀ + Γ*φ*a = U*a + Z*D⁻¹ε, ε = τ - Hz: no outward sweep is needed before λ."""
    return Theorem(
        "loop_open_accelerations",
        definition=L @ tree_acceleration + Gamma.T @ phi.T @ a,
        result=open_accelerations,
        doc="accelerations across the open loops from the inward sweep of forward dynamics",
        ref=FO00.eq("21"),
        rules=(*_FACTORS, row("riccati_mixed")),
    )


@algorithm
def closed_forward_dynamics() -> Theorem:
    """The articulated-body algorithm with its loops closed: one solve between its two sweeps.

    z = ψ(Kτ + Pa + b), U = ψ(Γ - KC_ℓ*)      inward     as for the tree, and the loops' columns
    ε = τ - Hz, Z = HU + C_ℓ*                             innovations
    Δ = Z*D⁻¹Z, w = U*a + Z*D⁻¹ε                          sums over the links
    λ = Δ⁻¹(c + Γ*φ*a - w)                                at the ground
    ν = D⁻¹(ε + Zλ)
    v̇ = ν - K*ψ*(H*ν + a)                     outward    as for the tree
    """
    wanted = loop_acceleration + Gamma.T @ phi.T @ a
    lam = let("multipliers", Delta.inv @ (wanted - open_accelerations))
    nu = let("nu", D.inv @ (epsilon + Z @ lam))
    return Theorem(
        "closed_forward_dynamics",
        definition=closed_acceleration,
        result=nu - K.T @ psi.T @ (H.T @ nu + a),
        doc="forward dynamics of a robot with closed loops in two sweeps",
        ref=FO00.eq("21"),
        rules=(*_FACTORS, row("riccati_mixed")),
        needs=_INDEPENDENT,
    )


@algorithm
def loop_innovations() -> Theorem:
    """Z = HU + C_ℓ*: the columns of the loops go inward by one recursion, U = Γ + Eφ(U - GZ)."""
    return Theorem(
        "loop_innovations",
        definition=H @ U + coupling.T,
        result=Z,
        doc="what the loops' forces leave at each joint on their way inward",
        ref=FO00.eq("21"),
    )


@algorithm
def loop_columns_inward() -> Theorem:
    """U = Γ + Eφ(U - GZ)."""
    return Theorem(
        "loop_columns_inward",
        definition=Gamma + E_phi @ (U - G @ Z),
        result=U,
        doc="the recursion of the loops' columns, beside that of the articulated inertia",
        ref=FO00.eq("21"),
    )


@algorithm
def closed_compliance() -> Theorem:
    """φ*H* ∂v̇/∂τ Hφ = Ω - (ψ*H*D⁻¹Z)Δ⁻¹(ψ*H*D⁻¹Z)*: closed loops make links stiffer."""
    seen = psi.T @ H.T @ D.inv @ Z
    return Theorem(
        "closed_compliance",
        definition=phi.T @ H.T @ closed_response @ H @ phi,
        result=Omega - seen @ Delta.inv @ seen.T,
        doc="link accelerations per unit of force on the links of the closed robot: operational "
        "space with loops",
        ref=FO00.eq("20"),
        rules=_FACTORS,
        needs=_INDEPENDENT,
    )


projection = closed_response @ mass_matrix
"""Nearest velocities that keep the loops closed, in the metric of the mass matrix."""


@algorithm
def velocity_projection() -> Theorem:
    """v - 𝓜⁻¹L*Δ⁻¹Lv = ∂v̇/∂τ 𝓜v: an impulse of the loops that stops what opens them."""
    return Theorem(
        "velocity_projection",
        definition=v - mass_matrix.inv @ L.T @ Delta.inv @ L @ v,
        result=projection @ v,
        doc="velocities after the loops have closed at once; forces of the loops alone act",
        ref=FO00.eq("21"),
        needs=_INDEPENDENT,
    )


@algorithm
def projection_of_energy() -> Theorem:
    """v*𝓜v = (Πv)*𝓜(Πv) + (Lv)*Δ⁻¹(Lv): the parts are orthogonal, so Πv is the nearest."""
    return Theorem(
        "projection_of_energy",
        definition=v.T @ mass_matrix @ v,
        result=(projection @ v).T @ mass_matrix @ projection @ v + (L @ v).T @ Delta.inv @ L @ v,
        doc="closing the loops takes the energy of the motion across them, and no other",
        ref=FO00.eq("21"),
        needs=_INDEPENDENT,
    )


@algorithm
def loop_forces_inward() -> Theorem:
    """ψΓ = φΓ - ψK(L* - C_ℓ*): free joints pass on what rigid ones do, less what moves them."""
    return Theorem(
        "loop_forces_inward",
        definition=psi @ Gamma,
        result=phi @ Gamma - psi @ K @ (L.T - coupling.T),
        doc="the loops' forces inward through free joints, by those through locked ones",
        ref=FO00.at("section 3.4"),
        rules=_ROWS,
    )


@algorithm
def redundant_rows_decouple() -> Theorem:
    """U s = φΓs if L*s = 0: a self-stress passes through free joints as if they were locked.

    Δs = 0 means s*Δs = |D^-½Zs|² = 0, so Zs = 0 and L*s = 0. The forces of a loop on its two links
    are equal and opposite, so φΓ is zero at their common ancestor and inboard of it, and there
    Us = 0, too: rows that depend on others may be dropped where a loop is closed.
    """
    return Theorem(
        "redundant_rows_decouple",
        definition=U @ self_stress,
        result=phi @ Gamma @ self_stress,
        doc="a self-stress of redundant loops moves no joint, so nothing of it gets further inward "
        "than the loops' common ancestor",
        ref=FO00.at("section 3.4"),
        rules=(loop_forces_inward.rule, row("self_stress_moves_nothing")),
    )
