# SPDX-License-Identifier: BSD-3-Clause
"""Checks of a user's expression."""

from __future__ import annotations

from collections.abc import Sequence

from phistar.algebra.ir import Expr
from phistar.algebra.symbols import B, unfold_definitions
from phistar.errors import ArgumentError, kind_of


def check_expression(expr: object) -> None:
    """Reject what is no operator expression.

    Raises:
        ArgumentError: It is none.
    """
    if not isinstance(expr, Expr):
        raise ArgumentError(
            f"expected an operator expression, got {kind_of(expr)}: {expr!r}. Write it "
            "with the symbols of phistar.algebra, e.g. H @ phi @ M @ phi.T @ H.T; programs that "
            "have a name are compiled by robot.compile(name)"
        )


def check_frames(expr: Expr, frames: Sequence[str]) -> None:
    """Reject B without frames.

    Raises:
        ArgumentError: The expression has B and there are no frames.
    """
    if not frames and B in set(unfold_definitions([expr])):
        raise ArgumentError(f"{expr} contains B: name the frames that it selects, frames=['...']")
