# SPDX-License-Identifier: BSD-3-Clause
"""Identities of closed loops: the rows, a partition of the rates, and the tree of nodes.

The rows of ``AGGREGATED`` are those of the core with every operator of the tree of links replaced
by that of the tree of nodes: constraint embedding changes H and Eφ, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

from phistar.algebra.identities import CORE, Identity
from phistar.algebra.ir import (
    Adjoint,
    Expr,
    IdentityOperator,
    Inverse,
    Product,
    Sum,
    add,
    identity,
    product,
    zero,
)
from phistar.algebra.loop_symbols import (
    A_a,
    D_a,
    E_a,
    E_inner,
    E_psi_a,
    G_a,
    H_a,
    K_a,
    P_a,
    embedding,
    independent_rates,
    loop_jacobian,
    mass_matrix_a,
    particular_rates,
    phi_a,
    phi_inner,
    psi_a,
    self_stress,
)
from phistar.algebra.spaces import FORCE, JOINT, LOOP, MINIMAL, ONE, Space
from phistar.algebra.symbols import (
    A,
    D,
    E_phi,
    E_psi,
    G,
    H,
    K,
    P,
    definition_of,
    mass_matrix,
    phi,
    psi,
)
from phistar.refs import FO00

_F = identity(FORCE)

LOOP_ROWS = (
    Identity(
        "loop_jacobian_definition",
        loop_jacobian,
        definition_of(loop_jacobian),
        "definition",
        FO00.eq("18"),
    ),
)
"""L as rows on the links and on the joints; other proofs leave it whole."""

PARTITION = (
    Identity(
        "embedding_keeps_the_loops",
        loop_jacobian @ embedding,
        zero(LOOP, MINIMAL),
        "𝓧 spans the motions that keep the loops closed",
        FO00.eq("22"),
    ),
    Identity(
        "embedding_of_rates",
        independent_rates @ embedding,
        identity(MINIMAL),
        "𝓧 leaves the independent rates as they are",
        FO00.eq("22"),
    ),
    Identity(
        "particular_rates_at_rest",
        independent_rates @ particular_rates,
        zero(MINIMAL, LOOP),
        "𝓢 moves dependent rates only",
        FO00.eq("22"),
    ),
    Identity(
        "partition_of_rates",
        embedding @ independent_rates,
        identity(JOINT) - particular_rates @ loop_jacobian,
        "rates are what the independent ones give, plus what moves the rows of the loops",
        FO00.eq("22"),
    ),
    Identity(
        "particular_rows",
        loop_jacobian @ particular_rates @ loop_jacobian,
        loop_jacobian,
        "𝓢 solves for velocities across the loops that some rates have",
        FO00.eq("22"),
    ),
    Identity(
        "particular_solution",
        particular_rates @ loop_jacobian @ particular_rates,
        particular_rates,
        "what 𝓢 gives, it gives again",
        FO00.eq("22"),
    ),
    Identity(
        "self_stress_moves_nothing",
        loop_jacobian.T @ self_stress,
        zero(JOINT, ONE),
        "definition of s",
    ),
)
"""Rates that keep the loops closed, and rates across them; redundant rows are welcome."""

NODE_INERTIA = Identity(
    "mass_matrix_a_definition",
    mass_matrix_a,
    definition_of(mass_matrix_a),
    "definition",
    FO00.eq("22"),
)

AGGREGATION = (
    Identity("E_a_definition", E_a, definition_of(E_a), "definition"),
    Identity("H_a_definition", H_a, definition_of(H_a), "definition"),
    Identity("A_a_definition", A_a, definition_of(A_a), "definition"),
    Identity(
        "phi_inner_shift", phi_inner @ E_inner, phi_inner - identity(FORCE), "φᵢ = (I - Eᵢ)⁻¹"
    ),
    Identity(
        "inner_shift_phi", E_inner @ phi_inner, phi_inner - identity(FORCE), "φᵢ = (I - Eᵢ)⁻¹"
    ),
    Identity("phi_by_nodes", phi_inner @ phi_a, phi, "I - Eφ = (I - Eₐ)(I - Eᵢ), inverted"),
    Identity("inner_shift_of_phi", E_inner @ phi, phi - phi_a, "φ = φᵢφₐ and φᵢ = I + Eᵢφᵢ"),
)
"""Operators of nodes, unfolded to those of links."""

NODE_OPERATORS: Mapping[Expr, Expr] = {
    H: H_a,
    A: A_a,
    E_phi: E_a,
    phi: phi_a,
    P: P_a,
    D: D_a,
    G: G_a,
    K: K_a,
    E_psi: E_psi_a,
    psi: psi_a,
    mass_matrix: mass_matrix_a,
}
"""What takes the place of each operator of the tree of links; M stays."""


def on_nodes(expr: Expr, vectors: Mapping[Expr, Expr] | None = None) -> Expr:
    """An expression about links and joints as one about nodes and minimal rates.

    Args:
        expr: The expression, without lets and brackets.
        vectors: What takes the place of its vectors; JOINT ones become MINIMAL ones.
    """
    replaced = {**NODE_OPERATORS, **(vectors or {})}

    def moved(node: Expr) -> Expr:
        if node in replaced:
            return replaced[node]
        if isinstance(node, IdentityOperator):
            return identity(_on_nodes(node.domain))
        if isinstance(node, Adjoint):
            return moved(node.of).T
        if isinstance(node, Inverse):
            return moved(node.of).inv
        if isinstance(node, Product):
            return product(map(moved, node.factors), _on_nodes(node.domain))
        if isinstance(node, Sum):
            terms = ((c, moved(term)) for c, term in node.terms)
            return add(terms, _on_nodes(node.codomain), _on_nodes(node.domain))
        return node

    return moved(expr)


def _on_nodes(space: Space) -> Space:
    return MINIMAL if space is JOINT else space


_CORE_NAMES: Mapping[str, str] = {
    "node_phi_shift": "phi_shift",
    "node_shift_phi": "shift_phi",
    "node_psi_shift": "psi_shift",
    "node_shift_psi": "shift_psi",
    "node_psi_resolvent": "psi_resolvent",
    "node_phi_resolvent": "phi_resolvent",
    "node_gain_shift": "gain_shift",
    "node_hinge_gain": "hinge_gain",
    "node_hinge_inertia": "hinge_inertia",
    "node_D_right": "D_right",
    "node_D_left": "D_left",
    "node_phi_gain": "phi_gain",
    "node_psi_gain": "psi_gain",
    "node_riccati": "riccati",
}
"""Rows of the core by the names that they have for nodes."""

_CORE_ROWS = {row.name: row for row in CORE}

AGGREGATED = (
    Identity("E_psi_a_definition", E_psi_a, definition_of(E_psi_a), "definition"),
    NODE_INERTIA,
    *(
        Identity(
            name,
            on_nodes(_CORE_ROWS[core].lhs),
            on_nodes(_CORE_ROWS[core].rhs),
            f"{core} on the tree of nodes",
            _CORE_ROWS[core].ref,
        )
        for name, core in _CORE_NAMES.items()
    ),
)
"""The core on the tree of nodes."""
