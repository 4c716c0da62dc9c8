# SPDX-License-Identifier: BSD-3-Clause
"""Explanations: how a program is derived, where it is in the sources, what to cite.

Names are those of programs (``inverse_dynamics``), theorems (``mass_matrix_inverse``), identities
(``psi_resolvent``) and symbols (``phi``).
"""

from phistar.explain.levels import LEVELS, explain, listing, program_names
from phistar.explain.lookup import cite, where
from phistar.explain.proofs import derivation, identity, is_identity, prove, theorem_names

__all__ = [
    "LEVELS",
    "cite",
    "derivation",
    "explain",
    "identity",
    "is_identity",
    "listing",
    "program_names",
    "prove",
    "theorem_names",
    "where",
]
