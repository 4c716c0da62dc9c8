# SPDX-License-Identifier: BSD-3-Clause
"""Vectors, rotations and inertias of scalars against NumPy, with numbers known now or later."""

from collections.abc import Callable
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from phistar.scalar.graph import Graph, Scalar, Value
from phistar.scalar.interpret import run
from phistar.scalar.linear.inertias import (
    Inertia,
    RigidInertia,
    SymmetricInertia,
    ZeroInertia,
    add_inertias,
    articulated_downdate,
    congruence_out,
    scale_inertia,
    to_symmetric,
)
from phistar.scalar.linear.vectors import (
    AxisRotation,
    DenseRotation,
    Rotation,
    SignedPermutation,
    cross,
    dot,
    minus,
    plus,
    scaled,
    symmetric_index,
    symmetric_times,
    times,
    transposed,
)
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.robot.joint_transforms import factor_rotation
from phistar.scalar.trace.link_operations import LdlFactor
from phistar.spatial import force_transform, inertia_matrix, quat_to_rotation, random_quaternion

TIGHT = 1e-13
"""Relative to the largest number of a result; some hundred roundings."""

Function = Callable[..., list[Scalar]]


def now(function: Function, *numbers: np.ndarray) -> np.ndarray:
    """A function of lists of floats."""
    return np.array(function(*(list(map(float, x)) for x in numbers)), float)


def later(function: Function, *numbers: np.ndarray) -> np.ndarray:
    """The same on symbols, run afterwards."""
    graph = Graph()
    sizes = [len(x) for x in numbers]
    starts = np.cumsum([0, *sizes])
    lists = [
        [graph.load("x", int(start) + i) for i in range(size)]
        for start, size in zip(starts, sizes, strict=False)
    ]
    result = function(*lists)
    body = BasicBlock(graph, [Store("y", i, "", x) for i, x in enumerate(result)])
    program = Unrolled(Signature({"x": int(starts[-1])}, {"y": len(result)}), body)
    return run(program, {"x": np.concatenate(numbers)[None]})["y"][0]


WAYS = {"known": now, "later": later}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Callable[..., np.ndarray]:
    """Both kinds of scalars."""
    return WAYS[request.param]


@pytest.fixture
def rng() -> np.random.Generator:
    """The same numbers each time."""
    return np.random.default_rng(4)


def close(ours: np.ndarray, theirs: np.ndarray, bound: float = TIGHT) -> None:
    """Relative to the largest number."""
    assert np.shape(ours) == np.shape(theirs)
    assert np.abs(ours - theirs).max() <= bound * np.abs(theirs).max()


def full(s: Any) -> np.ndarray:
    """A symmetric 3x3 matrix from its list."""
    return np.array([[s[symmetric_index(i, j)] for j in range(3)] for i in range(3)], float)


def halved(m: np.ndarray) -> np.ndarray:
    """The list of a symmetric 3x3 matrix."""
    return np.array([m[i, j] for i in range(3) for j in range(i, 3)])


def test_vectors(way: Callable[..., np.ndarray], rng: np.random.Generator) -> None:
    """Sums, products and matrices do what NumPy's do."""
    x, y, s, m = rng.normal(size=3), rng.normal(size=3), rng.normal(size=6), rng.normal(size=9)
    close(way(plus, x, y), x + y)
    close(way(minus, x, y), x - y)
    close(way(cross, x, y), np.cross(x, y))
    close(way(lambda a, b: [dot(a, b)], x, y), np.array([x @ y]))
    close(way(lambda a, b: scaled(a[0], b), x, y), x[0] * y)
    close(way(symmetric_times, s, x), full(s) @ x)

    def product_of(a: list[Scalar], b: list[Scalar]) -> list[Scalar]:
        return times([a[:3], a[3:6], a[6:]], b)

    close(way(product_of, m, x), m.reshape(3, 3) @ x)
    rows = [[1.0, 2.0], [3.0, 4.0]]
    assert transposed(rows) == [[1.0, 3.0], [2.0, 4.0]]


# -- rotations


def turned(axis: int, angle: float) -> np.ndarray:
    """The matrix of a turn about an axis."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i] = R[j, j] = np.cos(angle)
    R[i, j], R[j, i] = -np.sin(angle), np.sin(angle)
    return R


def signed_permutations() -> list[np.ndarray]:
    """The 24 rotations of a cube."""
    found = []
    for places, signs in product(permutations(range(3)), product((1.0, -1.0), repeat=3)):
        R = np.zeros((3, 3))
        for i, (p, s) in enumerate(zip(places, signs, strict=True)):
            R[i, p] = s
        if np.linalg.det(R) > 0:
            found.append(R)
    assert len(found) == 24
    return found


def dense(rng: np.random.Generator) -> np.ndarray:
    """A random rotation."""
    return quat_to_rotation(random_quaternion(rng))


def check(
    way: Callable[..., np.ndarray],
    made: Callable[[list[Scalar]], Rotation],
    numbers: np.ndarray,
    R: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """A rotation, made of some numbers, against its matrix."""
    x, s, b = rng.normal(size=3), rng.normal(size=6), rng.normal(size=9)
    close(way(lambda r, y: made(r).rotate(y), numbers, x), R @ x)
    close(way(lambda r, y: made(r).rotate_back(y), numbers, x), R.T @ x)
    close(way(lambda r, y: made(r).inverse().rotate(y), numbers, x), R.T @ x)
    close(way(lambda r, y: made(r).congruence(y), numbers, s), halved(R @ full(s) @ R.T))

    def general(r: list[Scalar], y: list[Scalar]) -> list[Scalar]:
        return [e for row in made(r).general_congruence([y[:3], y[3:6], y[6:]]) for e in row]

    close(way(general, numbers, b), (R @ b.reshape(3, 3) @ R.T).ravel())


@pytest.mark.parametrize("axis", range(3))
def test_turn(axis: int, way: Callable[..., np.ndarray], rng: np.random.Generator) -> None:
    """A turn about each axis."""
    numbers = np.array([np.cos(0.7), np.sin(0.7)])
    check(way, lambda r: Rotation((AxisRotation(axis, *r),)), numbers, turned(axis, 0.7), rng)


def test_swap(way: Callable[..., np.ndarray], rng: np.random.Generator) -> None:
    """All rotations of a cube, without an operation."""
    for R in signed_permutations():
        factors = factor_rotation(R.tolist())
        assert all(isinstance(f, SignedPermutation) for f in factors)
        check(way, lambda r, f=factors: Rotation(f), np.zeros(0), R, rng)  # type: ignore[misc]
        graph = Graph()
        vector: list[Scalar] = [graph.load("x", i) for i in range(3)]
        moved = [x for x in Rotation(factors).rotate(vector) if isinstance(x, Value)]
        assert sum(graph.count(moved).values()) == 0


def test_dense(way: Callable[..., np.ndarray], rng: np.random.Generator) -> None:
    """Any rotation."""
    R = dense(rng)
    check(way, lambda r: Rotation((DenseRotation([r[:3], r[3:6], r[6:]]),)), R.ravel(), R, rng)


def test_products(way: Callable[..., np.ndarray], rng: np.random.Generator) -> None:
    """Factors from the parent to the child."""
    R = dense(rng)
    swap = factor_rotation(signed_permutations()[7].tolist())
    whole = turned(2, 0.3) @ signed_permutations()[7] @ R @ turned(0, -1.1)
    numbers = np.concatenate([[np.cos(0.3), np.sin(0.3), np.cos(1.1), -np.sin(1.1)], R.ravel()])

    def made(r: list[Scalar]) -> Rotation:
        matrix = DenseRotation([r[4:7], r[7:10], r[10:13]])
        return Rotation((AxisRotation(2, *r[:2]), *swap, matrix, AxisRotation(0, *r[2:4])))

    check(way, made, numbers, whole, rng)


def test_factors_of(rng: np.random.Generator) -> None:
    """Cheapest factors: none, a permutation, one turn, a turn about z after one about x, dense."""
    cases: list[tuple[np.ndarray, tuple[type, ...]]] = [
        (np.eye(3), ()),
        (signed_permutations()[5], (SignedPermutation,)),
        (turned(0, 0.4), (AxisRotation,)),
        (turned(1, 0.4), (AxisRotation,)),
        (turned(2, -2.0), (AxisRotation,)),
        (turned(2, 0.4) @ turned(0, 1.2), (AxisRotation, AxisRotation)),
        (dense(rng), (DenseRotation,)),
    ]
    for R, kinds in cases:
        R = np.where(np.abs(R) < 1e-15, 0.0, R)
        factors = factor_rotation(R.tolist())
        assert tuple(type(f) for f in factors) == kinds
        x = rng.normal(size=3)
        close(np.array(Rotation(factors).rotate(x.tolist()), float), R @ x)


# -- inertias


def matrix_of(x: Inertia) -> np.ndarray:
    """The 6x6 matrix."""
    return np.array([[x.entry(i, j) for j in range(6)] for i in range(6)], float)


def rigid(rng: np.random.Generator) -> RigidInertia:
    """A random one."""
    return RigidInertia(
        *(float(rng.uniform(1, 2)), rng.normal(size=3).tolist(), rng.normal(size=6).tolist())
    )


def any_symmetric(rng: np.random.Generator) -> SymmetricInertia:
    """A random one."""
    return SymmetricInertia(
        rng.normal(size=6).tolist(), rng.normal(size=(3, 3)).tolist(), rng.normal(size=6).tolist()
    )


def like(form: Inertia, x: list[Scalar]) -> Inertia:
    """Other numbers in the form of an inertia."""
    if isinstance(form, RigidInertia):
        return RigidInertia(x[0], x[1:4], x[4:10])
    return SymmetricInertia(x[:6], [x[6:9], x[9:12], x[12:15]], x[15:21])


KINDS = {"rigid": rigid, "symmetric": any_symmetric}


@pytest.mark.parametrize("kind", KINDS)
def test_inertia(kind: str, way: Callable[..., np.ndarray], rng: np.random.Generator) -> None:
    """Products and moves are those of the 6x6 matrix."""
    inertia = KINDS[kind](rng)
    numbers, I6 = np.array(inertia.scalars(), float), matrix_of(inertia)
    np.testing.assert_array_equal(I6, I6.T)
    x, R, p = rng.normal(size=6), dense(rng), rng.normal(size=3)
    close(way(lambda s, y: like(inertia, s).times(y), numbers, x), I6 @ x)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = R, p
    X = force_transform(pose)
    expected = X @ I6 @ X.T
    for factors in (
        lambda r: (DenseRotation([r[:3], r[3:6], r[6:]]),),
        lambda r: factor_rotation(R.tolist()),
    ):

        def moved(
            s: list[Scalar], r: list[Scalar], y: list[Scalar], f: Any = factors
        ) -> list[Scalar]:
            there = like(inertia, s).in_parent(Rotation(f(r)), y)
            return [there.entry(i, j) for i in range(6) for j in range(6)]

        close(way(moved, numbers, R.ravel(), p).reshape(6, 6), expected)

        def outward(
            s: list[Scalar], r: list[Scalar], y: list[Scalar], f: Any = factors
        ) -> list[Scalar]:
            there = congruence_out(like(inertia, s), Rotation(f(r)), y)
            return [there.entry(i, j) for i in range(6) for j in range(6)]

        close(way(outward, numbers, R.ravel(), p).reshape(6, 6), X.T @ I6 @ X)


def test_rigid_is_the_models_matrix(rng: np.random.Generator) -> None:
    """Mass, first moment and rotational inertia stand where the model's matrix has them."""
    row = np.array([1.7, 0.1, -0.2, 0.3, 0.5, 0.6, 0.7, 0.01, -0.02, 0.03])
    I6 = inertia_matrix(row)
    made = RigidInertia(I6[5, 5], [I6[2, 4], I6[0, 5], I6[1, 3]], halved(I6[:3, :3]).tolist())
    np.testing.assert_array_equal(matrix_of(made), I6)


def test_sums_and_multiples(rng: np.random.Generator) -> None:
    """Of all kinds; the simplest kind that can hold the result."""
    some: list[Inertia] = [ZeroInertia(), rigid(rng), any_symmetric(rng)]
    for i, x in enumerate(some):
        close(matrix_of(scale_inertia(-2.5, x)) + 1, 1 - 2.5 * matrix_of(x))
        np.testing.assert_array_equal(matrix_of(to_symmetric(x)), matrix_of(x))
        for j, y in enumerate(some):
            total = add_inertias(x, y)
            assert isinstance(total, type(some[max(i, j)]))
            np.testing.assert_array_equal(matrix_of(total), matrix_of(x) + matrix_of(y))
    assert ZeroInertia().scalars() == []
    assert ZeroInertia().times([1.0] * 6) == [0.0] * 6


@pytest.mark.parametrize("axes", [(2,), (5,), (0, 1, 2), (3, 4, 2)])
def test_downdated(axes: tuple[int, ...], rng: np.random.Generator) -> None:
    """P - G U* of a positive matrix: zero along the joint's axes."""
    root = rng.normal(size=(6, 6))
    P = root @ root.T + np.eye(6)
    form = SymmetricInertia(
        halved(P[:3, :3]).tolist(), P[:3, 3:].tolist(), halved(P[3:, 3:]).tolist()
    )
    U = P[:, axes]
    G = U @ np.linalg.inv(U[list(axes)])
    down = articulated_downdate(form, G.tolist(), U.tolist())
    close(matrix_of(down), P - G @ U.T)
    assert np.abs(matrix_of(down)[list(axes)]).max() <= TIGHT * np.abs(P).max()


def test_downdated_to_nothing() -> None:
    """What is known to be zero is no inertia at all."""
    zero = RigidInertia(0.0, [0.0] * 3, [0.0] * 6)
    assert isinstance(articulated_downdate(zero, [[0.0]] * 6, [[0.0]] * 6), ZeroInertia)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_factor(size: int, way: Callable[..., np.ndarray], rng: np.random.Generator) -> None:
    """L D L* solves and multiplies; its numbers make it again."""
    root = rng.normal(size=(size, size))
    matrix = root @ root.T + np.eye(size)
    x = rng.normal(size=size)

    def made(m: list[Scalar]) -> LdlFactor:
        return LdlFactor([m[i * size : (i + 1) * size] for i in range(size)], [0.0] * size)

    close(way(lambda m, y: made(m).solve(y), matrix.ravel(), x), np.linalg.solve(matrix, x), 1e-12)
    close(way(lambda m, y: made(m).times(y), matrix.ravel(), x), matrix @ x)
    again = LdlFactor.from_scalars(size, made(matrix.ravel().tolist()).scalars())
    close(np.array(again.solve(x.tolist()), float), np.linalg.solve(matrix, x), 1e-12)
    close(np.array(again.times(x.tolist()), float), matrix @ x)
