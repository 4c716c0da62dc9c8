# SPDX-License-Identifier: BSD-3-Clause
"""A proof as text: statement, hypotheses, every step, outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from phistar.algebra.identities import HYPOTHESES, Identity
from phistar.algebra.ir import Expr, Inverse, Let
from phistar.algebra.printing import to_text
from phistar.algebra.proof import Outcome, Proof, Theorem
from phistar.algebra.rewrite import Step
from phistar.algebra.symbols import divides_by_D
from phistar.algebra.traverse import nodes, open_lets
from phistar.algebra.words import Words, to_words, word_expr

SHORT_SUM = 4
"""Words of a sum that are shown where it is shortened."""


def statement(theorem: Theorem) -> list[str]:
    """``definition = result``, and the intermediate results it names."""
    equation = f"{to_text(theorem.definition)} = {to_text(theorem.result)}"
    return [equation, *(f"  {line}" for line in named((theorem.definition, theorem.result)))]


def named(exprs: Iterable[Expr]) -> list[str]:
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
    found = [node for node in nodes((expr,)) if isinstance(node, Let)]
    depth = {let: sum(isinstance(n, Let) for n in nodes((let.value,))) for let in found}
    return iter(sorted(found, key=lambda let: -depth[let]))


def hypotheses(proof: Proof) -> str:
    """What must hold for a theorem, in words."""
    theorem = proof.theorem
    words = [HYPOTHESES[need].says for need in sorted(theorem.needs)]
    if "serial" not in theorem.needs:
        words.append("a chain, tree or forest")
    if not theorem.needs & {"one_dof", "subalgebra"}:
        words.append("joints of any kind")
    used = (open_lets(side) for side in theorem.sides)
    rows = (side for step in (*proof.left, *proof.right) for side in _sides(step.identity))
    if divides_by_D((*used, *rows)):
        words.append("every joint moves some inertia (D > 0)")
    return ", ".join(words)


def _sides(identity: Identity) -> tuple[Expr, Expr]:
    return identity.lhs, identity.rhs


def derivation(proof: Proof, full: bool = False, limit: int | None = None) -> list[str]:
    """The steps of both sides.

    Args:
        proof: The proof.
        full: Whether to print the whole sum after each step.
        limit: Steps to show of each side; default all.
    """
    both = zip(_titles(proof.theorem), proof.theorem.sides, (proof.left, proof.right), strict=True)
    lines: list[str] = []
    for title, side, steps in both:
        start = to_words(open_lets(side))
        lines += [f"{title}: {sum_text(start, full)}"]
        lines += _steps(steps[:limit], full)
        hidden = len(steps) - len(steps[:limit])
        if hidden:
            lines.append(f"      ... {hidden} more steps")
        end = steps[-1].result if steps else start
        lines.append(f"    = {sum_text(end, full)}" if steps else "    is in normal form")
    return lines


def _titles(theorem: Theorem) -> tuple[str, str]:
    if isinstance(theorem.definition, Inverse):
        return "result times what it inverts", "identity"
    return "definition", "result"


def _steps(steps: tuple[Step, ...], full: bool) -> Iterator[str]:
    width = max((len(step.identity.name) for step in steps), default=0)
    for number, step in enumerate(steps, 1):
        word = to_text(word_expr(step.word, step.result.domain))
        size = len(step.result)
        count = "1 word" if size == 1 else f"{size} words"
        yield f"  {number:>3}  {step.identity.name:<{width}}  {count:>8}  {word}"
        if full:
            yield f"       = {sum_text(step.result, full)}"


def sum_text(words: Words, full: bool) -> str:
    """A sum of words; a long one by its first few unless ``full``."""
    if full or len(words) <= SHORT_SUM + 1:
        return to_text(words.expr())
    first = dict(list(words.terms.items())[:SHORT_SUM])
    shown = to_text(Words(words.codomain, words.domain, first).expr())
    return f"{shown} + ... ({len(words)} words)"


def rules_used(proof: Proof) -> list[str]:
    """Each rule that the proof used: how often, what it says, where it stands."""
    used = Counter(step.identity for step in (*proof.left, *proof.right))
    width = max((len(identity.name) for identity in used), default=0)
    return [
        f"{times:>3} x {identity.name:<{width}}  {_equation(identity)}"
        for identity, times in used.items()
    ]


def _equation(identity: Identity) -> str:
    place = f"   [{identity.ref}]" if identity.ref else ""
    return f"{to_text(identity.lhs)} = {to_text(identity.rhs)}{place}"


def outcome(proof: Proof, full: bool = False) -> str:
    """What came of it, with what is left."""
    count = len(proof.left) + len(proof.right)
    steps = "1 step" if count == 1 else f"{count} steps"
    if proof.outcome is Outcome.PROVED:
        return f"proved in {steps}: nothing is left of the difference"
    left = sum_text(proof.residual, full)
    if proof.outcome is Outcome.REFUTED:
        return (
            f"refuted: the sides differ as matrices on a random robot; left after {steps}: {left}"
        )
    return f"open: the sides agree as matrices, but after {steps} there is left: {left}"
