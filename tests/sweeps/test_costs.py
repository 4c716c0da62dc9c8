# SPDX-License-Identifier: BSD-3-Clause
"""Operation counts: done by hand with numbers that count, operation by operation and all in all."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from phistar.algebra.random_examples import random_vectors
from phistar.algebra.spaces import JOINT
from phistar.algebra.symbols import SYMBOLS
from phistar.algorithms.programs import PROGRAMS
from phistar.compile import kernel
from phistar.model import Model
from phistar.model.builder import ModelBuilder
from phistar.model.components import GROUND
from phistar.model.configuration import neutral, random_configuration
from phistar.model.joints import JOINT_KINDS
from phistar.model.random import random_model
from phistar.robots import chain
from phistar.spatial import inertia_matrix
from phistar.sweeps import interpret
from phistar.sweeps.costs import NO_OPERATIONS, OperationCount, count_operations
from phistar.sweeps.ir import Direction, Node, StreamProgram, Type
from phistar.sweeps.op_values import GroundState
from phistar.sweeps.ops import OPS
from phistar.sweeps.schedule import Schedule, Sweep


class Counted:
    """A number that counts what is done with it. The integers 0, 1 and -1 are known beforehand:
    adding nothing, multiplying by them and changing a sign are free."""

    spent = NO_OPERATIONS

    def __init__(self, value: float) -> None:
        self.value = value

    @classmethod
    def do(cls, value: float, cost: OperationCount) -> "Counted":
        """A result and its price."""
        cls.spent += cost
        return cls(value)

    def __neg__(self) -> "Counted":
        return Counted(-self.value)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int):
            return {0: 0, 1: self, -1: -self}[other]
        return Counted.do(self.value * other.value, OperationCount(1))

    def __add__(self, other: Any) -> "Counted":
        if isinstance(other, int):
            assert other == 0
            return self
        return Counted.do(self.value + other.value, OperationCount(0, 1))

    def __sub__(self, other: Any) -> "Counted":
        return self + (-other)

    def __truediv__(self, other: "Counted") -> "Counted":
        return Counted.do(self.value / other.value, OperationCount(0, 0, 1))

    def __rsub__(self, other: int) -> "Counted":
        return -self + other

    __radd__ = __add__
    __rmul__ = __mul__


def counted(array: Any) -> Any:
    """An array of numbers that count."""
    return np.vectorize(Counted, otypes=[object])(np.asarray(array, dtype=float))


def structured(array: Any) -> Any:
    """The same, but zeros and ones are known beforehand."""
    known = (0.0, 1.0, -1.0)
    return np.vectorize(lambda x: int(x) if x in known else Counted(x), otypes=[object])(array)


def values(array: Any) -> Any:
    """The numbers of an array that counted."""
    return np.vectorize(lambda x: getattr(x, "value", x), otypes=[float])(array)


def dense(array: Any) -> Any:
    """An array without known zeros, unless it is nothing but zeros."""
    if not any(isinstance(x, Counted) for x in array.flat):
        return array
    whole = [x if isinstance(x, Counted) else Counted(float(x)) for x in array.flat]
    return np.array(whole, dtype=object).reshape(array.shape)


def cross(a: Any, b: Any) -> Any:
    """a x b by its six products."""
    rows = [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.array(rows, dtype=object)


def dot(a: Any, b: Any) -> Any:
    """Sum of products."""
    total: Any = 0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def times(matrix: Any, x: Any) -> Any:
    """Matrix times vector."""
    return np.array([dot(row, x) for row in matrix], dtype=object)


def symmetric(size: int, entry: Callable[[int, int], Any]) -> Any:
    """A symmetric matrix of which one triangle is computed."""
    result = np.empty((size, size), dtype=object)
    for i in range(size):
        for j in range(i, size):
            result[i, j] = result[j, i] = entry(i, j)
    return result


def factored(a: Any) -> tuple[Any, Any, list[Any]]:
    """A symmetric matrix, L of its factors L D L*, and the reciprocals of D."""
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
    return a, L, inverse


def solved(factors: tuple[Any, Any, list[Any]], x: Any) -> Any:
    """L D L* y = x by substitution."""
    (_, L, inverse), d, y = factors, len(x), x.copy()
    for i in range(d):
        for k in range(i):
            y[i] = y[i] - L[i, k] * y[k]
    y = np.array([y[i] * inverse[i] for i in range(d)], dtype=object)
    for i in reversed(range(d)):
        for k in range(i + 1, d):
            y[i] = y[i] - L[k, i] * y[k]
    return y


def force_inward(R: Any, p: Any, f: Any) -> Any:
    """φ f: turned, then moved."""
    moment, push = times(R, f[:3]), times(R, f[3:])
    return np.concatenate([moment + cross(p, push), push])


def point_inward(R: Any, p: Any, x: Any) -> Any:
    """π x: turned, then moved by the mass times the offset."""
    return np.concatenate([times(R, x[:3]) + p * x[3], x[3:]])


def motion_outward(R: Any, p: Any, x: Any) -> Any:
    """φ* x: moved, then turned back."""
    return np.concatenate([times(R.T, x[:3]), times(R.T, x[3:] - cross(p, x[:3]))])


def inertia_inward(R: Any, p: Any, S: Any) -> Any:
    """φ S φ*: three blocks turned, then moved."""

    def turn(block: Any) -> Any:
        return np.stack([times(R, column) for column in block.T], axis=1)

    def turn_symmetric(block: Any) -> Any:
        half = turn(block)
        return symmetric(3, lambda i, j: dot(half[i], R[j]))

    def hat_entry(X: Any, i: int, j: int) -> Any:
        a, b = (i + 1) % 3, (i + 2) % 3
        return p[a] * X[b, j] - p[b] * X[a, j]

    A, C = turn_symmetric(S[:3, :3]), turn_symmetric(S[3:, 3:])
    B = turn(turn(S[:3, 3:]).T).T
    moved = B + np.array([[hat_entry(C, i, j) for j in range(3)] for i in range(3)], dtype=object)
    corner = symmetric(3, lambda i, j: A[i, j] + hat_entry(B.T, i, j) + hat_entry(moved.T, j, i))
    return np.block([[corner, moved], [moved.T, C]])


def transfer_inward(R: Any, p: Any, S: Any) -> Any:
    """φ S φ* of the left half of a matrix whose right half is zero: turned, then moved."""

    def turn(block: Any) -> Any:
        return np.stack([times(R, column) for column in block.T], axis=1)

    A, C = (turn(turn(half).T).T for half in (S[:3], S[3:]))
    return np.concatenate([A + np.stack([cross(p, column) for column in C.T], axis=1), C])


class Hand:
    """Runs a program as a person would, one number at a time; the price of each link is kept."""

    def __init__(self, schedule: Schedule, model: Model, q: Any, inputs: dict[str, Any]) -> None:
        self.program, self.sweeps, self.model = schedule.program, schedule.sweeps, model
        self.inputs = {name: counted(value) for name, value in inputs.items()}
        transforms = [body.transform(q) for body in model.bodies]
        self.R, self.p = ([counted(part) for part in parts] for parts in _split(transforms))
        self.H = [structured(body.joint_kind.motion_map().T) for body in model.bodies]
        self.A = [structured(np.array(body.armature)) for body in model.bodies]
        ends = np.cumsum([0, *(len(h) for h in self.H)])
        self.slices = [slice(a, b) for a, b in pairwise(ends)]
        self.values: dict[tuple[int, int], Any] = {}
        self.ground: dict[Node, Any] = {}
        self.by_link = [NO_OPERATIONS] * len(model.bodies)
        self.by_operation: dict[str, OperationCount] = {}

    def run(self) -> "Hand":
        links = range(len(self.model.bodies))
        for each in self.sweeps:
            for k in links if each.direction is Direction.OUTWARD else reversed(links):
                for stream in each.streams:
                    node = self.program.nodes[stream]
                    if node.spec.reduction is not None or not node.type.at_ground:
                        self.value(stream, k)
        return self

    def value(self, stream: int, k: int) -> Any:
        if (stream, k) not in self.values:
            node = self.program.nodes[stream]
            if node.op == "rec":
                return self.value(self.program.definitions[stream], k)
            operands = () if node.op in _SHIFT else [self.value(o, k) for o in node.operands]
            before = Counted.spent
            result = _RECIPES[node.op](self, node, k, *operands)
            spent = Counted.spent + before * -1
            op = "gravity" if node.op == "leaf" else node.op
            self.by_link[k] += spent
            self.by_operation[op] = self.by_operation.get(op, NO_OPERATIONS) + spent
            known = node.op in ("leaf", "rigid", "D", "mass_point")
            self.values[stream, k] = result if known else dense(result)
        return self.values[stream, k]

    def children(self, k: int) -> list[int]:
        return [body.index for body in self.model.bodies if body.parent == k]

    def leaf(self, node: Node, k: int) -> Any:
        if node.data == "gravity":
            if self.model.bodies[k].parent != GROUND:
                return np.array([0] * 6, dtype=object)
            turned = times(self.R[k].T, counted(-self.model.gravity))
            return np.concatenate([np.array([0] * 3, dtype=object), turned])
        own = self.slices[k] if node.type is Type.JOINT else k
        return self.inputs[node.data][own]

    def rigid(self, node: Node, k: int) -> Any:
        full = inertia_matrix(self.model.bodies[k].inertia)
        pattern = np.block([[np.ones((3, 3)), 1 - np.eye(3)], [1 - np.eye(3), np.eye(3)]])
        return np.where(pattern == 0, 0, counted(full))

    def shift_in(self, node: Node, k: int) -> Any:
        moved = [
            force_inward(self.R[c], self.p[c], self.value(node.operands[0], c))
            for c in self.children(k)
        ]
        return sum(moved, np.array([0] * 6, dtype=object))

    def congruence_in(self, node: Node, k: int) -> Any:
        half = node.type is Type.TRANSFER
        total = np.zeros((6, 3 if half else 6), dtype=int).astype(object)
        for c in self.children(k):
            inward = transfer_inward if half else inertia_inward
            moved = inward(self.R[c], self.p[c], self.value(node.operands[0], c))
            total = _add(total, moved)
        return total

    def shift_out(self, node: Node, k: int) -> Any:
        parent = self.model.bodies[k].parent
        if parent == GROUND:
            return np.array([0] * 6, dtype=object)
        return motion_outward(self.R[k], self.p[k], self.value(node.operands[0], parent))

    def congruence_out(self, node: Node, k: int) -> Any:
        """φ* S φ is φ S φ* of the way back, with the linear part first."""
        parent = self.model.bodies[k].parent
        if parent == GROUND:
            return np.zeros((6, 6), dtype=int).astype(object)
        R, swap = self.R[k], [3, 4, 5, 0, 1, 2]
        back = counted(-values(R).T @ values(self.p[k]))
        moved = inertia_inward(R.T, back, self.value(node.operands[0], parent)[swap][:, swap])
        return moved[swap][:, swap]

    def similarity_out(self, node: Node, k: int) -> Any:
        """φ* S φ*⁻¹ of the left half: both blocks turned, the lower one moved before."""
        parent = self.model.bodies[k].parent
        if parent == GROUND:
            return np.zeros((6, 3), dtype=int).astype(object)
        R, S = self.R[k], self.value(node.operands[0], parent)
        across = np.stack([cross(self.p[k], column) for column in S[:3].T], axis=1)
        blocks = (S[:3], S[3:] - across)
        return np.concatenate([_matrix(_matrix(R.T, block), R) for block in blocks])

    def reduce(self, node: Node, k: int, term: Any) -> Any:
        """Add to a sum at the ground, which begins with zeros."""
        self.ground[node] = self.ground.get(node, counted(np.zeros(len(term)))) + term
        return self.ground[node]

    def mass_point(self, node: Node, k: int) -> Any:
        return counted(np.roll(self.model.bodies[k].inertia[:4], -1))

    def coordinate(self, node: Node, k: int) -> Any:
        if self.model.bodies[k].parent != GROUND:
            return np.array([0] * 4, dtype=object)
        i = "xyz".index(node.op[-1])
        return np.concatenate([self.R[k][i], self.p[k][i : i + 1]])

    def plane_out(self, node: Node, k: int) -> Any:
        parent = self.model.bodies[k].parent
        if parent == GROUND:
            return np.array([0] * 4, dtype=object)
        y = self.value(node.operands[0], parent)
        last = dot(y[:3], self.p[k]) + y[3]
        return np.concatenate([times(self.R[k].T, y[:3]), np.array([last], dtype=object)])

    def point_in(self, node: Node, k: int) -> Any:
        moved = [
            point_inward(self.R[c], self.p[c], self.value(node.operands[0], c))
            for c in self.children(k)
        ]
        return sum(moved, np.array([0] * 4, dtype=object))

    def point_to_ground(self, node: Node, k: int, point: Any) -> Any:
        if self.model.bodies[k].parent != GROUND:
            return np.array([0] * 4, dtype=object)
        return self.reduce(node, k, point_inward(self.R[k], self.p[k], point))

    def at_ground(self, stream: int) -> Any:
        """A value at the ground; what is made of sums there is not counted."""
        node = self.program.nodes[stream]
        if node in self.ground:
            return values(self.ground[node])
        state = GroundState.of(self.model)
        if node.op == "ground_point":
            return state.point
        operands = [self.at_ground(o) for o in node.operands]
        if node.op == "sum":
            pairs = zip(node.data, operands, strict=True)
            return sum(float(factor) * term for factor, term in pairs)
        return node.spec.evaluate(state, *operands)

    def to_ground(self, node: Node, k: int, force: Any) -> Any:
        if self.model.bodies[k].parent != GROUND:
            return np.array([0] * 6, dtype=object)
        return self.reduce(node, k, force_inward(self.R[k], self.p[k], force))

    def sum(self, node: Node, k: int, *terms: Any) -> Any:
        total: Any = None
        for factor, term in zip(node.data, terms, strict=True):
            scaled = term * (int(factor) if abs(factor) == 1 else Counted(float(factor)))
            total = scaled if total is None else _add(total, scaled)
        return total


def _split(transforms: list[Any]) -> tuple[list[Any], list[Any]]:
    return [t[:3, :3] for t in transforms], [t[:3, 3] for t in transforms]


def _add(a: Any, b: Any) -> Any:
    return a + b if a.shape != (6, 6) else symmetric(len(a), lambda i, j: a[i, j] + b[i, j])


def _inertia(hand: Hand, node: Node, k: int, S: Any, x: Any) -> Any:
    if hand.program.nodes[node.operands[0]].op != "rigid":
        return times(S, x[: S.shape[1]])
    mc, mass = S[[2, 0, 1], [4, 5, 3]], S[3, 3]
    moment = times(S[:3, :3], x[:3]) + cross(mc, x[3:])
    return np.concatenate([moment, x[3:] * mass - cross(mc, x[:3])])


def _joint_inertia(hand: Hand, node: Node, k: int, U: Any) -> Any:
    H, A = hand.H[k], hand.A[k]
    sums = symmetric(len(H), lambda i, j: dot(H[i], U[:, j]) + (A[i] if i == j else 0))
    return factored(sums)


def _motion_cross(hand: Hand, node: Node, k: int, x: Any, y: Any) -> Any:
    return np.concatenate([cross(x[:3], y[:3]), cross(x[:3], y[3:]) + cross(x[3:], y[:3])])


def _force_cross(hand: Hand, node: Node, k: int, x: Any, f: Any) -> Any:
    return np.concatenate([cross(x[:3], f[:3]) + cross(x[3:], f[3:]), cross(x[:3], f[3:])])


def _give(hand: Hand, node: Node, k: int, S: Any, G: Any, D: Any) -> Any:
    H, d, root = hand.H[k], len(hand.H[k]), hand.model.bodies[k].parent == GROUND
    units = counted(np.eye(d))
    columns = [solved(D, unit) for unit in units] if d > 1 else [[D[2][0]]]
    Z = G * 0 if root else np.stack([times(S, g) for g in G.T], axis=1)
    L = symmetric(d, lambda i, j: columns[i][j] + (0 if root else dot(G[:, i], Z[:, j])))
    U = np.array([[dot(L[m], H[:, j]) - Z[j, m] for j in range(6)] for m in range(d)], dtype=object)
    return symmetric(6, lambda i, j: S[i, j] + dot(H[:, i], U[:, j]) - dot(Z[i], H[:, j]))


def _gyro(hand: Hand, node: Node, k: int, V: Any) -> Any:
    """The left half of M̂; E, the second moments about the planes, is known beforehand."""
    M = hand.rigid(node, k)
    mc, mass, w, v = M[[2, 0, 1], [4, 5, 3]], M[3, 3], V[:3], V[3:]
    J = values(M[:3, :3])
    E = counted(np.eye(3) * np.trace(J) / 2 - J)
    spun, along = times(M[:3, :3], w), dot(mc, v)
    moment = [
        [x - v[i] * mc[j] + (along if i == j else 0) for j, x in enumerate(cross(E[i], w))]
        for i in range(3)
    ]
    return np.concatenate([np.array(moment) - _hat(spun), -_hat(v * mass + cross(w, mc))])


def _hat(x: Any) -> Any:
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]], dtype=object)


def _across(hand: Hand, node: Node, k: int, S: Any, G: Any) -> Any:
    picked = np.stack([times(hand.H[k], column) for column in S.T], axis=1)
    return np.array(
        [[S[i, j] - dot(G[i], picked[:, j]) for j in range(3)] for i in range(6)], dtype=object
    )


def _turn(hand: Hand, node: Node, k: int, x: Any, S: Any) -> Any:
    half = np.stack([_force_cross(hand, node, k, x, column) for column in S.T], axis=1)
    return symmetric(6, lambda i, j: half[i, j] + half[j, i])


def _through(hand: Hand, node: Node, k: int, S: Any, G: Any) -> Any:
    H, d = hand.H[k], len(hand.H[k])
    U = np.stack([times(S, row) for row in H], axis=1)
    square = symmetric(d, lambda i, j: dot(H[i], U[:, j]))
    W = [[U[i, j] - dot(G[i], square[:, j]) for j in range(d)] for i in range(6)]
    return symmetric(6, lambda i, j: S[i, j] - dot(G[i], U[j]) - dot(W[i], G[j]))


def _to_world(hand: Hand, node: Node, k: int, x: Any, y: Any, z: Any, motion: Any) -> Any:
    rows = np.stack([x, y, z])
    angular, linear = times(rows[:, :3], motion[:3]), times(rows[:, :3], motion[3:])
    return np.concatenate([angular, linear + cross(rows[:, 3], angular)])


def _link_energy(hand: Hand, node: Node, k: int, x: Any) -> Any:
    """Halves of the moments are known beforehand; each product of two rates is made once."""
    M = hand.rigid(node, k)
    mc, half, w, v = M[[2, 0, 1], [4, 5, 3]], Counted(M[3, 3].value / 2), x[:3], x[3:]
    J = values(M[:3, :3])
    rows = counted(np.triu(J, 1) + np.diag(np.diag(J) / 2))
    spun = np.array([dot(rows[i, i:], w[i:]) for i in range(3)], dtype=object)
    return np.array([dot(w, spun + cross(mc, v)) + dot(v, v) * half], dtype=object)


def _rotor_energy(hand: Hand, node: Node, k: int, x: Any) -> Any:
    halves = structured(values(hand.A[k]) / 2)
    return np.array([dot(halves, x * x if halves.any() else x)], dtype=object)


def _matrix(A: Any, B: Any) -> Any:
    return np.stack([times(A, column) for column in B.T], axis=1)


def _slip(hand: Hand, node: Node, k: int, N: Any, S: Any, G: Any, D: Any) -> Any:
    picked = [times(hand.H[k], column) for column in N.T]
    told = np.stack([solved(D, column) for column in picked])
    if hand.model.bodies[k].parent != GROUND:
        told = told - _matrix(S.T, G)
    return np.concatenate([told, np.zeros(told.shape, dtype=int).astype(object)])


def _bend(hand: Hand, node: Node, k: int, S: Any, B: Any) -> Any:
    moved = np.stack([times(hand.H[k].T, row) for row in B[:3]], axis=1)
    return S + moved


_SHIFT = {
    "shift_in": Hand.shift_in,
    "similarity_out": Hand.similarity_out,
    "congruence_in": Hand.congruence_in,
    "shift_out": Hand.shift_out,
    "congruence_out": Hand.congruence_out,
    "point_in": Hand.point_in,
    "plane_out": Hand.plane_out,
}
_RECIPES: dict[str, Callable[..., Any]] = {
    **_SHIFT,
    "leaf": Hand.leaf,
    "rigid": Hand.rigid,
    "sum": Hand.sum,
    "inertia": _inertia,
    "inertia_t": lambda h, n, k, S, x: np.concatenate([times(S.T, x), np.array([0] * 3)]),
    "gyro": _gyro,
    "project_across": _across,
    "H": lambda h, n, k, f: times(h.H[k], f),
    "Ht": lambda h, n, k, x: times(h.H[k].T, x),
    "U": lambda h, n, k, P: np.stack([times(P, row) for row in h.H[k]], axis=1),
    "D": _joint_inertia,
    "G": lambda h, n, k, U, D: np.stack([solved(D, row) for row in U]),
    "articulated_downdate": lambda h, n, k, P, U, G: symmetric(
        6, lambda i, j: P[i, j] - dot(G[i], U[j])
    ),
    "compliance_update": _give,
    "inertia_rate": _turn,
    "congruence_across": _through,
    "bias_gain": _slip,
    "transfer_update": _bend,
    "Gx": lambda h, n, k, G, x: times(G, x),
    "Gtx": lambda h, n, k, G, x: times(G.T, x),
    "Dx": lambda h, n, k, D, x: times(D[0], x),
    "Dsolve": lambda h, n, k, D, x: solved(D, x),
    "Ax": lambda h, n, k, x: h.A[k] * x,
    "crm": _motion_cross,
    "crf": _force_cross,
    "to_world": _to_world,
    "link_energy": _link_energy,
    "rotor_energy": _rotor_energy,
    "dot": lambda h, n, k, x, y: np.array([dot(x, y)], dtype=object),
    "total": Hand.reduce,
    "to_ground": Hand.to_ground,
    "mass_point": Hand.mass_point,
    **{f"coordinate_{axis}": Hand.coordinate for axis in "xyz"},
    "point_to_ground": Hand.point_to_ground,
}


LONG = 60
"""Streams; longer programs are counted on robots with fewer links."""


def _case(seed: int, name: str, **options: Any) -> tuple[Model, Any, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    streams = len(list(kernel(name).schedule.program.live()))
    model = random_model(rng, 5 if streams > LONG else 9, armature=0.5, **options)
    given = random_vectors(rng, model, PROGRAMS[name].values())
    given.pop("gravity", None)
    joints = {n for n in given if SYMBOLS[n].symbol.codomain is JOINT}
    inputs = {n: x if n in joints else x.reshape(-1, 6) for n, x in given.items()}
    return model, random_configuration(model, rng), inputs


ROUNDED_UP = {"inverse_dynamics_hvp", "mass_matrix_change", "forward_dynamics_jvp_split"}
"""Programs in which a person saves what the count does not see: gravity, of which half is zero, is
crossed with something, or something vanishes at a root, and so all that its children get of it."""


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("topology", ["serial", "tree", "forest"])
def test_counts_are_what_a_person_does(name: str, topology: str) -> None:
    """Every link and every operation costs what it takes to get the right result by hand.

    Where a stream is zero for a reason that lies at another link the count is up to 1 in 10 more.
    """
    model, q, inputs = _case(1, name, topology=topology, floating_base=topology == "tree")
    program = kernel(name)
    bill = count_operations(program.schedule, model)
    hand = Hand(program.schedule, model, q, inputs).run()
    by_hand = sum(hand.by_link, NO_OPERATIONS)
    if name in ROUNDED_UP:
        assert by_hand.total < bill.total.total <= 1.1 * by_hand.total
    else:
        assert list(bill.by_link) == hand.by_link
        ours = {op: cost for op, (_, cost) in bill.by_operation.items() if cost.total}
        assert ours == {op: cost for op, cost in hand.by_operation.items() if cost.total}
        assert bill.total == by_hand
    assert bill.total == sum(bill.by_stream.values(), NO_OPERATIONS)
    expected = interpret.run(program.schedule, model, q, inputs)
    for output, stream in program.schedule.program.outputs.items():
        node = program.schedule.program.nodes[stream]
        if node.type.at_ground:
            result = hand.at_ground(stream)
        else:
            parts = [values(hand.value(stream, k)) for k in range(len(model.bodies))]
            result = np.concatenate(parts)
        right = expected[output].reshape(-1)
        assert np.abs(result - right).max() <= 1e-9 * np.abs(right).max()


COUNTED = [
    row.name
    for row in OPS.values()
    if row.cost
    and not row.is_scalar_only
    and (row.reduction is not None or not row.signatures[0].result.at_ground)
]


def _single(op: str) -> Schedule:
    """A program of nothing but one operation and what it needs."""
    program = StreamProgram()
    motion, force = program.leaf("x", Type.MOTION), program.leaf("f", Type.FORCE)
    joint = program.leaf("tau", Type.JOINT)
    S, N = program.leaf("S", Type.INERTIA), program.leaf("N", Type.TRANSFER)
    U = program.add("U", (S,), Type.BLOCK)
    D = program.add("D", (U,), Type.FACTOR)
    G = program.add("G", (U, D), Type.BLOCK)
    carried = program.add("congruence_out", (S,), Type.INERTIA)
    moved = program.add("similarity_out", (N,), Type.TRANSFER)
    told = program.add("bias_gain", (N, moved, G, D), Type.BLOCK)
    operands = {
        **{"similarity_out": (N,), "bias_gain": (N, moved, G, D), "transfer_update": (moved, told)},
        **{"congruence_out": (S,), "compliance_update": (carried, G, D)},
        **{
            "H": (force,),
            "shift_in": (force,),
            "Ht": (joint,),
            "Ax": (joint,),
            "shift_out": (motion,),
        },
        **{"U": (S,), "congruence_in": (S,), "inertia": (S, motion), "D": (U,), "G": (U, D)},
        **{"articulated_downdate": (S, U, G), "Gx": (G, joint), "Gtx": (G, motion)},
        **{"inertia_rate": (motion, S), "congruence_across": (S, G)},
        **{"gyro": (motion,), "project_across": (N, G), "inertia_t": (N, motion)},
        **{"link_energy": (motion,), "rotor_energy": (joint,), "dot": (motion, force)},
        **{"total": (program.leaf("one", Type.NUMBER),), "to_ground": (force,)},
        **dict.fromkeys(("point_in", "point_to_ground"), (program.leaf("point", Type.POINT),)),
        "plane_out": (program.leaf("plane", Type.PLANE),),
        "to_world": (*(program.leaf("plane", Type.PLANE),) * 3, motion),
        **{"Dx": (D, joint), "Dsolve": (D, joint), "crm": (motion, motion), "crf": (motion, force)},
    }[op]
    motions, joints = {"Ht", "shift_out", "crm"}, {"H", "Gtx", "Dx", "Dsolve", "Ax"}
    types = {"U": Type.BLOCK, "G": Type.BLOCK, "D": Type.FACTOR}
    types |= dict.fromkeys(
        (
            "congruence_in",
            "articulated_downdate",
            "congruence_out",
            "compliance_update",
            "inertia_rate",
            "congruence_across",
        ),
        Type.INERTIA,
    )
    types |= dict.fromkeys(
        ("gyro", "project_across", "similarity_out", "transfer_update"), Type.TRANSFER
    )
    types["bias_gain"] = Type.BLOCK
    types |= dict.fromkeys(("link_energy", "rotor_energy", "dot"), Type.NUMBER)
    types |= {"total": Type.TOTAL, "to_ground": Type.GROUND_FORCE}
    types["to_world"] = Type.WORLD_MOTION
    types |= {"plane_out": Type.PLANE, "point_in": Type.POINT, "point_to_ground": Type.GROUND_POINT}
    types |= {**dict.fromkeys(motions, Type.MOTION), **dict.fromkeys(joints, Type.JOINT)}
    wanted = program.add(op, operands, types.get(op, Type.FORCE))
    chain_of = [s for s in (U, D, G, moved, told) if s in _needed(program, wanted)]
    program.outputs = {"out": wanted}
    streams = tuple(dict.fromkeys([*chain_of, wanted]))
    return Schedule(program, (Sweep(Direction.INWARD, streams),))


def _needed(program: StreamProgram, stream: int) -> set[int]:
    inner = (_needed(program, o) for o in program.nodes[stream].operands)
    return {stream}.union(*inner)


@pytest.mark.parametrize("op", sorted(COUNTED))
@pytest.mark.parametrize("kind", [k for k, cls in JOINT_KINDS.items() if cls.nv])
def test_one_operation(op: str, kind: str) -> None:
    """A single operation at each link of a tree with one joint kind, any axis: value and price."""
    rng = np.random.default_rng(2)
    model = random_model(rng, 5, kinds=[kind], topology="binary", armature=0.5)
    q, sizes = random_configuration(model, rng), [body.joint_kind.nv for body in model.bodies]
    half = rng.normal(size=(len(sizes), 6, 6))
    inputs = {
        "x": rng.normal(size=(len(sizes), 6)),
        "f": rng.normal(size=(len(sizes), 6)),
        "tau": rng.normal(size=sum(sizes)),
        "S": half @ np.swapaxes(half, -1, -2) + np.eye(6),
        "N": half[..., :3],
        "one": rng.normal(size=(len(sizes), 1)),
        "point": rng.normal(size=(len(sizes), 4)),
        "plane": rng.normal(size=(len(sizes), 4)),
    }
    schedule = _single(op)
    hand = Hand(schedule, model, q, inputs).run()
    _, cost = count_operations(schedule, model).by_operation.get(op, (0, NO_OPERATIONS))
    assert cost == hand.by_operation.get(op, NO_OPERATIONS)
    machine = interpret.Interpreter(
        schedule, model, q, {n: inputs[n] for n in ("x", "f", "tau", "one", "point", "plane")}
    )
    stream = schedule.program.outputs["out"]
    whole = {"S": inputs["S"], "N": np.concatenate([inputs["N"], 0 * inputs["N"]], axis=-1)}
    for leaf, given in enumerate(schedule.program.nodes):
        for k in range(len(sizes) if given.data in whole else 0):
            machine.values[leaf, k] = whole[given.data][k]
    machine.run()
    node = schedule.program.nodes[stream]
    if node.type.at_ground:
        total = machine.values[stream, GROUND]
        np.testing.assert_allclose(values(hand.ground[node]), total, rtol=1e-8, atol=1e-10)
        return
    for k in range(len(sizes)):
        result = hand.value(stream, k)
        ours = values(result[0] if op == "D" else result)
        theirs = machine.values[stream, k]
        if op in ("gyro", "project_across", "similarity_out", "transfer_update"):
            assert not np.abs(theirs[:, 3:]).max() > 1e-12
            theirs = theirs[:, :3]
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


def test_rotors_on_some_axes() -> None:
    """A joint with a rotor on two of its three axes: only these cost something."""
    builder = ModelBuilder("ball")
    builder.link("base")
    builder.link("ball", 1.0, (0.0, 0.0, 0.1), np.diag([1.0, 2.0, 2.5]))
    builder.joint("wrist", "spherical", "base", "ball", armature=(0.1, 0.0, 0.2))
    model = builder.build()
    for name in ("mass_matrix_times", "mass_matrix_solve"):
        schedule, inputs = kernel(name).schedule, {"vdot": np.ones(3), "tau": np.ones(3)}
        hand = Hand(schedule, model, neutral(model), inputs).run()
        assert list(count_operations(schedule, model).by_link) == hand.by_link


@cache
def _chain(n: int) -> Model:
    return chain(n).model


@pytest.mark.parametrize("name", PROGRAMS)
def test_linear_in_the_number_of_links(name: str) -> None:
    """On chains count(2n) - 2 count(n) is the same for all n up to 5 000: nothing grows faster."""
    schedule = kernel(name).schedule
    totals = {
        n: count_operations(schedule, _chain(n)).total.total for n in (10, 20, 40, 5_000, 10_000)
    }
    rest = totals[20] - 2 * totals[10]
    assert totals[40] - 2 * totals[20] == totals[10_000] - 2 * totals[5_000] == rest
    assert totals[20] > totals[10] > abs(rest)
