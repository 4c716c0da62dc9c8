# SPDX-License-Identifier: BSD-3-Clause
"""Rewrite rules: rows with two sides, a reason and hypotheses.

A row may be schematic: it may have variables, vectors of ``VARIABLES`` that match any vector, as in
crm[x] y = -crm[y] x. A variable matches the rest of a word, from its position to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from phistar.algebra.ir import Expr, Sum, Symbol, fit_sides
from phistar.algebra.spaces import FORCE, JOINT, MOTION, ONE, Space
from phistar.algebra.symbols import vector
from phistar.algebra.words import Word
from phistar.refs import Ref

Bindings = Mapping[Symbol, Word]


def _new_variable(text: str, space: Space) -> Symbol:
    return vector(f"any_{text}", space, text, f"Any vector of {space.reads}, in a rule.")


x, y, z = (_new_variable(text, MOTION) for text in "xyz")
f, g = (_new_variable(text, FORCE) for text in "fg")
d, e = (_new_variable(text, JOINT) for text in "de")

VARIABLES = frozenset((x, y, z, f, g, d, e))
"""Vectors that match any vector of their space."""


@dataclass(frozen=True)
class Identity:
    """An equation between operators, read from left to right as a rule.

    Attributes:
        name: Unique name.
        lhs: A single word.
        rhs: What replaces it.
        why: The reason in one line.
        ref: Its reference.
        needs: Hypotheses, e.g. ``"serial"``: names of ``HYPOTHESES``.
        when: For rows with variables that could be applied both ways: whether to apply one, given
            the bindings. The equation always holds.
        one_way: Whether its adjoint is not a rule, because the two would undo each other.
        source: The theorem that it states, if any.
    """

    name: str
    lhs: Expr
    rhs: Expr
    why: str
    ref: Ref | None = None
    needs: frozenset[str] = frozenset()
    when: Callable[[Bindings], bool] | None = None
    one_way: bool = False
    source: object = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, side in zip(("lhs", "rhs"), fit_sides(self.lhs, self.rhs), strict=True):
            object.__setattr__(self, name, side)

    @property
    def adjoint(self) -> Identity:
        """The same equation with the adjoint taken on both sides."""
        left, right = self.lhs.T, self.rhs.T
        if isinstance(left, Sum) and [c for c, _ in left.terms] == [-1]:
            left, right = -left, -right
        why = f"adjoint of {self.name}"
        name = f"{self.name}*"
        return Identity(
            name, left, right, why, self.ref, self.needs, self.when, self.one_way, self.source
        )


def with_adjoints(rows: Iterable[Identity]) -> tuple[Identity, ...]:
    """The rows and their adjoints, each left side once.

    A row about a vector has none: its adjoint would be about a row vector, which is no word.
    """
    listed = list(rows)
    pairs = (known for known in listed if known.lhs.domain is not ONE and not known.one_way)
    adjoints = (known.adjoint for known in pairs)
    by_left: dict[tuple[Expr, object], Identity] = {}
    for known in (*listed, *adjoints):
        by_left.setdefault((known.lhs, known.when), known)
    return tuple(by_left.values())
