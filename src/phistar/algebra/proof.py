# SPDX-License-Identifier: BSD-3-Clause
"""Theorems and their proofs: two expressions are equal because they have one normal form.

A proof has three outcomes. *Proved*: nothing is left of the difference. *Refuted*: the two sides
differ as matrices on a random robot. *Open*: they agree as matrices, but the rules given do not
connect them, or not within the steps allowed; the residual is what is left. Unequal normal forms
alone refute nothing.

Rules and theorems that are not in the package's catalogue are compared as matrices first: the rules
of a theorem before they are used, the theorem before it is called proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cache, cached_property

from phistar.algebra.identities import HYPOTHESES, Identity, with_adjoints
from phistar.algebra.inverses import cancellation_rows
from phistar.algebra.ir import Expr, Inverse, fit_sides, identity
from phistar.algebra.numerical_check import (
    Comparison,
    Sides,
    compare,
    describe_hypotheses,
    sufficient_hypotheses,
)
from phistar.algebra.phases import IDENTITIES, PHASES
from phistar.algebra.printing import to_text
from phistar.algebra.rewrite import Match, Rewriter, RewriteStep, RewriteTrace, Rule
from phistar.algebra.rules import f, x
from phistar.algebra.spaces import ONE
from phistar.algebra.traverse import open_lets as open_lets
from phistar.algebra.words import WordSum, to_words, word_count, word_expr
from phistar.errors import FalseRuleError, RewriteError, UnknownNameError
from phistar.refs import Ref
from phistar.reprs import html_card, html_folded

MAX_WORDS_PROVED = 50_000
"""Words of a side, multiplied out, from which no proof is tried."""


class Outcome(Enum):
    """Outcome of a proof."""

    PROVED = "proved"
    REFUTED = "refuted"
    OPEN = "open"


@dataclass(frozen=True)
class Theorem:
    """Two expressions that are equal, and the rules that connect them.

    Attributes:
        name: Unique name.
        definition: What is to be computed, from mechanics. For the inverse of a square operator X,
            ``X.inv``: then result @ X = I is proved instead.
        result: The factored form, which is compiled.
        doc: What it says and means.
        ref: Its reference.
        rules: Rows beyond the core and the definitions, e.g. earlier theorems; each acts in its
            phase, theorems in the core and in phases that take them.
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
        sides = fit_sides(self.definition, self.result)
        for name, side in zip(("definition", "result"), sides, strict=True):
            object.__setattr__(self, name, side)
        object.__setattr__(self, "needs", frozenset(self.needs))
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
        return Identity(
            self.name, self.definition, self.result, self.doc, self.ref, self.needs, source=self
        )

    def compared(self, needs: Iterable[str] = ()) -> Comparison:
        """Both sides as matrices on random robots, under further hypotheses if any are given."""
        return compare((self.definition, self.result), self.needs.union(needs))

    def sufficient(self) -> tuple[frozenset[str], ...]:
        """The smallest sets of further hypotheses under which it holds as matrices."""
        return sufficient_hypotheses((self.definition, self.result), self.needs)


TESTED_THEOREMS: set[Theorem] = set()
"""Theorems that the tests of the package compare as matrices: those of its catalogue."""


@dataclass(frozen=True, repr=False)
class Proof:
    """The derivation of both sides and the residual of their difference; ``print`` shows it."""

    theorem: Theorem
    traces: tuple[RewriteTrace, RewriteTrace]
    residual: WordSum

    @property
    def left(self) -> tuple[RewriteStep, ...]:
        """The steps from the definition, or from the result times what it inverts."""
        return self.traces[0].steps

    @property
    def right(self) -> tuple[RewriteStep, ...]:
        """The steps from the result, or from the identity."""
        return self.traces[1].steps

    @property
    def stopped(self) -> str:
        """Why rewriting stopped early; empty if it did not."""
        return next((trace.stopped for trace in self.traces if trace.stopped), "")

    @cached_property
    def outcome(self) -> Outcome:
        """Proved, refuted or open."""
        connected = not self.residual.terms and not self.stopped
        if connected and self.theorem in TESTED_THEOREMS:
            return Outcome.PROVED
        if self.comparison.counterexample is not None:
            return Outcome.REFUTED
        return Outcome.PROVED if connected and not self.comparison.singular else Outcome.OPEN

    @cached_property
    def comparison(self) -> Comparison:
        """Both sides as matrices on random robots: a counterexample, or none."""
        return self.theorem.compared()

    @cached_property
    def under(self) -> tuple[Proof, ...]:
        """If not proved: proofs under the smallest sufficient sets of hypotheses."""
        if self.outcome is Outcome.PROVED or self.comparison.agrees:
            return ()
        theorem = self.theorem
        sets = theorem.sufficient()
        return tuple(prove(replace(theorem, needs=theorem.needs | more)) for more in sets)

    @cached_property
    def unproved(self) -> tuple[Identity, ...]:
        """Rules that it uses and that no theorem proves: they only agree as matrices."""
        used = dict.fromkeys(step.identity for step in (*self.left, *self.right))
        names = {rule.name.removesuffix("*") for rule in used}
        untested = (
            rule for rule in self.theorem.rules if not _is_tested(rule) and rule.name in names
        )
        return tuple(rule for rule in untested if not _has_proof(rule))

    def __repr__(self) -> str:
        count = len(self.left) + len(self.right)
        return f"<proof of {self.theorem.name}: {self.outcome.value}, steps: {count}>"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return html_card(repr(self)[1:-1], html_folded(str(self.theorem.name), self, is_open=True))

    def __str__(self) -> str:
        from phistar.algebra.proof_text import proof_text

        return proof_text(self, limit=MAX_STEPS_PRINTED)


MAX_STEPS_PRINTED = 40
"""Steps of each side that ``print`` shows."""


def prove(theorem: Theorem) -> Proof:
    """Rewrite both sides to normal form, phase by phase, and compare; done when they are equal.

    Raises:
        FalseRuleError: One of the theorem's own rules does not hold as matrices.
    """
    return _prove_tested(theorem) if theorem in TESTED_THEOREMS else _prove(theorem)


@cache
def _prove_tested(theorem: Theorem) -> Proof:
    """Theorems of the catalogue are proved once: others cite them, and explanations name them."""
    return _prove(theorem)


def _prove(theorem: Theorem) -> Proof:
    for rule in theorem.rules:
        if not _is_tested(rule):
            _reject_false_rule(rule)
    largest = max(word_count(open_lets(side)) for side in theorem.sides)
    if largest > MAX_WORDS_PROVED:
        trace = _abandoned_trace(
            theorem, f"not begun: a side is {largest} words when multiplied out"
        )
        return Proof(theorem, (trace, trace), trace.end)
    rewriters = (Rewriter(with_adjoints(rows), deep=True) for rows in phase_rows(theorem))
    left, right = rewrite_sides(rewriters, initial_words(theorem))
    return Proof(theorem, (left, right), left.end - right.end)


def _abandoned_trace(theorem: Theorem, why: str) -> RewriteTrace:
    side = theorem.sides[0]
    nothing = WordSum(side.codomain, side.domain, {})
    return RewriteTrace(nothing, (), nothing, why)


def _is_tested(rule: Identity) -> bool:
    """Whether the tests of the package compare a rule as matrices."""
    if isinstance(rule.source, Theorem) and rule.source in TESTED_THEOREMS:
        return True
    return rule in IDENTITIES or rule in with_adjoints(IDENTITIES)


def _has_proof(rule: Identity) -> bool:
    """Whether a rule is a proved theorem."""
    source = rule.source
    if not isinstance(source, Theorem) or (rule.lhs, rule.rhs) != (
        source.definition,
        source.result,
    ):
        return False
    return prove(source).outcome is Outcome.PROVED


def _reject_false_rule(rule: Identity) -> None:
    """Compare a rule as matrices.

    Raises:
        FalseRuleError: It does not hold, or what it inverts has no inverse.
    """
    sides: Sides = (rule.lhs, rule.rhs)
    comparison = compare(sides, rule.needs)
    if comparison.agrees:
        return
    if comparison.counterexample is not None:
        what = f"is false: {comparison.counterexample}"
    elif comparison.singular:
        names = ", ".join(map(to_text, comparison.singular))
        what = f"does not hold in general: {names} has no inverse on some robots"
    else:
        what = "cannot be checked: rounding is larger than its numbers"
    more = sufficient_hypotheses(sides, rule.needs)
    cure = f" It holds for {describe_hypotheses(more)}." if more else ""
    equation = f"{to_text(rule.lhs)} = {to_text(rule.rhs)}"
    text = f"the rule {rule.name}, {equation}, {what}.{cure}"
    raise FalseRuleError(text, rule, comparison.counterexample)


def initial_words(theorem: Theorem) -> tuple[WordSum, WordSum]:
    """The words of both sides at the start of a proof; scalars are half their own adjoint."""
    left, right = (to_words(_symmetrised(open_lets(side))) for side in theorem.sides)
    return left, right


def _symmetrised(side: Expr) -> Expr:
    if side.codomain is not ONE or side.domain is not ONE:
        return side
    return Fraction(1, 2) * side + Fraction(1, 2) * side.T


def _rows_of_no_phase(theorem: Theorem) -> list[Identity]:
    """Other theorems that a proof uses."""
    phased = {row for phase in PHASES for row in phase.rows}
    return [row for row in theorem.rules if row not in phased]


def phase_rows(theorem: Theorem) -> Iterator[tuple[Identity, ...]]:
    """The rows of each phase that a proof goes through, in order."""
    assumed = [row for need in sorted(theorem.needs) for row in HYPOTHESES[need].rows]
    cancels = cancellation_rows(theorem.sides, assumed)
    if cancels:
        yield cancels
    theorems = _rows_of_no_phase(theorem)
    usable = [row for row in (*assumed, *theorem.rules) if row.needs <= theorem.needs]
    core_rows: tuple[Identity, ...] = ()
    for phase in PHASES:
        optional = {*phase.rows} - {*phase.always}
        named = [row for row in dict.fromkeys(usable) if row in optional]
        if phase.name == "core":
            core_rows = (*theorems, *named, *phase.always)
            yield core_rows
        elif phase.takes_theorems and named:
            yield (*named, *theorems, *cancels)
        elif not set(phase.required).isdisjoint(named):
            yield (*named, *phase.always)
            yield from [core_rows] if core_rows else []


def rewrite_sides(rewriters: Iterable[Rewriter], sides: Iterable[WordSum]) -> list[RewriteTrace]:
    """All sides through all rewriters, each to its normal form, until they are the same."""
    traces = [RewriteTrace(side, (), side) for side in sides]
    for rewriter in rewriters:
        if len(traces) > 1 and all(trace.end == traces[0].end for trace in traces):
            break
        traces = [_normalise_trace(rewriter, trace) for trace in traces]
        if any(trace.stopped for trace in traces):
            break
    return traces


def _normalise_trace(rewriter: Rewriter, trace: RewriteTrace) -> RewriteTrace:
    """A trace continued to its normal form; scalars become their adjoint where that is simpler."""
    while True:
        trace = trace.then(rewriter.trace(trace.end))
        adjoint = None if trace.stopped else _adjoint_trace(rewriter, trace.end)
        if adjoint is None:
            return trace
        trace = trace.then(adjoint)


SCALAR_ADJOINT = Identity("scalar", x.T @ f, f.T @ x, "a number is its own adjoint")
"""Name of a step that replaces a scalar by its adjoint; not a rule, as it holds both ways."""


def _adjoint_trace(rewriter: Rewriter, words: WordSum) -> RewriteTrace | None:
    """A step that replaces a scalar word by its adjoint, if that has a simpler normal form.

    A word that is minus its adjoint is zero.
    """
    if words.codomain is not ONE or words.domain is not ONE:
        return None
    for word, factor in words.terms.items():
        adjoint = to_words(word_expr(word, ONE).T)
        normal_form = rewriter.normal_form(adjoint)
        original = WordSum(ONE, ONE, {word: Fraction(1)})
        remaining = words - WordSum(ONE, ONE, {word: factor})
        if normal_form.terms == {word: -1}:
            return RewriteTrace(words, (_adjoint_step(word, WordSum(ONE, ONE, {})),), remaining)
        if _simplicity(normal_form) < _simplicity(original):
            scaled = WordSum(ONE, ONE, {w: factor * c for w, c in adjoint.terms.items()})
            return RewriteTrace(words, (_adjoint_step(word, adjoint),), remaining + scaled)
    return None


def _adjoint_step(word: tuple[Expr, ...], adjoint: WordSum) -> RewriteStep:
    return RewriteStep(word, Match(Rule.of(SCALAR_ADJOINT), 0, len(word), adjoint.terms))


def _simplicity(words: WordSum) -> tuple[int, int, str]:
    """Fewer words first, then shorter ones, then by their letters."""
    text = ",".join(sorted(str(word) for word in words))
    return len(words), len(text), text


def sides_differ(theorem: Theorem, seeds: Iterable[int] = range(3)) -> bool:
    """Whether the two sides differ as matrices on random robots that meet the hypotheses."""
    comparison = compare((theorem.definition, theorem.result), theorem.needs, tuple(seeds))
    return comparison.counterexample is not None
