# SPDX-License-Identifier: BSD-3-Clause
"""Operator identities as data: each row is a rewrite rule, left to right; adjoints are added.

A left side is a single word. The core rows terminate (``WEIGHTS`` falls on every one) and are
confluent (all critical pairs join), so their normal forms decide equality modulo the core. The
tests check both, and that every row holds densely and breaks when weakened.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from phistar.algebra.ir import Expr, Symbol, identity
from phistar.algebra.spaces import FORCE, JOINT
from phistar.algebra.symbols import (
    A,
    D,
    E_phi,
    E_psi,
    G,
    H,
    K,
    M,
    P,
    Upsilon,
    composite,
    entry,
    mass_matrix,
    phi,
    psi,
)
from phistar.refs import JR93, JR95, RK92, Ref


@dataclass(frozen=True)
class Identity:
    """An equation between operators, read from left to right as a rule.

    Attributes:
        name: Unique name.
        lhs: A single word.
        rhs: What replaces it.
        why: The reason in one line.
        ref: Where it stands in the papers.
        needs: Side conditions, e.g. ``"serial"``.
    """

    name: str
    lhs: Expr
    rhs: Expr
    why: str
    ref: Ref | None = None
    needs: frozenset[str] = frozenset()

    @property
    def adjoint(self) -> Identity:
        """The same equation with the adjoint taken on both sides."""
        why = f"adjoint of {self.name}"
        return Identity(f"{self.name}*", self.lhs.T, self.rhs.T, why, self.ref, self.needs)


def _definition(node: Symbol) -> Expr:
    definition = entry(node).definition
    assert isinstance(definition, Expr)
    return definition


_F, _J = identity(FORCE), identity(JOINT)

CORE = (
    Identity("phi_shift", phi @ E_phi, phi - _F, "φ = (I - Eφ)⁻¹", JR93.eq("2.18")),
    Identity("shift_phi", E_phi @ phi, phi - _F, "φ = (I - Eφ)⁻¹", JR93.eq("2.18")),
    Identity(
        "psi_shift",
        psi @ E_phi,
        psi - _F + psi @ K @ H,
        "ψ = (I - Eψ)⁻¹, Eψ = Eφ - KH",
        JR93.eq("A.16"),
    ),
    Identity(
        "shift_psi",
        E_phi @ psi,
        psi - _F + K @ H @ psi,
        "ψ = (I - Eψ)⁻¹, Eψ = Eφ - KH",
        JR93.eq("A.16"),
    ),
    Identity(
        "psi_resolvent",
        psi @ K @ H @ phi,
        phi - psi,
        "ψ⁻¹ - φ⁻¹ = KH, times ψ on the left and φ on the right",
        JR95.eq("4.11"),
    ),
    Identity(
        "phi_resolvent",
        phi @ K @ H @ psi,
        phi - psi,
        "ψ⁻¹ - φ⁻¹ = KH, times φ on the left and ψ on the right",
        JR95.eq("4.11"),
    ),
    Identity("gain_shift", E_phi @ G, K, "definition of K", JR95.eq("4.9")),
    Identity("hinge_gain", H @ G, _J - A @ D.inv, "HPH* = D - A", JR95.eq("4.12")),
    Identity(
        "hinge_inertia", H @ P, D @ G.T, "definition of G; P and D are symmetric", RK92.eq("36")
    ),
    Identity("D_right", D @ D.inv, _J, "D > 0", RK92.at("section VI.A")),
    Identity("D_left", D.inv @ D, _J, "D > 0", RK92.at("section VI.A")),
    Identity(
        "phi_gain",
        phi @ G,
        G + phi @ K,
        "φ = I + φEφ and EφG = K",
        JR95.at("Identity 6.1, proof"),
    ),
    Identity("psi_gain", psi @ G, G + psi @ K @ A @ D.inv, "EψG = K(I - HG) = KAD⁻¹"),
    Identity(
        "riccati",
        M,
        P - E_phi @ P @ E_phi.T + K @ D @ K.T,
        "the Riccati equation solved for M",
        JR93.eq("A.14"),
    ),
)
"""The confluent core: shifts, resolvents, gains and the Riccati equation."""

DECOMPOSITIONS = (
    Identity(
        "composite_split",
        phi @ M @ phi.T,
        phi @ composite + composite @ phi.T - composite,
        "M = R - EφREφ*, multiplied by φ and φ*",
        RK92.eq("28"),
    ),
    Identity(
        "riccati_mixed",
        psi @ M @ phi.T,
        psi @ P + P @ phi.T - P,
        "M = P - EψPEφ*, multiplied by ψ and φ*",
        JR93.eq("A.19"),
    ),
    Identity(
        "riccati_full",
        phi @ M @ phi.T,
        phi @ P + P @ phi.T - P + phi @ K @ D @ K.T @ phi.T,
        "M = P - EφPEφ* + KDK*, multiplied by φ and φ*",
        RK92.eq("42"),
    ),
    Identity(
        "compliance_split",
        psi.T @ H.T @ D.inv @ H @ psi,
        psi.T @ Upsilon + Upsilon @ psi - Upsilon,
        "Υ solves H*D⁻¹H = Υ - Eψ*ΥEψ on a chain",
        JR93.eq("4.20"),
        frozenset({"serial"}),
    ),
)
"""Triangular splits that matrix requests use, one recursion per source; not part of the core."""

DEFINITIONS = tuple(
    Identity(f"{node.name}_definition", node, _definition(node), "definition", entry(node).ref)
    for node in (mass_matrix, E_psi)
)
"""Symbols that proofs unfold at once: they are shorthand, never atoms of a normal form."""

IDENTITIES = (*CORE, *DECOMPOSITIONS, *DEFINITIONS)

WEIGHTS = {"A": 1, "K": 1, "D": 1, "H": 1, "G": 4, "P": 5, "E_phi": 3, "phi": 3, "psi": 3, "M": 12}
"""Weight of each symbol (and of its adjoint and inverse); a word weighs the sum of its atoms."""


def with_adjoints(rows: Iterable[Identity]) -> tuple[Identity, ...]:
    """The rows and their adjoints, each left side once."""
    listed = list(rows)
    by_left: dict[Expr, Identity] = {}
    for row in (*listed, *(row.adjoint for row in listed)):
        by_left.setdefault(row.lhs, row)
    return tuple(by_left.values())


__all__ = [
    "CORE",
    "DECOMPOSITIONS",
    "DEFINITIONS",
    "IDENTITIES",
    "WEIGHTS",
    "Identity",
    "with_adjoints",
]
