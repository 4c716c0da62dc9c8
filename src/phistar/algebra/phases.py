# SPDX-License-Identifier: BSD-3-Clause
"""Which identities act together and in which order, and every identity by its name.

Rows act in phases, ``PHASES``, one after the other, because a source such as M can be eliminated by
one recursion only. Within a phase the rows terminate (its weights fall on every one) and are
confluent (all critical pairs join), so the order of rules does not matter and normal forms decide
equality modulo the phase. The tests check both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from phistar.algebra.cross_product_rules import (
    ARTICULATED_RATES,
    BRACKET_PAIRS,
    CALCULUS,
    JACOBI,
    ONE_DOF,
    ONE_DOF_SQUARE_ROOT_RATES,
    RIGID_SHIFTS,
    SQUARE_ROOT_RATES,
    SUBALGEBRA,
    SWAPS,
)
from phistar.algebra.identities import (
    COMPOSITE,
    CONSTRAINT_DUAL,
    CORE,
    DEFINITIONS,
    GYROSCOPIC_BIAS,
    HYPOTHESES,
    LINK_ROOTS,
    RICCATI_PRODUCTS,
    SQUARE_ROOTS,
    TRIANGULAR_SPLITS,
)
from phistar.algebra.loop_identities import (
    AGGREGATED,
    AGGREGATION,
    LOOP_ROWS,
    NODE_INERTIA,
    PARTITION,
)
from phistar.algebra.outward_identities import (
    BIAS_TRANSFER,
    COMPLIANCE,
    FREE_TRANSFER,
    RIGID_TRANSFER,
)
from phistar.algebra.rules import Identity
from phistar.algebra.symbols import SYMBOLS
from phistar.errors import UnknownNameError

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
    "coupling": 1,
    "embedding": 2,
    "independent_rates": 2,
    "loop_compliance": 24,
    "loop_jacobian": 1,
    "mass_matrix": 21,
    "particular_rates": 1,
    "phi": 3,
    "psi": 3,
    "self_stress": 1,
}
"""Weight of each symbol (and of its adjoint and inverse) in the core; a word weighs the sum of its
atoms, and an inverse of an expression as much as the expression."""


@dataclass(frozen=True)
class Phase:
    """Rows that act together.

    Attributes:
        name: Unique name.
        required: Rows one of which must be named or assumed, else the phase is skipped.
        always: Rows that act in it without being named.
        weights: Weights of symbols that decrease with every row; None where rows have variables,
            and only random words test that rewriting ends.
        also: Rows of other phases that act in it if they are named or assumed.
        takes_theorems: Whether theorems that a proof names and cancellations of its inverses act in
            it, too, as they do in the core and at the start: before 𝓜 is unfolded.
    """

    name: str
    required: tuple[Identity, ...]
    always: tuple[Identity, ...]
    weights: Mapping[str, int] | None
    also: tuple[Identity, ...] = ()
    takes_theorems: bool = False

    @cached_property
    def rows(self) -> tuple[Identity, ...]:
        """All rows that may act in it."""
        return tuple(dict.fromkeys((*self.always, *self.required, *self.also)))


def _sparse_weights(**weights: int) -> Mapping[str, int]:
    """The given weights, and zero for all other symbols."""
    return {**dict.fromkeys(SYMBOLS, 0), **weights}


_CORE_ROWS = (*DEFINITIONS, *CORE)
_VANISHING = tuple(
    known for name in ("serial", "unmotored", "uncoupled") for known in HYPOTHESES[name].rows
)
_PARTITION_ROWS = (*PARTITION, *HYPOTHESES["independent"].rows)
_NODE_WEIGHTS = {
    "A_a": 1,
    "D_a": 1,
    "E_a": 3,
    "E_psi_a": 4,
    "G_a": 4,
    "H_a": 1,
    "K_a": 1,
    "M": 12,
    "P_a": 5,
    "mass_matrix_a": 21,
    "phi_a": 3,
    "psi_a": 3,
}
_JOINT_ROWS = (*ONE_DOF, *SUBALGEBRA[:1])
_SHIFT_ROWS = (*DEFINITIONS, *CORE[:2])

PHASES = (
    Phase("link roots", LINK_ROOTS, (), _sparse_weights(M_root=1)),
    Phase("loops", _PARTITION_ROWS, (), WEIGHTS, takes_theorems=True),
    Phase(
        "loop rows",
        LOOP_ROWS,
        DEFINITIONS,
        _sparse_weights(loop_jacobian=1, loop_compliance=4, mass_matrix=1, E_psi=1),
    ),
    Phase(
        "aggregation",
        AGGREGATION,
        (NODE_INERTIA, *DEFINITIONS),
        _sparse_weights(
            A_a=1,
            H_a=3,
            E_a=5,
            E_inner=1,
            E_psi=1,
            loop_compliance=6,
            mass_matrix=5,
            mass_matrix_a=9,
            phi=2,
            phi_a=1,
            phi_inner=2,
        ),
    ),
    Phase("nodes", AGGREGATED, (), _NODE_WEIGHTS, takes_theorems=True),
    Phase(
        "rates",
        (*ARTICULATED_RATES, *SQUARE_ROOT_RATES, *ONE_DOF_SQUARE_ROOT_RATES),
        _CORE_ROWS,
        None,
        (*SWAPS, *RIGID_SHIFTS, *ONE_DOF, *SUBALGEBRA, *_VANISHING, *SQUARE_ROOTS),
    ),
    Phase("calculus", (*CALCULUS, *_JOINT_ROWS), _SHIFT_ROWS, None),
    Phase("twofold", BRACKET_PAIRS, _SHIFT_ROWS, None, (*CALCULUS, *_JOINT_ROWS)),
    Phase("jacobi", JACOBI, (), None, (*SWAPS, *_JOINT_ROWS)),
    Phase(
        "composite",
        COMPOSITE,
        DEFINITIONS,
        _sparse_weights(M=1, M_hat=1, X=1, mass_matrix=2, E_psi=1, loop_compliance=3),
    ),
    Phase(
        "core",
        (*RICCATI_PRODUCTS, *SQUARE_ROOTS, *GYROSCOPIC_BIAS, *CONSTRAINT_DUAL, *_VANISHING),
        _CORE_ROWS,
        WEIGHTS,
        _PARTITION_ROWS,
    ),
    Phase("rigid transfer", RIGID_TRANSFER, _CORE_ROWS, WEIGHTS),
    Phase("free transfer", FREE_TRANSFER, _CORE_ROWS, WEIGHTS),
    Phase("bias transfer", BIAS_TRANSFER, (), _sparse_weights(K_hat=1, G=1)),
    Phase("compliance", COMPLIANCE, (), _sparse_weights(D=1, G=2, Y=1)),
)
"""Phases in order. The core always acts, and again after each later phase."""

IDENTITIES = tuple(
    dict.fromkeys((*(row for phase in PHASES for row in phase.rows), *TRIANGULAR_SPLITS))
)


def row(name: str) -> Identity:
    """The row of a name.

    Raises:
        UnknownNameError: There is no such row.
    """
    by_name = {known.name: known for known in IDENTITIES}
    if name not in by_name:
        raise UnknownNameError("identity", name, by_name)
    return by_name[name]
