# SPDX-License-Identifier: BSD-3-Clause
"""What a rewrite rule is: a row with two sides, a reason and what it needs.

A row may be schematic: it may hold variables, vectors of ``VARIABLES`` that stand for any vector,
as in crm[x] y = -crm[y] x. A variable is matched by the rest of a word, from its place to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from phistar.algebra.ir import Expr, Sum, Symbol
from phistar.algebra.spaces import FORCE, JOINT, MOTION, ONE, Space
from phistar.algebra.symbols import vector
from phistar.algebra.words import Word
from phistar.refs import Ref

Bindings = Mapping[Symbol, Word]


def _variable(text: str, space: Space) -> Symbol:
    return vector(f"any_{text}", space, text, f"Any vector of {space.reads}, in a rule.")


x, y, z = (_variable(text, MOTION) for text in "xyz")
f, g = (_variable(text, FORCE) for text in "fg")
d, e = (_variable(text, JOINT) for text in "de")

VARIABLES = frozenset((x, y, z, f, g, d, e))
"""Vectors that stand for any vector of their space."""


@dataclass(frozen=True)
class Identity:
    """An equation between operators, read from left to right as a rule.

    Attributes:
        name: Unique name.
        lhs: A single word.
        rhs: What replaces it.
        why: The reason in one line.
        ref: Where it stands in the papers.
        needs: Hypotheses, e.g. ``"serial"``: names of ``HYPOTHESES``.
        when: For rows with variables that could go both ways: whether to apply one, from the words
            that the variables stand for. The equation holds whatever it says.
        lone: Whether its adjoint is no rule, because the two would undo each other.
    """

    name: str
    lhs: Expr
    rhs: Expr
    why: str
    ref: Ref | None = None
    needs: frozenset[str] = frozenset()
    when: Callable[[Bindings], bool] | None = None
    lone: bool = False

    @property
    def adjoint(self) -> Identity:
        """The same equation with the adjoint taken on both sides."""
        left, right = self.lhs.T, self.rhs.T
        if isinstance(left, Sum) and [c for c, _ in left.terms] == [-1]:
            left, right = -left, -right
        why = f"adjoint of {self.name}"
        name = f"{self.name}*"
        return Identity(name, left, right, why, self.ref, self.needs, self.when, self.lone)


def with_adjoints(rows: Iterable[Identity]) -> tuple[Identity, ...]:
    """The rows and their adjoints, each left side once.

    A row about a vector has none: its adjoint would be about a row vector, and no word is one.
    """
    listed = list(rows)
    pairs = (known for known in listed if known.lhs.domain is not ONE and not known.lone)
    adjoints = (known.adjoint for known in pairs)
    by_left: dict[tuple[Expr, object], Identity] = {}
    for known in (*listed, *adjoints):
        by_left.setdefault((known.lhs, known.when), known)
    return tuple(by_left.values())
