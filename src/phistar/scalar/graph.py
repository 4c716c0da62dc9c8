# SPDX-License-Identifier: BSD-3-Clause
"""Scalar arithmetic as data: a hash-consed graph that folds and shares while it is built.

A number is either a Python ``float``, known when the program is made, or a ``Value``, known when it
runs. Arithmetic on the two mixes freely, so formulas are written once and whatever the robot's
constants decide disappears: zeros, ones, signs, products of constants.

    leaves          load  an input, a table entry or a workspace slot
    arithmetic      add  sub  mul  div  neg  sqrt  sin  cos  log
    tests           guard   the first operand where it exceeds the second, else not a number
                    select  the third operand where the first exceeds the second, else the fourth
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple, Union

from phistar.scalar.simplify import EQUAL_CONSTANTS_TOLERANCE, compile_rules
from phistar.spatial.reproducible_math import sincos

Scalar = Union[float, "Value"]

Node = tuple[Any, ...]
"""``("const", float)``, ``("load", Place)``, or an operation and the numbers of its operands."""

WORK, FORWARD, TABLE = "work", "forward", "table"
"""Spaces besides the names of inputs and outputs: numbers that are kept, numbers that links forward
to each other within one loop, and constants of a link."""

SlotKey = tuple[int | str, int]
"""What a kept number is called until it has a slot: a stream, or a name, and the number of an entry
of its values."""


class Place(NamedTuple):
    """Where a number is read.

    Attributes:
        space: Name of an input, or one of the other spaces.
        entry: Entry of the input or of the link's constants, or slot.
        base: What ``entry`` is counted from: ``""`` the row; in loops ``"q"``, ``"v"`` or
            ``"body"``, the link's own part of an input, ``"link"`` or ``"parent"``; in lines for
            rows of matrices ``"row"``, the row's own numbers.
    """

    space: str
    entry: int
    base: str = ""


class KeyedPlace(NamedTuple):
    """Where a kept number is read while it has no slot yet: at a link, or at its parent."""

    key: SlotKey
    base: str


LEAF_OPS = ("const", "load")
"""Nodes without operands."""

COUNTED_OPS = ("add", "sub", "mul", "div", "sqrt", "sin", "cos", "log", "select")
"""Operations that counts list; a change of sign is part of the next operation."""


class CancellingFloat(float):
    """A constant of a robot: a sum of which rounding alone is left is zero.

    Formulas fold while they are written down. What cancels there, cancels on every machine.
    """

    __slots__ = ()

    def __add__(self, other: Scalar) -> CancellingFloat:
        return _add_constants(self, other) if isinstance(other, float) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Scalar) -> CancellingFloat:
        return _add_constants(self, -other) if isinstance(other, float) else NotImplemented

    def __rsub__(self, other: Scalar) -> CancellingFloat:
        return _add_constants(other, -self) if isinstance(other, float) else NotImplemented

    def __mul__(self, other: Scalar) -> CancellingFloat:
        return (
            CancellingFloat(_float_mul(self, other)) if isinstance(other, float) else NotImplemented
        )

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar) -> CancellingFloat:
        return (
            CancellingFloat(_float_div(self, other)) if isinstance(other, float) else NotImplemented
        )

    def __rtruediv__(self, other: Scalar) -> CancellingFloat:
        return (
            CancellingFloat(_float_div(other, self)) if isinstance(other, float) else NotImplemented
        )

    def __neg__(self) -> CancellingFloat:
        return CancellingFloat(_float_neg(self))


_float_add, _float_neg, _float_mul, _float_div = (
    float.__add__,
    float.__neg__,
    float.__mul__,
    float.__truediv__,
)


def _add_constants(x: float, y: float) -> CancellingFloat:
    """x + y."""
    total = _float_add(x, y)
    return CancellingFloat(
        0.0 if abs(total) <= EQUAL_CONSTANTS_TOLERANCE * max(abs(x), abs(y)) else total
    )


class Graph:
    """Nodes ``(op, operands...)``, each once, operands before users.

    Attributes:
        nodes: Node tuples; operands are node numbers. ``("const", x)`` holds a number and
            ``("load", place)`` something given, where ``place`` says what.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        # Numbers, not values: those hold the graph, and it would wait for the garbage collector.
        self.table: dict[Node, int] = {}
        self._constants: dict[tuple[int, bool], list[tuple[float, int]]] = {}

    def intern(self, *node: object) -> Value:
        """The value of a node; with the same number for the same node."""
        number = self.table.get(node)
        if number is None:
            number = self.table[node] = len(self.nodes)
            self.nodes.append(node)
        return Value(self, number)

    def load(self, space: str, entry: int, base: str = "") -> Value:
        """Something given when the program runs, see ``Place``."""
        return self.intern("load", Place(space, entry, base))

    def load_key(self, key: SlotKey, base: str) -> Value:
        """A number that was kept, before it has a slot."""
        return self.intern("load", KeyedPlace(key, base))

    def loads(self, numbers: Iterable[int]) -> Iterator[tuple[int, Place]]:
        """Those of some nodes that are loads, and where they read."""
        nodes = self.nodes
        for number in numbers:
            node = nodes[number]
            if node[0] == "load" and isinstance(node[1], Place):
                yield number, node[1]

    def keyed_loads(self, numbers: Iterable[int]) -> Iterator[tuple[int, KeyedPlace]]:
        """The same for loads that have no slot yet."""
        nodes = self.nodes
        for number in numbers:
            node = nodes[number]
            if node[0] == "load" and isinstance(node[1], KeyedPlace):
                yield number, node[1]

    def as_value(self, x: Scalar) -> Value:
        """A scalar as a value, constants included."""
        return x if isinstance(x, Value) else self.constant(float(x))

    def constant(self, x: float) -> Value:
        """The value of a constant; that of an earlier one if they differ by rounding alone."""
        number = self.table.get(("const", x))
        if number is not None:
            # It was none of the earlier ones, so it is none of those that stand before it.
            return Value(self, number)
        if x == 0.0 or not math.isfinite(x):
            return self.intern("const", x)
        m, exponent = math.frexp(abs(x))
        # Consecutive numbers for intervals somewhat wider than NEAR, across powers of two.
        place, positive = (exponent << 46) + int((m - 0.5) * 2.0**47), x > 0.0
        for interval in (place, place - 1, place + 1):
            for known, number in self._constants.get((interval, positive), ()):
                if abs(known - x) <= EQUAL_CONSTANTS_TOLERANCE * abs(x):
                    return Value(self, number)
        value = self.intern("const", x)
        self._constants.setdefault((place, positive), []).append((x, value.id))
        return value

    def live_nodes(self, roots: Iterable[Value]) -> list[int]:
        """Numbers of the nodes that some values need, in order."""
        nodes = self.nodes
        live = bytearray(len(nodes))
        for root in roots:
            live[root.id] = 1
        # Operands come before their users: whoever needs a node is seen before it.
        for number in range(live.rfind(1), -1, -1):
            if live[number]:
                node = nodes[number]
                if len(node) == 3:
                    live[node[1]] = live[node[2]] = 1
                elif node[0] not in LEAF_OPS:
                    for operand in node[1:]:
                        live[operand] = 1
        return list(compress(range(len(nodes)), live))

    def count(self, roots: Iterable[Value]) -> Counter[str]:
        """How often each counted operation is needed for some values."""
        bill = Counter(self.nodes[number][0] for number in self.live_nodes(roots))
        return Counter({op: bill[op] for op in COUNTED_OPS if bill[op]})

    def count_fused(self, roots: Iterable[Value]) -> int:
        """How many operations are needed if a product that one sum reads is part of it."""
        live = self.live_nodes(roots)
        uses = Counter(n for number in live for n in operands(self.nodes[number]))
        total, taken = 0, set()
        for number in live:
            op, *parts = self.nodes[number]
            total += op in COUNTED_OPS or op == "neg"
            for part in parts if op in ("add", "sub") else ():
                if self.nodes[part][0] == "mul" and uses[part] == 1 and part not in taken:
                    taken.add(part)
                    total -= 1
                    break
        return total


def operands(node: Node) -> tuple[int, ...]:
    """The node numbers that a node uses."""
    return () if node[0] in LEAF_OPS else node[1:]


class Value:
    """A scalar that is known when the program runs."""

    __slots__ = ("graph", "id")

    def __init__(self, graph: Graph, number: int) -> None:
        self.graph = graph
        self.id = number

    @property
    def node(self) -> Node:
        """The node that defines it."""
        return self.graph.nodes[self.id]

    def __repr__(self) -> str:
        return f"<{self.id}: {' '.join(map(str, self.node))}>"

    def __neg__(self) -> Value:
        return _negate(self.graph, self.id)

    def __add__(self, other: Scalar) -> Scalar:
        if isinstance(other, Value):
            return _add(self.graph, self.id, other.id)
        return _add_constant(self, other)

    __radd__ = __add__

    def __sub__(self, other: Scalar) -> Scalar:
        other = -other
        if isinstance(other, Value):
            return _add(self.graph, self.id, other.id)
        return _add_constant(self, other)

    def __rsub__(self, other: float) -> Scalar:
        return _add_constant(-self, other)

    def __mul__(self, other: Scalar) -> Scalar:
        if isinstance(other, Value):
            return _multiply(self.graph, self.id, other.id)
        return _multiply_constant(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar) -> Scalar:
        if isinstance(other, Value):
            return _divide(self.graph, self.id, other.id)
        return _divide_by_constant(self, other)

    def __rtruediv__(self, other: float) -> Scalar:
        return _divide_constant(self.graph, other, self.id)


_FUNCTIONS = compile_rules({"Value": Value, "Constant": CancellingFloat})
_OfNode = Callable[[Graph, int], Value]
_OfNodes = Callable[[Graph, int, int], Scalar]
_OfValueAndConstant = Callable[[Value, float], Scalar]
_negate: _OfNode = _FUNCTIONS["neg_n"]
_sqrt: _OfNode = _FUNCTIONS["sqrt_n"]
_sin: _OfNode = _FUNCTIONS["sin_n"]
_cos: _OfNode = _FUNCTIONS["cos_n"]
_add: _OfNodes = _FUNCTIONS["add_nn"]
_add_constant: _OfValueAndConstant = _FUNCTIONS["add_nc"]
_multiply: _OfNodes = _FUNCTIONS["mul_nn"]
_multiply_constant: _OfValueAndConstant = _FUNCTIONS["mul_nc"]
_divide: _OfNodes = _FUNCTIONS["div_nn"]
_divide_by_constant: _OfValueAndConstant = _FUNCTIONS["div_nc"]
_divide_constant: Callable[[Graph, float, int], Scalar] = _FUNCTIONS["div_cn"]
_guard: _OfNodes = _FUNCTIONS["guard_nn"]
_guard_constant: _OfValueAndConstant = _FUNCTIONS["guard_nc"]


def sqrt(x: Scalar) -> Scalar:
    """Square root."""
    return _sqrt(x.graph, x.id) if isinstance(x, Value) else math.sqrt(x)


def guard(x: Scalar, least: Scalar) -> Scalar:
    """x where it is greater than a limit, else not a number; limits are for double precision."""
    if not isinstance(x, Value):
        return x
    if isinstance(least, Value):
        return _guard(x.graph, x.id, least.id)
    return _guard_constant(x, least)


def select(a: Scalar, b: Scalar, x: Scalar, y: Scalar) -> Scalar:
    """x where a > b, else y; complex numbers are compared by their real parts."""
    if x is y or (isinstance(x, Value) and isinstance(y, Value) and x.id == y.id):
        return x
    if isinstance(a, Value):
        g = a.graph
    elif isinstance(b, Value):
        g = b.graph
    else:
        return x if a > b else y
    return g.intern("select", *(g.as_value(each).id for each in (a, b, x, y)))


def log(x: Scalar) -> Scalar:
    """Natural logarithm of a number greater than zero."""
    return x.graph.intern("log", x.id) if isinstance(x, Value) else math.log(x)


def sin(x: Scalar) -> Scalar:
    """Sine."""
    return _sin(x.graph, x.id) if isinstance(x, Value) else sincos(x)[0]


def cos(x: Scalar) -> Scalar:
    """Cosine."""
    return _cos(x.graph, x.id) if isinstance(x, Value) else sincos(x)[1]


def runtime_values(scalars: Sequence[Scalar]) -> list[Value]:
    """The run-time ones among some scalars."""
    return [x for x in scalars if isinstance(x, Value)]
