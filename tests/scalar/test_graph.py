# SPDX-License-Identifier: BSD-3-Clause
"""Arithmetic that folds while it is built: each rule is right, and leaves what it promises."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phistar.scalar.graph import (
    Graph,
    Scalar,
    Value,
    cos,
    log,
    operands,
    runtime_values,
    select,
    sin,
    sqrt,
)
from phistar.scalar.interpret import run
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled

Formula = Callable[[Any, Any, Any], Any]
"""Of three numbers, symbols or floats."""

RULES: dict[str, tuple[Formula, str]] = {
    "x + 0": (lambda x, y, z: x + 0.0, ""),
    "0 + x": (lambda x, y, z: 0.0 + x, ""),
    "x - 0": (lambda x, y, z: x - 0.0, ""),
    "0 - x": (lambda x, y, z: 0.0 - x, ""),
    "x * 0": (lambda x, y, z: x * 0.0, ""),
    "x * 1": (lambda x, y, z: 1.0 * x, ""),
    "x * -1": (lambda x, y, z: -1.0 * x, ""),
    "x / 1": (lambda x, y, z: x / 1.0, ""),
    "0 / x": (lambda x, y, z: 0.0 / x, ""),
    "-(-x)": (lambda x, y, z: operator.neg(-x), ""),
    "x - x": (lambda x, y, z: x - x, ""),
    "-x + x": (lambda x, y, z: -x + x, ""),
    "x + x": (lambda x, y, z: x + x, "mul"),
    "-x - x": (lambda x, y, z: -x - x, "mul"),
    "x + -y": (lambda x, y, z: x + -y, "sub"),
    "-x + y": (lambda x, y, z: -x + y, "sub"),
    "-x - y": (lambda x, y, z: -x - y, "add"),
    "x - -y": (lambda x, y, z: x - -y, "add"),
    "x + (y - x)": (lambda x, y, z: x + (y - x), ""),
    "(y - x) + x": (lambda x, y, z: (y - x) + x, ""),
    "(x + y) - y": (lambda x, y, z: (x + y) - y, ""),
    "(x + y) - x": (lambda x, y, z: (x + y) - x, ""),
    "x - (x + y)": (lambda x, y, z: x - (x + y), ""),
    "y - (x + y)": (lambda x, y, z: y - (x + y), ""),
    "x - (x - y)": (lambda x, y, z: x - (x - y), ""),
    "(x - y) + (y - x)": (lambda x, y, z: (x - y) + (y - x), ""),
    "(x - y) * (y - x)": (lambda x, y, z: (x - y) * (y - x), "sub mul"),
    "x y + y x": (lambda x, y, z: x * y + y * x, "mul mul"),
    "(-x)(-y)": (lambda x, y, z: -x * -y, "mul"),
    "(-x) y": (lambda x, y, z: -x * y, "mul"),
    "x (-y) + x y": (lambda x, y, z: x * -y + x * y, ""),
    "2 (3 x)": (lambda x, y, z: 2.0 * (3.0 * x), "mul"),
    "-2 (3 x)": (lambda x, y, z: -2.0 * (3.0 * x), "mul"),
    "0.5 (2 x)": (lambda x, y, z: 0.5 * (2.0 * x), ""),
    "2 x - 2 x": (lambda x, y, z: 2.0 * x + -2.0 * x, ""),
    "(x + 1) + 2": (lambda x, y, z: (x + 1.0) + 2.0, "add"),
    "(x + 1) - 1": (lambda x, y, z: (x + 1.0) - 1.0, ""),
    "3 - x": (lambda x, y, z: 3.0 - x, "add"),
    "x / 4": (lambda x, y, z: x / 4.0, "mul"),
    "x / y": (lambda x, y, z: x / y, "div"),
    "2 / y": (lambda x, y, z: 2.0 / y, "div"),
    "-x / -y": (lambda x, y, z: -x / -y, "div"),
    "sin(-x)": (lambda x, y, z: sin(-x), "sin"),
    "cos(-x)": (lambda x, y, z: cos(-x), "cos"),
    "sin(-x) + sin(x)": (lambda x, y, z: sin(-x) + sin(x), ""),
    "cos(-x) - cos(x)": (lambda x, y, z: cos(-x) - cos(x), ""),
    "sin(y - x) + sin(x - y)": (lambda x, y, z: sin(y - x) + sin(x - y), ""),
    "sqrt(x x)": (lambda x, y, z: sqrt(x * x), "mul sqrt"),
    "log(x x)": (lambda x, y, z: log(x * x), "log mul"),
    "z if x > y else 1": (lambda x, y, z: select(x, y, z, 1.0), "select"),
    "z if 1 > y else y": (lambda x, y, z: select(1.0, y, z, y), "select"),
    "z if x > y else z": (lambda x, y, z: select(x, y, z, z), ""),
    "y if 2 > 1 else z": (lambda x, y, z: select(2.0, 1.0, y, z), ""),
    "x y - z x": (lambda x, y, z: x * y - z * x, "mul mul sub"),
}
"""Formulas, and the operations that their values need."""


def symbols(graph: Graph) -> list[Value]:
    """Three inputs."""
    return [graph.load("x", i) for i in range(3)]


def evaluate(graph: Graph, result: Scalar, numbers: np.ndarray) -> np.ndarray:
    """A scalar for inputs (batch, 3)."""
    body = BasicBlock(graph, [Store("y", 0, "", result)])
    return run(Unrolled(Signature({"x": 3}, {"y": 1}), body), {"x": numbers})["y"][:, 0]


SIGNS = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)], float)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_right(name: str) -> None:
    """The folded formula has the formula's value for numbers of every sign; 8 ulp of its terms."""
    formula, _ = RULES[name]
    numbers = SIGNS * np.random.default_rng(1).uniform(0.1, 10, (50, 8, 3))
    numbers = numbers.reshape(-1, 3)
    graph = Graph()
    result = formula(*symbols(graph))
    expected = np.array([formula(*map(float, row)) for row in numbers])
    got = evaluate(graph, result, numbers)
    np.testing.assert_allclose(got, expected, rtol=0, atol=8 * 2.3e-16 * 100)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_folds(name: str) -> None:
    """Just the operations listed are left, and none where none is needed."""
    formula, needed = RULES[name]
    graph = Graph()
    result = formula(*symbols(graph))
    left = graph.count([result] if isinstance(result, Value) else [])
    assert sorted(left.elements()) == sorted(needed.split())


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (lambda x, y: x + (y - x), lambda x, y: y),
        (lambda x, y: (x + y) - y, lambda x, y: x),
        (lambda x, y: y - (x + y), lambda x, y: -x),
        (lambda x, y: x - (x - y), lambda x, y: y),
        (lambda x, y: x - x, lambda x, y: 0.0),
        (lambda x, y: (x - y) + (y - x), lambda x, y: 0.0),
        (lambda x, y: 0.5 * (2.0 * x), lambda x, y: x),
        (lambda x, y: (x + 1.5) - 1.5, lambda x, y: x),
        (lambda x, y: -0.25 * (-4.0 * x), lambda x, y: x),
        (lambda x, y: y * x, lambda x, y: x * y),
        (lambda x, y: y + x, lambda x, y: x + y),
        (lambda x, y: y - x, lambda x, y: -(x - y)),
        (lambda x, y: sin(y - x), lambda x, y: -sin(x - y)),
        (lambda x, y: x * 0.0, lambda x, y: 0.0),
    ],
)
def test_equal_formulas_are_one_node(
    formula: Callable[[Any, Any], Scalar], expected: Callable[[Any, Any], Scalar]
) -> None:
    """Sharing: the same number is the same node, however it is written."""
    graph = Graph()
    x, y, _ = symbols(graph)
    wanted, got = expected(x, y), formula(x, y)
    if isinstance(wanted, Value):
        assert isinstance(got, Value)
        assert got.node == wanted.node
        assert got.id == wanted.id
    else:
        assert got == wanted


def test_constants_stay_python_floats() -> None:
    """Functions of known numbers are known, to the bit."""
    assert sqrt(2.0) == math.sqrt(2.0)
    assert (sin(0.3), cos(0.3)) == (math.sin(0.3), math.cos(0.3))
    assert isinstance(sin(0.3), float)
    assert log(2.0) == math.log(2.0)
    assert (select(1.0, 0.0, 3.0, 4.0), select(1.0, 1.0, 3.0, 4.0)) == (3.0, 4.0)
    graph = Graph()
    assert graph.as_value(3.0).node == ("const", 3.0)
    x = graph.load("x", 0)
    assert runtime_values([1.0, x, 2.0]) == [x]


def test_count_and_live() -> None:
    """Only what roots need counts, each node once, changes of sign not at all."""
    graph = Graph()
    x, y, z = symbols(graph)
    product = x * y
    _unused = z / x
    root = -(product + z) * product
    assert isinstance(root, Value)
    assert dict(graph.count([root])) == {"mul": 2, "add": 1}
    live = graph.live_nodes([root])
    assert live == sorted(live)
    assert all(set(operands(graph.nodes[n])) <= set(live) for n in live)
    assert dict(graph.count([root, root])) == {"mul": 2, "add": 1}


# -- random formulas

LEAVES = st.one_of(
    st.sampled_from(["x", "y", "z"]),
    st.sampled_from([0.0, 1.0, -1.0, 2.0, -0.5, 0.25, 3.0]),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.tuples(st.sampled_from("+-*"), inner, inner) | st.tuples(st.just("n"), inner),
    max_leaves=25,
)
OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "n": operator.neg,
}


def _build(tree: Any, names: dict[str, Any]) -> Any:
    if isinstance(tree, tuple):
        return OPERATIONS[tree[0]](*(_build(branch, names) for branch in tree[1:]))
    return names[tree] if isinstance(tree, str) else tree


@given(TREES, st.tuples(*[st.integers(-3, 3)] * 3))
def test_random_formulas_are_exact(tree: Any, numbers: tuple[int, int, int]) -> None:
    """On small dyadic numbers nothing rounds, so the folded formula must agree exactly."""
    graph = Graph()
    result = _build(tree, dict(zip("xyz", symbols(graph), strict=True)))
    expected = _build(tree, dict(zip("xyz", map(float, numbers), strict=True)))
    if abs(expected) > 2.0**40:
        return
    got = evaluate(graph, result, np.array([numbers], float))
    assert got[0] == expected


@given(TREES)
def test_no_formula_costs_more_folded(tree: Any) -> None:
    """Operations in the graph are at most those written down."""

    def written(t: Any) -> int:
        return (t[0] != "n") + sum(map(written, t[1:])) if isinstance(t, tuple) else 0

    graph = Graph()
    result = _build(tree, dict(zip("xyz", symbols(graph), strict=True)))
    if isinstance(result, Value):
        assert sum(graph.count([result]).values()) <= written(tree)
