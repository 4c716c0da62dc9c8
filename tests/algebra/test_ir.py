# SPDX-License-Identifier: BSD-3-Clause
"""Laws of operator expressions: sharing, adjoints, inverses, sums, products, spaces, brackets."""

import copy
import gc
import pickle
import re
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from phistar.algebra import ir
from phistar.algebra.ir import (
    Adjoint,
    Expr,
    I,
    IdentityOperator,
    Inverse,
    Product,
    Q,
    Sparsity,
    Sum,
    Symbol,
    add,
    bracket,
    compose,
    crf,
    crm,
    identity,
    let,
    product,
    scale,
    symbol,
    zero,
)
from phistar.algebra.spaces import FORCE, JOINT, MOTION, ONE, Space
from phistar.algebra.traverse import children, rebuild
from phistar.algebra.words import to_words
from phistar.errors import ArgumentError, SpaceError

X = symbol("X", FORCE, FORCE, Sparsity.SHIFT)
Y = symbol("Y", FORCE, FORCE, Sparsity.LOWER)
S = symbol("S", FORCE, MOTION, symmetric=True)
C = symbol("C", JOINT, JOINT, symmetric=True)
R = symbol("R", JOINT, FORCE)
x = symbol("x", MOTION, ONE)
y = symbol("y", MOTION, ONE)
f = symbol("f", FORCE, ONE)
u = symbol("u", JOINT, ONE)

SAMPLES = [
    X,
    X.T,
    X.inv,
    X.T.inv,
    S,
    R @ X @ S,
    R @ (X + 2 * Y) @ S @ R.T,
    (I - X).inv,
    (R @ S @ R.T).inv,
    crm(x),
    Q(f) @ crm(x) @ S.inv,
    let("V", X @ Y),
    Fraction(2, 3) * X - Y,
    identity(MOTION),
    zero(JOINT, FORCE),
]


def same(expr: Expr) -> Expr:
    """Changes nothing."""
    return expr


# Sharing


@pytest.mark.parametrize(
    "build",
    [
        lambda: symbol("X", FORCE, FORCE, Sparsity.SHIFT),
        lambda: R @ X @ S @ X.T @ R.T,
        lambda: X - Fraction(1, 2) * Y,
        lambda: (I - X).inv @ crf(x),
        lambda: let("V", X @ Y).T,
    ],
)
def test_equal_expressions_are_one_object(build: Callable[[], Expr]) -> None:
    """Building the same expression twice gives the same object."""
    first = build()
    assert build() is first


def test_grouping_does_not_matter() -> None:
    """Products and sums are flat: both groupings are the same object."""
    assert (R @ X) @ (Y @ S) is R @ ((X @ Y) @ S)
    assert (X + Y) + X.T.inv.T is X + (Y + X.inv)


def test_sums_keep_their_order() -> None:
    """A + B is printed as written, so it is not the object B + A; as words they are equal."""
    assert X + Y is not Y + X
    assert repr(X + Y) == "X + Y"
    assert repr(Y + X) == "Y + X"
    assert to_words(X + Y) == to_words(Y + X)


def test_what_makes_symbols_differ() -> None:
    """Name, spaces, pattern and symmetry each tell two symbols apart."""
    nodes = {
        symbol("t", JOINT, JOINT),
        symbol("s", JOINT, JOINT),
        symbol("t", JOINT, FORCE),
        symbol("t", JOINT, JOINT, Sparsity.DENSE),
        symbol("t", JOINT, JOINT, symmetric=True),
    }
    assert len(nodes) == 5


def test_nodes_are_keys() -> None:
    """An expression built anew finds the value stored under it."""
    values = {expr: k for k, expr in enumerate(SAMPLES)}
    assert len(values) == len(SAMPLES)
    assert values[R @ X @ S] == 5
    assert values[(I - X).inv] == 7


def test_table_forgets_dead_nodes() -> None:
    """Nodes live as long as someone holds them: the table of nodes does not grow."""

    def entries() -> int:
        """Entries of the nodes of this test; others of the process may come and go meanwhile."""
        return sum("dead_" in repr(key) for key in list(ir._NODES._references))

    built = [(symbol(f"dead_{k}", FORCE, FORCE) + X).inv @ Y for k in range(50)]
    assert entries() >= 200
    del built
    gc.collect()
    ir._NODES.purge()
    assert entries() == 0


@pytest.mark.parametrize("expr", SAMPLES, ids=repr)
def test_copies_are_the_same_object(expr: Expr) -> None:
    """Copying and pickling keep the sharing."""
    assert copy.copy(expr) is expr
    assert copy.deepcopy(expr) is expr
    assert pickle.loads(pickle.dumps(expr)) is expr


def test_nodes_are_immutable() -> None:
    """A shared node cannot be changed."""
    with pytest.raises(AttributeError, match="immutable: cannot set domain of X"):
        X.domain = JOINT
    assert X.domain is FORCE


# Adjoints


@pytest.mark.parametrize("expr", SAMPLES, ids=repr)
def test_adjoint_is_an_involution(expr: Expr) -> None:
    """(A*)* = A, between the dual spaces in between."""
    assert expr.T.T is expr
    assert (expr.T.codomain, expr.T.domain) == (expr.domain.dual, expr.codomain.dual)


def test_adjoint_laws() -> None:
    """(AB)* = B*A*, (A+B)* = A*+B*, (cA)* = cA*, I* = I, 0* = 0."""
    assert (R @ X @ S).T is S @ X.T @ R.T
    assert (X + 3 * Y).T is X.T + 3 * Y.T
    assert identity(MOTION).T is identity(FORCE)
    assert zero(JOINT, FORCE).T is zero(MOTION, JOINT)


def test_adjoint_reaches_the_atoms() -> None:
    """Only symbols and lets carry an adjoint node; a symmetric symbol none at all."""
    assert S.T is S
    assert C.T is C
    assert isinstance(X.T, Adjoint)
    assert X.T.of is X
    assert (R @ S @ R.T).T is R @ S @ R.T


def test_symmetry_needs_dual_spaces() -> None:
    """A symmetric operator maps a space to its dual."""
    with pytest.raises(SpaceError, match="W cannot be symmetric from FORCE to FORCE"):
        symbol("W", FORCE, FORCE, symmetric=True)


def test_adjoints_of_brackets() -> None:
    """crm[x]* = -crf[x], crf[x]* = -crm[x], Q[f]* = -Q[f]."""
    assert crm(x).T is -crf(x)
    assert crf(x).T is -crm(x)
    assert Q(f).T is -Q(f)
    assert (S @ crm(x)).T is -(crf(x) @ S)


# Inverses


def test_inverse_laws() -> None:
    """(A⁻¹)⁻¹ = A, (A⁻¹)* = (A*)⁻¹, (cA)⁻¹ = A⁻¹/c, I⁻¹ = I, (AB)⁻¹ = B⁻¹A⁻¹."""
    assert X.inv.inv is X
    assert X.inv.T is X.T.inv
    assert (S.inv).T is S.inv
    assert (4 * X).inv is Fraction(1, 4) * X.inv
    assert (-identity(JOINT)).inv is -identity(JOINT)
    assert (X @ S).inv is S.inv @ X.inv
    assert (X.inv @ (I - Y)).inv is (I - Y).inv @ X


def test_inverse_swaps_spaces() -> None:
    """The inverse of a map from motions to forces takes forces to motions."""
    assert (S.inv.codomain, S.inv.domain) == (MOTION, FORCE)


def test_inverse_of_a_product_that_is_not_square_inside() -> None:
    """(R S R*)⁻¹ cannot be split; inverting it again inside a product stays flat."""
    small = (R @ S @ R.T).inv
    assert isinstance(small, Inverse)
    again = (small @ (I + C)).inv
    assert isinstance(again, Product)
    assert again.factors == ((I + C).inv, R, S, R.T)


@pytest.mark.parametrize("expr", [R, R @ X, u, R.T], ids=repr)
def test_no_inverse_between_different_sizes(expr: Expr) -> None:
    """Only operators between spaces of one size have an inverse."""
    with pytest.raises(SpaceError, match=re.escape(f"{expr} maps from ") + ".*has no inverse"):
        expr.inv  # noqa: B018


def test_zero_has_no_inverse() -> None:
    """Inverting zero is refused where it is written."""
    with pytest.raises(SpaceError, match="zero has no inverse"):
        (X - X).inv  # noqa: B018


# Sums and products


def test_identity_is_absorbed() -> None:
    """I A = A = A I, and products of identities are the identity."""
    assert identity(FORCE) @ X is X
    assert X @ identity(FORCE) is X
    assert identity(FORCE) @ identity(FORCE) is identity(FORCE)
    assert (2 * identity(JOINT)) @ R is 2 * R
    assert product([], JOINT) is identity(JOINT)


def test_zero_absorbs() -> None:
    """A 0 = 0 = 0 A between the right spaces, and A + 0 = A."""
    assert R @ zero(FORCE, MOTION) is zero(JOINT, MOTION)
    assert zero(ONE, JOINT) @ R is zero(ONE, FORCE)
    assert X + zero(FORCE, FORCE) is X
    assert X - X is zero(FORCE, FORCE)
    assert 0 * X is zero(FORCE, FORCE)


def test_scalars_are_pulled_out() -> None:
    """Numbers leave a product and multiply."""
    expr = (2 * R) @ (Fraction(1, 3) * X) @ (-S)
    assert expr is Fraction(-2, 3) * (R @ X @ S)
    assert isinstance(expr, Sum)
    assert expr.terms == ((Fraction(-2, 3), R @ X @ S),)
    assert (3 * (X @ Y)) @ S is 3 * (X @ Y @ S)
    assert (2 * X) @ (Fraction(1, 2) * Y) is X @ Y


def test_equal_terms_are_collected() -> None:
    """Coefficients add up exactly, and terms that cancel leave."""
    third = Fraction(1, 3)
    expr = third * X + third * Y + third * X + third * X - third * Y
    assert expr is X
    assert (X + Y) - (Y - X) is 2 * X
    assert scale(Fraction(1, 10), X) + scale(Fraction(2, 10), X) is Fraction(3, 10) * X


def test_nothing_is_distributed() -> None:
    """A product of a sum stays one: only normal forms multiply out."""
    expr = R @ (X + Y)
    assert isinstance(expr, Product)
    assert expr is not R @ X + R @ Y


def test_any_identity() -> None:
    """``I`` becomes the identity of the space it meets, on either side."""
    assert I + X is identity(FORCE) + X
    assert I - X.T is identity(MOTION) - X.T
    assert X + I is X + identity(FORCE)
    assert X - I is X - identity(FORCE)
    with pytest.raises(SpaceError, match="I cannot be added to R, which maps from link forces"):
        I + R


@pytest.mark.parametrize("other", [3, "X", None, np.eye(7)], ids=["3", "X", "None", "array"])
def test_operators_meet_operators_only(other: Any) -> None:
    """Other Python objects, and arrays from either side, are refused with the cure."""
    for meet in (
        lambda: X @ other,
        lambda: other @ X,
        lambda: X + other,
        lambda: other + X,
        lambda: X - other,
        lambda: other - X,
    ):
        with pytest.raises(
            ArgumentError, match=r"expressions only, .*robot.function\(expr\)\(q, x\)"
        ):
            meet()


def test_numbers_scale() -> None:
    """Numbers may stand on either side, and divide; operators are not multiplied with *."""
    assert X * 2 is 2 * X
    assert X / 2 is Fraction(1, 2) * X
    assert 0.5 * X is X / 2
    assert sum([X, X]) is 2 * X
    with pytest.raises(ArgumentError, match="composed with @"):
        X * X
    with pytest.raises(ArgumentError, match=r"\* of X and an ndarray"):
        np.eye(6) * X
    for mistake in (lambda: X @ np.eye(6), lambda: np.eye(6) @ X):
        with pytest.raises(ArgumentError, match=r"@ of .*robot\.function\(expr\)\(q, x\)"):
            mistake()


def test_threads_share_nodes() -> None:
    """Expressions built at the same time by several threads are the same objects."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def build(start: threading.Barrier, found: list[Expr]) -> None:
        for k in range(300):
            start.wait()
            found.append(symbol(f"shared{k}", FORCE, FORCE) @ symbol("shared", FORCE, FORCE))

    start, found = threading.Barrier(4), [list[Expr]() for _ in range(4)]
    threads = [threading.Thread(target=build, args=(start, own)) for own in found]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert all(len({id(own[k]) for own in found}) == 1 for k in range(300))


def test_empty_sum_needs_spaces() -> None:
    """Nothing tells an empty sum where it maps."""
    with pytest.raises(SpaceError, match="pass codomain and domain"):
        add(())


# Spaces


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (
            R,
            R,
            "cannot compose R with R: the left one takes link forces, the right one gives joint "
            "vectors (did you forget a .T on the left?)",
        ),
        (
            R.T,
            f,
            "cannot compose R* with f: the left one takes joint vectors, the right one gives link "
            "forces (did you forget a .T on the left?)",
        ),
        (
            C,
            R.T,
            "cannot compose C with R*: the left one takes joint vectors, the right one gives link "
            "motions (did you forget a .T on the right?)",
        ),
        (
            X.T,
            Y,
            "cannot compose X* with Y: the left one takes link motions, the right one gives link "
            "forces (did you forget a .T on the left or the right?)",
        ),
        (
            C,
            f,
            "cannot compose C with f: the left one takes joint vectors, the right one gives link "
            "forces",
        ),
    ],
)
def test_composition_error(left: Expr, right: Expr, message: str) -> None:
    """The error names both operators, both spaces, and the .T that would cure it."""
    with pytest.raises(SpaceError, match=f"^{re.escape(message)}$"):
        left @ right


@pytest.mark.parametrize(
    ("left", "right", "cure"),
    [
        (R, R, ("left",)),
        (R.T, f, ("left",)),
        (C, R.T, ("right",)),
        (X.T, Y, ("left", "right")),
    ],
)
def test_named_cure_works(left: Expr, right: Expr, cure: tuple[str, ...]) -> None:
    """The .T that the error proposes makes the composition possible."""
    if "left" in cure:
        assert isinstance(left.T @ right, Expr)
    if "right" in cure:
        assert isinstance(left @ right.T, Expr)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (
            R,
            R.T,
            "cannot add R and R*: the left one maps from link forces to joint vectors, the right "
            "one from joint vectors to link motions (did you forget a .T?)",
        ),
        (
            X + Y,
            R,
            "cannot add X + Y and R: the left one maps from link forces to link forces, the right "
            "one from link forces to joint vectors",
        ),
    ],
)
def test_sum_error(left: Expr, right: Expr, message: str) -> None:
    """The error names what is added, both pairs of spaces, and a forgotten .T."""
    with pytest.raises(SpaceError, match=f"^{re.escape(message)}$"):
        left + right


def test_compose_maps_from_right_to_left() -> None:
    """A product takes what its right factor takes and gives what its left factor gives."""
    expr = compose(R, X @ S)
    assert (expr.codomain, expr.domain) == (JOINT, MOTION)


# Brackets


@pytest.mark.parametrize(("make", "a", "b"), [(crm, x, y), (crf, x, y), (Q, f, X @ f)])
def test_brackets_are_linear(make: Callable[[Expr], Expr], a: Expr, b: Expr) -> None:
    """b[αx + βy] = α b[x] + β b[y], and b[0] = 0."""
    half = Fraction(1, 2)
    assert make(half * a - 3 * b) is half * make(a) - 3 * make(b)
    assert make(a - a) is zero(make(a).codomain, make(a).domain)


@pytest.mark.parametrize(
    ("expr", "codomain", "domain"),
    [(crm(x), MOTION, MOTION), (crf(x), FORCE, FORCE), (Q(f), FORCE, MOTION)],
)
def test_bracket_spaces(expr: Expr, codomain: Space, domain: Space) -> None:
    """crm acts on motions, crf on forces, Q takes motions to forces."""
    assert (expr.codomain, expr.domain) == (codomain, domain)


@pytest.mark.parametrize(
    ("kind", "argument", "message"),
    [
        ("crm", f, "crm[...] needs a vector of link motions; f maps numbers to link forces"),
        ("crf", u, "crf[...] needs a vector of link motions; u maps numbers to joint vectors"),
        ("Q", S, "Q[...] needs a vector of link forces; S maps link motions to link forces"),
    ],
)
def test_bracket_of_the_wrong_thing(kind: str, argument: Expr, message: str) -> None:
    """A bracket takes a vector of one space only, and says which."""
    with pytest.raises(SpaceError, match=f"^{re.escape(message)}$"):
        bracket(kind, argument)


# Traversal


@pytest.mark.parametrize("expr", SAMPLES, ids=repr)
def test_rebuild_without_change(expr: Expr) -> None:
    """Replacing every child by itself gives the same object."""
    assert rebuild(expr, same) is expr


def test_children() -> None:
    """Children are what a node is made of, in order."""
    assert children(R @ X @ S) == (R, X, S)
    assert children(X - 2 * Y) == (X, Y)
    assert children(X.T) == (X,)
    assert children((I - X).inv) == (I - X,)
    assert children(crm(x)) == (x,)
    assert children(let("V", X @ Y)) == (X @ Y,)
    assert children(X) == ()
    assert children(identity(JOINT)) == ()


def test_rebuild_substitutes() -> None:
    """Substituting a symbol below every kind of node equals building with the other symbol."""

    def swap(expr: Expr) -> Expr:
        named = {X: Y, x: y}
        return named.get(expr) or rebuild(expr, swap)

    def build(a: Expr, b: Expr) -> Expr:
        return (
            R @ (a + 2 * a.T.inv.T) @ S @ crm(S.inv @ a @ S @ b) @ let("V", (I - a).inv @ S).T.inv
        )

    assert swap(build(X, x)) is build(Y, y)


def test_let_is_opaque() -> None:
    """A let has its value's spaces and symmetry but is not the value."""
    named = let("V", X @ S)
    assert named is not X @ S
    assert named.value is X @ S
    assert (named.codomain, named.domain) == (FORCE, MOTION)
    assert named is not let("W", X @ S)
    assert isinstance(R @ named, Product)
    assert (R @ named).factors == (R, named)
    assert isinstance(named.T, Adjoint)
    assert let("L", R @ S @ R.T).T is let("L", R @ S @ R.T)


def test_node_kinds() -> None:
    """Each constructor gives its kind of node."""
    assert isinstance(X, Symbol)
    assert (X.name, X.sparsity, X.symmetric) == ("X", Sparsity.SHIFT, False)
    assert isinstance(identity(JOINT), IdentityOperator)
    assert isinstance(crm(x), ir.Bracket)
    assert crm(x).kind == "crm"
    assert crm(x).argument is x
