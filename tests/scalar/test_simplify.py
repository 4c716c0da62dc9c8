# SPDX-License-Identifier: BSD-3-Clause
"""Rules of simplification: each is true, gives its right side, and is needed."""

import math
from dataclasses import dataclass

import pytest

from phistar.scalar.graph import CancellingFloat, Graph, Scalar, Value, cos, guard, sin
from phistar.scalar.simplify import RULES, compile_rules

NUMBERS = {"x": 0.7, "y": -1.3, "c": 2.5, "d": 0.3}


def sides(rule: str) -> tuple[str, str]:
    """The texts left and right of the arrow."""
    left, right = rule.split("->")
    return left.strip(), right.strip()


def same(a: Scalar, b: Scalar) -> bool:
    """Whether two scalars are one node, or one number."""
    if isinstance(a, Value) or isinstance(b, Value):
        return isinstance(a, Value) and isinstance(b, Value) and a.id == b.id
    return a == b


@pytest.mark.parametrize("rule", RULES)
def test_both_sides_are_the_same_number(rule: str) -> None:
    """A rule holds for numbers."""
    names = {"sin": math.sin, "cos": math.cos, "guard": guard, **NUMBERS}
    left, right = (eval(side, names) for side in sides(rule))
    assert left == pytest.approx(right, rel=1e-15, abs=1e-15)


@pytest.mark.parametrize("rule", RULES)
def test_the_left_side_becomes_the_right_side(rule: str) -> None:
    """Written as formulas on a graph, both sides are the same node."""
    g = Graph()
    names = {"sin": sin, "cos": cos, "guard": guard, **NUMBERS}
    names |= {name: g.load("x", i) for i, name in enumerate("xy")}
    assert same(*(eval(side, names) for side in sides(rule)))


@dataclass(frozen=True)
class Formula:
    """A scalar whose arithmetic follows some of the rules."""

    value: Scalar
    functions: dict

    def __neg__(self):
        return self._call("neg")

    def __add__(self, other):
        return self._call("add", other)

    def __sub__(self, other):
        return self._call("sub", other)

    def __mul__(self, other):
        return self._call("mul", other)

    def __rmul__(self, other):
        return self._call("mul", other)

    def __truediv__(self, other):
        return self._call("div", other)

    def __rtruediv__(self, other):
        value = self.functions["div_cn"](self.value.graph, other, self.value.id)
        return Formula(value, self.functions)

    def _call(self, op, *others):
        x = self.value
        if not isinstance(x, Value):
            assert op == "neg"
            return Formula(-x, self.functions)
        if others and not isinstance(others[0], Formula):
            return Formula(self.functions[f"{op}_nc"](x, others[0]), self.functions)
        numbers = [x.id, *(other.value.id for other in others)]
        return Formula(
            self.functions[f"{op}_{'n' * len(numbers)}"](x.graph, *numbers), self.functions
        )


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_follows_from_the_others(rule: str) -> None:
    """Without it, the left side is another node."""
    names = {"Value": Value, "Constant": CancellingFloat}
    functions = compile_rules(names, [each for each in RULES if each != rule])
    assert any(differs(rule, functions, order) for order in ("xy", "yx"))


def differs(rule: str, functions: dict, order: str) -> bool:
    """Whether both sides are different nodes if x and y were met in a certain order."""
    g = Graph()
    scope = {
        **NUMBERS,
        **{name: Formula(g.load(name, 0), functions) for name in order},
        "sin": lambda x: x._call("sin"),
        "cos": lambda x: x._call("cos"),
        "guard": lambda x, least: x._call("guard", least),
    }
    left, right = (eval(side, scope) for side in sides(rule))
    return not same(left.value, right.value if isinstance(right, Formula) else float(right))


def test_an_operation_that_is_there_the_other_way_round_is_not_made_again() -> None:
    """x - y and y - x are one node and a change of sign."""
    g = Graph()
    x, y = g.load("x", 0), g.load("x", 1)
    assert same(x - y, -(y - x))
