# SPDX-License-Identifier: BSD-3-Clause
"""Operator identities as data: each row is a rewrite rule, left to right; adjoints are added.

A left side is a single word. Rows act in phases, ``PHASES``, one after the other, because a source
such as M can be eliminated by one recursion only. Within a phase the rows terminate (its weights
fall on every one) and are confluent (all critical pairs join), so the order of rules does not
matter and normal forms decide equality modulo the phase. The tests check both, and that every row
holds densely and breaks when weakened.

Every proof uses the core; what else it uses, a theorem names by ``row``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from phistar.algebra.ir import Expr, identity, zero
from phistar.algebra.rows import Identity as Identity
from phistar.algebra.rows import with_adjoints as with_adjoints
from phistar.algebra.schemas import (
    CALCULUS,
    JACOBI,
    ONE_DOF,
    ONE_DOF_ROOTS,
    RATES,
    RIGID,
    ROOT_RATES,
    SUBALGEBRA,
    SWAPS,
    TWOFOLD,
)
from phistar.algebra.spaces import CONSTRAINT, FORCE, JOINT
from phistar.algebra.symbols import (
    J_Z,
    S_X,
    S_Y,
    S_Z,
    SYMBOLS,
    A,
    D,
    D_root,
    E_phi,
    E_psi,
    G,
    G_hat,
    H,
    J_hat,
    K,
    K_hat,
    M,
    M_hat,
    P,
    P_hat,
    R_hat,
    T,
    Upsilon,
    X,
    Xi,
    Xi_Y,
    Y,
    Z,
    composite,
    definition_of,
    entry,
    mass_matrix,
    phi,
    psi,
)
from phistar.errors import UnknownNameError
from phistar.refs import FO00, JR93, JR95, RK92

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

RESOLVED = (
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
)
"""Consequences of the core that save a proof many steps."""

ROOTS = (
    Identity("root_square", D_root @ D_root.T, D, "definition of √D", JR95.eq("5.2")),
    Identity("root_right", D_root @ D_root.inv, _J, "D > 0", JR95.eq("5.1")),
    Identity("root_left", D_root.inv @ D_root, _J, "D > 0", JR95.eq("5.1")),
    Identity("root_inverse_square", D_root.T.inv @ D_root.inv, D.inv, "√D √D* = D", JR95.eq("5.2")),
    Identity("root_of_inertia", D_root.inv @ D, D_root.T, "√D √D* = D", JR95.eq("5.2")),
    Identity("root_of_inverse", D_root.T @ D.inv, D_root.inv, "√D √D* = D", JR95.eq("5.2")),
)
"""The block-diagonal root of D, for diagonalised dynamics."""

BIAS = (
    Identity(
        "bias_recursion",
        M_hat,
        P_hat - E_phi @ P_hat @ E_phi.T + K @ H @ P_hat @ E_phi.T,
        "P̂ = M̂ + EψP̂Eφ* solved for M̂",
        JR93.eq("4.12"),
    ),
    Identity("hinge_bias", H @ P_hat, D @ G_hat.T, "definition of Ĝ", JR93.eq("4.12")),
    Identity("bias_gain_shift", E_phi @ G_hat, K_hat, "definition of K̂", JR93.eq("4.12")),
    Identity("phi_bias_gain", phi @ G_hat, G_hat + phi @ K_hat, "φ = I + φEφ and EφĜ = K̂"),
    Identity(
        "psi_bias_gain",
        psi @ K @ H @ G_hat,
        G_hat + psi @ K_hat - psi @ G_hat,
        "ψ = I + ψEφ - ψKH and EφĜ = K̂",
    ),
)
"""One-sided recursion of M̂, of which nothing is used but that it is block diagonal."""

DUAL = (
    Identity("constraint_force", H @ T, zero(JOINT, CONSTRAINT), "definition of T", FO00.eq("27")),
    Identity(
        "dual_inertia",
        T @ (T.T @ P.inv @ T).inv @ T.T,
        P - G @ D @ G.T,
        "both give the inertia that a joint's constraint forces see; T spans the kernel of H",
        FO00.at("section 3.5"),
        frozenset({"unmotored", "massive"}),
    ),
)
"""The inertia across a joint by its constraint forces, the dual of the articulated update."""

COMPOSITE = (
    Identity(
        "composite_recursion",
        M,
        composite - E_phi @ composite @ E_phi.T,
        "R = M + EφREφ* solved for M",
        RK92.eq("(29)-(31)"),
    ),
    Identity(
        "gyroscopic_recursion",
        M_hat,
        R_hat - E_phi @ R_hat @ E_phi.T,
        "R̂ = M̂ + EφR̂Eφ* solved for M̂",
        JR93.eq("3.6"),
    ),
    Identity(
        "rigid_recursion",
        X,
        S_X - E_phi @ S_X @ E_phi.T,
        "S = X + EφSEφ* solved for X",
        JR93.eq("A.1"),
    ),
)
"""Composite-body sums, in place of the Riccati equation."""

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
    Identity("free_hinge_gain", H @ G, _J, "HPH* = D", JR95.eq("4.12"), frozenset({"unmotored"})),
    Identity(
        "free_gain",
        E_psi @ G,
        zero(FORCE, JOINT),
        "EψG = K(I - HG)",
        JR95.eq("4.12"),
        frozenset({"unmotored"}),
    ),
)
"""Outward sums of compliances, Υ first; Ξ is what they leave between siblings."""

DECOMPOSITIONS = (
    Identity(
        "composite_split",
        phi @ M @ phi.T,
        phi @ composite + composite @ phi.T - composite,
        "M = R - EφREφ*, multiplied by φ and φ*",
        RK92.eq("28"),
    ),
    Identity(
        "gyroscopic_split",
        phi @ M_hat @ phi.T,
        phi @ R_hat + R_hat @ phi.T - R_hat,
        "M̂ = R̂ - EφR̂Eφ*, multiplied by φ and φ*",
        JR93.eq("3.6"),
    ),
    Identity(
        "compliance_split",
        psi.T @ H.T @ D.inv @ H @ psi,
        psi.T @ Upsilon + Upsilon @ psi - Upsilon,
        "Υ solves H*D⁻¹H = Υ - Eψ*ΥEψ on a chain",
        JR93.eq("4.20"),
        frozenset({"serial"}),
    ),
    Identity(
        "compliance_tree",
        psi.T @ H.T @ D.inv @ H @ psi,
        psi.T @ Upsilon + Upsilon @ psi - Upsilon + psi.T @ Xi @ psi,
        "H*D⁻¹H = Υ - Eψ*ΥEψ + Ξ, multiplied by ψ* and ψ",
        JR93.eq("4.20"),
    ),
)
"""Triangular splits that matrix requests use: consequences of the recursions above."""

DEFINITIONS = tuple(
    Identity(f"{node.name}_definition", node, definition_of(node), "definition", entry(node).ref)
    for node in (mass_matrix, E_psi)
)
"""Symbols that proofs unfold at once: they are shorthand, never atoms of a normal form."""


@dataclass(frozen=True)
class Hypothesis:
    """A side condition: what it says, and the rows that hold under it.

    Attributes:
        says: In words.
        rows: Rules that a proof may use which has it.
    """

    says: str
    rows: tuple[Identity, ...] = ()


def _vanishes(name: str, node: Expr, why: str, need: str) -> Identity:
    nothing = zero(node.codomain, node.domain)
    return Identity(name, node, nothing, why, needs=frozenset({need}))


HYPOTHESES: Mapping[str, Hypothesis] = {
    "serial": Hypothesis(
        "a serial chain",
        (
            _vanishes("no_siblings", Xi, "every link has one child at most", "serial"),
            _vanishes("no_siblings_Y", Xi_Y, "every link has one child at most", "serial"),
        ),
    ),
    "unmotored": Hypothesis(
        "no rotor inertia", (_vanishes("no_rotor", A, "no rotor inertia", "unmotored"),)
    ),
    "one_dof": Hypothesis("joints with one axis each", ONE_DOF),
    "subalgebra": Hypothesis(
        "joints whose motions are closed under the cross product, as those of all lower pairs are",
        SUBALGEBRA,
    ),
    "massive": Hypothesis("no massless links, such as that inside a universal joint (P > 0)"),
}
"""Side conditions of rows and theorems by name. Without any: a chain, tree or forest, joints of any
kind. That D > 0 can be seen from the symbols."""

WEIGHTS: Mapping[str, int] = {
    "A": 1,
    "D": 1,
    "D_root": 1,
    "E_phi": 3,
    "E_psi": 4,
    "G": 4,
    "G_hat": 2,
    "H": 1,
    "J_Z": 1,
    "K": 1,
    "K_hat": 1,
    "M": 12,
    "M_hat": 10,
    "P": 5,
    "P_hat": 3,
    "R_hat": 1,
    "S_Z": 1,
    "T": 4,
    "X": 10,
    "Xi": 1,
    "Xi_Y": 1,
    "Z": 5,
    "mass_matrix": 21,
    "phi": 3,
    "psi": 3,
}
"""Weight of each symbol (and of its adjoint and inverse) in the core; a word weighs the sum of its
atoms, and an inverse of an expression as much as the expression."""


@dataclass(frozen=True)
class Phase:
    """Rows that act together.

    Attributes:
        name: Unique name.
        own: Rows one of which must be named or assumed, else the phase is left out.
        always: Rows that act in it without being named.
        weights: Weights of symbols that fall on every row; None where rows have variables, and
            only random words show that rewriting ends.
        also: Rows of other phases that act in it if they are named or assumed.
    """

    name: str
    own: tuple[Identity, ...]
    always: tuple[Identity, ...]
    weights: Mapping[str, int] | None
    also: tuple[Identity, ...] = ()

    @cached_property
    def rows(self) -> tuple[Identity, ...]:
        """All that may act in it."""
        return tuple(dict.fromkeys((*self.always, *self.own, *self.also)))


def _only(**weights: int) -> Mapping[str, int]:
    """The weights given, and nothing for all other symbols."""
    return {**dict.fromkeys(SYMBOLS, 0), **weights}


_BASIS = (*DEFINITIONS, *CORE)
_VANISHING = tuple(known for name in ("serial", "unmotored") for known in HYPOTHESES[name].rows)
_JOINTS = (*ONE_DOF, *SUBALGEBRA[:1])
_MOVES = (*DEFINITIONS, *CORE[:2])

PHASES = (
    Phase(
        "rates",
        (*RATES, *ROOT_RATES, *ONE_DOF_ROOTS),
        _BASIS,
        None,
        (*SWAPS, *RIGID, *ONE_DOF, *SUBALGEBRA, *_VANISHING, *ROOTS),
    ),
    Phase("calculus", (*CALCULUS, *_JOINTS), _MOVES, None),
    Phase("twofold", TWOFOLD, _MOVES, None, (*CALCULUS, *_JOINTS)),
    Phase("jacobi", JACOBI, (), None, (*SWAPS, *_JOINTS)),
    Phase(
        "composite",
        COMPOSITE,
        DEFINITIONS,
        _only(M=1, M_hat=1, X=1, mass_matrix=2, E_psi=1),
    ),
    Phase("core", (*RESOLVED, *ROOTS, *BIAS, *DUAL, *_VANISHING), _BASIS, WEIGHTS),
    Phase("rigid transfer", RIGID_TRANSFER, _BASIS, WEIGHTS),
    Phase("free transfer", FREE_TRANSFER, _BASIS, WEIGHTS),
    Phase("bias transfer", BIAS_TRANSFER, (), _only(K_hat=1, G=1)),
    Phase("compliance", COMPLIANCE, (), _only(D=1, G=2, Y=1)),
)
"""In which order rows act. The core always acts, and again after each later phase."""

IDENTITIES = tuple(
    dict.fromkeys((*(row for phase in PHASES for row in phase.rows), *DECOMPOSITIONS))
)


def row(name: str) -> Identity:
    """The row of a name.

    Raises:
        UnknownNameError: There is none.
    """
    by_name = {known.name: known for known in IDENTITIES}
    if name not in by_name:
        raise UnknownNameError("identity", name, by_name)
    return by_name[name]
