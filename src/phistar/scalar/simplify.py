# SPDX-License-Identifier: BSD-3-Clause
"""Rules by which scalar expressions are simplified while a graph is built: one row per rule.

A row reads ``pattern -> result``. The first row that matches wins; what no row matches becomes a
node. In patterns

    x, y    are any nodes, the same one where the same letter stands twice
    c, d    are numbers known when the program is made; c + d and c * d are done at once
    0, 1    are these numbers, 1 up to rounding
    -d      is a negative number

Signs go outward, so that x - y and y - x are one node, and constants are collected.

Tracing a large robot makes some millions of nodes. The rows are therefore translated to Python, one
function per operation and kind of operands, in which rows that begin alike share their conditions.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

RULES = (
    "-(-x) -> x",
    # sums of nodes; those without signs come last
    "-x + -y -> -(x + y)",
    "-x + x -> 0",
    "-x + y -> y - x",
    "x + -x -> 0",
    "x + -y -> x - y",
    "x + x -> 2 * x",
    "x + (y - x) -> y",
    "(y - x) + x -> y",
    # differences, which are made of sums: neither operand has a sign
    "(x + y) - x -> y",
    "(y + x) - x -> y",
    "x - (x + y) -> -y",
    "x - (y + x) -> -y",
    "x - (x - y) -> y",
    # sums with numbers
    "x + 0 -> x",
    "(x + c) + d -> x + (c + d)",
    # products
    "-x * y -> -(x * y)",
    "x * -y -> -(x * y)",
    "x * 0 -> 0",
    "x * 1 -> x",
    "-x * d -> x * -d",
    "(x * c) * d -> x * (c * d)",
    "x * -d -> -(x * d)",
    # quotients
    "x / d -> x * (1 / d)",
    "0 / x -> 0",
    # functions
    "sin(-x) -> -sin(x)",
    "cos(-x) -> cos(x)",
    "guard(x, 0) -> x",
)

EQUAL_CONSTANTS_TOLERANCE = 16 * sys.float_info.epsilon
"""Relative distance of constants that count as equal: folding rounds them, and what is shared must
not depend on rounding. Links come with equal numbers where they are equal, see ``rounding``."""

COMMUTATIVE_OPS = ("add", "mul")
"""Their operands are ordered: constants last, otherwise by number."""
ANTICOMMUTATIVE_OPS = ("sub",)
"""x - y is -(y - x) where y - x is there already."""

FUNCTIONS = {
    "neg": ("n",), "sqrt": ("n",), "sin": ("n",), "cos": ("n",),
    "add": ("nn", "nc"), "sub": ("nn",), "mul": ("nn", "nc"),
    "div": ("nn", "nc", "cn"), "guard": ("nn", "nc"),
}  # fmt: skip
"""For each operation the kinds of operands for which there is a function: (n)ode or (c)onstant."""

_AST_OPS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.USub: "neg",
}  # fmt: skip
_CONSTANTS = ("c", "d")
_OPERANDS = ("a", "b")
_NODES = ("m", "n")


def compile_rules(names: Mapping[str, object], rules: Iterable[str] = RULES) -> dict[str, Any]:
    """Functions that apply rules, by name.

    ``mul_nn(graph, a, b)`` takes numbers of nodes, as do those of one node; ``div_cn(graph, c, b)``
    a constant first; ``mul_nc(x, c)`` takes a value, which is what it often gives back.

    Args:
        names: What the functions use: ``Value``, made of a graph and a number; ``Constant``, a
            float whose sums cancel.
        rules: The rows, in the order in which they are tried.
    """
    matches: dict[tuple[str, str], list[_Match]] = {
        (op, kinds): [] for op, each in FUNCTIONS.items() for kinds in each
    }
    for rule in rules:
        match = _Match(rule)
        matches[match.op, match.kinds].append(match)
    source = "\n".join(_function(*key, found) for key, found in matches.items())
    scope = dict(names)
    exec(compile(source, "<scalar.simplify.RULES>", "exec"), scope)
    return {f"{op}_{kinds}": scope[f"{op}_{kinds}"] for op, kinds in matches}


def _function(op: str, kinds: str, matches: Sequence[_Match]) -> str:
    """The source of a function: its rules, then the node that is made if none matches."""
    operands = list(zip(_OPERANDS, _NODES, kinds, strict=False))
    head = "x, b" if kinds == "nc" else ", ".join(["g", *(a for a, _, _ in operands)])
    lines = [f"def {op}_{kinds}({head}):"]
    lines += ["    g, a = x.graph, x.id"] if kinds == "nc" else []
    lines += ["    nodes = g.nodes"]
    lines += [f"    {node} = nodes[{a}]" for a, node, kind in operands if kind == "n"]
    lines += _branches([(match.conditions, match.result) for match in matches], 1)
    if kinds == "nn" and op in COMMUTATIVE_OPS:
        lines += ['    if m[0] == "const" or (a > b and n[0] != "const"):', "        a, b = b, a"]
    if op in ANTICOMMUTATIVE_OPS:
        lines += [
            f'    known = g.table.get(("{op}", b, a))',
            "    if known is not None:",
            "        return neg_n(g, known)",
        ]
    numbers = (a if kind == "n" else f"g.constant(float({a})).id" for a, _, kind in operands)
    lines += [f'    node = ("{op}", {", ".join(numbers)})', *_INTERN_NODE]
    return "\n".join(lines)


_INTERN_NODE = (
    "    number = g.table.get(node)",
    "    if number is None:",
    "        number = g.table[node] = len(nodes)",
    "        nodes.append(node)",
    "    return Value(g, number)",
)
"""``Graph.intern`` without a call."""


def _branches(rows: Sequence[tuple[Sequence[str], str]], depth: int) -> Iterator[str]:
    """Conditions as nested ``if``; neighbours that begin with the same one share it."""
    for first, group in groupby(rows, lambda row: row[0][0] if row[0] else ""):
        same = list(group)
        if not first:
            yield f"{'    ' * depth}return {same[0][1]}"
            return
        yield f"{'    ' * depth}if {first}:"
        yield from _branches([(conditions[1:], result) for conditions, result in same], depth + 1)


class _Match:
    """A rule as conditions on operands and the source of its result.

    Attributes:
        op, kinds: The function it belongs to.
        conditions: Source of what must hold.
        result: Source of the result.
    """

    def __init__(self, rule: str) -> None:
        pattern, result = (ast.parse(side.strip(), mode="eval").body for side in rule.split("->"))
        self._shapes: list[str] = []
        self._equalities: list[str] = []
        self._places: dict[str, str] = {}
        self.op, operands = _application(pattern)
        self.kinds = "".join("c" if _is_constant(each) else "n" for each in operands)
        for i, operand in enumerate(operands):
            if self.kinds[i] == "c":
                self._match_constant(operand, _OPERANDS[i])
            else:
                self._match_node(operand, _OPERANDS[i], _NODES[i])
        self.conditions = [*self._shapes, *self._equalities]
        self.result = self._scalar(result)

    def _match_constant(self, pattern: ast.expr, place: str) -> None:
        if isinstance(pattern, ast.Name):
            self._places[pattern.id] = f"float({place})"
        elif isinstance(pattern, ast.UnaryOp) and isinstance(pattern.operand, ast.Name):
            self._equalities.append(f"{place} < 0.0")
            self._places[pattern.operand.id] = f"-{place}"
        else:
            number = float(ast.literal_eval(pattern))
            reach = EQUAL_CONSTANTS_TOLERANCE * abs(number)
            near = f"{number - reach!r} <= {place} <= {number + reach!r}"
            self._equalities.append(near if number else f"{place} == 0.0")

    def _match_node(self, pattern: ast.expr, place: str, node: str = "") -> None:
        if isinstance(pattern, ast.Name) and pattern.id in _CONSTANTS:
            self._equalities.append(f'nodes[{place}][0] == "const"')
            self._places[pattern.id] = f"Constant(nodes[{place}][1])"
        elif isinstance(pattern, ast.Name):
            if self._places.setdefault(pattern.id, place) != place:
                self._equalities.append(f"{place} == {self._places[pattern.id]}")
        else:
            op, operands = _application(pattern)
            self._shapes.append(f'{node}[0] == "{op}"')
            for i, operand in enumerate(operands, 1):
                self._match_node(operand, f"{node}[{i}]")

    def _scalar(self, result: ast.expr) -> str:
        """The source of a result."""
        if _is_constant(result):
            return self._number(result)
        if isinstance(result, ast.Name):
            return self._value(result)
        op, operands = _application(result)
        if op == "neg" and not isinstance(operands[0], ast.Name):
            return f"-{self._scalar(operands[0])}"
        if _is_constant(operands[0]) and op in COMMUTATIVE_OPS:
            operands = operands[::-1]
        kinds = "".join("c" if _is_constant(each) else "n" for each in operands)
        if kinds == "nc":
            return f"{op}_nc({self._value(operands[0])}, {self._number(operands[1])})"
        places = (self._places[each.id] for each in operands if isinstance(each, ast.Name))
        return f"{op}_{kinds}(g, {', '.join(places)})"

    def _value(self, name: ast.expr) -> str:
        """The source of a value that a name stands for."""
        assert isinstance(name, ast.Name)
        place = self._places[name.id]
        return "x" if (self.kinds, place) == ("nc", "a") else f"Value(g, {place})"

    def _number(self, x: ast.expr) -> str:
        """The source of an expression in constants."""
        return ast.unparse(_Substitution(self._places).visit(x))


class _Substitution(ast.NodeTransformer):
    """Puts places for names and floats for integers."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self.places = places

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.parse(self.places[node.id], mode="eval").body

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Constant(float(ast.literal_eval(node)))


def _application(pattern: ast.expr) -> tuple[str, list[ast.expr]]:
    """The operation of an expression, and its operands."""
    if isinstance(pattern, ast.BinOp):
        return _AST_OPS[type(pattern.op)], [pattern.left, pattern.right]
    if isinstance(pattern, ast.UnaryOp):
        return _AST_OPS[type(pattern.op)], [pattern.operand]
    assert isinstance(pattern, ast.Call)
    assert isinstance(pattern.func, ast.Name)
    return pattern.func.id, pattern.args


def _is_constant(pattern: ast.expr) -> bool:
    names = [node.id for node in ast.walk(pattern) if isinstance(node, ast.Name)]
    return all(name in _CONSTANTS for name in names) and not isinstance(pattern, ast.Call)
