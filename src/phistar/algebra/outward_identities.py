# SPDX-License-Identifier: BSD-3-Clause
"""Identities of outward sums: block diagonals on motions, summed from the roots to the tips."""

from __future__ import annotations

from phistar.algebra.ir import identity, zero
from phistar.algebra.rules import Identity
from phistar.algebra.spaces import FORCE, JOINT
from phistar.algebra.symbols import (
    J_Z,
    S_Y,
    S_Z,
    D,
    E_phi,
    E_psi,
    G,
    G_hat,
    H,
    J_hat,
    K,
    K_hat,
    Upsilon,
    Xi,
    Xi_Y,
    Y,
    Z,
    phi,
    psi,
)
from phistar.refs import JR93, JR95

_E, _KH = E_phi.T, (K @ H).T
_OUT = JR93.at("Lemma A.1")

RIGID_TRANSFER = (
    Identity("transfer_shift", Z @ _E, S_Z @ _E - _E @ S_Z, "the recursion of S_Z", JR93.eq("A.4")),
    Identity(
        "transfer_phi",
        Z @ phi.T,
        Z - S_Z + S_Z @ phi.T - _E @ S_Z @ phi.T,
        "the recursion of S_Z, times φ*",
        JR93.eq("A.4"),
    ),
    Identity(
        "transfer_psi",
        Z @ _KH @ psi.T,
        Z - S_Z + S_Z @ psi.T - Z @ psi.T - _E @ S_Z @ psi.T + S_Z @ _KH @ psi.T,
        "the recursion of S_Z, times ψ*",
        _OUT,
    ),
)
"""Outward sum of any block diagonal Z on motions, moved rigidly on both sides."""

FREE_TRANSFER = (
    Identity(
        "free_transfer_shift",
        Z @ _E,
        J_Z @ _E - _E @ J_Z + _KH @ J_Z,
        "the recursion of J_Z",
        JR93.eq("A.5"),
    ),
    Identity(
        "free_transfer_phi",
        Z @ phi.T,
        Z - J_Z + J_Z @ phi.T - _E @ J_Z @ phi.T + _KH @ J_Z @ phi.T,
        "the recursion of J_Z, times φ*",
        JR93.eq("A.5"),
    ),
    Identity(
        "free_transfer_psi",
        Z @ _KH @ psi.T,
        Z
        - J_Z
        + J_Z @ psi.T
        - Z @ psi.T
        - _E @ J_Z @ psi.T
        + _KH @ J_Z @ psi.T
        + J_Z @ _KH @ psi.T,
        "the recursion of J_Z, times ψ*",
        _OUT,
    ),
)
"""The same through free joints from the left."""

BIAS_TRANSFER = (
    Identity(
        "bias_transfer",
        H.T @ K_hat.T,
        J_hat @ E_phi.T - E_psi.T @ J_hat,
        "ĴEφ* = H*Ĝ*Eφ* + Eψ*Ĵ",
        JR93.eq("4.22"),
    ),
    Identity(
        "gain_transfer",
        G.T @ J_hat,
        G_hat.T,
        "G*H* = I and G*Eψ* = 0",
        needs=frozenset({"unmotored"}),
    ),
)
"""Motions of ancestors through the gains of P̂."""

COMPLIANCE = (
    Identity(
        "compliance_recursion",
        H.T @ D.inv @ H,
        Upsilon - E_psi.T @ Upsilon @ E_psi + Xi,
        "Υ is H*D⁻¹H plus the diagonal blocks of Eψ*ΥEψ",
        JR93.eq("4.19"),
    ),
    Identity(
        "free_recursion",
        Y,
        S_Y - E_psi.T @ S_Y @ E_psi + Xi_Y,
        "S is Y plus the diagonal blocks of Eψ*SEψ",
        JR93.eq("A.3"),
    ),
    Identity(
        "gain_compliance",
        G.T @ Upsilon,
        D.inv @ H,
        "G*H* = I and G*Eψ* = 0",
        needs=frozenset({"unmotored"}),
    ),
    Identity(
        "gain_siblings", G.T @ Xi, zero(JOINT, FORCE), "G*Eψ* = 0", needs=frozenset({"unmotored"})
    ),
    Identity(
        "free_hinge_gain",
        H @ G,
        identity(JOINT),
        "HPH* = D",
        JR95.eq("4.12"),
        frozenset({"unmotored"}),
    ),
    Identity(
        "free_gain",
        E_psi @ G,
        zero(FORCE, JOINT),
        "EψG = K(I - HG)",
        JR95.eq("4.12"),
        frozenset({"unmotored"}),
    ),
)
"""Outward sums of compliances, Υ first; Ξ is the remainder between siblings."""
