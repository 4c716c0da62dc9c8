# SPDX-License-Identifier: BSD-3-Clause
"""Scalar operations as C statements: one local constant for each value that is used twice.

A value that is used once stands inside the expression that uses it, as long as that stays short;
brackets keep the order of the operations, so the result has the bits of the scalar program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from phistar.backends.c.tokens import MAX_LINE_CHARACTERS, CPrecision, IdentifierScope
from phistar.scalar.graph import Graph, Node, Value, operands
from phistar.thresholds import POLICY

FLOAT32_EPS_PER_FLOAT64_EPS = 2.0**29
"""Rounding of single precision in those of double precision."""
_SUM, _PRODUCT, _SIGNED, _ATOM = 1, 2, 3, 4
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


@dataclass(frozen=True)
class Expression:
    """An expression: how it is written, how tightly it binds, how many operations it has."""

    text: str
    precedence: int = _ATOM
    size: int = 0

    def parenthesized(self, precedence: int) -> str:
        """With brackets where something binds at least as tightly as told."""
        return self.text if self.precedence >= precedence else f"({self.text})"


def literal_expression(x: float, real: CPrecision) -> Expression:
    """A number."""
    text = real.literal(x)
    return Expression(text, _SIGNED if text.startswith("-") else _ATOM)


def _binary(op: str, a: Expression, b: Expression) -> Expression:
    precedence = _SUM if op in ("add", "sub") else _PRODUCT
    sign, right = _SIGNS[op], b
    if op in ("add", "sub") and b.text.startswith("-") and b.precedence == _SIGNED and not b.size:
        # x + (-2.0) = x - 2.0, to the bit.
        sign, right = "+" if op == "sub" else "-", Expression(b.text[1:])
    second = right.parenthesized(precedence + 1)
    if second.startswith("-"):
        second = f"({second})"
    return Expression(
        f"{a.parenthesized(precedence)} {sign} {second}", precedence, a.size + b.size + 1
    )


def operation_expression(node: Node, known: Sequence[Expression], real: CPrecision) -> Expression:
    """The expression of an operation on others."""
    op = node[0]
    if op == "neg":
        return Expression(f"-{known[0].parenthesized(_ATOM)}", _SIGNED, known[0].size + 1)
    if op == "guard":
        x, least = (text.parenthesized(_ATOM) for text in known)
        coarser = (
            "" if real.literal(0.0) == "0.0" else f" * {real.literal(FLOAT32_EPS_PER_FLOAT64_EPS)}"
        )
        text = f"({x} > {least}{coarser} ? {x} : {real.literal(0.0)} / {real.literal(0.0)})"
        return Expression(text, _ATOM, POLICY.max_c_inline_operations)
    if op == "select":
        a, b, x, y = (text.parenthesized(_ATOM) for text in known)
        return Expression(f"({a} > {b} ? {x} : {y})", _ATOM, POLICY.max_c_inline_operations)
    if op in _SIGNS:
        return _binary(op, *known)
    return Expression(f"{real.function(op)}({known[0].text})", _ATOM, known[0].size + 1)


class StatementWriter:
    """Statements for the values of one block, operands first.

    Args:
        graph: Their graph.
        needed: Numbers of the values that statements are wanted for, operands first.
        extra_uses: How often each value is used other than as an operand.
        real: Precision.
        names: Identifiers of the scope.
        load: What a load reads, as (C expression, wished name).
        given_texts: Where values stand that are read instead of computed.
    """

    def __init__(
        self,
        graph: Graph,
        needed: Sequence[int],
        extra_uses: Counter[int],
        real: CPrecision,
        names: IdentifierScope,
        load: Callable[..., tuple[str, str]],
        given_texts: Mapping[int, str] | None = None,
    ) -> None:
        self.graph = graph
        self.needed = needed
        self.real = real
        self.names = names
        self.load = load
        self.given_texts = given_texts or {}
        self.extra_uses = extra_uses
        self.uses: Counter[int] = Counter(extra_uses)
        for number in needed:
            if number not in self.given_texts:
                self.uses.update(operands(graph.nodes[number]))
        self.texts: dict[int, Expression] = {}
        self._count = 0

    def statements(self) -> Iterator[tuple[int, str]]:
        """(value, its statement), for the values that get one."""
        for number in self.needed:
            statement = self._statement(number)
            if statement:
                yield number, statement

    def text(self, value: Value | float) -> str:
        """A value that has been written, or a constant."""
        if isinstance(value, Value):
            return self.texts[value.id].text
        return literal_expression(value, self.real).text

    def _statement(self, number: int) -> str:
        if number in self.given_texts:
            return self._named(number, "", self.given_texts[number])
        node = self.graph.nodes[number]
        if node[0] == "const":
            self.texts[number] = literal_expression(node[1], self.real)
            return ""
        if node[0] == "load":
            source, wish = self.load(*node[1])
            return self._named(number, wish, source)
        text = operation_expression(node, [self.texts[i] for i in operands(node)], self.real)
        if node[0] in ("sin", "cos"):
            angle = self.texts[node[1]]
            wish = f"{node[0]}_{angle.text}" if angle.text.isidentifier() else ""
            return self._named(number, wish, text.text)
        if (
            self.uses[number] == 1
            and not self.extra_uses[number]
            and text.size <= POLICY.max_c_inline_operations
        ):
            self.texts[number] = text
            return ""
        return self._named(number, "", text.text)

    def _named(self, number: int, wish: str, text: str) -> str:
        if not wish:
            self._count += 1
            wish = f"t{self._count}"
        name = self.names.unique_name(wish)
        self.texts[number] = Expression(name)
        return f"const {self.real.type} {name} = {text};"


def wrap_statement(statement: str, indent: str) -> str:
    """A statement on lines of decent length, broken between tokens."""
    lines, rest, lead = [], statement, indent
    while len(lead) + len(rest) > MAX_LINE_CHARACTERS:
        place = rest.rfind(" ", 0, MAX_LINE_CHARACTERS - len(lead))
        if place <= 0:
            break
        lines.append(f"{lead}{rest[:place]}")
        rest, lead = rest[place + 1 :], f"{indent}    "
    return "\n".join([*lines, f"{lead}{rest}"])
