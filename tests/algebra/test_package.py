# SPDX-License-Identifier: BSD-3-Clause
"""``phistar.algebra`` itself: what expressions and proofs are written with."""

from phistar import algebra
from phistar.algebra.ir import Expr
from phistar.algebra.symbols import SYMBOLS


def test_names_are_those_of_the_modules() -> None:
    """Every name can be had, and those of symbols are the symbols."""
    for name in algebra.__all__:
        value = getattr(algebra, name)
        if name in SYMBOLS:
            assert value is SYMBOLS[name].symbol
    assert {"H", "M", "phi", "psi", "P", "D", "G", "K", "B", "mass_matrix"} <= set(algebra.__all__)
    assert isinstance(algebra.H @ algebra.phi @ (algebra.I - algebra.E_phi), Expr)
