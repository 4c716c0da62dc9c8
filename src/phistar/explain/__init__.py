# SPDX-License-Identifier: BSD-3-Clause
"""What phistar knows about itself: how a program comes about, where it stands, whom to cite.

Names are those of programs (``inverse_dynamics``), theorems (``mass_matrix_inverse``), identities
(``psi_resolvent``) and symbols (``phi``).
"""

from phistar.explain.levels import LEVELS, explain, program_names
from phistar.explain.lookup import cite, where
from phistar.explain.proofs import derivation, prove, theorem_names

__all__ = [
    "LEVELS",
    "cite",
    "derivation",
    "explain",
    "program_names",
    "prove",
    "theorem_names",
    "where",
]
