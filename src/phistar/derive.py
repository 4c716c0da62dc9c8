# SPDX-License-Identifier: BSD-3-Clause
"""From what is wanted to how it is computed: algorithms as rewritten, factored expressions.

In come vectors as mechanics states them, e.g. v̇ = 𝓜⁻¹(τ - C). Out comes an equal program:

    cut       multiply out, as far as the sums of words stay small           algebra/pieces
    rewrite   unfold inverses and definitions, then simplify, in a few ways  WAYS
    prove     both ends have one normal form by the core identities
    factor    apply each operator once, to the sum of its operands           algebra/factor
    count     scalar operations on a robot; the cheapest is taken            sweeps/costs

Equal forms are a choice by cost, not by taste: what was written stays unless a form costs less. A
derivation brings articulated-body quantities only where an inverse, or the user, asks for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from phistar.algebra.derivation import named, sum_text
from phistar.algebra.factor import factor, name_parts
from phistar.algebra.identities import CORE, DEFINITIONS, RESOLVED, Identity, with_adjoints
from phistar.algebra.ir import Expr, I, Inverse, Let, let
from phistar.algebra.phases import row
from phistar.algebra.pieces import Pieces, cut, opened
from phistar.algebra.printing import to_text
from phistar.algebra.proof import Theorem
from phistar.algebra.rewrite import Rewriter, Step
from phistar.algebra.symbols import D, E_phi, E_psi, G, K, P, phi, psi
from phistar.algebra.traverse import nodes, substitute
from phistar.algebra.words import Words, to_words
from phistar.algorithms.innovations import L, L_inv, mass_matrix_inverse
from phistar.errors import LoweringError, RewriteError
from phistar.model.generators import chain
from phistar.model.model import Model
from phistar.sweeps.costs import Cost, count
from phistar.sweeps.lower import lower
from phistar.sweeps.schedule import Schedule, schedule

Key = str | Let
"""A piece of a program: an output by its name, or a leaf."""


def _text(key: Key) -> str:
    return key if isinstance(key, str) else key.name


def _inverse(name: str, of: Expr, result: Expr) -> Theorem:
    return Theorem(name, of.inv, result, f"the inverse of {of} in closed form")


INVERSES = (
    mass_matrix_inverse,
    _inverse("L_inverse", L, L_inv),
    _inverse("L_inverse_inverse", L_inv, L),
    _inverse("phi_inverse", phi, I - E_phi),
    _inverse("psi_inverse", psi, I - E_psi),
    _inverse("phi_shift_inverse", I - E_phi, phi),
    _inverse("psi_shift_inverse", I - E_psi, psi),
)
"""Inverses that have a sweep form; any other one must cancel or cannot be computed in O(n)."""

UNFOLD = (*(theorem.rule for theorem in INVERSES), *DEFINITIONS)
"""Rows that remove inverses and shorthand from words."""

BASIS = tuple(rule for rule in CORE if rule.name != "riccati")
"""The core without the row that trades every M, also that of inverse dynamics, for P."""

DELAY = (
    Identity(
        "articulated_step",
        psi @ P,
        P + psi @ E_phi @ P - psi @ K @ D @ G.T,
        "ψ = I + ψEψ and EψP = Eφ(P - GDG*)",
    ),
    *(row(name) for name in ("hinge_inertia", "D_left", "D_right")),
)
"""A link's own bias goes to its joint at once, and inward only what passes the joint."""


@dataclass(frozen=True, eq=False)
class Way:
    """A way to rewrite: rows applied together until none fits, and rows applied after that."""

    name: str
    rows: tuple[Identity, ...]
    after: tuple[Identity, ...] = ()

    @cached_property
    def phases(self) -> tuple[Rewriter, ...]:
        """A rewriter for each set of rows."""
        return tuple(Rewriter(with_adjoints(rows)) for rows in (self.rows, self.after) if rows)

    def steps(self, words: Words) -> Iterator[Step]:
        """Every rule application, one by one."""
        for phase in self.phases:
            for step in phase.steps(words):
                words = step.result
                yield step

    def rewritten(self, words: Words) -> Words:
        """The sum of words that it leads to."""
        for phase in self.phases:
            words = phase.normal_form(words)
        return words


WAYS = (
    Way("factored", UNFOLD),
    Way("whitened", (*UNFOLD, *BASIS)),
    Way("articulated", (*UNFOLD, *BASIS, row("riccati_mixed"))),
    Way("articulated, own bias first", (*UNFOLD, *BASIS, row("riccati_mixed")), DELAY),
)
"""How far the bias goes through an inverse: not; through L⁻¹; through M too; link by link."""

AS_WRITTEN = "as written"


@lru_cache(maxsize=1)
def _prover() -> Rewriter:
    return Rewriter(with_adjoints((*UNFOLD, *CORE, *RESOLVED)))


@lru_cache(maxsize=1)
def _definer() -> Rewriter:
    return Rewriter(with_adjoints(DEFINITIONS))


@lru_cache(maxsize=1)
def _known() -> dict[Words, Identity]:
    """Inverses by the words of what they invert, so that it may be spelt in any way."""
    rules = with_adjoints(theorem.rule for theorem in INVERSES)
    inverses = ((rule.lhs, rule) for rule in rules)
    return {_definer().normal_form(e.of): rule for e, rule in inverses if isinstance(e, Inverse)}


@lru_cache(maxsize=1)
def _growth() -> dict[Expr, int]:
    """How many words each atom that is unfolded becomes."""
    return {rule.lhs[0]: len(rule.rhs) for rule in Rewriter(with_adjoints(UNFOLD)).rules}


@dataclass(frozen=True)
class Form:
    """One program for the wanted vectors, counted.

    Attributes:
        ways: The way each piece was rewritten; empty for the program as written.
        outputs: Vector expressions by name.
        schedule: Its passes.
        cost: Scalar operations on the robot it was counted for.
    """

    ways: Mapping[Key, Way]
    outputs: Mapping[str, Expr]
    schedule: Schedule
    cost: Cost

    @property
    def name(self) -> str:
        """What was done, in a few words."""
        names = set(way.name for way in self.ways.values())
        if len(names) > 1:
            return "; ".join(f"{_text(key)} {way.name}" for key, way in self.ways.items())
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
    """The program that was chosen, what it was chosen from, and how it was found.

    Attributes:
        form: The cheapest form.
        forms: Everything that was counted, as written first.
        pieces: The sums of words that rewriting started from.
    """

    form: Form
    forms: tuple[Form, ...]
    pieces: Pieces

    @cached_property
    def outputs(self) -> Mapping[str, Expr]:
        """The chosen vectors by name, their parts called as in the papers."""
        if not self.form.ways:
            return self.form.outputs
        return {name: name_parts(expr) for name, expr in self.form.outputs.items()}

    def steps(self) -> Iterator[tuple[Key, Words, tuple[Step, ...]]]:
        """For each piece that rules changed: where it started, and every step."""
        for key, words in self.pieces if self.form.ways else ():
            if steps := tuple(self.form.ways[key].steps(words)):
                yield key, words, steps


def derive(outputs: Mapping[str, Expr], model: Model | None = None) -> Derivation:
    """The cheapest program, among equal ones, that computes some vectors.

    Args:
        outputs: Vector expressions by name.
        model: The robot to count operations for; default a chain of seven links.

    Raises:
        LoweringError: No form of it can be computed link by link.
        RewriteError: A form could not be proved equal to what is wanted.
    """
    return _Search(outputs, model or _reference()).best()


@lru_cache(maxsize=1)
def _reference() -> Model:
    return chain(7, axes="zyx")


class _Search:
    """The pieces of a program and the forms they may take."""

    def __init__(self, outputs: Mapping[str, Expr], model: Model) -> None:
        self.model = model
        known = _known_inverses(outputs.values())
        spelt = {node: rule.lhs for node, rule in known.items()}
        solved = {node: rule.rhs for node, rule in known.items()}
        self.written = {name: substitute(expr, solved) for name, expr in outputs.items()}
        self.pieces = cut({n: substitute(e, spelt) for n, e in outputs.items()}, _growth())
        self.choices = {key: _choices(words) for key, words in self.pieces}
        self.forms: dict[tuple[Expr, ...], Form | LoweringError] = {}

    def best(self) -> Derivation:
        """One way for all pieces, then each piece by itself as long as that helps."""
        self._try({}, self.written)
        for way in WAYS:
            self._build(dict.fromkeys(self.choices, way))
        best = self._cheapest()
        for key in self.choices if best.ways else ():
            for way in WAYS:
                self._build({**best.ways, key: way})
            best = self._cheapest()
        return Derivation(best, tuple(self._counted()), self.pieces)

    def _counted(self) -> list[Form]:
        forms = [form for form in self.forms.values() if isinstance(form, Form)]
        if not forms:
            raise next(error for error in self.forms.values() if isinstance(error, LoweringError))
        return forms

    def _cheapest(self) -> Form:
        return min(self._counted(), key=lambda form: form.rank)

    def _build(self, ways: Mapping[Key, Way]) -> None:
        """Put the pieces together again, each in the form that its way gives."""
        parts = {key: choices[ways[key]] for key, choices in self.choices.items()}
        if tuple(parts.values()) in self.forms:
            return
        values: dict[Expr, Expr] = {}
        for leaf in self.pieces.leaves:
            values[leaf] = let(leaf.name, substitute(parts[leaf], values))
        outputs = {name: substitute(parts[name], values) for name in self.pieces.outputs}
        self._try(ways, outputs, tuple(parts.values()))

    def _try(
        self, ways: Mapping[Key, Way], outputs: Mapping[str, Expr], key: tuple[Expr, ...] = ()
    ) -> None:
        """Schedule and count a form; one that has no sweeps leaves its refusal."""
        try:
            passes = schedule(lower(outputs))
        except LoweringError as error:
            self.forms[key] = error
        else:
            self.forms[key] = Form(ways, outputs, passes, count(passes, self.model).total)


def _known_inverses(exprs: Iterable[Expr]) -> dict[Expr, Identity]:
    """For each inverse in some expressions that has a sweep form, the row that gives it."""
    inverses = [node for node in nodes(exprs) if isinstance(node, Inverse)]
    found = {node: _known().get(_definer().normal_form(opened(node.of))) for node in inverses}
    return {node: rule for node, rule in found.items() if rule is not None}


def _choices(words: Words) -> dict[Way, Expr]:
    """What each way makes of a piece, proved equal to it."""
    normal = _prover().normal_form(words)
    found: dict[Words, Expr] = {}
    result: dict[Way, Expr] = {}
    for way in WAYS:
        end = way.rewritten(words)
        if end not in found:
            found[end] = factor(end)
            if _prover().normal_form(to_words(found[end])) != normal:
                wanted = f"not proved equal to {words.expr()}"
                raise RewriteError(f"the {way.name} form {found[end]} is {wanted}")
        result[way] = found[end]
    return result


def report(derivation: Derivation) -> list[str]:
    """A derivation as text: the forms that were counted, then the rules that led to the chosen."""
    lines = []
    for form in derivation.forms:
        mark = "->" if form is derivation.form else "  "
        size = f"{form.cost.total} operations, {form.recursions} recursions"
        lines.append(f"{mark} {form.name}: {size}, {' '.join(form.schedule.directions)}")
    for key, words, steps in derivation.steps():
        used = Counter(step.identity.name for step in steps)
        lines.append(f"{_text(key)} = {sum_text(words, full=False)}")
        lines += [f"  {times:>3} x {rule}" for rule, times in used.items()]
        lines.append(f"  = {sum_text(steps[-1].result, full=False)}")
    lines += [f"{name} = {to_text(expr)}" for name, expr in derivation.outputs.items()]
    return [*lines, *(f"  {line}" for line in named(derivation.outputs.values()))]
