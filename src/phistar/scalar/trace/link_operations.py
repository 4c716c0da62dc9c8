# SPDX-License-Identifier: BSD-3-Clause
"""What each operation on links is in scalars: one function a row, the same for every shape of code.

Values by type: a motion or force is a list of six, a joint vector a list of d, an inertia one of
``scalar.linear.inertias``, a joint block six rows of d, a joint inertia a ``LdlFactor``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import cast

from phistar.scalar.graph import Scalar, guard
from phistar.scalar.linear.inertias import (
    AngularTransfer,
    Inertia,
    RigidInertia,
    SymmetricInertia,
    add_inertias,
    articulated_downdate,
    congruence_across_joint,
    congruence_out,
    gyroscopic_transfer,
    inertia_rate,
    project_across_joint,
    scale_inertia,
    similarity_out,
)
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
    times,
    transposed,
)
from phistar.scalar.robot.link_scalars import LinkScalars
from phistar.sweeps.stream_types import Type


@dataclass(frozen=True)
class PlacedLink:
    """A link with its transform to the parent.

    Attributes:
        added: More joint inertia that is given when the program runs, one for each joint velocity;
            none: nothing is added.
    """

    link: LinkScalars
    rotation: Rotation
    offset: Vector
    added: Vector = field(default_factory=list)

    @property
    def inertia(self) -> RigidInertia:
        """The link's own inertia."""
        return RigidInertia(self.link.mass, self.link.h, self.link.J)

    def force_to_link_frame(self, f: Vector) -> Vector:
        """A force in the model's body frame, in our link frame."""
        R = transposed(self.link.body_rotation)
        moment = minus(f[:3], cross(self.link.body_offset, f[3:]))
        return [*times(R, moment), *times(R, f[3:])]

    def motion_to_link_frame(self, x: Vector) -> Vector:
        """A motion in the model's body frame, in our link frame."""
        R = transposed(self.link.body_rotation)
        return [*times(R, x[:3]), *times(R, plus(x[3:], cross(x[:3], self.link.body_offset)))]

    def force_to_body_frame(self, f: Vector) -> Vector:
        """A force in our link frame, in the model's body frame."""
        R = self.link.body_rotation
        force = times(R, f[3:])
        return [*plus(times(R, f[:3]), cross(self.link.body_offset, force)), *force]

    def motion_to_body_frame(self, x: Vector) -> Vector:
        """A motion in our link frame, in the model's body frame."""
        R = self.link.body_rotation
        angular = times(R, x[:3])
        return [*angular, *minus(times(R, x[3:]), cross(angular, self.link.body_offset))]

    def shift_in(self, f: Vector) -> Vector:
        """φ f: a force on this link as one on its parent."""
        moment, force = self.rotation.rotate(f[:3]), self.rotation.rotate(f[3:])
        return [*plus(moment, cross(self.offset, force)), *force]

    def point_in(self, x: Vector) -> Vector:
        """π x: a weighted point [h; m] of this link as one of its parent."""
        return [*plus(self.rotation.rotate(x[:3]), scaled(x[3], self.offset)), x[3]]

    def plane_out(self, y: Vector) -> Vector:
        """π* y: a function of place [n; d] on the parent as one on this link."""
        return [*self.rotation.rotate_back(y[:3]), y[3] + dot(y[:3], self.offset)]

    def plane_to_body_frame(self, y: Vector) -> Vector:
        """A function of place in our link frame, in the model's body frame."""
        n = times(self.link.body_rotation, y[:3])
        return [*n, y[3] - dot(n, self.link.body_offset)]

    def to_body_frame(self, kind: Type) -> Callable[[Vector], Vector]:
        """What takes values of a type from our link frame to the model's body frame."""
        if kind is Type.WORLD_MOTION:
            return list
        found = {Type.FORCE: self.force_to_body_frame, Type.PLANE: self.plane_to_body_frame}
        return found.get(kind, self.motion_to_body_frame)

    def shift_out(self, x: Vector) -> Vector:
        """φ* x: a motion of the parent as one of this link."""
        moved = plus(x[3:], cross(x[:3], self.offset))
        return [*self.rotation.rotate_back(x[:3]), *self.rotation.rotate_back(moved)]

    def shift_out_classical(self, x: Vector, u: Matrix) -> Vector:
        """As outward, for classical accelerations: the offset turns with the parent."""
        moved = plus(x[3:], times(u, self.offset))
        return [*self.rotation.rotate_back(x[:3]), *self.rotation.rotate_back(moved)]

    def apply_H(self, f: Vector) -> Vector:
        """H f."""
        return [_sum_terms((factor * f[axis] for axis, factor in c)) for c in self.link.columns]

    def apply_H_adjoint(self, x: Vector) -> Vector:
        """H* x."""
        result: Vector = [0.0] * 6
        for column, value in zip(self.link.columns, x, strict=True):
            for axis, factor in column:
                result[axis] = result[axis] + factor * value
        return result

    def nonzero_H_columns(self) -> dict[int, Vector]:
        """The columns of H that are not zero, by axis."""
        result: dict[int, Vector] = {}
        for j, column in enumerate(self.link.columns):
            for axis, factor in column:
                result.setdefault(axis, [0.0] * len(self.link.columns))[j] = factor
        return result


def _sum_terms(terms: Iterable[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for term in terms:
        total = total + term
    return total


class LdlFactor:
    """A symmetric positive matrix as L D L*, with the pivots' reciprocals."""

    def __init__(self, rows: Matrix, least: Vector) -> None:
        """Args:
        rows: The matrix.
        least: Pivots below these are rounding: their reciprocals are not numbers.
        """
        self.rows = rows
        size = len(rows)
        self.lower: Matrix = [[0.0] * size for _ in range(size)]
        self.inverse_pivots: Vector = []
        work = [list(row) for row in rows]
        for j in range(size):
            pivot = work[j][j]
            # A joint that moves nothing, known beforehand: what it would divide is infinite.
            inverse = (
                math.inf
                if isinstance(pivot, float) and pivot == 0.0
                else 1.0 / guard(pivot, least[j])
            )
            self.inverse_pivots.append(inverse)
            for i in range(j + 1, size):
                self.lower[i][j] = work[i][j] * inverse
                for k in range(j + 1, i + 1):
                    work[i][k] = work[i][k] - self.lower[i][j] * work[k][j]

    @classmethod
    def from_scalars(cls, size: int, numbers: Sequence[Scalar]) -> LdlFactor:
        """A factor whose numbers were kept."""
        factor = object.__new__(cls)
        x = iter(numbers)
        factor.inverse_pivots = [next(x) for _ in range(size)]
        factor.lower = [[next(x) if j < i else 0.0 for j in range(size)] for i in range(size)]
        factor.rows = [[0.0] * size for _ in range(size)]
        for i in range(size):
            for j in range(i + 1):
                factor.rows[i][j] = factor.rows[j][i] = next(x)
        return factor

    def scalars(self) -> Vector:
        """Reciprocal pivots, the lower factor, and the lower half of the matrix itself."""
        size = range(len(self.rows))
        lower = [self.lower[i][j] for i in size for j in range(i)]
        return [
            *self.inverse_pivots,
            *lower,
            *(self.rows[i][j] for i in size for j in range(i + 1)),
        ]

    def forward(self, x: Sequence[Scalar]) -> Vector:
        """L⁻¹ times a vector."""
        y = list(x)
        for i in range(len(y)):
            for j in range(i):
                y[i] = y[i] - self.lower[i][j] * y[j]
        return y

    def divided(self, x: Sequence[Scalar]) -> Vector:
        """D⁻¹ times a vector."""
        return [a * b for a, b in zip(x, self.inverse_pivots, strict=True)]

    def backward(self, x: Sequence[Scalar]) -> Vector:
        """L⁻* times a vector."""
        y = list(x)
        for i in reversed(range(len(y))):
            for j in range(i + 1, len(y)):
                y[i] = y[i] - self.lower[j][i] * y[j]
        return y

    def solve(self, x: Sequence[Scalar]) -> Vector:
        """The inverse times a vector."""
        return self.backward(self.divided(self.forward(x)))

    def times(self, x: Sequence[Scalar]) -> Vector:
        """The matrix times a vector."""
        return [dot(row, x) for row in self.rows]


def joint_block(place: PlacedLink, inertia: Inertia) -> Matrix:
    """P H*."""
    columns = place.link.columns
    return [
        [_sum_terms(factor * inertia.entry(i, axis) for axis, factor in c) for c in columns]
        for i in range(6)
    ]


def project_across(place: PlacedLink, s: Inertia, g: Matrix) -> Inertia:
    """S - G H S."""
    return project_across_joint(s, g, _joint_rows(place, s))


def bias_gain(place: PlacedLink, n: Inertia, s: Inertia, g: Matrix, d: LdlFactor) -> Matrix:
    """N* H* D^-1 - S* G; both read angular parts alone, so that three rows are zero."""
    picked = _joint_rows(place, n)
    rows = []
    for i in range(3):
        told = d.solve([row[i] for row in picked])
        before = [dot([s.entry(k, i) for k in range(6)], column) for column in transposed(g)]
        rows.append(minus(told, before))
    nothing: Matrix = [[0.0] * len(picked) for _ in range(3)]
    return rows + nothing


def transfer_update(place: PlacedLink, s: Inertia, b: Matrix) -> AngularTransfer:
    """S + H* B*."""
    moved = [place.apply_H_adjoint(row) for row in b[:3]]
    rows = [[s.entry(i, j) + moved[j][i] for j in range(3)] for i in range(6)]
    return AngularTransfer(rows[:3], rows[3:])


def _joint_rows(place: PlacedLink, s: Inertia) -> Matrix:
    """The left half of H S."""
    return [
        [_sum_terms(factor * s.entry(axis, j) for axis, factor in c) for j in range(3)]
        for c in place.link.columns
    ]


def congruence_across(place: PlacedLink, s: Inertia, g: Matrix) -> Inertia:
    """(I - G H) S (I - G H)*."""
    u = joint_block(place, s)
    felt = transposed(_joint_square(place, u))
    w = [minus(own, [dot(row, column) for column in felt]) for own, row in zip(u, g, strict=True)]
    return congruence_across_joint(s, g, u, w, frozenset(_identity_rows(place)))


def _joint_square(place: PlacedLink, u: Matrix) -> Matrix:
    """H U."""
    size = range(len(place.link.columns))
    return [
        [_sum_terms(factor * u[axis][j] for axis, factor in column) for j in size]
        for column in place.link.columns
    ]


def joint_inertia(place: PlacedLink, u: Matrix) -> LdlFactor:
    """H U + A, factored."""
    rows = _joint_square(place, u)
    for i, row in enumerate(rows):
        row[i] = row[i] + place.link.armature[i]
        if place.added:
            row[i] = row[i] + place.added[i]
    return LdlFactor(rows, place.link.min_pivots)


def gain(place: PlacedLink, u: Matrix, d: LdlFactor) -> Matrix:
    """U D^-1; without rotors the rows of the joint's own axes are those of the identity."""
    own, size = _identity_rows(place), len(place.link.columns)
    return [
        [1.0 if j == own[i] else 0.0 for j in range(size)] if i in own else d.solve(u[i])
        for i in range(6)
    ]


def _identity_rows(place: PlacedLink) -> dict[int, int]:
    """The rows of G that are those of the identity, and which: without rotors, of single axes."""
    columns = place.link.columns
    rotors = [*place.link.armature, *place.added]
    if all(a == 0.0 for a in rotors) and all(len(c) == 1 for c in columns):
        return {c[0][0]: j for j, c in enumerate(columns)}
    return {}


def inverse_mass_terms(
    place: PlacedLink, s: Inertia, g: Matrix, d: LdlFactor
) -> tuple[Matrix, Matrix]:
    """L = D^-1 + G* S G, and the rows of U = L H - G* S."""
    size = len(place.link.columns)
    columns = transposed(g)
    moved = [_symmetric_times(s, column) for column in columns]
    corner: Matrix = [[0.0] * size for _ in range(size)]
    for j in range(size):
        inverse = d.solve([1.0 if i == j else 0.0 for i in range(size)])
        for i in range(j + 1):
            corner[i][j] = corner[j][i] = inverse[i] + dot(columns[i], moved[j])
    rows = [minus(place.apply_H_adjoint(corner[i]), moved[i]) for i in range(size)]
    return corner, rows


def _symmetric_times(s: Inertia, x: Vector) -> Vector:
    return [dot([s.entry(i, k) for k in range(6)], x) for i in range(6)]


def _compliance_update_any_axes(
    place: PlacedLink, s: Inertia, g: Matrix, d: LdlFactor
) -> SymmetricInertia:
    """S + H* U - (S G) H, where axes may lie in any direction."""
    _, rows = inverse_mass_terms(place, s, g, d)
    moved = [_symmetric_times(s, column) for column in transposed(g)]
    axes = [
        place.apply_H_adjoint([float(i == j) for j in range(len(rows))]) for i in range(len(rows))
    ]

    def entry(i: int, j: int) -> Scalar:
        total = s.entry(i, j)
        for h, u, z in zip(axes, rows, moved, strict=True):
            total = total + h[i] * u[j] - z[i] * h[j]
        return total

    return _symmetric(entry)


def _symmetric(entry: Callable[[int, int], Scalar]) -> SymmetricInertia:
    """A matrix by its entries."""
    corner = [entry(i, j) for i in range(3) for j in range(i, 3)]
    far = [entry(i, j) for i in range(3, 6) for j in range(i, 6)]
    return SymmetricInertia(corner, [[entry(i, j) for j in range(3, 6)] for i in range(3)], far)


def compliance_update(place: PlacedLink, s: Inertia, g: Matrix, d: LdlFactor) -> SymmetricInertia:
    """(I - G H)* S (I - G H) + H* D^-1 H: only the rows and columns of the joint's axes change."""
    own = place.nonzero_H_columns()
    if len(own) == 6 > len(place.link.columns):
        return _compliance_update_any_axes(place, s, g, d)
    full = [[s.entry(i, j) for j in range(6)] for i in range(6)]
    across = {
        j: [(1.0 if i == j else 0.0) - dot(g[i], h) for i in range(6)] for j, h in own.items()
    }
    for j, column in across.items():
        half = [dot([s.entry(i, k) for k in range(6)], column) for i in range(6)]
        yielding = place.apply_H_adjoint(d.solve(own[j]))
        for i in range(6):
            if i not in across:
                full[i][j] = full[j][i] = half[i]
            elif i <= j:
                full[i][j] = full[j][i] = dot(across[i], half) + yielding[i]
    return _symmetric(lambda i, j: full[i][j])


def gain_adjoint_parts(g: Matrix, x: Vector) -> list[tuple[Scalar, Scalar]]:
    """G* x, each entry as a proper sum and what the joint's own axis adds."""
    parts = []
    for j in range(len(g[0]) if g else 0):
        rest: Scalar = 0.0
        plain: Scalar = 0.0
        for row, value in zip(g, x, strict=True):
            if isinstance(row[j], float) and row[j] == 1.0:
                plain = plain + value
            else:
                rest = rest + row[j] * value
        parts.append((rest, plain))
    return parts


def cross_motion(x: Vector, y: Vector) -> Vector:
    """x × y of motions."""
    w, v = x[:3], x[3:]
    return [*cross(w, y[:3]), *plus(cross(w, y[3:]), cross(v, y[:3]))]


def cross_force(x: Vector, f: Vector) -> Vector:
    """x ×* f of a motion and a force."""
    w, v = x[:3], x[3:]
    return [*plus(cross(w, f[:3]), cross(v, f[3:])), *cross(w, f[3:])]


def joint_bias(carried: Vector, relative: Vector) -> Vector:
    """Classical acceleration that the joint's rate adds; ``carried`` is the parent's motion."""
    w = carried[:3]
    turning, sliding = relative[:3], relative[3:]
    twice = [a + a for a in w]
    return [*cross(w, turning), *plus(cross(twice, sliding), cross(turning, sliding))]


def angular_acceleration_matrix(motion: Vector, acceleration: Vector) -> Matrix:
    """U = α~ + ω~ω~, which gives r points of a turning body their acceleration."""
    x, y, z = motion[:3]
    a, b, c = acceleration[:3]
    xx, yy, zz = x * x, y * y, z * z
    xy, xz, yz = x * y, x * z, y * z
    return [
        [-(yy + zz), xy - c, xz + b],
        [xy + c, -(xx + zz), yz - a],
        [xz - b, yz + a, -(xx + yy)],
    ]


def rigid_force(link: LinkScalars, acceleration: Vector, u: Matrix) -> Vector:
    """Force and moment that move a rigid body: m a + U h and ε(UE) + h × a, E = tr J/2 - J."""
    linear = acceleration[3:]
    E = [
        [link.E[i] if i == j else -link.J[symmetric_index(i, j)] for j in range(3)]
        for i in range(3)
    ]
    moment = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        # (UE)_kj - (UE)_jk, what has E_jk taken together.
        own = u[k][j] * E[j][j] - u[j][k] * E[k][k]
        across = u[k][i] * E[i][j] - u[j][i] * E[i][k]
        moment.append(own + across + (u[k][k] - u[j][j]) * E[j][k])
    force = plus(scaled(link.mass, linear), times(u, link.h))
    return [*plus(moment, cross(link.h, linear)), *force]


def to_world(rows: Sequence[Vector], motion: Vector) -> Vector:
    """[R w; R v + p × R w] of a pose by its rows."""
    R, p = [row[:3] for row in rows], [row[3] for row in rows]
    angular = times(R, motion[:3])
    return [*angular, *plus(times(R, motion[3:]), cross(p, angular))]


def place_of_point(mass: float, x: Vector) -> Vector:
    """h / m; no number where there is no mass, even if h is known to be zero."""
    return [math.nan] * 3 if math.isnan(mass) else scaled(1.0 / mass, x[:3])


def link_energy(link: LinkScalars, x: Vector) -> Vector:
    """ω · (½ Jω + h × v) + ½ m v·v, with J as a triangle: each product of two rates once."""
    w, v = x[:3], x[3:]
    xx, xy, xz, yy, yz, zz = link.J
    rows: list[Vector] = [[0.5 * xx, xy, xz], [0.0, 0.5 * yy, yz], [0.0, 0.0, 0.5 * zz]]
    turning = [dot(row, w) for row in rows]
    return [dot(w, plus(turning, cross(link.h, v))) + dot(v, v) * (0.5 * link.mass)]


def rotor_energy(link: LinkScalars, x: Vector) -> Vector:
    """½ x* A x."""
    return [_sum_terms(rate * rate * (0.5 * a) for a, rate in zip(link.armature, x, strict=True))]


LinkValue = Vector | Matrix | Inertia | LdlFactor
"""The value of a stream at a link; which of these it is, the type of the stream says."""


def as_vector(value: LinkValue) -> Vector:
    """A motion, a force or a joint vector: a value of a stream of these types."""
    return cast(Vector, value)


def as_matrix(value: LinkValue) -> Matrix:
    """A joint block or a gain: a value of a stream of these types."""
    return cast(Matrix, value)


def as_inertia(value: LinkValue) -> Inertia:
    """An inertia, a compliance or a transfer: a value of a stream of these types."""
    return cast(Inertia, value)


def add_term(total: LinkValue | None, factor: Fraction, value: LinkValue) -> LinkValue:
    """A sum of vectors or of inertias with one term more; None is the empty sum."""
    if isinstance(value, list):
        vector = as_vector(value)
        term = list(vector) if factor == 1 else scaled(float(factor), vector)
        return term if total is None else plus(as_vector(total), term)
    inertia = scale_inertia(float(factor), as_inertia(value))
    return inertia if total is None else add_inertias(as_inertia(total), inertia)


LINK_OPERATIONS: dict[str, Callable[..., LinkValue]] = {
    "shift_in": PlacedLink.shift_in,
    "shift_out": PlacedLink.shift_out,
    "shift_out_classical": PlacedLink.shift_out_classical,
    "congruence_in": lambda place, s: s.in_parent(place.rotation, place.offset),
    "congruence_out": lambda place, s: congruence_out(s, place.rotation, place.offset),
    "similarity_out": lambda place, s: similarity_out(s, place.rotation, place.offset),
    "H": lambda place, f: place.apply_H(f),
    "Ht": lambda place, x: place.apply_H_adjoint(x),
    "inertia": lambda place, s, x: s.times(x),
    "inertia_t": lambda place, s, x: s.adjoint_times(x),
    "gyro": lambda place, v: gyroscopic_transfer(place.inertia, v),
    "project_across": project_across,
    "U": joint_block,
    "D": joint_inertia,
    "G": gain,
    "compliance_update": compliance_update,
    "bias_gain": bias_gain,
    "transfer_update": transfer_update,
    "articulated_downdate": lambda place, p, u, g: articulated_downdate(p, g, u),
    "Gx": lambda place, g, x: times(g, x),
    "Gtx": lambda place, g, x: [a + b for a, b in gain_adjoint_parts(g, x)],
    "Dx": lambda place, d, x: d.times(x),
    "Dsolve": lambda place, d, x: d.solve(x),
    "Ax": lambda place, x: [a * b for a, b in zip(place.link.armature, x, strict=True)],
    "inertia_rate": lambda place, x, s: inertia_rate(x, s),
    "congruence_across": congruence_across,
    "crm": lambda place, x, y: cross_motion(x, y),
    "crf": lambda place, x, f: cross_force(x, f),
    "to_world": lambda place, x, y, z, motion: to_world((x, y, z), motion),
    "link_energy": lambda place, x: link_energy(place.link, x),
    "rotor_energy": lambda place, x: rotor_energy(place.link, x),
    "dot": lambda place, x, y: [dot(x, y)],
    "total": lambda place, x: x,
    "to_ground": PlacedLink.shift_in,
    "point_in": PlacedLink.point_in,
    "plane_out": PlacedLink.plane_out,
    "point_to_ground": PlacedLink.point_in,
    "weigh": lambda ground, x: [dot([-float(g) for g in ground.gravity], x[:3])],
    "center": lambda ground, x: place_of_point(ground.mass, x),
    "moving_center": lambda ground, x: place_of_point(ground.moving_mass, x),
    "joint_bias": lambda place, carried, relative: joint_bias(carried, relative),
    "angular_acceleration_matrix": lambda place, x, a: angular_acceleration_matrix(x, a),
    "rigid_force": lambda place, a, u: rigid_force(place.link, a, u),
}
"""What each operation of ``sweeps.ops`` does at a link; of a shift, the child's link; of a sum at
the ground, what a link adds to it; of what is made there, the robot, a ``GroundState``."""
