# SPDX-License-Identifier: BSD-3-Clause
"""From a definition to a program: algorithms as rewritten, factored expressions.

Vectors as mechanics defines them, e.g. v̇ = 𝓜⁻¹(τ - C), become an equal program:

    expand    multiply out, as far as the sums of words stay small           algebra/expansion
    rewrite   unfold inverses and definitions, then simplify                 STRATEGIES
    prove     both ends have one normal form by the core identities
    factor    apply each operator once, to the sum of its operands           algebra/factor
    count     scalar operations on a robot; the cheapest is chosen           sweeps/costs

Among equal forms the cheapest is chosen; the expression stays as written unless a form costs less.
A derivation introduces articulated-body quantities only where an inverse, or the user, needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from phistar.algebra.expansion import BoundedSums, expand_bounded, open_operator_lets
from phistar.algebra.factor import factor, name_intermediates
from phistar.algebra.identities import (
    CORE,
    DEFINITIONS,
    HYPOTHESES,
    RICCATI_PRODUCTS,
    Identity,
    with_adjoints,
)
from phistar.algebra.ir import Expr, I, Inverse, Let, let
from phistar.algebra.phases import row
from phistar.algebra.proof import Theorem
from phistar.algebra.rewrite import Rewriter, RewriteTrace
from phistar.algebra.symbols import D, E_phi, E_psi, G, K, P, phi, psi
from phistar.algebra.traverse import nodes, substitute
from phistar.algebra.words import WordSum, to_words
from phistar.algorithms.innovations import L, L_inv, mass_matrix_inverse
from phistar.errors import LoweringError, RewriteError
from phistar.model.generators import chain
from phistar.model.model import Model
from phistar.sweeps.costs import OperationCount, count_operations
from phistar.sweeps.lower import lower
from phistar.sweeps.schedule import Schedule, schedule

Key = str | Let
"""A piece of a program: an output by its name, or a leaf."""


def _key_name(key: Key) -> str:
    return key if isinstance(key, str) else key.name


def _inverse_theorem(name: str, of: Expr, result: Expr) -> Theorem:
    return Theorem(name, of.inv, result, f"the inverse of {of} in closed form")


INVERSE_THEOREMS = (
    mass_matrix_inverse,
    _inverse_theorem("L_inverse", L, L_inv),
    _inverse_theorem("L_inverse_inverse", L_inv, L),
    _inverse_theorem("phi_inverse", phi, I - E_phi),
    _inverse_theorem("psi_inverse", psi, I - E_psi),
    _inverse_theorem("phi_shift_inverse", I - E_phi, phi),
    _inverse_theorem("psi_shift_inverse", I - E_psi, psi),
)
"""Inverses that have a sweep form; any other must cancel or cannot be computed in O(n)."""

UNFOLDING_ROWS = (*(theorem.rule for theorem in INVERSE_THEOREMS), *DEFINITIONS)
"""Rows that remove inverses and shorthand from words."""

CORE_WITHOUT_RICCATI = tuple(rule for rule in CORE if rule.name != "riccati")
"""The core without the row that replaces every M, also that of inverse dynamics, by P."""

OWN_BIAS_FIRST_ROWS = (
    Identity(
        "articulated_step",
        psi @ P,
        P + psi @ E_phi @ P - psi @ K @ D @ G.T,
        "ψ = I + ψEψ and EψP = Eφ(P - GDG*)",
    ),
    *(row(name) for name in ("hinge_inertia", "D_left", "D_right")),
)
"""A link's own bias is applied to its joint first; only what crosses the joint goes inward."""


@dataclass(frozen=True, eq=False)
class Strategy:
    """A rewriting strategy: rows applied together until none applies, then others."""

    name: str
    rows: tuple[Identity, ...]
    final_rows: tuple[Identity, ...] = ()

    @cached_property
    def phases(self) -> tuple[Rewriter, ...]:
        """A rewriter for each set of rows."""
        return tuple(Rewriter(with_adjoints(rows)) for rows in (self.rows, self.final_rows) if rows)

    def trace(self, words: WordSum) -> RewriteTrace:
        """Every rule application, one by one."""
        trace = RewriteTrace(words, (), words)
        for phase in self.phases:
            trace = trace.then(phase.trace(trace.end))
        return trace

    def rewrite(self, words: WordSum) -> WordSum:
        """The resulting sum of words."""
        for phase in self.phases:
            words = phase.normal_form(words)
        return words


STRATEGIES = (
    Strategy("factored", UNFOLDING_ROWS),
    Strategy("whitened", (*UNFOLDING_ROWS, *CORE_WITHOUT_RICCATI)),
    Strategy("articulated", (*UNFOLDING_ROWS, *CORE_WITHOUT_RICCATI, row("riccati_mixed"))),
    Strategy(
        "articulated, own bias first",
        (*UNFOLDING_ROWS, *CORE_WITHOUT_RICCATI, row("riccati_mixed")),
        OWN_BIAS_FIRST_ROWS,
    ),
)
"""Strategies by how far the bias passes through an inverse: not; L⁻¹; M too; link by link."""

AS_WRITTEN = "as written"


class _Rules:
    """What is made of the rows of identities when it is first needed."""

    @cached_property
    def prover(self) -> Rewriter:
        """Decides whether two forms are equal."""
        return Rewriter(with_adjoints((*UNFOLDING_ROWS, *CORE, *RICCATI_PRODUCTS)))

    @cached_property
    def words_per_atom(self) -> dict[Expr, int]:
        """Number of words that each unfolded atom becomes."""
        unfolding = Rewriter(with_adjoints(UNFOLDING_ROWS))
        return {rule.lhs[0]: len(rule.rhs) for rule in unfolding.rules}

    @cached_property
    def model(self) -> Model:
        """The robot to count operations for where none is given."""
        return chain(7, axes="zyx")


class _Inverses:
    """Rows of inverses that have a sweep form."""

    def __init__(self, *no_rotor_rows: Identity) -> None:
        self._rows = no_rotor_rows

    @cached_property
    def definitions(self) -> Rewriter:
        """Spells what is inverted."""
        return Rewriter(with_adjoints((*DEFINITIONS, *self._rows)))

    @cached_property
    def by_words(self) -> dict[WordSum, Identity]:
        """The rows by the words of what they invert, in whatever form that is written."""
        rules = with_adjoints(theorem.rule for theorem in INVERSE_THEOREMS)
        spell = self.definitions.normal_form
        return {spell(rule.lhs.of): rule for rule in rules if isinstance(rule.lhs, Inverse)}


_RULES = _Rules()
_INVERSES = {True: _Inverses(), False: _Inverses(*HYPOTHESES["unmotored"].rows)}
"""By whether joints may have rotor inertia."""


@dataclass(frozen=True)
class Candidate:
    """One program for the vectors, with its cost.

    Attributes:
        strategies: Strategy by which each piece was rewritten; empty for the program as written.
        outputs: Vector expressions by name.
        schedule: Its passes.
        cost: Scalar operations on the robot it was counted for.
    """

    strategies: Mapping[Key, Strategy]
    outputs: Mapping[str, Expr]
    schedule: Schedule
    cost: OperationCount

    @property
    def name(self) -> str:
        """Names of the strategies."""
        names = set(strategy.name for strategy in self.strategies.values())
        if len(names) > 1:
            return "; ".join(
                f"{_key_name(key)} {strategy.name}" for key, strategy in self.strategies.items()
            )
        return names.pop() if names else AS_WRITTEN

    @property
    def recursions(self) -> int:
        """Number of recursions over the links."""
        return len(self.schedule.program.recursions)

    @property
    def rank(self) -> tuple[int, int]:
        """Less is better."""
        return self.cost.total, self.recursions


@dataclass(frozen=True)
class Derivation:
    """The chosen program, the candidates, and the pieces that were rewritten.

    Attributes:
        chosen: The cheapest candidate.
        candidates: All candidates, as written first.
        pieces: The sums of words before rewriting.
    """

    chosen: Candidate
    candidates: tuple[Candidate, ...]
    pieces: BoundedSums

    @cached_property
    def outputs(self) -> Mapping[str, Expr]:
        """The chosen vectors by name, intermediates named as in the papers."""
        if not self.chosen.strategies:
            return self.chosen.outputs
        return {name: name_intermediates(expr) for name, expr in self.chosen.outputs.items()}

    def traces(self) -> Iterator[tuple[Key, RewriteTrace]]:
        """The rewrite trace of each piece that rules changed."""
        for key, words in self.pieces if self.chosen.strategies else ():
            trace = self.chosen.strategies[key].trace(words)
            if trace.steps:
                yield key, trace


def derive(outputs: Mapping[str, Expr], model: Model | None = None) -> Derivation:
    """The cheapest program, among equal ones, that computes some vectors.

    Args:
        outputs: Vector expressions by name.
        model: The robot to count operations for; default a chain of seven links.

    Raises:
        LoweringError: No form of it has sweeps.
        RewriteError: A form could not be proved equal to the definition.
    """
    return _FormSearch(outputs, model or _RULES.model).best()


class _FormSearch:
    """The pieces of a program and the forms they may take."""

    def __init__(self, outputs: Mapping[str, Expr], model: Model) -> None:
        self.model = model
        rules = find_closed_inverses(outputs.values())
        canonical = {node: rule.lhs for node, rule in rules.items()}
        solved = {node: rule.rhs for node, rule in rules.items()}
        self.written = {name: substitute(expr, solved) for name, expr in outputs.items()}
        self.pieces = expand_bounded(
            {n: substitute(e, canonical) for n, e in outputs.items()}, _RULES.words_per_atom
        )
        self.choices = {key: _rewrites_by_strategy(words) for key, words in self.pieces}
        self.candidates: dict[tuple[Expr, ...], Candidate | LoweringError] = {}

    def best(self) -> Derivation:
        """One strategy for all pieces, then each piece by itself as long as that helps."""
        self._try({}, self.written)
        for strategy in STRATEGIES:
            self._build(dict.fromkeys(self.choices, strategy))
        best = self._cheapest()
        for key in self.choices if best.strategies else ():
            for strategy in STRATEGIES:
                self._build({**best.strategies, key: strategy})
            best = self._cheapest()
        return Derivation(best, tuple(self._counted()), self.pieces)

    def _counted(self) -> list[Candidate]:
        candidates = [form for form in self.candidates.values() if isinstance(form, Candidate)]
        if not candidates:
            raise next(
                error for error in self.candidates.values() if isinstance(error, LoweringError)
            )
        return candidates

    def _cheapest(self) -> Candidate:
        return min(self._counted(), key=lambda form: form.rank)

    def _build(self, strategies: Mapping[Key, Strategy]) -> None:
        """Assemble the pieces, each in the form of its strategy."""
        forms = {key: choices[strategies[key]] for key, choices in self.choices.items()}
        if tuple(forms.values()) in self.candidates:
            return
        values: dict[Expr, Expr] = {}
        for leaf in self.pieces.leaves:
            values[leaf] = let(leaf.name, substitute(forms[leaf], values))
        outputs = {name: substitute(forms[name], values) for name in self.pieces.outputs}
        self._try(strategies, outputs, tuple(forms.values()))

    def _try(
        self,
        strategies: Mapping[Key, Strategy],
        outputs: Mapping[str, Expr],
        key: tuple[Expr, ...] = (),
    ) -> None:
        """Schedule and count a form; if it has no sweeps, keep the error."""
        try:
            passes = schedule(lower(outputs))
        except LoweringError as error:
            self.candidates[key] = error
        else:
            self.candidates[key] = Candidate(
                strategies, outputs, passes, count_operations(passes, self.model).total
            )


def find_closed_inverses(exprs: Iterable[Expr], rotors: bool = True) -> dict[Expr, Identity]:
    """The row of each inverse in some expressions that has a sweep form.

    Args:
        exprs: The expressions.
        rotors: Whether joints may have rotor inertia; HφMφ*H* is the mass matrix only without.
    """
    inverses = [node for node in nodes(exprs) if isinstance(node, Inverse)]
    tables = _INVERSES[rotors]
    known, spell = tables.by_words, tables.definitions.normal_form
    rules = {node: known.get(spell(open_operator_lets(node.of))) for node in inverses}
    return {node: rule for node, rule in rules.items() if rule is not None}


def with_closed_inverses(expr: Expr) -> Expr:
    """An expression with the inverses that have a closed form replaced by it."""
    return substitute(expr, {node: rule.rhs for node, rule in find_closed_inverses([expr]).items()})


def spell_inverses_for_robot(expr: Expr, model: Model) -> Expr:
    """An expression with inverses written as in the catalogue; A may be omitted where it is 0."""
    rotors = any(any(body.armature) for body in model.bodies)
    known = find_closed_inverses([expr], rotors)
    return substitute(expr, {node: rule.lhs for node, rule in known.items()})


def _rewrites_by_strategy(words: WordSum) -> dict[Strategy, Expr]:
    """The forms of a piece by strategy, proved equal to it."""
    normal = _RULES.prover.normal_form(words)
    forms: dict[WordSum, Expr] = {}
    result: dict[Strategy, Expr] = {}
    for strategy in STRATEGIES:
        end = strategy.rewrite(words)
        if end not in forms:
            forms[end] = factor(end)
            if _RULES.prover.normal_form(to_words(forms[end])) != normal:
                claim = f"not proved equal to {words.expr()}"
                raise RewriteError(f"the {strategy.name} form {forms[end]} is {claim}")
        result[strategy] = forms[end]
    return result
