# SPDX-License-Identifier: BSD-3-Clause
"""Theorems and their proofs: two expressions are equal because they have one normal form.

A proof has three outcomes. *Proved*: nothing is left of the difference. *Refuted*: the two sides
differ as matrices on a random robot. *Open*: they agree as matrices, but the rules given do not
connect them; the residual is what is left. Unequal normal forms alone refute nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from phistar.algebra.dense import BASE, Dense
from phistar.algebra.identities import HYPOTHESES, Identity, with_adjoints
from phistar.algebra.ir import Expr, Inverse, Symbol, identity
from phistar.algebra.phases import PHASES
from phistar.algebra.rewrite import Rewriter, Step
from phistar.algebra.rows import f, x
from phistar.algebra.spaces import ONE
from phistar.algebra.symbols import SYMBOLS, entry, unfolded
from phistar.algebra.traverse import nodes
from phistar.algebra.traverse import open_lets as open_lets
from phistar.algebra.words import Words, to_words, word_expr
from phistar.errors import RewriteError, UnknownNameError
from phistar.model.configuration import neutral, random_configuration
from phistar.model.joints import JOINT_KINDS
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.refs import Ref

TOLERANCE = 1e-9
"""Difference of two matrices that counts as a counterexample, relative to their largest entry (or
to 1e-2, so that rounding beside an exact zero is none)."""


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
        rules: Rows beyond the core and the definitions, e.g. earlier theorems; each acts in its
            phase, theorems in the core.
        needs: Names of ``HYPOTHESES``, e.g. ``"serial"``; none: a tree with joints of any kind.
    """

    name: str
    definition: Expr
    result: Expr
    doc: str
    ref: Ref | None = None
    rules: tuple[Identity, ...] = ()
    needs: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for need in self.needs:
            if need not in HYPOTHESES:
                raise UnknownNameError("hypothesis", need, HYPOTHESES)
        for rule in self.rules:
            if missing := ", ".join(sorted(rule.needs - self.needs)):
                raise RewriteError(
                    f"{self.name} uses {rule.name}, which needs {missing}; say so in its needs"
                )

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


def prove(theorem: Theorem) -> Proof:
    """Rewrite both sides to normal form, phase by phase, and compare; done when they are equal."""
    rewriters = (Rewriter(with_adjoints(rows), deep=True) for rows in stages(theorem))
    left, right = derive(rewriters, starts(theorem))
    return Proof(theorem, left.steps, right.steps, left.end - right.end, lambda: differ(theorem))


def starts(theorem: Theorem) -> tuple[Words, Words]:
    """The words of both sides, from which a proof begins; scalars are half their own adjoint."""
    left, right = (to_words(_halves(open_lets(side))) for side in theorem.sides)
    return left, right


def _halves(side: Expr) -> Expr:
    if side.codomain is not ONE or side.domain is not ONE:
        return side
    return Fraction(1, 2) * side + Fraction(1, 2) * side.T


def stages(theorem: Theorem) -> Iterator[tuple[Identity, ...]]:
    """The rows of each phase that a proof goes through, in order."""
    assumed = [row for need in sorted(theorem.needs) for row in HYPOTHESES[need].rows]
    phased = {row for phase in PHASES for row in phase.rows}
    theorems = [row for row in theorem.rules if row not in phased]
    core_rows: tuple[Identity, ...] = ()
    for phase in PHASES:
        own = dict.fromkeys(row for row in (*assumed, *theorem.rules) if row in phase.rows)
        named = [row for row in own if row not in phase.always and row.needs <= theorem.needs]
        if phase.name == "core":
            core_rows = (*theorems, *named, *phase.always)
            yield core_rows
        elif not set(phase.own).isdisjoint(named):
            yield (*named, *phase.always)
            yield from [core_rows] if core_rows else []


@dataclass(frozen=True)
class Trace:
    """The steps that a sum of words was rewritten by, and where they ended."""

    steps: tuple[Step, ...]
    end: Words


def derive(rewriters: Iterable[Rewriter], sides: Iterable[Words]) -> list[Trace]:
    """All sides through all rewriters, each to its normal form, until they are the same."""
    traces = [Trace((), side) for side in sides]
    for rewriter in rewriters:
        if len(traces) > 1 and all(trace.end == traces[0].end for trace in traces):
            break
        traces = [_through(rewriter, trace) for trace in traces]
    return traces


def _through(rewriter: Rewriter, trace: Trace) -> Trace:
    """A trace on to its normal form; scalars turn round wherever their adjoint is simpler."""
    while True:
        steps = tuple(rewriter.steps(trace.end))
        trace = Trace(trace.steps + steps, steps[-1].result if steps else trace.end)
        turn = _turned_round(rewriter, trace.end)
        if turn is None:
            return trace
        trace = Trace((*trace.steps, turn), turn.result)


SCALAR = Identity("scalar", x.T @ f, f.T @ x, "a number is its own adjoint")
"""Not a rule, for it goes both ways: what a step that turns a scalar round is called."""


def _turned_round(rewriter: Rewriter, words: Words) -> Step | None:
    """A step that replaces a scalar word by its adjoint, if that has a simpler normal form.

    A word that is minus its adjoint is zero.
    """
    if words.codomain is not ONE or words.domain is not ONE:
        return None
    for word, factor in words.terms.items():
        adjoint = to_words(word_expr(word, ONE).T)
        found = rewriter.normal_form(adjoint)
        own = Words(ONE, ONE, {word: Fraction(1)})
        rest = words - Words(ONE, ONE, {word: factor})
        if found.terms == {word: -1}:
            return Step(SCALAR, word, rest)
        if _simplicity(found) < _simplicity(own):
            scaled = Words(ONE, ONE, {w: factor * c for w, c in adjoint.terms.items()})
            return Step(SCALAR, word, rest + scaled)
    return None


def _simplicity(words: Words) -> tuple[int, int, str]:
    """Fewer words first, then shorter ones; for words alike, their letters."""
    text = ",".join(sorted(str(word) for word in words))
    return len(words), len(text), text


def differ(theorem: Theorem, seeds: Iterable[int] = range(3)) -> bool:
    """Whether the two sides differ as matrices on random robots that meet the hypotheses."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        model = random_example(rng, theorem.needs)
        values = random_vectors(rng, model, (theorem.definition, theorem.result))
        q, axes = random_configuration(model, rng), random_axes(rng, model, theorem.needs)
        dense = Dense(model, q, vectors=values, tasks=("link3",), axes=axes)
        ours, theirs = (dense(side) for side in (theorem.definition, theorem.result))
        if np.abs(ours - theirs).max() > TOLERANCE * max(1e-2, np.abs(theirs).max()):
            return True
    return False


def random_example(rng: np.random.Generator, needs: Iterable[str], n: int = 7) -> Model:
    """A random robot that meets hypotheses and, if it can, no others."""
    kept = frozenset(needs)
    return random_model(
        rng,
        n,
        topology="serial" if "serial" in kept else rng.choice(["tree", "binary", "forest"]),
        armature=0.0 if "unmotored" in kept else 0.5,
        massless=0.0 if "massive" in kept else 0.2,
        kinds=joint_kinds(kept),
    )


def joint_kinds(needs: Iterable[str]) -> list[str]:
    """Joint kinds that move and meet hypotheses.

    A universal joint is two of one axis, with a massless link between them.
    """
    kept = frozenset(needs)
    compounds = set() if "massive" in kept else {"universal"}
    most = 1 if "one_dof" in kept else 6
    simple = {name for name, kind in JOINT_KINDS.items() if 0 < kind.nv <= most} - {"universal"}
    return [name for name in JOINT_KINDS if name in simple | compounds]


def random_axes(
    rng: np.random.Generator, model: Model, needs: Iterable[str]
) -> list[NDArray[np.float64]]:
    """Joint maps of the bodies; bent, like those of no real joint, unless hypotheses forbid it."""
    axes = [body.motion.motion_map() for body in model.bodies]
    if {"subalgebra", "one_dof"}.intersection(needs):
        return axes
    return [a + 0.3 * rng.normal(size=a.shape) if 1 < a.shape[1] < 6 else a for a in axes]


def random_vectors(
    rng: np.random.Generator, model: Model, exprs: Iterable[Expr]
) -> dict[str, NDArray[np.float64]]:
    """Random values for the given symbols of expressions: vectors, and X, Y, Z block by block."""
    sizes = Dense(model, neutral(model)).dimensions
    blocks = np.kron(np.eye(len(model.bodies)), np.ones((6, 6)))
    values = {}
    for name in sorted(given_names(exprs)):
        node = SYMBOLS[name].symbol
        if node.domain is ONE:
            values[name] = rng.normal(size=sizes[node.codomain])
        else:
            values[name] = blocks * rng.normal(size=blocks.shape)
    return values


def given_names(exprs: Iterable[Expr]) -> set[str]:
    """Names of the symbols that a robot does not give and nothing defines, also in definitions."""
    symbols = (node for node in unfolded(exprs) if isinstance(node, Symbol))
    return {s.name for s in symbols if entry(s).definition is None} - set(BASE)


def vector_names(exprs: Iterable[Expr]) -> set[str]:
    """Names of the vector symbols in expressions, gravity (which the robot gives) left out."""
    vectors = (n for n in nodes(exprs) if isinstance(n, Symbol) and n.domain is ONE)
    return {node.name for node in vectors} - {"gravity"}
