# SPDX-License-Identifier: BSD-3-Clause
"""Operation counts: next to numbers that count, and linear in the number of links."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from phistar.algorithms.equations_of_motion import PROGRAMS
from phistar.compile import kernel
from phistar.robots import chain
from phistar.spatial import exp_so3, force_transform, inertia_matrix, pose
from phistar.sweeps import costs, interpret
from phistar.sweeps.costs import Cost, Place, count

TALLY: Counter[str] = Counter()


class Counted:
    """A number that counts what is done with it."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __mul__(self, other: "Counted") -> "Counted":
        TALLY["multiplications"] += 1
        return Counted(self.value * other.value)

    def __add__(self, other: "Counted") -> "Counted":
        TALLY["additions"] += 1
        return Counted(self.value + other.value)

    def __sub__(self, other: "Counted") -> "Counted":
        TALLY["additions"] += 1
        return Counted(self.value - other.value)

    def __truediv__(self, other: "Counted") -> "Counted":
        TALLY["divisions"] += 1
        return Counted(self.value / other.value)


def counted(array: Any) -> Any:
    """An array of numbers that count."""
    return np.vectorize(Counted, otypes=[object])(np.asarray(array, dtype=float))


def values(array: Any) -> Any:
    """The numbers of an array that counted."""
    return np.vectorize(lambda x: x.value, otypes=[float])(array)


def spent(work: Callable[[], Any]) -> tuple[Any, Cost]:
    """A result and what it cost."""
    TALLY.clear()
    result = work()
    return result, Cost(TALLY["multiplications"], TALLY["additions"], TALLY["divisions"])


def cross(a: Any, b: Any) -> Any:
    """a x b by its six products."""
    rows = [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.array(rows, dtype=object)


def dot(a: Any, b: Any) -> Any:
    """Sum of products."""
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def times(matrix: Any, other: Any) -> Any:
    """Matrix times vector."""
    return np.array([dot(row, other) for row in matrix], dtype=object)


def test_force_shift() -> None:
    """Two rotations and a cross product are the 6x6 transform."""
    rng = np.random.default_rng(0)
    rotation, offset, force = (
        exp_so3(rng.normal(size=3)),
        rng.normal(size=3),
        rng.normal(size=6),
    )
    R, p, f = counted(rotation), counted(offset), counted(force)

    def work() -> Any:
        moment, push = times(R, f[:3]), times(R, f[3:])
        return np.concatenate([moment + cross(p, push), push])

    result, cost = spent(work)
    np.testing.assert_allclose(values(result), force_transform(pose(rotation, offset)) @ force)
    assert cost == costs.FORCE_SHIFT


def test_inertia_shift() -> None:
    """A symmetric matrix turned and moved block by block is φ S φ*."""
    rng = np.random.default_rng(1)
    rotation, offset = exp_so3(rng.normal(size=3)), rng.normal(size=3)
    half = rng.normal(size=(6, 6))
    S = half @ half.T
    phi = force_transform(pose(rotation, offset))
    result, cost = spent(lambda: _move(counted(rotation), counted(offset), counted(S)))
    np.testing.assert_allclose(values(result), phi @ S @ phi.T)
    assert cost == costs.INERTIA_SHIFT


def _upper(entry: Callable[[int, int], Any]) -> Any:
    """A symmetric 3x3 matrix of which six entries are computed."""
    result = np.empty((3, 3), dtype=object)
    for i in range(3):
        for j in range(i, 3):
            result[i, j] = result[j, i] = entry(i, j)
    return result


def _move(R: Any, p: Any, S: Any) -> Any:
    def turn(block: Any) -> Any:
        return np.stack([times(R, column) for column in block.T], axis=1)

    def turn_symmetric(block: Any) -> Any:
        half = turn(block)
        return _upper(lambda i, j: dot(half[i], R[j]))

    def hat_entry(X: Any, i: int, j: int) -> Any:
        a, b = (i + 1) % 3, (i + 2) % 3
        return p[a] * X[b, j] - p[b] * X[a, j]

    A, C = turn_symmetric(S[:3, :3]), turn_symmetric(S[3:, 3:])
    B = turn(turn(S[:3, 3:]).T).T
    moved = B + np.array([[hat_entry(C, i, j) for j in range(3)] for i in range(3)], dtype=object)
    corner = _upper(lambda i, j: A[i, j] + hat_entry(B.T, i, j) + hat_entry(moved.T, j, i))
    return np.block([[corner, moved], [moved.T, C]])


def test_inertia_times_motion() -> None:
    """Ten numbers act on a motion; a symmetric 6x6 matrix does so without help."""
    rng = np.random.default_rng(2)
    numbers = np.concatenate([[2.0], rng.normal(size=3), rng.uniform(1, 2, 3), rng.normal(size=3)])
    full = inertia_matrix(numbers)
    motion = rng.normal(size=6)
    inertia, mc, m = (
        counted(full[:3, :3]),
        counted(full[[2, 0, 1], [4, 5, 3]]),
        counted(full[3:4, 3]),
    )
    x = counted(motion)

    def work() -> Any:
        moment = times(inertia, x[:3]) + cross(mc, x[3:])
        return np.concatenate([moment, x[3:] * m - cross(mc, x[:3])])

    result, cost = spent(work)
    np.testing.assert_allclose(values(result), full @ motion, rtol=1e-12)
    assert cost == costs.RIGID_TIMES
    assert spent(lambda: times(counted(full), x))[1] == costs.DENSE_TIMES


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_joint_inertia_factored_and_solved(d: int) -> None:
    """L D L* of a joint's inertia, with reciprocals, then one solution."""
    rng = np.random.default_rng(d)
    half = rng.normal(size=(d, d))
    matrix, right = half @ half.T + np.eye(d), rng.normal(size=d)
    place = Place(d, 0, True, False, ((0, 0),) * d, (0, 0))
    (L, inverse), cost = spent(lambda: _factor(counted(matrix)))
    assert cost == costs._factor(place)
    result, cost = spent(lambda: _solve(L, inverse, counted(right)))
    np.testing.assert_allclose(values(result), np.linalg.solve(matrix, right), rtol=1e-9)
    assert cost == costs._solve(place)


def _factor(a: Any) -> tuple[Any, list[Any]]:
    d = len(a)
    L, diagonal, inverse = np.empty((d, d), dtype=object), [], []
    for j in range(d):
        scaled = [L[j, k] * diagonal[k] for k in range(j)]
        pivot = a[j, j]
        for k in range(j):
            pivot = pivot - L[j, k] * scaled[k]
        diagonal.append(pivot)
        inverse.append(Counted(1.0) / pivot)
        for i in range(j + 1, d):
            entry = a[i, j]
            for k in range(j):
                entry = entry - L[i, k] * scaled[k]
            L[i, j] = entry * inverse[j]
    return L, inverse


def _solve(L: Any, inverse: list[Any], x: Any) -> Any:
    d, x = len(x), x.copy()
    for i in range(d):
        for k in range(i):
            x[i] = x[i] - L[i, k] * x[k]
    x = np.array([x[i] * inverse[i] for i in range(d)], dtype=object)
    for i in reversed(range(d)):
        for k in range(i + 1, d):
            x[i] = x[i] - L[k, i] * x[k]
    return x


def test_every_operation_has_a_cost() -> None:
    """What the interpreter can do, the count knows."""
    known = set(costs._COSTS) | {"sum", "inertia"}
    assert known == set(interpret._LOCAL) | set(interpret._SHIFT)


@pytest.mark.parametrize("name", PROGRAMS)
def test_linear_in_the_number_of_links(name: str) -> None:
    """On a chain each further link costs the same, up to 10 000 of them."""
    robots = {n: chain(n).model for n in (10, 20, 30)}
    totals = {n: count(kernel(name).schedule, model).total.total for n, model in robots.items()}
    assert totals[30] - totals[20] == totals[20] - totals[10] > 0


def test_a_long_chain() -> None:
    """10 000 links: 1 000 times the increment of ten."""
    schedule = kernel("forward_dynamics").schedule
    ten, twenty, many = (count(schedule, chain(n).model).total.total for n in (10, 20, 10_000))
    assert many == ten + (twenty - ten) * 999
