# SPDX-License-Identifier: BSD-3-Clause
"""Inertias of scalars: nothing, rigid (10 numbers), symmetric (21) or gyroscopic (18).

A compliance is a symmetric matrix, too: it turns forces into motions, and goes outward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from phistar.scalar.graph import Scalar
from phistar.scalar.linear.vectors import (
    Matrix,
    Rotation,
    Vector,
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


@dataclass(frozen=True)
class RigidInertia:
    """A rigid body: mass, first moment h and rotational inertia J about the frame's origin."""

    mass: Scalar
    h: Vector
    J: Vector

    def scalars(self) -> Vector:
        """All ten."""
        return [self.mass, *self.h, *self.J]

    def times(self, x: Vector) -> Vector:
        """The momentum of a motion."""
        w, v = x[:3], x[3:]
        angular = plus(symmetric_times(self.J, w), cross(self.h, v))
        return [*angular, *minus(scaled(self.mass, v), cross(self.h, w))]

    def in_parent(self, rotation: Rotation, p: Vector) -> RigidInertia:
        """As seen from the parent."""
        h = rotation.rotate(self.h)
        there = plus(h, scaled(self.mass, p))
        J = rotation.congruence(self.J)
        w = [(a + b) * c for a, b, c in zip(h, there, p, strict=True)]
        J = [
            J[0] + (w[1] + w[2]),
            J[1] - (p[0] * h[1] + there[0] * p[1]),
            J[2] - (p[0] * h[2] + there[0] * p[2]),
            J[3] + (w[0] + w[2]),
            J[4] - (p[1] * h[2] + there[1] * p[2]),
            J[5] + (w[0] + w[1]),
        ]
        return RigidInertia(self.mass, there, J)

    def entry(self, i: int, j: int) -> Scalar:
        """Entry of the 6x6 matrix."""
        if i > j:
            i, j = j, i
        if j < 3:
            return self.J[symmetric_index(i, j)]
        if i >= 3:
            return self.mass if i == j else 0.0
        return _skew(self.h, i, j - 3)


@dataclass(frozen=True)
class SymmetricInertia:
    """Any symmetric 6x6 matrix [[J, B], [B*, C]]."""

    J: Vector
    B: Matrix
    C: Vector

    def scalars(self) -> Vector:
        """All twenty-one."""
        return [*self.J, *(x for row in self.B for x in row), *self.C]

    def times(self, x: Vector) -> Vector:
        """The force of a motion."""
        w, v = x[:3], x[3:]
        angular = plus(symmetric_times(self.J, w), times(self.B, v))
        return [*angular, *plus(times(transposed(self.B), w), symmetric_times(self.C, v))]

    def in_parent(self, rotation: Rotation, p: Vector) -> SymmetricInertia:
        """As seen from the parent: turned, then shifted."""
        J, C = rotation.congruence(self.J), rotation.congruence(self.C)
        B = rotation.general_congruence(self.B)
        columns = [cross(p, [C[symmetric_index(i, j)] for i in range(3)]) for j in range(3)]
        there = [[B[i][j] + columns[j][i] for j in range(3)] for i in range(3)]
        # J + p~ B* - B' p~: column j of p~ B* is p x (row j of B), row i of B' p~ is B'_i x p.
        left = [cross(p, B[j]) for j in range(3)]
        right = [cross(there[i], p) for i in range(3)]
        J = [
            J[symmetric_index(i, j)] + (left[j][i] - right[i][j])
            for i in range(3)
            for j in range(i, 3)
        ]
        return SymmetricInertia(J, there, C)

    def entry(self, i: int, j: int) -> Scalar:
        """Entry of the 6x6 matrix."""
        if i > j:
            i, j = j, i
        if j < 3:
            return self.J[symmetric_index(i, j)]
        if i >= 3:
            return self.C[symmetric_index(i - 3, j - 3)]
        return self.B[i][j - 3]


@dataclass(frozen=True)
class AngularTransfer:
    """A 6x6 matrix from motions to forces that reads their angular part: [[A, 0], [C, 0]]."""

    A: Matrix
    C: Matrix

    def scalars(self) -> Vector:
        """All eighteen."""
        return [x for half in (self.A, self.C) for row in half for x in row]

    def times(self, x: Vector) -> Vector:
        """The force of a motion."""
        return [*times(self.A, x[:3]), *times(self.C, x[:3])]

    def adjoint_times(self, x: Vector) -> Vector:
        """The adjoint times a motion: a moment."""
        moment = plus(times(transposed(self.A), x[:3]), times(transposed(self.C), x[3:]))
        return [*moment, 0.0, 0.0, 0.0]

    def in_parent(self, rotation: Rotation, p: Vector) -> AngularTransfer:
        """As seen from the parent: turned, then shifted."""
        A, C = rotation.general_congruence(self.A), rotation.general_congruence(self.C)
        columns = [cross(p, [C[i][j] for i in range(3)]) for j in range(3)]
        return AngularTransfer([[A[i][j] + columns[j][i] for j in range(3)] for i in range(3)], C)

    def entry(self, i: int, j: int) -> Scalar:
        """Entry of the 6x6 matrix."""
        if j >= 3:
            return 0.0
        return self.A[i][j] if i < 3 else self.C[i - 3][j]


@dataclass(frozen=True)
class ZeroInertia:
    """No inertia at all."""

    def scalars(self) -> Vector:
        """None."""
        return []

    def times(self, x: Vector) -> Vector:
        """No force."""
        return [0.0] * 6

    def adjoint_times(self, x: Vector) -> Vector:
        """No force."""
        return [0.0] * 6

    def in_parent(self, rotation: Rotation, p: Vector) -> ZeroInertia:
        """Still nothing."""
        return self

    def entry(self, i: int, j: int) -> Scalar:
        """Zero."""
        return 0.0


Inertia = RigidInertia | SymmetricInertia | AngularTransfer | ZeroInertia


def _skew(x: Sequence[Scalar], i: int, j: int) -> Scalar:
    """Entry of the matrix of a cross product."""
    if i == j:
        return 0.0
    return -x[3 - i - j] if (j - i) % 3 == 1 else x[3 - i - j]


def to_symmetric(inertia: Inertia) -> SymmetricInertia:
    """Any inertia with all 21 numbers."""
    if isinstance(inertia, SymmetricInertia):
        return inertia
    corner = [inertia.entry(i, j) for i in range(3) for j in range(i, 3)]
    block = [[inertia.entry(i, j) for j in range(3, 6)] for i in range(3)]
    far = [inertia.entry(i, j) for i in range(3, 6) for j in range(i, 6)]
    return SymmetricInertia(corner, block, far)


def add_inertias(x: Inertia, y: Inertia) -> Inertia:
    """The sum, of the simplest kind that can hold it."""
    if isinstance(x, ZeroInertia):
        return y
    if isinstance(y, ZeroInertia):
        return x
    if isinstance(x, RigidInertia) and isinstance(y, RigidInertia):
        return RigidInertia(x.mass + y.mass, plus(x.h, y.h), plus(x.J, y.J))
    if isinstance(x, AngularTransfer) and isinstance(y, AngularTransfer):
        pairs = ((x.A, y.A), (x.C, y.C))
        return AngularTransfer(
            *([plus(p, q) for p, q in zip(*pair, strict=True)] for pair in pairs)
        )
    a, b = to_symmetric(x), to_symmetric(y)
    block = [plus(p, q) for p, q in zip(a.B, b.B, strict=True)]
    return SymmetricInertia(plus(a.J, b.J), block, plus(a.C, b.C))


def scale_inertia(factor: float, x: Inertia) -> Inertia:
    """A multiple."""
    if factor == 1.0 or isinstance(x, ZeroInertia):
        return x
    if isinstance(x, RigidInertia):
        return RigidInertia(factor * x.mass, scaled(factor, x.h), scaled(factor, x.J))
    if isinstance(x, AngularTransfer):
        return AngularTransfer(*([scaled(factor, row) for row in half] for half in (x.A, x.C)))
    return SymmetricInertia(
        scaled(factor, x.J), [scaled(factor, row) for row in x.B], scaled(factor, x.C)
    )


def congruence_out(x: Inertia, rotation: Rotation, p: Vector) -> SymmetricInertia | ZeroInertia:
    """φ* x φ: a compliance of the parent as seen from a link, shifted, then turned."""
    if isinstance(x, ZeroInertia):
        return x
    s = to_symmetric(x)
    # B' = B + J p~, C' = C + B* p~ - p~ B': row i of A p~ is A_i x p, column j of p~ A is p x A_j.
    there = [
        plus(s.B[i], cross([s.J[symmetric_index(i, j)] for j in range(3)], p)) for i in range(3)
    ]
    left = [cross(p, column) for column in transposed(there)]
    right = [cross(column, p) for column in transposed(s.B)]
    C = [
        s.C[symmetric_index(i, j)] + (right[i][j] - left[j][i])
        for i in range(3)
        for j in range(i, 3)
    ]
    back = rotation.inverse()
    return SymmetricInertia(
        back.congruence(s.J), back.general_congruence(there), back.congruence(C)
    )


def similarity_out(x: Inertia, rotation: Rotation, p: Vector) -> AngularTransfer | ZeroInertia:
    """φ* x φ*⁻¹: motions per motion of the parent as of a link, shifted, then turned."""
    if isinstance(x, ZeroInertia):
        return x
    assert isinstance(x, AngularTransfer)
    columns = [cross(p, column) for column in transposed(x.A)]
    there = [[x.C[i][j] - columns[j][i] for j in range(3)] for i in range(3)]
    back = rotation.inverse()
    return AngularTransfer(back.general_congruence(x.A), back.general_congruence(there))


def articulated_downdate(x: Inertia, left: Matrix, right: Matrix) -> Inertia:
    """x - left right*, known to be symmetric; ``left`` and ``right`` have six rows."""

    def entry(i: int, j: int) -> Scalar:
        total = x.entry(i, j)
        for a, b in zip(left[i], right[j], strict=True):
            total = total - a * b
        return total

    corner = [entry(i, j) for i in range(3) for j in range(i, 3)]
    block = [[entry(i, j) for j in range(3, 6)] for i in range(3)]
    far = [entry(i, j) for i in range(3, 6) for j in range(i, 6)]
    every = [*corner, *(e for row in block for e in row), *far]
    if all(isinstance(e, float) and e == 0.0 for e in every):
        return ZeroInertia()
    return SymmetricInertia(corner, block, far)


def gyroscopic_transfer(inertia: RigidInertia, motion: Vector) -> AngularTransfer:
    """M̂ = ½(crf[V] M - M crm[V] - Q[MV]) = [[E ω~ - (Jω)~ - h~v~, 0], [-(mv + ω × h)~, 0]].

    E = ½ tr(J) - J are the second moments of the mass about the three planes.
    """
    w, v = motion[:3], motion[3:]
    J, h = inertia.J, inertia.h
    half = (J[0] + J[3] + J[5]) * 0.5
    spun = symmetric_times(J, w)
    hv = dot(h, v)
    A = []
    for i in range(3):
        row = [(half if i == k else 0.0) - J[symmetric_index(i, k)] for k in range(3)]
        turned = cross(row, w)
        # h~v~ = v h* - (h·v) 1
        own = [turned[j] - _skew(spun, i, j) - v[i] * h[j] for j in range(3)]
        own[i] = own[i] + hv
        A.append(own)
    linear = plus(scaled(inertia.mass, v), cross(w, h))
    return AngularTransfer(A, [[-_skew(linear, i, j) for j in range(3)] for i in range(3)])


def project_across_joint(x: Inertia, gain: Matrix, picked: Matrix) -> Inertia:
    """x - gain picked, the rows of x that a joint picks: what is left of it across the joint."""
    if isinstance(x, ZeroInertia):
        return x
    assert isinstance(x, AngularTransfer)
    rows = [
        [
            entry - dot(gain[i], [row[j] for row in picked])
            for j, entry in enumerate((x.A if i < 3 else x.C)[i % 3])
        ]
        for i in range(6)
    ]
    return AngularTransfer(rows[:3], rows[3:])


def inertia_rate(motion: Vector, x: Inertia) -> Inertia:
    """motion ×* x - x motion ×: the product with its transpose added."""
    if isinstance(x, ZeroInertia):
        return x
    w, v = motion[:3], motion[3:]
    half = []
    for j in range(6):
        column = [x.entry(i, j) for i in range(6)]
        moment = plus(cross(w, column[:3]), cross(v, column[3:]))
        half.append([*moment, *cross(w, column[3:])])
    return _from_entries(lambda i, j: half[j][i] + half[i][j])


def congruence_across_joint(
    x: Inertia, gain: Matrix, u: Matrix, w: Matrix, own: frozenset[int]
) -> Inertia:
    """x - gain u* - w gain*, known to be symmetric and zero in the rows ``own``."""
    if isinstance(x, ZeroInertia):
        return x

    def entry(i: int, j: int) -> Scalar:
        if i in own or j in own:
            return 0.0
        return x.entry(i, j) - dot(gain[i], u[j]) - dot(w[i], gain[j])

    return _from_entries(entry)


def _from_entries(entry: Callable[[int, int], Scalar]) -> SymmetricInertia:
    """The symmetric matrix with these entries above its diagonal."""
    corner = [entry(i, j) for i in range(3) for j in range(i, 3)]
    block = [[entry(i, j) for j in range(3, 6)] for i in range(3)]
    return SymmetricInertia(corner, block, [entry(i, j) for i in range(3, 6) for j in range(i, 6)])
