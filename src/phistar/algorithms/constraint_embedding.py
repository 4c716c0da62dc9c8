# SPDX-License-Identifier: BSD-3-Clause
"""Closed loops in minimal rates: projection on what the loops leave, and the tree of nodes.

𝓧 gives all rates from independent ones, L𝓧 = 0; 𝓢 gives rates for velocities across the loops. Then

    v̇ = 𝓧y + 𝓢c,  𝓧*𝓜𝓧 y = 𝓧*(τ - 𝒞 - 𝓜𝓢c),

whether or not rows are redundant. 𝓧*𝓜𝓧 is again a mass matrix of a tree: links that share loops
are one node, with Hₐ = 𝓧*Hφᵢ in place of H and Eₐ = (Eφ - Eᵢ)φᵢ in place of Eφ, Eᵢ being the part
of Eφ inside nodes. So all that is known of trees, the O(n) inverse too, is known of closed loops.
"""

from phistar.algebra.ir import Expr, I, zero
from phistar.algebra.loop_identities import AGGREGATED, AGGREGATION, on_nodes
from phistar.algebra.loop_symbols import (
    E_a,
    E_inner,
    H_a,
    embedding,
    independent_rates,
    loop_acceleration,
    loop_jacobian,
    mass_matrix_a,
    particular_rates,
    phi_a,
    phi_inner,
)
from phistar.algebra.phases import row
from phistar.algebra.proof import Theorem
from phistar.algebra.spaces import MINIMAL, ONE
from phistar.algebra.symbols import A, D, E_phi, H, mass_matrix, phi, tau
from phistar.algebra.traverse import open_lets
from phistar.algorithms.catalogue import algorithm
from phistar.algorithms.closed_loops import closed_response
from phistar.algorithms.forward_dynamics import forward_dynamics
from phistar.algorithms.innovations import L, L_inv
from phistar.algorithms.inverse_dynamics import a, bias_force
from phistar.refs import FO00, RK92

X, R, S = embedding, independent_rates, particular_rates

embedded_inertia = X.T @ mass_matrix @ X
"""Mass matrix of the closed robot in minimal rates."""
prescribed = S @ loop_acceleration
"""Joint accelerations that the loops prescribe: L times them is c."""
minimal_acceleration = embedded_inertia.inv @ X.T @ (tau - bias_force - mass_matrix @ prescribed)
"""y: accelerations of the independent rates."""
embedded_acceleration = X @ minimal_acceleration + prescribed
"""v̇ of the closed robot, by projection."""
loop_joint_forces = mass_matrix @ embedded_acceleration + bias_force - tau
"""L*λ: what the joints lack to move like that, given by the loops."""

node_factor, node_factor_inverse = on_nodes(L), on_nodes(L_inv)
"""I + HₐφₐKₐ and I - HₐψₐKₐ."""


def _of_nodes(expr: Expr) -> Expr:
    """An expression on nodes: τₐ = 𝓧*(τ - A𝓢c) and aₐ = φᵢ*(a + H*𝓢c) for its vectors."""
    force = X.T @ (tau - A @ prescribed)
    return on_nodes(expr, {tau: force, a: phi_inner.T @ (a + H.T @ prescribed)})


_INDEPENDENT = frozenset({"independent"})
_PARTITION = (
    row("embedding_keeps_the_loops"),
    row("embedding_of_rates"),
    row("particular_rates_at_rest"),
    row("partition_of_rates"),
)


@algorithm
def null_space_motion() -> Theorem:
    """𝓧*(𝓜v̇ + 𝒞 - τ) = 0 for v̇ = 𝓧y + 𝓢c."""
    return Theorem(
        "null_space_motion",
        definition=X.T @ loop_joint_forces,
        result=zero(MINIMAL, ONE),
        doc="the equations of motion hold along all motions that the loops leave",
        ref=FO00.eq("22"),
    )


@algorithm
def null_space_rows() -> Theorem:
    """L v̇ = c for the same v̇."""
    return Theorem(
        "null_space_rows",
        definition=loop_jacobian @ embedded_acceleration,
        result=loop_acceleration,
        doc="projected motion keeps the loops closed; with redundant rows, for every c that is "
        "consistent, c = L𝓢c",
        ref=FO00.eq("22"),
        rules=_PARTITION,
        needs=_INDEPENDENT,
    )


@algorithm
def forces_of_the_loops() -> Theorem:
    """τ = L*𝓢*τ + 𝓡*𝓧*τ: joint forces are forces of the loops if 𝓧* of them is zero.

    So projected motion has multipliers, redundant rows or not: λ = 𝓢*(𝓜v̇ + 𝒞 - τ).
    """
    return Theorem(
        "forces_of_the_loops",
        definition=tau,
        result=loop_jacobian.T @ S.T @ tau + R.T @ X.T @ tau,
        doc="joint forces are what the loops could transmit, plus what moves independent rates",
        ref=FO00.eq("19"),
        rules=_PARTITION,
    )


@algorithm
def embedded_response() -> Theorem:
    """(𝓧*𝓜𝓧)⁻¹ = 𝓡 ∂v̇/∂τ 𝓡*."""
    return Theorem(
        "embedded_response",
        definition=embedded_inertia.inv,
        result=R @ closed_response @ R.T,
        doc="the inverse inertia in minimal rates is a part of the closed robot's response",
        ref=FO00.eq("22"),
        rules=_PARTITION,
        needs=_INDEPENDENT,
    )


@algorithm
def response_by_embedding() -> Theorem:
    """∂v̇/∂τ = 𝓧(𝓧*𝓜𝓧)⁻¹𝓧*: methods 2 and 3 of the paper agree."""
    return Theorem(
        "response_by_embedding",
        definition=closed_response,
        result=X @ embedded_inertia.inv @ X.T,
        doc="the response by multipliers is that by projection on what the loops leave",
        ref=FO00.eq("22"),
        rules=(*_PARTITION, embedded_response.rule),
        needs=_INDEPENDENT,
    )


@algorithm
def node_shifts() -> Theorem:
    """(I - Eₐ)(I - Eᵢ) = I - Eφ, so φ = φᵢφₐ."""
    return Theorem(
        "node_shifts",
        definition=(I - E_a) @ (I - E_inner),
        result=I - E_phi,
        doc="forces go inward within a node and then from node to node",
        ref=FO00.at("section 3.4"),
        rules=AGGREGATION,
    )


@algorithm
def node_motions() -> Theorem:
    """φ*H*𝓧 = φₐ*Hₐ*: link motions of the closed robot from sweeps over its nodes."""
    return Theorem(
        "node_motions",
        definition=phi.T @ H.T @ X,
        result=phi_a.T @ H_a.T,
        doc="link motions per unit of minimal rate are those of a tree of nodes",
        ref=FO00.eq("22"),
        rules=AGGREGATION,
    )


@algorithm
def embedded_mass_matrix() -> Theorem:
    """𝓧*𝓜𝓧 = HₐφₐMφₐ*Hₐ* + Aₐ."""
    return Theorem(
        "embedded_mass_matrix",
        definition=embedded_inertia,
        result=mass_matrix_a,
        doc="the mass matrix in minimal rates is that of the tree of nodes",
        ref=FO00.eq("22"),
        rules=AGGREGATION,
    )


@algorithm
def embedded_forces() -> Theorem:
    """𝓧*(τ - 𝒞 - 𝓜𝓢c) = τₐ - Hₐφₐ(Mφₐ*aₐ + b), τₐ = 𝓧*(τ - A𝓢c), aₐ = φᵢ*(a + H*𝓢c)."""
    return Theorem(
        "embedded_forces",
        definition=X.T @ (tau - bias_force - mass_matrix @ prescribed),
        result=_of_nodes(tau - bias_force),
        doc="forces in minimal rates by the sweeps of inverse dynamics over nodes",
        ref=FO00.eq("22"),
        rules=AGGREGATION,
    )


@algorithm
def embedded_factorisation() -> Theorem:
    """𝓜ₐ = (I + HₐφₐKₐ)Dₐ(I + HₐφₐKₐ)*."""
    result = node_factor @ on_nodes(D) @ node_factor.T
    return Theorem(
        "embedded_factorisation",
        definition=mass_matrix_a,
        result=result,
        doc="the innovations factorisation of the tree, on nodes",
        ref=RK92.at("Identity 3"),
        rules=AGGREGATED,
    )


@algorithm
def embedded_mass_matrix_inverse() -> Theorem:
    """𝓜ₐ⁻¹ = (I - HₐψₐKₐ)*Dₐ⁻¹(I - HₐψₐKₐ)."""
    return Theorem(
        "embedded_mass_matrix_inverse",
        definition=mass_matrix_a.inv,
        result=node_factor_inverse.T @ on_nodes(D).inv @ node_factor_inverse,
        doc="the inverse in minimal rates in O(n) for loops of bounded size",
        ref=RK92.at("Identity 6"),
        rules=AGGREGATED,
    )


@algorithm
def embedded_forward_dynamics() -> Theorem:
    """y = 𝓜ₐ⁻¹(τₐ - Hₐφₐ(Mφₐ*aₐ + b)) by the articulated-body algorithm on nodes.

    zₐ = ψₐ(Kₐτₐ + Pₐaₐ + b)     inward
    νₐ = Dₐ⁻¹(τₐ - Hₐzₐ)
    y = νₐ - Kₐ*ψₐ*(Hₐ*νₐ + aₐ)  outward
    """
    return Theorem(
        "embedded_forward_dynamics",
        definition=_of_nodes(mass_matrix.inv @ (tau - bias_force)),
        result=_of_nodes(open_lets(forward_dynamics.result)),
        doc="forward dynamics of the tree, on nodes",
        ref=RK92.eq("(66)-(73)"),
        rules=(embedded_mass_matrix_inverse.rule, *AGGREGATED),
    )
