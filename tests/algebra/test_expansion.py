# SPDX-License-Identifier: BSD-3-Clause
"""Cutting vectors into sums of words: bounded, nothing lost, nonlinear values left alone."""

import pytest

from phistar.algebra.expansion import MAX_WORDS_EXPANDED, expand_bounded
from phistar.algebra.ir import Expr, I, crf, crm, let, symbol
from phistar.algebra.proof import open_lets
from phistar.algebra.spaces import FORCE, JOINT
from phistar.algebra.symbols import H, M, gravity, mass_matrix, phi, psi, v, vector
from phistar.algebra.words import to_words
from phistar.algorithms.innovations import L_inv
from phistar.algorithms.link_kinematics import V

x = vector("x", JOINT)
f = vector("f", FORCE)
GROWTH = {mass_matrix.inv: 4}


def test_small_vectors_are_multiplied_out() -> None:
    """Without anything to bound or to leave alone there are no leaves, and the words are all."""
    expr = L_inv.T @ (L_inv @ x - 2 * (H @ phi @ f))
    pieces = expand_bounded({"out": expr}, {})
    assert not pieces.leaves
    assert pieces.outputs["out"] == to_words(expr)


@pytest.mark.parametrize("power", range(1, 9))
def test_nested_inverses_stay_bounded(power: int) -> None:
    """No piece of 𝓜⁻ᵏ(x + y) unfolds to more than ``MAX_WORDS_EXPANDED`` words; put together it is
    whole."""
    expr: Expr = x + vector("x2", JOINT)
    for _ in range(power):
        expr = mass_matrix.inv @ expr
    pieces = expand_bounded({"out": expr}, GROWTH)
    for _, words in pieces:
        assert sum(4 ** word.count(mass_matrix.inv) for word in words) <= MAX_WORDS_EXPANDED
    assert len(pieces.leaves) == power // 3
    whole = open_lets(pieces.outputs["out"].expr())
    assert to_words(whole) == to_words(expr)


def test_sums_of_operators_stay_bounded() -> None:
    """(I + A₁)...(I + A₃₀)x has 2³⁰ words; cut, five pieces of 2⁶."""
    expr: Expr = x
    for k in range(30):
        expr = (I + symbol(f"A{k}", JOINT, JOINT)) @ expr
    pieces = expand_bounded({"out": expr}, {})
    assert [len(words) for _, words in pieces] == [64] * 5
    assert MAX_WORDS_EXPANDED == 64


def test_nonlinear_lets_stay_closed() -> None:
    """V is a bracket's argument and a holds a bracket: leaves; a linear let is opened."""
    a = let("a", crm(V) @ H.T @ v + gravity)
    momentum = let("h", M @ phi.T @ a)
    pieces = expand_bounded({"out": H @ phi @ (momentum + crf(V) @ M @ V)}, {})
    assert [leaf.name for leaf in pieces.leaves] == ["V", "a", "h"]
    linear = let("g", M @ phi.T @ H.T @ x)
    pieces = expand_bounded({"out": H @ phi @ linear}, {})
    assert not pieces.leaves


def test_lets_of_operators_are_opened() -> None:
    """Named operators, their adjoints and inverses are put in."""
    whiten = let("W", L_inv)
    pieces = expand_bounded({"out": whiten.T @ whiten @ x}, {})
    assert pieces.outputs["out"] == to_words(L_inv.T @ L_inv @ x)
    inverse = let("mass", mass_matrix).inv
    pieces = expand_bounded({"out": inverse @ x}, {})
    assert set(pieces.outputs["out"]) == {(mass_matrix.inv, x)}


def test_arguments_of_brackets_are_leaves() -> None:
    """What stands in a bracket is a piece of its own, after the leaves that it uses."""
    solved = let("w", mass_matrix.inv @ (I - mass_matrix) @ x)
    expr = crf(psi.T @ H.T @ solved) @ M @ phi.T @ H.T @ v
    pieces = expand_bounded({"out": expr}, {})
    assert [leaf.name for leaf in pieces.leaves] == ["w", "x"]
    assert to_words(open_lets(pieces.outputs["out"].expr())) == to_words(open_lets(expr))
