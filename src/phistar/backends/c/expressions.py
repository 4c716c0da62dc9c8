# SPDX-License-Identifier: BSD-3-Clause
"""Scalar operations as C statements: one local constant for each value that is used twice.

A value that is used once stands inside the expression that uses it, as long as that stays short;
brackets keep the order of the operations, so the result has the bits of the scalar program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phistar.backends.c.text import WIDTH, Names, Real
from phistar.scalar.graph import Graph, Value, operands

SHORT = 3
"""Operations that an expression may have and still stand inside another one."""

_SUM, _PRODUCT, _SIGNED, _ATOM = 1, 2, 3, 4
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


@dataclass(frozen=True)
class Text:
    """An expression: how it is written, how tightly it binds, how many operations it has."""

    text: str
    binds: int = _ATOM
    size: int = 0

    def inside(self, binds: int) -> str:
        """With brackets where something binds at least as tightly as told."""
        return self.text if self.binds >= binds else f"({self.text})"


def constant(x: float, real: Real) -> Text:
    """A number."""
    text = real.literal(x)
    return Text(text, _SIGNED if text.startswith("-") else _ATOM)


def _binary(op: str, a: Text, b: Text) -> Text:
    binds = _SUM if op in ("add", "sub") else _PRODUCT
    sign, right = _SIGNS[op], b
    if op in ("add", "sub") and b.text.startswith("-") and b.binds == _SIGNED and not b.size:
        # x + (-2.0) = x - 2.0, to the bit.
        sign, right = "+" if op == "sub" else "-", Text(b.text[1:])
    second = right.inside(binds + 1)
    if second.startswith("-"):
        second = f"({second})"
    return Text(f"{a.inside(binds)} {sign} {second}", binds, a.size + b.size + 1)


def combined(node: tuple[Any, ...], known: Sequence[Text], real: Real) -> Text:
    """The expression of an operation on others."""
    op = node[0]
    if op == "neg":
        return Text(f"-{known[0].inside(_ATOM)}", _SIGNED, known[0].size + 1)
    if op in _SIGNS:
        return _binary(op, *known)
    return Text(f"{real.function(op)}({known[0].text})", _ATOM, known[0].size + 1)


class Writer:
    """Statements for the values of one body, operands first.

    Args:
        graph: Their graph.
        needed: Numbers of the values that statements are wanted for, operands first.
        kept: How often each value is used other than as an operand.
        real: Precision.
        names: Identifiers of the scope.
        load: What a load reads, as (C expression, wished name).
        given: Where values stand that are read instead of computed.
    """

    def __init__(
        self,
        graph: Graph,
        needed: Sequence[int],
        kept: Counter[int],
        real: Real,
        names: Names,
        load: Callable[..., tuple[str, str]],
        given: Mapping[int, str] | None = None,
    ) -> None:
        self.graph = graph
        self.needed = needed
        self.real = real
        self.names = names
        self.load = load
        self.given = given or {}
        self.kept = kept
        self.uses: Counter[int] = Counter(kept)
        for number in needed:
            if number not in self.given:
                self.uses.update(operands(graph.nodes[number]))
        self.texts: dict[int, Text] = {}
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
        return constant(value, self.real).text

    def _statement(self, number: int) -> str:
        if number in self.given:
            return self._named(number, "", self.given[number])
        node = self.graph.nodes[number]
        if node[0] == "const":
            self.texts[number] = constant(node[1], self.real)
            return ""
        if node[0] == "load":
            source, wish = self.load(*node[1])
            return self._named(number, wish, source)
        text = combined(node, [self.texts[i] for i in operands(node)], self.real)
        if node[0] in ("sin", "cos"):
            angle = self.texts[node[1]]
            wish = f"{node[0]}_{angle.text}" if angle.text.isidentifier() else ""
            return self._named(number, wish, text.text)
        if self.uses[number] == 1 and not self.kept[number] and text.size <= SHORT:
            self.texts[number] = text
            return ""
        return self._named(number, "", text.text)

    def _named(self, number: int, wish: str, text: str) -> str:
        if not wish:
            self._count += 1
            wish = f"t{self._count}"
        name = self.names.take(wish)
        self.texts[number] = Text(name)
        return f"const {self.real.type} {name} = {text};"


def folded(statement: str, indent: str) -> str:
    """A statement on lines of decent length, broken between tokens."""
    lines, rest, lead = [], statement, indent
    while len(lead) + len(rest) > WIDTH:
        place = rest.rfind(" ", 0, WIDTH - len(lead))
        if place <= 0:
            break
        lines.append(f"{lead}{rest[:place]}")
        rest, lead = rest[place + 1 :], f"{indent}    "
    return "\n".join([*lines, f"{lead}{rest}"])
