# SPDX-License-Identifier: BSD-3-Clause
"""A robot's links as generated NumPy code sees them: tables made once, and a state made per call.

``LinkTables`` holds the numbers of a model, ``NumpyLinks`` their meaning at configurations: H, H*,
M, A at a link, and the shifts between a link, its parent and its children. A transform is a
rotation and an offset; a joint map whose rows are unit vectors is a choice of components.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from phistar.arrays import Array, DType
from phistar.backends.numpy_algebra import (
    InvertedJointInertia,
    block_outer,
    constant_times,
    dot,
    matrix_times,
    symmetric_inverse,
    times,
)
from phistar.model.components import GROUND, Body
from phistar.model.joints import JointKind
from phistar.model.model import Model
from phistar.model.singular import pivot_thresholds
from phistar.spatial import force_transform, inertia_matrix
from phistar.sweeps.op_values import GroundState

Stream = list[Array]
ComponentIndex = slice | list[int]
_dot = np.einsum


@dataclass(frozen=True)
class SameJoints:
    """Bodies whose joints are of the very same kind, so that one call gives all transforms."""

    joint_kind: JointKind
    bodies: list[int]
    coordinates: Array
    scale: Array
    offset: Array
    is_affine: bool

    @classmethod
    def of(cls, joint_kind: JointKind, bodies: Sequence[Body]) -> SameJoints:
        """The group of some bodies."""
        coordinates = np.array([range(b.q_slice.start, b.q_slice.stop) for b in bodies], dtype=int)
        scale = np.array([[b.scale] for b in bodies])
        offset = np.array([[b.offset] for b in bodies])
        is_affine = bool((scale != 1).any() or (offset != 0).any())
        return cls(joint_kind, [b.index for b in bodies], coordinates, scale, offset, is_affine)

    def transforms(self, q: Array) -> Array:
        """(*batch, nq) -> (*batch, bodies, 4, 4) poses across the joints."""
        own = q[..., self.coordinates]
        if self.is_affine:
            precision = np.finfo(q.dtype).dtype
            own = self.scale.astype(precision) * own + self.offset.astype(precision)
        return self.joint_kind.transform(own)


class LinkTables:
    """The numbers of a model, in one precision."""

    def __init__(
        self, model: Model, frames: Sequence[str], locked: Set[int], precision: DType
    ) -> None:
        self._set_tree(model.bodies)
        self._set_numbers(model, precision)
        self._set_joint_maps(model, locked, precision)
        carriers = [model.frame(name) for name in frames]
        self.frames = [
            (number, frame.body, force_transform(frame.body_pose).astype(precision))
            for number, frame in enumerate(carriers)
            if frame.body != GROUND
        ]

    def _set_tree(self, bodies: Sequence[Body]) -> None:
        self.count = len(bodies)
        self.parents = [body.parent for body in bodies]
        self.children: list[list[int]] = [[] for _ in bodies]
        for body in bodies:
            if body.parent != GROUND:
                self.children[body.parent].append(body.index)
        self.roots = [body.index for body in bodies if body.parent == GROUND]
        kinds: dict[JointKind, list[Body]] = {}
        for body in bodies:
            kinds.setdefault(body.joint_kind, []).append(body)
        self.groups = [SameJoints.of(motion, members) for motion, members in kinds.items()]

    def _set_numbers(self, model: Model, precision: DType) -> None:
        placements = np.array([body.placement for body in model.bodies]).reshape(-1, 4, 4)
        self.placed_rotation = placements[:, :3, :3].astype(precision)
        self.placed_offset = placements[:, :3, 3].astype(precision)
        self.inertia = inertia_matrix(model.inertias).astype(precision)
        self.mass_points = np.roll(model.inertias[:, :4], -1, axis=1).astype(precision)
        self.ground = GroundState.of(model)
        self.upward = (-model.gravity).astype(precision)

    def _set_joint_maps(self, model: Model, locked: Set[int], precision: DType) -> None:
        bodies = model.bodies
        free = [slice(0, 0) if body.index in locked else slice(None) for body in bodies]
        maps = [b.joint_kind.motion_map().T[rows] for b, rows in zip(bodies, free, strict=True)]
        self.unit_components = [_unit_components(rows) for rows in maps]
        self.joint_map_rows = [rows.astype(precision) for rows in maps]
        armature = (np.array(b.armature)[rows] for b, rows in zip(bodies, free, strict=True))
        self.armature = [each.astype(precision) for each in armature]
        coarser = float(np.finfo(precision).eps / np.finfo(float).eps)
        pivots = pivot_thresholds(model).items()
        self.min_pivots = {k: coarser * np.array(x)[free[k]] for k, x in pivots if k not in locked}
        self.sizes = [len(rows) for rows in maps]
        self.slices = [slice(*ends) for ends in pairwise(np.cumsum([0, *self.sizes]).tolist())]


def _unit_components(rows: Array) -> ComponentIndex | None:
    """The components that a joint map picks if its rows are unit vectors."""
    if not (np.isin(rows, (0.0, 1.0)).all() and (rows.sum(axis=1) == 1).all()):
        return None
    places = rows.argmax(axis=1).tolist() if len(rows) else []
    first = places[0] if places else 0
    if places == list(range(first, first + len(places))):
        return slice(first, first + len(places))
    return [int(place) for place in places]


def link_transforms(tables: LinkTables, q: Array) -> tuple[Array, Array]:
    """Rotations (links, 3, 3, *batch) and offsets (links, 3, *batch) to the parents.

    Args:
        tables: The robot.
        q: (nq, *batch).
    """
    leading = np.moveaxis(q, 0, -1)
    batch = leading.shape[:-1]
    rotations = np.empty((tables.count, 3, 3, *batch), dtype=q.dtype)
    offsets = np.empty((tables.count, 3, *batch), dtype=q.dtype)
    for group in tables.groups:
        across = group.transforms(leading)
        order = (*range(len(batch), across.ndim), *range(len(batch)))
        relative = np.ascontiguousarray(across.transpose(order))
        placed = tables.placed_rotation[group.bodies]
        rotations[group.bodies] = _dot("nij,njk...->nik...", placed, relative[:, :3, :3])
        offsets[group.bodies] = _dot("nij,nj...->ni...", placed, relative[:, :3, 3])
    offsets += tables.placed_offset.reshape(*tables.placed_offset.shape, *(1,) * len(batch))
    return rotations, offsets


class NumpyLinks:
    """The links at configurations; values have trailing batch axes (see ``numpy_algebra``)."""

    def __init__(self, tables: LinkTables, q: Array) -> None:
        self._tables = tables
        batch = q.ndim - 1
        self._ones = (1,) * batch
        rotations, offsets = link_transforms(tables, q)
        self._R = list(rotations)
        self._offsets = list(offsets)
        across = _skew(offsets)
        self._p = list(across)
        self._Rp = list(_dot("nji...,njk...->nik...", rotations, across))
        precision = tables.inertia.dtype
        self._zero = np.zeros((6, *self._ones), dtype=precision)
        self.outward = range(tables.count)
        self.inward = range(tables.count - 1, -1, -1)

    def streams(self, count: int) -> list[list[object]]:
        """Empty streams, a place per link."""
        return [[None] * self._tables.count for _ in range(count)]

    # -- what is given

    def split_joint_vector(self, x: Array) -> Stream:
        """A joint vector by link."""
        return [x[rows] for rows in self._tables.slices]

    def gravity(self) -> Stream:
        """The upward acceleration of the ground on the roots, nothing elsewhere."""
        stream = [self._zero] * self._tables.count
        for k in self._tables.roots:
            rotation = self._R[k]
            upward = _dot("ji...,j->i...", rotation, self._tables.upward)
            stream[k] = np.concatenate([np.zeros_like(upward), upward])
        return stream

    def zeros(self) -> Stream:
        """Zero at every link."""
        return [self._zero] * self._tables.count

    def frame_forces(self, forces: Array) -> Stream:
        """Forces on frames (frames, 6, *batch) as forces on the links that carry them."""
        stream = [self._zero] * self._tables.count
        for number, body, transform in self._tables.frames:
            stream[body] = stream[body] + constant_times(transform, forces[number])
        return stream

    @cached_property
    def M(self) -> Stream:
        """The links' own inertias."""
        return list(self._tables.inertia.reshape(self._tables.count, 6, 6, *self._ones))

    @cached_property
    def mu(self) -> Stream:
        """The links as weighted points."""
        return list(self._tables.mass_points.reshape(self._tables.count, 4, *self._ones))

    def _coordinate(self, i: int) -> Stream:
        """A row of the roots' poses, nothing elsewhere."""
        stream = [self.nothing(4)] * self._tables.count
        for k in self._tables.roots:
            stream[k] = np.concatenate([self._R[k][i], self._offsets[k][i : i + 1]])
        return stream

    @cached_property
    def e_x(self) -> Stream:
        """The world's coordinate x on the roots."""
        return self._coordinate(0)

    @cached_property
    def e_y(self) -> Stream:
        """The world's coordinate y on the roots."""
        return self._coordinate(1)

    @cached_property
    def e_z(self) -> Stream:
        """The world's coordinate z on the roots."""
        return self._coordinate(2)

    @cached_property
    def mu_0(self) -> Array:
        """The links that are welded to the ground, as one weighted point."""
        return self._tables.ground.point.astype(self._zero.dtype).reshape(4, *self._ones)

    def Mx(self, k: int, x: Array) -> Array:
        """M x."""
        return constant_times(self._tables.inertia[k], x)

    def Ax(self, k: int, x: Array) -> Array:
        """A x."""
        return np.asarray(self._tables.armature[k].reshape(-1, *self._ones) * x)

    def zero(self, k: int, kind: str) -> Array:
        """Nothing: a ``"joint"`` vector, a ``"spatial"`` one, an ``"inertia"`` or a ``"point"``."""
        shape = {
            "joint": (self._tables.sizes[k],),
            "spatial": (6,),
            "inertia": (6, 6),
            "point": (4,),
        }[kind]
        return np.zeros(shape + self._ones, dtype=self._zero.dtype)

    # -- across a joint

    def H(self, k: int, f: Array) -> Array:
        """H f: a force, or the rows of a block, onto the joint axes."""
        unit_components = self._tables.unit_components[k]
        if unit_components is not None:
            return np.asarray(f[unit_components])
        return constant_times(self._tables.joint_map_rows[k], f)

    def Ht(self, k: int, x: Array) -> Array:
        """H* x: the motion that a joint makes."""
        unit_components = self._tables.unit_components[k]
        if unit_components is None:
            return constant_times(self._tables.joint_map_rows[k].T, x)
        motion = np.zeros((6, *x.shape[1:]), dtype=x.dtype)
        motion[unit_components] = x
        return motion

    def joint_inertia(self, k: int, U: Array) -> InvertedJointInertia:
        """D = H U + A with its inverse; U by rows."""
        matrix = np.array(self.H(k, U.swapaxes(0, 1)))
        diagonal = np.arange(len(matrix))
        matrix[diagonal, diagonal] += self._tables.armature[k].reshape(-1, *self._ones)
        min_pivots = self._tables.min_pivots.get(k)
        if min_pivots is not None:
            small = (matrix[diagonal, diagonal].real <= min_pivots.reshape(-1, *self._ones)).any(
                axis=0
            )
            matrix = np.where(small, np.nan, matrix)
        return InvertedJointInertia(matrix, symmetric_inverse(matrix))

    def gyro(self, k: int, V: Array) -> Array:
        """M̂ = ½(crf[V] M - M crm[V] - Q[MV]): its right half is zero."""
        M = self._tables.inertia[k]
        w, v = _skew(V[None, :3])[0], _skew(V[None, 3:])[0]
        J, h = M[:3, :3], M[:3, 3:]
        momentum = _skew(constant_times(M, V)[None, 3:])[0]
        E = np.eye(3, dtype=M.dtype) * (np.trace(J) / 2) - J
        spun = _skew(constant_times(J, V[:3])[None])[0]
        result = np.zeros((6, 6, *V.shape[1:]), dtype=momentum.dtype)
        result[:3, :3] = _dot("ij,jk...->ik...", E, w) - spun - _dot("ij,jk...->ik...", h, v)
        result[3:, :3] = -momentum
        return result

    def compliance_update(self, k: int, S: Array, G: Array, D: InvertedJointInertia) -> Array:
        """(I - G H)* S (I - G H) + H* D⁻¹ H of a compliance S, multiplied out; G by rows."""
        rows = matrix_times(G, S)
        across = matrix_times(rows, G.swapaxes(0, 1)) + D.inverse
        spread = self.Ht(k, rows)
        own = self.Ht(k, self.Ht(k, across).swapaxes(0, 1))
        return np.asarray(S - spread - spread.swapaxes(0, 1) + own)

    def inertia_rate(self, x: Array, S: Array) -> Array:
        """x ×* S - S x ×: x ×* S and its transpose."""
        w, v = _skew(x[None, :3])[0], _skew(x[None, 3:])[0]
        upper = matrix_times(w, S[:3]) + matrix_times(v, S[3:])
        half = np.concatenate([upper, matrix_times(w, S[3:])])
        return np.asarray(half + half.swapaxes(0, 1))

    def congruence_across(self, k: int, S: Array, G: Array) -> Array:
        """(I - G H) S (I - G H)*, multiplied out; G by rows."""
        U = self.H(k, S)
        W = U - matrix_times(self.H(k, U.swapaxes(0, 1)), G)
        return np.asarray(S - block_outer(G, U) - block_outer(W, G))

    def bias_gain(self, k: int, N: Array, S: Array, G: Array, D: InvertedJointInertia) -> Array:
        """N* H* D⁻¹ - S* G; blocks by rows."""
        return np.asarray(D.solve(self.H(k, N)) - matrix_times(G, S))

    def transfer_update(self, k: int, S: Array, B: Array) -> Array:
        """S + H* B*; B by rows."""
        return np.asarray(S + self.Ht(k, B))

    # -- at the ground

    def nothing(self, size: int) -> Array:
        """Zeros."""
        return np.zeros((size, *self._ones), dtype=self._zero.dtype)

    def link_energy(self, k: int, x: Array) -> Array:
        """½ x* M x, as one entry."""
        return np.asarray(dot(x, self.Mx(k, x)) / 2)

    def rotor_energy(self, k: int, x: Array) -> Array:
        """½ x* A x, as one entry."""
        return np.asarray(dot(x, self.Ax(k, x)) / 2)

    def total(self, stream: Stream) -> Array:
        """Σ x over all links."""
        return sum(stream, self.nothing(1))

    def to_ground(self, stream: Stream) -> Array:
        """Σ φ x over the roots."""
        return self._inward(self._tables.roots, stream)

    def point_to_ground(self, stream: Stream) -> Array:
        """Σ π x over the roots."""
        return self._points_inward(self._tables.roots, stream)

    def weigh(self, x: Array) -> Array:
        """-g · h, as one entry."""
        return np.asarray((self._tables.upward.reshape(3, *self._ones) * x[:3]).sum(0)[None])

    def center(self, x: Array) -> Array:
        """h / m of all links."""
        return np.asarray(x[:3] / self._zero.dtype.type(self._tables.ground.mass))

    def moving_center(self, x: Array) -> Array:
        """h / m of the links that move."""
        return np.asarray(x[:3] / self._zero.dtype.type(self._tables.ground.moving_mass))

    # -- between links

    def shift_out(self, k: int, stream: Stream) -> Array:
        """φ* x of the parent: w and v - p × w turned into this link's axes."""
        parent = self._tables.parents[k]
        if parent == GROUND:
            return self._zero
        given = _halves(stream[parent])
        pair = _rotate_halves(self._R[k].swapaxes(0, 1), given)
        pair[1] -= times(self._Rp[k], given[0])
        return _join_halves(pair)

    def shift_in(self, k: int, stream: Stream) -> Array:
        """Σ φ x over the children."""
        return self._inward(self._tables.children[k], stream)

    def _inward(self, links: Sequence[int], stream: Stream) -> Array:
        """Σ φ x: n and f turned into the parent's axes, then n + p × f."""
        total = self._zero
        for j in links:
            pair = _rotate_halves(self._R[j], _halves(stream[j]))
            pair[0] += times(self._p[j], pair[1])
            total = total + _join_halves(pair)
        return total

    def point_in(self, k: int, stream: Stream) -> Array:
        """Σ π x over the children."""
        return self._points_inward(self._tables.children[k], stream)

    def _points_inward(self, links: Sequence[int], stream: Stream) -> Array:
        """Σ π x: h turned into the parent's axes, and the offset times m."""
        total = self.nothing(4)
        for j in links:
            moved = times(self._R[j], stream[j][:3]) + stream[j][3] * self._offsets[j]
            mass = np.broadcast_to(stream[j][3:], (1, *moved.shape[1:]))
            total = total + np.concatenate([moved, mass])
        return total

    def plane_out(self, k: int, stream: Stream) -> Array:
        """π* y of the parent: n turned into this link's axes, n · p added to d."""
        parent = self._tables.parents[k]
        if parent == GROUND:
            return self.nothing(4)
        n, d = stream[parent][:3], stream[parent][3:]
        return np.concatenate([times(self._R[k].swapaxes(0, 1), n), d + dot(n, self._offsets[k])])

    def congruence_in(self, k: int, stream: Stream) -> Array:
        """Σ φ S φ* over the children: both sides turned, then moved."""
        total = self.zero(k, "inertia")
        for j in self._tables.children[k]:
            turned = _rotate_blocks(self._R[j], stream[j])
            turned[:3] += matrix_times(self._p[j], turned[3:])
            turned[:, :3] += matrix_times(self._p[j], turned[:, 3:].swapaxes(0, 1)).swapaxes(0, 1)
            total = total + turned
        return total

    def congruence_out(self, k: int, stream: Stream) -> Array:
        """φ* S φ of the parent: moved, then both sides turned into this link's axes."""
        return self._outward(k, stream, True)

    def similarity_out(self, k: int, stream: Stream) -> Array:
        """φ* S φ*⁻¹ of the parent, whose right half is zero: moved, then turned like outcong."""
        return self._outward(k, stream, False)

    def _outward(self, k: int, stream: Stream, both_sides: bool) -> Array:
        parent = self._tables.parents[k]
        if parent == GROUND:
            return self.zero(k, "inertia")
        S, p = stream[parent], self._p[k]
        moved = np.broadcast_to(S, (6, 6, *p.shape[2:])).astype(np.result_type(S, p))
        moved[3:] -= matrix_times(p, moved[:3])
        if both_sides:
            moved[:, 3:] -= matrix_times(p, moved[:, :3].swapaxes(0, 1)).swapaxes(0, 1)
        return _rotate_blocks(self._R[k].swapaxes(0, 1), moved)


def _skew(p: Array) -> Array:
    """(n, 3, *batch) -> (n, 3, 3, *batch) with skew(p) x = p × x."""
    matrix = np.zeros((len(p), 3, *p.shape[1:]), dtype=p.dtype)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        matrix[:, i, j] = -p[:, k]
        matrix[:, j, i] = p[:, k]
    return matrix


def _halves(x: Array) -> Array:
    return x.reshape(2, 3, *x.shape[1:])


def _join_halves(pair: Array) -> Array:
    return pair.reshape(6, *pair.shape[2:])


def _rotate_halves(R: Array, pair: Array) -> Array:
    """R applied to both halves of a spatial vector."""
    if R.ndim == 2:
        return np.asarray(pair @ R.T)
    return np.asarray(_dot("ij...,aj...->ai...", R, pair))


def _rotate_blocks(R: Array, S: Array) -> Array:
    """R S R* for each 3x3 block of a 6x6 matrix."""
    if R.ndim == 2:
        half = np.matmul(R, S.reshape(2, 3, 6)).reshape(6, 2, 3)
        return np.asarray(np.matmul(half, R.T)).reshape(6, 6)
    blocks = S.reshape(2, 3, 2, 3, *S.shape[2:])
    half = _dot("ij...,ajbk...->aibk...", R, blocks)
    turned = np.asarray(_dot("lk...,aibk...->aibl...", R, half))
    return turned.reshape(6, 6, *turned.shape[4:])
