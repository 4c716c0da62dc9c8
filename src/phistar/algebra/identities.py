# SPDX-License-Identifier: BSD-3-Clause
"""Operator identities as data: each row is a rewrite rule, left to right; adjoints are added.

A left side is a single word. The tests check that every row holds densely and breaks when weakened.
Rows with variables are in ``cross_product_rules``, outward sums in ``outward_identities``;
``phases`` has which rows act together and in which order.

Every proof uses the core; a theorem names other rows by ``phases.row``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from phistar.algebra.cross_product_rules import ONE_DOF, SUBALGEBRA
from phistar.algebra.ir import Expr, identity, zero
from phistar.algebra.loop_symbols import (
    coupling,
    loop_compliance,
    loop_jacobian,
    particular_rates,
    self_stress,
)
from phistar.algebra.rules import Identity as Identity
from phistar.algebra.rules import with_adjoints as with_adjoints
from phistar.algebra.spaces import CONSTRAINT, FORCE, JOINT, LOOP
from phistar.algebra.symbols import (
    S_X,
    A,
    D,
    D_root,
    E_phi,
    E_psi,
    G,
    G_hat,
    H,
    K,
    K_hat,
    M,
    M_hat,
    M_root,
    P,
    P_hat,
    R_hat,
    T,
    Upsilon,
    X,
    Xi,
    Xi_Y,
    composite,
    definition_of,
    mass_matrix,
    phi,
    psi,
    symbol_entry,
)
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

RICCATI_PRODUCTS = (
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
"""Consequences of the core that shorten proofs."""

SQUARE_ROOTS = (
    Identity("root_square", D_root @ D_root.T, D, "definition of √D", JR95.eq("5.2")),
    Identity("root_right", D_root @ D_root.inv, _J, "D > 0", JR95.eq("5.1")),
    Identity("root_left", D_root.inv @ D_root, _J, "D > 0", JR95.eq("5.1")),
    Identity("root_inverse_square", D_root.T.inv @ D_root.inv, D.inv, "√D √D* = D", JR95.eq("5.2")),
    Identity("root_of_inertia", D_root.inv @ D, D_root.T, "√D √D* = D", JR95.eq("5.2")),
    Identity("root_of_inverse", D_root.T @ D.inv, D_root.inv, "√D √D* = D", JR95.eq("5.2")),
)
"""The block-diagonal root of D, for diagonalised dynamics."""

LINK_ROOTS = (
    Identity("link_root_square", M_root @ M_root.T, M, "definition of √M", RK92.at("section X.A")),
)
"""The block-diagonal root of M, which is not inverted: links may have no mass."""

GYROSCOPIC_BIAS = (
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
"""One-sided recursion of M̂, which uses only that M̂ is block diagonal."""

CONSTRAINT_DUAL = (
    Identity("constraint_force", H @ T, zero(JOINT, CONSTRAINT), "definition of T", FO00.eq("27")),
    Identity(
        "dual_inertia",
        T @ (T.T @ P.inv @ T).inv @ T.T,
        P - G @ D @ G.T,
        "both give the inertia that acts on a joint's constraint forces; T spans the kernel of H",
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

TRIANGULAR_SPLITS = (
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
"""Triangular splits for matrix requests: consequences of the recursions above."""

DEFINITIONS = tuple(
    Identity(
        f"{node.name}_definition", node, definition_of(node), "definition", symbol_entry(node).ref
    )
    for node in (mass_matrix, E_psi, loop_compliance)
)
"""Shorthand symbols that proofs unfold first: never atoms of a normal form."""


@dataclass(frozen=True)
class Hypothesis:
    """A side condition: what it says, and the rows that hold under it.

    Attributes:
        says: Text.
        rows: Rules that a proof under it may use.
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
    "independent": Hypothesis(
        "loops without redundant rows (L of full rank)",
        (
            Identity(
                "particular_rates_of_rows",
                loop_jacobian @ particular_rates,
                identity(LOOP),
                "independent rows take any value",
                FO00.eq("22"),
                frozenset({"independent"}),
            ),
            _vanishes("no_self_stress", self_stress, "L* has no kernel", "independent"),
        ),
    ),
    "uncoupled": Hypothesis(
        "loops between links only, no coupled joints",
        (_vanishes("no_coupling", coupling, "no row acts on joint rates directly", "uncoupled"),),
    ),
}
"""Side conditions of rows and theorems by name. Without any: a chain, tree or forest, joints of any
kind. D > 0 follows from the symbols."""
