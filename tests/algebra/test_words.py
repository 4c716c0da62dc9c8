# SPDX-License-Identifier: BSD-3-Clause
"""Multiplying out: words, their sums and the way back; random matrices are the witness."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phistar.algebra.ir import (
    Adjoint,
    Expr,
    I,
    Product,
    Q,
    Sum,
    Symbol,
    crm,
    identity,
    let,
    symbol,
    zero,
)
from phistar.algebra.spaces import FORCE, JOINT, MOTION, ONE
from phistar.algebra.words import to_words, word_expr
from phistar.errors import SpaceError

X = symbol("X", FORCE, FORCE)
Y = symbol("Y", FORCE, FORCE)
S = symbol("S", FORCE, MOTION, symmetric=True)
x = symbol("x", MOTION, ONE)
y = symbol("y", MOTION, ONE)


def test_products_of_sums_are_multiplied_out() -> None:
    """(X + 2Y)(X - Y) = XX - XY + 2YX - 2YY."""
    words = to_words((X + 2 * Y) @ (X - Y))
    assert words.terms == {(X, X): 1, (X, Y): -1, (Y, X): 2, (Y, Y): -2}
    assert all(isinstance(c, Fraction) for c in words.terms.values())


def test_words_collect_and_cancel() -> None:
    """(I + X)(I - X) = I - XX: the cross terms cancel, the identity is the empty word."""
    assert to_words((I + X) @ (I - X)).terms == {(): 1, (X, X): -1}
    assert len(to_words((X + Y) @ S - X @ S - Y @ S)) == 0


def test_multiplied_out_forms_agree() -> None:
    """Distributed and factored expressions have equal words in any order of terms."""
    factored = X @ (Y + S @ X.T @ S.inv) @ S
    spread = X @ S @ X.T + X @ Y @ S
    assert to_words(factored) == to_words(X @ S @ X.T @ S.inv @ S + X @ Y @ S)
    assert to_words(factored) != to_words(spread)
    assert hash(to_words(X + Y)) == hash(to_words(Y + X))
    assert to_words(X + Y) == to_words(Y + X)


def test_atoms_stay_whole() -> None:
    """Inverses of sums and lets are atoms: nothing inside them is multiplied out."""
    inverse, named = (I - X).inv, let("V", X + Y)
    assert to_words(inverse @ named).terms == {(inverse, named): 1}


def test_brackets_are_linear_in_their_words() -> None:
    """crm[S⁻¹(X + 2Y)Sx] = crm[S⁻¹XSx] + 2 crm[S⁻¹YSx], also after a factor."""
    expr = S @ crm(S.inv @ (X + 2 * Y) @ S @ x)
    one, two = crm(S.inv @ X @ S @ x), crm(S.inv @ Y @ S @ x)
    assert to_words(expr).terms == {(S, one): 1, (S, two): 2}
    assert to_words(Q(S @ X.T @ (x - x + y))) == to_words(Q(S @ X.T @ y))


def test_equality_knows_spaces() -> None:
    """Identities and zeros of different spaces differ."""
    assert to_words(identity(FORCE)) != to_words(identity(JOINT))
    assert to_words(zero(FORCE, ONE)) != to_words(zero(JOINT, ONE))
    assert to_words(zero(FORCE, ONE)) == to_words(zero(FORCE, ONE))


def test_arithmetic_of_words() -> None:
    """Words add and subtract like the expressions they come from."""
    a, b = X @ Y - 2 * X, 2 * X + Fraction(1, 2) * Y
    assert to_words(a) + to_words(b) == to_words(a + b)
    assert to_words(a) - to_words(b) == to_words(a - b)
    assert dict((to_words(a) - to_words(a)).terms) == {}


def test_words_of_different_spaces_do_not_add() -> None:
    """I on forces minus I on joint vectors is an error, not zero."""
    with pytest.raises(SpaceError, match=r"from link forces to link forces .* from joint vectors"):
        to_words(identity(FORCE)) - to_words(identity(JOINT))


def test_empty_word_is_the_identity() -> None:
    """A word of no atoms leaves every vector as it is."""
    assert word_expr((), MOTION) is identity(MOTION)
    assert word_expr((X, Y), FORCE) is X @ Y
    assert to_words(zero(FORCE, MOTION)).expr() is zero(FORCE, MOTION)


leaves = st.sampled_from([X, Y, X.T.T, identity(FORCE), S @ X.T @ S.inv, zero(FORCE, FORCE)])
coefficients = st.fractions(-3, 3, max_denominator=4)


def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    """Sums, products and similar operators of smaller expressions."""
    return st.one_of(
        st.builds(lambda a, b: a @ b, inner, inner),
        st.builds(lambda c, a, b: c * a + b, coefficients, inner, inner),
        st.builds(lambda a: S @ a.T @ S.inv, inner),
    )


expressions = st.recursive(leaves, grow, max_leaves=6)


@given(expressions)
def test_round_trip(expr: Expr) -> None:
    """Words made into an expression have the same words again."""
    words = to_words(expr)
    assert to_words(words.expr()) == words
    assert all(words.terms.values())


_RNG = np.random.default_rng(7)
_ROOT = _RNG.integers(-3, 4, (3, 3))
# A unimodular symmetric S keeps every matrix below in the integers, so that values are exact.
_UNIMODULAR = np.array([[1, 1, 0], [1, 2, 1], [0, 1, 2]])
_VALUES = {X: _ROOT, Y: _RNG.integers(-3, 4, (3, 3)), S: _UNIMODULAR}
_INVERSE = np.array([[3, -2, 1], [-2, 2, -1], [1, -1, 1]])


def value(expr: Expr) -> np.ndarray:
    """The expression with small integer matrices for its symbols, in exact arithmetic."""
    if expr is S.inv:
        return _INVERSE.astype(object)
    if isinstance(expr, Symbol):
        return _VALUES[expr].astype(object)
    if isinstance(expr, Adjoint):
        return value(expr.of).T
    result = np.zeros((3, 3), dtype=object) if isinstance(expr, Sum) else np.eye(3, dtype=object)
    if isinstance(expr, Sum):
        for coefficient, term in expr.terms:
            result = result + coefficient * value(term)
    elif isinstance(expr, Product):
        for factor in expr.factors:
            result = result @ value(factor)
    return result


@given(expressions)
def test_multiplying_out_keeps_the_value(expr: Expr) -> None:
    """An expression and its words are the same matrix, exactly."""
    np.testing.assert_array_equal(_UNIMODULAR @ _INVERSE, np.eye(3))
    np.testing.assert_array_equal(value(to_words(expr).expr()), value(expr))
