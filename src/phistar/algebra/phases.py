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

from phistar.algebra.identities import (
    BIAS,
    COMPOSITE,
    CORE,
    DECOMPOSITIONS,
    DEFINITIONS,
    DUAL,
    HYPOTHESES,
    RESOLVED,
    ROOTS,
)
from phistar.algebra.rows import Identity
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
from phistar.algebra.symbols import SYMBOLS
from phistar.algebra.transfers import BIAS_TRANSFER, COMPLIANCE, FREE_TRANSFER, RIGID_TRANSFER
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
