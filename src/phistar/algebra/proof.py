# SPDX-License-Identifier: BSD-3-Clause
"""Theorems and their proofs: two expressions are equal because they have one normal form.

A proof has three outcomes. *Proved*: nothing is left of the difference. *Refuted*: the two sides
differ as matrices on a random robot. *Open*: they agree as matrices, but the rules given do not
connect them; the residual is what is left. Unequal normal forms alone refute nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from phistar.algebra.dense import Dense
from phistar.algebra.identities import CORE, DEFINITIONS, Identity, with_adjoints
from phistar.algebra.ir import Expr, Inverse, Let, Symbol, identity, zero
from phistar.algebra.rewrite import Rewriter, Step
from phistar.algebra.spaces import JOINT, ONE
from phistar.algebra.symbols import SYMBOLS, A
from phistar.algebra.traverse import nodes, rebuild
from phistar.algebra.words import Words, to_words
from phistar.model.configuration import neutral, random_configuration
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.refs import Ref

TOLERANCE = 1e-9
"""Difference of two matrices that counts as a counterexample, relative to their largest entry (or
to 1e-2, so that rounding beside an exact zero is none)."""


NO_ROTOR = Identity("no_rotor", A, zero(JOINT, JOINT), "the hypothesis: no rotor inertia")
"""The rule that a theorem may use which is stated for joints without motors."""


class Outcome(Enum):
    """What came of a proof."""

    PROVED = "proved"
    REFUTED = "refuted"
    OPEN = "open"


@dataclass(frozen=True)
class Theorem:
    """Two expressions that are equal, and the rules that connect them.

    Attributes:
        name: Unique name.
        definition: What is to be computed, straight from mechanics. For the inverse of a square
            operator X, ``X.inv``: then result @ X = I is proved instead.
        result: The factored form, from which code is made.
        doc: What it says and means.
        ref: Where it stands in the papers.
        rules: Rows beyond the core and the definitions, e.g. earlier theorems.
        needs: Hypotheses: ``"serial"`` (no branches), ``"unmotored"`` (no rotor inertia); none: a
            tree with joints of any kind.
    """

    name: str
    definition: Expr
    result: Expr
    doc: str
    ref: Ref | None = None
    rules: tuple[Identity, ...] = ()
    needs: frozenset[str] = frozenset()

    @property
    def sides(self) -> tuple[Expr, Expr]:
        """The two expressions whose normal forms must agree."""
        if isinstance(self.definition, Inverse):
            return self.result @ self.definition.of, identity(self.definition.codomain)
        return self.definition, self.result

    @property
    def rule(self) -> Identity:
        """The theorem as a rule for later proofs; its definition must be a single word."""
        return Identity(self.name, self.definition, self.result, self.doc, self.ref, self.needs)


@dataclass(frozen=True)
class Proof:
    """The derivation of both sides and what is left of their difference."""

    theorem: Theorem
    left: tuple[Step, ...]
    right: tuple[Step, ...]
    residual: Words
    _differ: Callable[[], bool] = field(repr=False)

    @cached_property
    def outcome(self) -> Outcome:
        """Proved, refuted or open."""
        if not self.residual.terms:
            return Outcome.PROVED
        return Outcome.REFUTED if self._differ() else Outcome.OPEN


def open_lets(expr: Expr) -> Expr:
    """An expression with every ``let`` replaced by its value."""
    seen: dict[Expr, Expr] = {}

    def opened(node: Expr) -> Expr:
        if node not in seen:
            inner = opened(node.value) if isinstance(node, Let) else rebuild(node, opened)
            seen[node] = inner
        return seen[node]

    return opened(expr)


def prove(theorem: Theorem) -> Proof:
    """Rewrite both sides to normal form and compare."""
    extra = (NO_ROTOR,) if "unmotored" in theorem.needs else ()
    rewriter = Rewriter(with_adjoints((*extra, *theorem.rules, *DEFINITIONS, *CORE)))
    left, right = (_derive(rewriter, open_lets(side)) for side in theorem.sides)
    return Proof(theorem, left[0], right[0], left[1] - right[1], lambda: differ(theorem))


def _derive(rewriter: Rewriter, expr: Expr) -> tuple[tuple[Step, ...], Words]:
    """The steps to normal form, and that form."""
    steps = tuple(rewriter.steps(expr))
    return steps, steps[-1].result if steps else to_words(expr)


def differ(theorem: Theorem, seeds: Iterable[int] = range(3)) -> bool:
    """Whether the two sides differ as matrices on random robots that meet the hypotheses."""
    topology = "serial" if "serial" in theorem.needs else "tree"
    for seed in seeds:
        rng = np.random.default_rng(seed)
        armature = 0.0 if "unmotored" in theorem.needs else 0.5
        model = random_model(rng, 7, topology=topology, armature=armature)
        values = random_vectors(rng, model, (theorem.definition, theorem.result))
        dense = Dense(model, random_configuration(model, rng), vectors=values, tasks=("link3",))
        ours, theirs = (dense(side) for side in (theorem.definition, theorem.result))
        if np.abs(ours - theirs).max() > TOLERANCE * max(1e-2, np.abs(theirs).max()):
            return True
    return False


def random_vectors(
    rng: np.random.Generator, model: Model, exprs: Iterable[Expr]
) -> dict[str, NDArray[np.float64]]:
    """Random values for the vector symbols that occur in expressions."""
    sizes = Dense(model, neutral(model)).dimensions
    names = sorted(vector_names(exprs))
    return {name: rng.normal(size=sizes[SYMBOLS[name].symbol.codomain]) for name in names}


def vector_names(exprs: Iterable[Expr]) -> set[str]:
    """Names of the vector symbols in expressions, gravity (which the robot gives) left out."""
    vectors = (n for n in nodes(exprs) if isinstance(n, Symbol) and n.domain is ONE)
    return {node.name for node in vectors} - {"gravity"}
