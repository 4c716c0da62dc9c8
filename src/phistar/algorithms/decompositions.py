# SPDX-License-Identifier: BSD-3-Clause
"""Triangular decompositions: products of φ and ψ with a block diagonal between them, as sums.

Each replaces a product of two sweeps by one recursion of blocks and single sweeps, from which
matrices are computed. X, Y and Z are any block diagonal: with M for X the first one is the
composite-body algorithm, with H*D⁻¹H for Y the third one gives the inverse mass matrix. Inward
recursions hold on trees and chains; outward ones have blocks Ξ between siblings.
"""

from phistar.algebra.identities import GYROSCOPIC_BIAS
from phistar.algebra.ir import identity
from phistar.algebra.outward_identities import FREE_TRANSFER, RIGID_TRANSFER
from phistar.algebra.phases import row
from phistar.algebra.proof import Theorem
from phistar.algebra.spaces import FORCE
from phistar.algebra.symbols import (
    J_Z,
    S_X,
    S_Y,
    S_Z,
    D,
    E_psi,
    G,
    H,
    J_hat,
    K,
    K_hat,
    M_hat,
    P,
    P_hat,
    Upsilon,
    X,
    Xi,
    Xi_Y,
    Y,
    Z,
    mass_matrix,
    phi,
    psi,
)
from phistar.algorithms.catalogue import register_theorem
from phistar.algorithms.innovations import L_inv, mass_matrix_inverse
from phistar.refs import JR93

phi_tilde = phi - identity(FORCE)
psi_tilde = psi - identity(FORCE)

_SERIAL = frozenset({"serial"})
_UNMOTORED = frozenset({"unmotored"})
_UPSILON = (row("compliance_recursion"),)
_SIBLINGS = psi.T @ Xi @ psi
_KERNEL = psi.T @ H.T @ D.inv @ H @ psi

L_diagonal = D.inv + K.T @ Upsilon @ K
"""Diagonal of the inverse mass matrix; on a tree with its blocks between siblings."""
U = D.inv @ H - K.T @ Upsilon @ E_psi
"""Joint accelerations per unit of force on the joint's own link."""

register_theorem(
    Theorem(
        "rigid_split",
        phi @ X @ phi.T,
        phi @ S_X + S_X @ phi_tilde.T,
        "φXφ* by the sums of X over descendants",
        JR93.eq("A.1"),
        (row("rigid_recursion"),),
    )
)
register_theorem(
    Theorem(
        "mixed_split",
        psi @ M_hat @ phi.T,
        psi @ P_hat + P_hat @ phi_tilde.T,
        "ψM̂φ* by the one-sided sums of M̂",
        JR93.eq("A.2"),
        GYROSCOPIC_BIAS,
    )
)
register_theorem(
    Theorem(
        "free_split",
        psi.T @ Y @ psi,
        psi.T @ S_Y + S_Y @ psi_tilde,
        "ψ*Yψ on a chain by the sums of Y over ancestors",
        JR93.eq("A.3"),
        (row("free_recursion"),),
        _SERIAL,
    )
)
register_theorem(
    Theorem(
        "free_split_tree",
        psi.T @ Y @ psi,
        psi.T @ S_Y + S_Y @ psi_tilde + psi.T @ Xi_Y @ psi,
        "ψ*Yψ on a tree: links on different branches meet in their nearest common ancestor",
        JR93.eq("A.3"),
        (row("free_recursion"),),
    )
)
register_theorem(
    Theorem(
        "rigid_transfer_split",
        phi.T @ Z @ phi_tilde.T,
        S_Z @ phi.T - phi.T @ S_Z,
        "φ*Zφ̃* by the sums of Z over ancestors",
        JR93.eq("A.4"),
        RIGID_TRANSFER,
    )
)
register_theorem(
    Theorem(
        "free_transfer_split",
        psi.T @ Z @ phi_tilde.T,
        J_Z @ phi.T - psi.T @ J_Z,
        "ψ*Zφ̃* by the one-sided sums of Z over ancestors",
        JR93.eq("A.5"),
        FREE_TRANSFER,
    )
)
register_theorem(
    Theorem(
        "compliance_chain",
        _KERNEL,
        Upsilon + psi_tilde.T @ Upsilon + Upsilon @ psi_tilde,
        "the operational-space kernel of a chain is diagonal, upper and lower",
        JR93.at("Lemma 4.8"),
        _UPSILON,
        _SERIAL,
    )
)
register_theorem(
    Theorem(
        "compliance_branches",
        _KERNEL,
        Upsilon + psi_tilde.T @ Upsilon + Upsilon @ psi_tilde + _SIBLINGS,
        "the same on a tree, with what siblings share through their parent",
        JR93.at("Lemma 4.8"),
        _UPSILON,
    )
)
register_theorem(
    Theorem(
        "inverse_split",
        mass_matrix_inverse.result,
        L_diagonal - K.T @ psi.T @ U.T - U @ psi @ K,
        "the inverse mass matrix of a chain is diagonal, upper and lower",
        JR93.at("Lemma 4.9"),
        _UPSILON,
        _SERIAL,
    )
)
register_theorem(
    Theorem(
        "inverse_split_tree",
        mass_matrix_inverse.result,
        L_diagonal - K.T @ psi.T @ U.T - U @ psi @ K + K.T @ _SIBLINGS @ K,
        "the inverse mass matrix of a tree: joints on different branches meet in a common ancestor",
        JR93.at("Lemma 4.9"),
        _UPSILON,
    )
)
register_theorem(
    Theorem(
        "forces_split",
        mass_matrix.inv @ H @ phi,
        U @ psi - K.T @ psi.T @ Upsilon,
        "joint accelerations per unit of force on the links of a chain, split",
        JR93.eq("A.23"),
        (mass_matrix_inverse.rule, *_UPSILON),
        _SERIAL,
    )
)
register_theorem(
    Theorem(
        "forces_split_tree",
        mass_matrix.inv @ H @ phi,
        U @ psi - K.T @ psi.T @ Upsilon - K.T @ _SIBLINGS,
        "joint accelerations per unit of force on the links of a tree, split",
        JR93.eq("A.23"),
        (mass_matrix_inverse.rule, *_UPSILON),
    )
)
register_theorem(
    Theorem(
        "hinge_compliance",
        G.T @ Upsilon @ G,
        D.inv,
        "the compliance of a joint is the inverse of its articulated inertia",
        JR93.eq("4.19"),
        (row("gain_compliance"),),
        _UNMOTORED,
    )
)
register_theorem(
    Theorem(
        "compliance_inverts_inertia",
        H @ P @ Upsilon,
        H,
        "along its joint axes, Υ is the inverse of P",
        JR93.eq("4.19"),
        (row("gain_compliance"),),
        _UNMOTORED,
    )
)
register_theorem(
    Theorem(
        "bias_gain",
        D.inv @ H @ P_hat @ phi_tilde.T,
        K_hat.T @ phi.T,
        "D⁻¹HP̂φ̃* = K̂*φ*",
        JR93.at("Lemma 4.7, proof"),
        GYROSCOPIC_BIAS,
    )
)
register_theorem(
    Theorem(
        "bias_matrix_through_the_inverse",
        mass_matrix.inv @ H @ phi @ M_hat @ phi.T,
        L_inv.T @ (D.inv @ H @ psi @ P_hat + K_hat.T @ phi.T),
        "the inverse applied to any force that is linear in the link motions",
        JR93.at("Lemma 4.7"),
        (mass_matrix_inverse.rule, *GYROSCOPIC_BIAS),
    )
)
register_theorem(
    Theorem(
        "bias_transfer_split",
        psi.T @ H.T @ K_hat.T @ phi.T,
        J_hat @ phi.T - psi.T @ J_hat,
        "motions of ancestors through the gains of P̂, split",
        JR93.at("Lemma 4.9, proof"),
        (row("bias_transfer"),),
    )
)
register_theorem(
    Theorem(
        "bias_matrix_split",
        L_inv.T @ K_hat.T @ phi.T,
        K_hat.T @ phi.T - K.T @ (J_hat @ phi.T - psi.T @ J_hat),
        "joint accelerations by the gains of P̂, with single sweeps",
        JR93.at("Lemma 4.9, proof"),
        (row("bias_transfer"),),
    )
)
register_theorem(
    Theorem(
        "bias_gain_by_transfer",
        H @ P @ J_hat,
        H @ P_hat,
        "along its joint axes, Ĵ maps P to P̂",
        JR93.eq("4.22"),
        (*GYROSCOPIC_BIAS, row("gain_transfer")),
        _UNMOTORED,
    )
)
