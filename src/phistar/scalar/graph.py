# SPDX-License-Identifier: BSD-3-Clause
"""Scalar arithmetic as data: a hash-consed graph that folds and shares while it is built.

A number is either a Python ``float``, known when the program is made, or a ``Value``, known when it
runs. Arithmetic on the two mixes freely, so formulas are written once and whatever the robot's
constants decide disappears: zeros, ones, signs, products of constants.

    leaves          load  an input, a table entry or a workspace slot
    arithmetic      add  sub  mul  div  neg  sqrt  sin  cos
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Union

Scalar = Union[float, "Value"]

COUNTED = ("add", "sub", "mul", "div", "sqrt", "sin", "cos")
"""Operations that a bill lists; changes of sign ride along in the next operation."""


class Graph:
    """Nodes ``(op, operands...)``, each once, operands before users.

    Attributes:
        nodes: Node tuples; operands are node numbers. ``("const", x)`` holds a number and
            ``("load", key)`` something given, where ``key`` says what.
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[Any, ...]] = []
        self._table: dict[tuple[Any, ...], Value] = {}

    def node(self, *node: Any) -> Value:
        """The value of a node; the same one for the same node."""
        found = self._table.get(node)
        if found is None:
            found = self._table[node] = Value(self, len(self.nodes))
            self.nodes.append(node)
        return found

    def load(self, *key: Any) -> Value:
        """Something given when the program runs."""
        return self.node("load", key)

    def number(self, x: Scalar) -> Value:
        """A scalar as a value, constants included."""
        return x if isinstance(x, Value) else self.node("const", float(x))

    def live(self, roots: Iterable[Value]) -> list[int]:
        """Numbers of the nodes that some values need, in order."""
        seen = set()
        stack = [root.id for root in roots]
        while stack:
            number = stack.pop()
            if number not in seen:
                seen.add(number)
                stack.extend(operands(self.nodes[number]))
        return sorted(seen)

    def count(self, roots: Iterable[Value]) -> Counter[str]:
        """How often each counted operation is needed for some values."""
        bill = Counter(self.nodes[number][0] for number in self.live(roots))
        return Counter({op: bill[op] for op in COUNTED if bill[op]})

    def fused(self, roots: Iterable[Value]) -> int:
        """How many operations are needed if a product that one sum reads is part of it."""
        live = self.live(roots)
        uses = Counter(n for number in live for n in operands(self.nodes[number]))
        total, taken = 0, set()
        for number in live:
            op, *parts = self.nodes[number]
            total += op in COUNTED or op == "neg"
            for part in parts if op in ("add", "sub") else ():
                if self.nodes[part][0] == "mul" and uses[part] == 1 and part not in taken:
                    taken.add(part)
                    total -= 1
                    break
        return total


def operands(node: tuple[Any, ...]) -> tuple[int, ...]:
    """The node numbers that a node uses."""
    return () if node[0] in ("const", "load") else node[1:]


class Value:
    """A scalar that is known when the program runs."""

    __slots__ = ("graph", "id")

    def __init__(self, graph: Graph, number: int) -> None:
        self.graph = graph
        self.id = number

    @property
    def node(self) -> tuple[Any, ...]:
        """The node that defines it."""
        return self.graph.nodes[self.id]

    def __repr__(self) -> str:
        return f"<{self.id}: {' '.join(map(str, self.node))}>"

    def __neg__(self) -> Value:
        node = self.node
        if node[0] == "neg":
            return Value(self.graph, node[1])
        return self.graph.node("neg", self.id)

    def __add__(self, other: Scalar) -> Scalar:
        return _add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Scalar) -> Scalar:
        return _add(self, -other)

    def __rsub__(self, other: Scalar) -> Scalar:
        return _add(-self, other)

    def __mul__(self, other: Scalar) -> Scalar:
        return _mul(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar) -> Scalar:
        return _div(self, other)

    def __rtruediv__(self, other: Scalar) -> Scalar:
        return _div(other, self)


def _unsigned(x: Value) -> tuple[bool, int]:
    node = x.node
    return (True, node[1]) if node[0] == "neg" else (False, x.id)


def _add(x: Value, y: Scalar) -> Scalar:
    g = x.graph
    if not isinstance(y, Value):
        if y == 0.0:
            return x
        node = x.node
        if node[0] == "add" and g.nodes[node[2]][0] == "const":
            # Constants stand last: (a + c) + y = a + (c + y).
            return _add(Value(g, node[1]), float(g.nodes[node[2]][1] + y))
        return g.node("add", x.id, g.number(y).id)
    (negative_x, a), (negative_y, b) = _unsigned(x), _unsigned(y)
    if a == b:
        if negative_x != negative_y:
            return 0.0
        twice = 2.0 * Value(g, a)
        return -twice if negative_x else twice
    if negative_x and negative_y:
        return -_sorted_add(g, a, b)
    if not negative_x and not negative_y:
        return _sorted_add(g, a, b)
    plus, minus = (b, a) if negative_x else (a, b)
    return _sub(g, plus, minus)


def _sorted_add(g: Graph, a: int, b: int) -> Scalar:
    for one, other in ((a, b), (b, a)):
        node = g.nodes[other]
        if node[0] == "sub" and node[2] == one:
            # x + (y - x) = y
            return Value(g, node[1])
    return g.node("add", *_ordered(g, a, b))


def _ordered(g: Graph, a: int, b: int) -> tuple[int, int]:
    """Operands of a commutative operation: constants last, otherwise by number."""
    if g.nodes[a][0] == "const":
        return b, a
    if g.nodes[b][0] == "const" or a < b:
        return a, b
    return b, a


def _sub(g: Graph, a: int, b: int) -> Scalar:
    first, second = g.nodes[a], g.nodes[b]
    if first[0] == "add" and b in first[1:]:
        return Value(g, first[2] if first[1] == b else first[1])
    if second[0] == "add" and a in second[1:]:
        return -Value(g, second[2] if second[1] == a else second[1])
    if second[0] == "sub" and second[1] == a:
        return Value(g, second[2])
    known = g._table.get(("sub", b, a))
    return -known if known is not None else g.node("sub", a, b)


def _mul(x: Value, y: Scalar) -> Scalar:
    g = x.graph
    if not isinstance(y, Value):
        if y == 0.0:
            return 0.0
        if y == 1.0:
            return x
        if y == -1.0:
            return -x
        negative, a = _unsigned(x)
        factor = -y if negative else y
        node = g.nodes[a]
        if node[0] == "mul" and g.nodes[node[2]][0] == "const":
            return _mul(Value(g, node[1]), float(g.nodes[node[2]][1] * factor))
        product = g.node("mul", a, g.node("const", abs(factor)).id)
        return -product if factor < 0.0 else product
    (negative_x, a), (negative_y, b) = _unsigned(x), _unsigned(y)
    product = g.node("mul", *_ordered(g, a, b))
    return -product if negative_x != negative_y else product


def _div(x: Scalar, y: Scalar) -> Scalar:
    if not isinstance(y, Value):
        return x * (1.0 / y)
    if not isinstance(x, Value):
        if x == 0.0:
            return 0.0
        return y.graph.node("div", y.graph.number(x).id, y.id)
    return x.graph.node("div", x.id, y.id)


def sqrt(x: Scalar) -> Scalar:
    """Square root."""
    return x.graph.node("sqrt", x.id) if isinstance(x, Value) else math.sqrt(x)


def sin(x: Scalar) -> Scalar:
    """Sine."""
    return _odd_even("sin", x, math.sin)


def cos(x: Scalar) -> Scalar:
    """Cosine."""
    return _odd_even("cos", x, math.cos)


def _odd_even(op: str, x: Scalar, known: Any) -> Scalar:
    if not isinstance(x, Value):
        return float(known(x))
    negative, a = _unsigned(x)
    result = x.graph.node(op, a)
    return -result if negative and op == "sin" else result


def values(scalars: Sequence[Scalar]) -> list[Value]:
    """The run-time ones among some scalars."""
    return [x for x in scalars if isinstance(x, Value)]
