# SPDX-License-Identifier: BSD-3-Clause
"""A proof as text: statement, hypotheses, every step, outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from phistar.algebra.identities import HYPOTHESES, Identity
from phistar.algebra.ir import Expr, Inverse, Let
from phistar.algebra.numerical_check import describe_hypotheses
from phistar.algebra.printing import to_text
from phistar.algebra.proof import Outcome, Proof, Theorem
from phistar.algebra.rewrite import RewriteTrace
from phistar.algebra.symbols import divides_by_D, divides_by_node_inertia
from phistar.algebra.traverse import nodes, open_lets
from phistar.algebra.words import WordSum, to_words, word_expr

MAX_WORDS_SHOWN = 4
"""Words of a sum that are shown where it is shortened."""


def statement_lines(theorem: Theorem) -> list[str]:
    """``definition = result``, and the intermediate results it names."""
    equation = f"{to_text(theorem.definition)} = {to_text(theorem.result)}"
    return [equation, *(f"  {line}" for line in let_lines((theorem.definition, theorem.result)))]


def let_lines(exprs: Iterable[Expr]) -> list[str]:
    """A line for each ``let`` of some expressions, users before what they use."""
    lines: dict[str, None] = {}
    for expr in exprs:
        for node in _lets(expr):
            line = f"{to_text(node)} = {to_text(node.value)}"
            lines.pop(line, None)
            lines[line] = None
    return list(lines)


def _lets(expr: Expr) -> Iterator[Let]:
    """Lets of an expression, each after every let that uses it."""
    lets = [node for node in nodes((expr,)) if isinstance(node, Let)]
    depth = {let: sum(isinstance(n, Let) for n in nodes((let.value,))) for let in lets}
    return iter(sorted(lets, key=lambda let: -depth[let]))


def hypotheses_text(proof: Proof) -> str:
    """The hypotheses of a theorem, in words."""
    theorem = proof.theorem
    words = [HYPOTHESES[need].says for need in sorted(theorem.needs)]
    if "serial" not in theorem.needs:
        words.append("a chain, tree or forest")
    if not theorem.needs & {"one_dof", "subalgebra"}:
        words.append("joints of any kind")
    used = [open_lets(side) for side in theorem.sides]
    used += [side for step in (*proof.left, *proof.right) for side in _sides(step.identity)]
    if divides_by_D(used):
        words.append("every joint moves some inertia (D > 0)")
    elif divides_by_node_inertia(used):
        words.append("every motion that the loops leave moves some inertia (Dₐ > 0)")
    return ", ".join(words)


def _sides(identity: Identity) -> tuple[Expr, Expr]:
    return identity.lhs, identity.rhs


def steps_lines(proof: Proof, full: bool = False, limit: int | None = None) -> list[str]:
    """The steps of both sides.

    Args:
        proof: The proof.
        full: Whether to print the full sum after each step.
        limit: Steps to show of each side; default all.
    """
    both = zip(_titles(proof.theorem), proof.theorem.sides, proof.traces, strict=True)
    lines: list[str] = []
    for title, side, trace in both:
        if proof.stopped and not trace.steps:
            lines += [f"{title}: {to_text(open_lets(side))}", f"    {proof.stopped}"]
            continue
        lines += [f"{title}: {sum_text(to_words(open_lets(side)), full)}"]
        lines += _step_lines(trace, full, limit)
        hidden = len(trace.steps) - len(trace.steps[:limit])
        if hidden:
            lines.append(f"      ... {hidden} more steps")
        end = f"    = {sum_text(trace.end, full)}"
        lines.append(end if trace.steps else "    is in normal form")
        lines += [f"    {trace.stopped}"] if trace.stopped else []
    return lines


def _titles(theorem: Theorem) -> tuple[str, str]:
    if isinstance(theorem.definition, Inverse):
        return "result times what it inverts", "identity"
    return "definition", "result"


def _step_lines(trace: RewriteTrace, full: bool, limit: int | None) -> Iterator[str]:
    shown = trace.steps[:limit]
    width = max((len(step.identity.name) for step in shown), default=0)
    domain = trace.start.domain
    for number, (step, terms) in enumerate(zip(shown, trace.sums(), strict=False), 1):
        word = to_text(word_expr(step.word, domain))
        count = "1 word" if len(terms) == 1 else f"{len(terms)} words"
        yield f"  {number:>3}  {step.identity.name:<{width}}  {count:>8}  {word}"
        if full:
            yield f"       = {sum_text(WordSum(trace.start.codomain, domain, terms), full)}"


def sum_text(words: WordSum, full: bool) -> str:
    """A sum of words; a long one by its first few unless ``full``."""
    if full or len(words) <= MAX_WORDS_SHOWN + 1:
        return to_text(words.expr())
    first = dict(list(words.terms.items())[:MAX_WORDS_SHOWN])
    shown = to_text(WordSum(words.codomain, words.domain, first).expr())
    return f"{shown} + ... ({len(words)} words)"


def rules_used(proof: Proof) -> list[str]:
    """Each rule that the proof used: count, equation, reference."""
    used = Counter(step.identity for step in (*proof.left, *proof.right))
    width = max((len(identity.name) for identity in used), default=0)
    return [
        f"{times:>3} x {identity.name:<{width}}  {_equation(identity)}"
        for identity, times in used.items()
    ]


def _equation(identity: Identity) -> str:
    reference = f"   [{identity.ref}]" if identity.ref else ""
    return f"{to_text(identity.lhs)} = {to_text(identity.rhs)}{reference}"


def outcome_text(proof: Proof, full: bool = False) -> str:
    """The outcome, with the residual."""
    return "; ".join(_outcome_lines(proof, full))


def _outcome_lines(proof: Proof, full: bool) -> Iterator[str]:
    count = len(proof.left) + len(proof.right)
    steps = "1 step" if count == 1 else f"{count} steps"
    if proof.outcome is Outcome.PROVED:
        yield f"proved in {steps}: nothing is left of the difference"
        for rule in proof.unproved:
            yield f"rests on {rule.name}, which agrees as matrices and has no proof"
        return
    if proof.comparison.counterexample is not None:
        yield f"refuted: {proof.comparison.counterexample}"
    elif proof.comparison.singular:
        names = ", ".join(map(to_text, proof.comparison.singular))
        which = "on some robots" if proof.comparison.robots else "on any robot that was tried"
        yield f"open: {names} has no inverse {which}"
    else:
        yield "open: the sides agree as matrices, but the rules do not connect them"
    for better in proof.under:
        more = better.theorem.needs - proof.theorem.needs
        yield f"holds for {describe_hypotheses([more])}: {better.outcome.value}"
    if proof.stopped:
        yield proof.stopped
    elif proof.residual.terms:
        yield f"left after {steps}: {sum_text(proof.residual, full)}"


def proof_text(
    proof: Proof,
    full: bool = False,
    limit: int | None = None,
    rules: bool = True,
    location: str = "",
) -> str:
    """A proof on one page: statement, hypotheses, both sides, rules, outcome."""
    theorem = proof.theorem
    where = f"{location}  {theorem.ref or ''}".strip()
    used = rules_used(proof) if rules else []
    sections = [
        ("statement", statement_lines(theorem)),
        ("hypotheses", [hypotheses_text(proof)]),
        ("derivation", steps_lines(proof, full, limit)),
        ("rules used", used),
        ("outcome", list(_outcome_lines(proof, full))),
    ]
    lines = [f"{theorem.name}: {theorem.doc}" if theorem.doc else theorem.name]
    lines += [where] if where else []
    for title, rows in sections:
        if rows:
            lines += ["", title, *(f"  {row}" for row in rows)]
    return "\n".join(lines)
