# SPDX-License-Identifier: BSD-3-Clause
"""All links of a robot at once: what it is made of, and every operation of streams in one call.

A value of a stream is one array over the links (see ``array_ops``). Joint vectors have as many
rows as the largest joint has coordinates, and joints with fewer have zeros there: rows of H and
rotors that do not exist are zero, and D has a one on its diagonal for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from phistar.arrays import Array, DType
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.model.singular import pivot_thresholds
from phistar.spatial import force_transform, inertia_matrix
from phistar.sweeps.op_values import GroundState
from phistar.sweeps.parallel.array_ops import Algebra, ArrayOps


@dataclass(frozen=True, eq=False)
class AllLinkNumbers:
    """What does not depend on the configuration; arrays (..., links, 1) of one precision.

    Attributes:
        count: Number of links.
        parents: Of each link, GROUND at roots.
        sizes: Coordinates of each joint; those of locked joints none.
        H, armature, absent: (d, 6), (d,) and, of rows that do not exist, ones (d,).
        min_pivots: (d,) entries of D on the diagonal that are not above these are rounding.
        inertia: (6, 6).
        mass_point: (4,).
        upward: (3,) minus gravity.
        ground: The robot as a whole.
        frames: Link and force transform (6, 6) of each frame that B selects.
        has_pivots: Whether any of ``min_pivots`` says something.
        joint_entries: Where the coordinates of a joint vector are in (d, links), flat.
    """

    count: int
    parents: Array
    sizes: tuple[int, ...]
    H: Array
    armature: Array
    absent: Array
    min_pivots: Array
    inertia: Array
    mass_point: Array
    upward: Array
    ground: GroundState
    frames: tuple[tuple[int, Array], ...]
    joint_entries: Array
    has_pivots: bool

    @classmethod
    def of(
        cls, model: Model, frames: Sequence[str], locked: Set[int], precision: DType
    ) -> AllLinkNumbers:
        """Those of a robot."""
        bodies = model.bodies
        count = len(bodies)
        sizes = tuple(0 if b.index in locked else b.joint_kind.nv for b in bodies)
        d = max(sizes, default=0)
        H, armature = np.zeros((d, 6, count)), np.zeros((d, count))
        absent, pivots = np.ones((d, count)), np.full((d, count), -np.inf)
        maps = {kind: kind.motion_map().T for kind in {b.joint_kind for b in bodies}}
        for k, (body, size) in enumerate(zip(bodies, sizes, strict=True)):
            if size:
                H[:size, :, k] = maps[body.joint_kind]
                armature[:size, k] = body.armature
                absent[:size, k] = 0
        coarser = float(np.finfo(precision).eps / np.finfo(float).eps)
        for k, values in pivot_thresholds(model).items():
            if sizes[k]:
                pivots[: sizes[k], k] = coarser * np.array(values)
        carriers = [model.frame(name) for name in frames]

        def over_links(x: Array) -> Array:
            return np.ascontiguousarray(x, dtype=precision)[..., None]

        return cls(
            count,
            np.array([b.parent for b in bodies], dtype=np.intp),
            sizes,
            over_links(H),
            over_links(armature),
            over_links(absent),
            over_links(pivots),
            over_links(np.moveaxis(inertia_matrix(model.inertias), 0, -1)),
            over_links(np.roll(model.inertias[:, :4], -1, axis=1).T),
            (-model.gravity).astype(precision),
            GroundState.of(model),
            tuple((f.body, force_transform(f.body_pose).astype(precision)) for f in carriers),
            _joint_entries(sizes),
            bool(np.isfinite(pivots).any()),
        )

    def renumbered(self, order: Array) -> AllLinkNumbers:
        """The same with links in another order; joint vectors keep theirs."""
        label = np.empty(self.count + 1, dtype=np.intp)
        label[order] = np.arange(self.count)
        label[GROUND] = GROUND
        row, link = np.divmod(self.joint_entries, max(self.count, 1))
        by_link: dict[str, Any] = {
            n: np.ascontiguousarray(getattr(self, n)[..., order, :]) for n in _BY_LINK
        }
        return replace(
            self,
            parents=label[self.parents[order]],
            sizes=tuple(self.sizes[k] for k in order.tolist()),
            frames=tuple((int(label[body]), transform) for body, transform in self.frames),
            joint_entries=row * self.count + label[link],
            **by_link,
        )


def _joint_entries(sizes: Sequence[int]) -> Array:
    counts = np.array(sizes, dtype=np.intp)
    link = np.repeat(np.arange(len(counts)), counts)
    row = np.arange(len(link)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray(row * len(counts) + link, dtype=np.intp)


_BY_JOINT = ("H", "armature", "absent", "min_pivots")
_BY_LINK = (*_BY_JOINT, "inertia", "mass_point")


@dataclass(frozen=True)
class JointInertia:
    """D with its inverse."""

    matrix: Array
    inverse: Array


class LinkFields:
    """The links at configurations: poses, and the operations of ``sweeps.ops`` at all links.

    Attributes:
        ops, algebra: The array library.
        numbers: What does not depend on the configuration.
        R, p: Pose of each link in its parent's frame, (3, 3, links, samples), (3, links, samples).
    """

    def __init__(self, ops: ArrayOps, numbers: AllLinkNumbers, R: Array, p: Array) -> None:
        self.ops = ops
        self.algebra = Algebra(ops)
        self.numbers = numbers
        self.R, self.p = R, p

    def at(self, index: Array) -> LinkFields:
        """Some of the links with their joints and poses; inertias are left out."""
        numbers, take = self.numbers, self.ops.take
        own: dict[str, Any] = {name: take(getattr(numbers, name), index) for name in _BY_JOINT}
        parents = self.ops.xp.asarray(numbers.parents)[index]
        some = replace(numbers, count=len(index), parents=parents, **own)
        return LinkFields(self.ops, some, take(self.R, index), take(self.p, index))

    @property
    def samples(self) -> int:
        """How many configurations there are."""
        return int(self.p.shape[-1])

    @cached_property
    def parent_places(self) -> Array:
        """The parent of each link, and some link at roots."""
        return np.maximum(self.numbers.parents, 0)

    @cached_property
    def not_root(self) -> Array:
        """One at links whose parent is a link, else zero."""
        return self.constant((self.numbers.parents != GROUND).astype(float)[:, None])

    @cached_property
    def is_root(self) -> Array:
        """One at roots."""
        return 1 - self.not_root

    def constant(self, x: Array) -> Array:
        """Numbers in the precision of the robot's."""
        return self.ops.xp.asarray(np.asarray(x, dtype=self.numbers.inertia.dtype))

    # -- what is given

    def joint_vector(self, x: Array) -> Array:
        """(coordinates, samples) -> (d, links, samples)."""
        xp, numbers = self.ops.xp, self.numbers
        d = numbers.H.shape[0]
        flat = xp.zeros((d * numbers.count, x.shape[-1]), dtype=x.dtype)
        flat = self.ops.assign(flat, (numbers.joint_entries,), x)
        return flat.reshape(d, numbers.count, x.shape[-1])

    def joint_output(self, x: Array) -> Array:
        """(d, links, samples) -> (coordinates, samples)."""
        flat = x.reshape(x.shape[0] * x.shape[1], x.shape[2])
        return flat[self.numbers.joint_entries]

    def gravity(self) -> Array:
        """The upward acceleration of the ground on the roots, nothing elsewhere."""
        xp = self.ops.xp
        upward = xp.einsum("jiks,j->iks", self.R, self.numbers.upward) * self.is_root
        return xp.concatenate([xp.zeros_like(upward), upward])

    def frame_forces(self, forces: Array) -> Array:
        """Forces on frames (frames, 6, samples) as forces on the links that carry them."""
        xp, numbers = self.ops.xp, self.numbers
        moving = [i for i, (body, _) in enumerate(numbers.frames) if body != GROUND]
        shape = (6, numbers.count, forces.shape[-1])
        if not moving:
            return xp.zeros(shape, dtype=forces.dtype)
        transforms = np.stack([numbers.frames[i][1] for i in moving])
        moved = xp.einsum("fij,fjs->ifs", transforms, forces[np.array(moving, dtype=np.int32)])
        bodies = np.array([numbers.frames[i][0] for i in moving], dtype=np.intp)
        return self.ops.sum_by(moved, bodies, numbers.count)

    def coordinate(self, axis: int) -> Array:
        """A row of the roots' poses, nothing elsewhere."""
        row = self.ops.xp.concatenate([self.R[axis], self.p[axis][None]])
        return row * self.is_root

    def zero(self, shape: tuple[int, ...]) -> Array:
        """Nothing at every link."""
        return self.ops.xp.zeros((*shape, self.numbers.count, 1), dtype=self.numbers.inertia.dtype)

    # -- at one link

    def H_times(self, x: Array) -> Array:
        """H x."""
        return self.algebra.times(self.numbers.H, x)

    def Ht_times(self, x: Array) -> Array:
        """H* x."""
        return self.algebra.adjoint_times(self.numbers.H, x)

    def joint_inertia(self, U: Array) -> JointInertia:
        """D = H U + A with its inverse; not a number where it is but rounding."""
        xp, numbers = self.ops.xp, self.numbers
        D = self.algebra.matmul(numbers.H, U)
        d = D.shape[0]
        diagonal = xp.eye(d, dtype=numbers.H.dtype)[:, :, None, None]
        D = D + diagonal * (numbers.armature + numbers.absent)
        if numbers.has_pivots:
            own = xp.stack([D[i, i] for i in range(d)]).real
            D = xp.where(xp.asarray((own <= numbers.min_pivots).any(axis=0)), np.nan, D)
        return JointInertia(D, self.algebra.inverse(D))

    def cross_motion(self, x: Array, y: Array) -> Array:
        """x × y."""
        cross = self.algebra.cross
        lower = cross(x[:3], y[3:]) + cross(x[3:], y[:3])
        return self.ops.xp.concatenate([cross(x[:3], y[:3]), lower])

    def cross_force(self, x: Array, f: Array) -> Array:
        """x ×* f."""
        cross = self.algebra.cross
        upper = cross(x[:3], f[:3]) + cross(x[3:], f[3:])
        return self.ops.xp.concatenate([upper, cross(x[:3], f[3:])])

    def skew(self, a: Array) -> Array:
        """a × as a matrix."""
        xp, zero = self.ops.xp, 0 * a[0]
        rows = [[zero, -a[2], a[1]], [a[2], zero, -a[0]], [-a[1], a[0], zero]]
        return xp.stack([xp.stack(row) for row in rows])

    def gyroscopic(self, V: Array) -> Array:
        """M̂: its right half is zero."""
        xp, M, mul = self.ops.xp, self.numbers.inertia, self.algebra.matmul
        J, h = M[:3, :3], M[:3, 3:]
        trace = J[0, 0] + J[1, 1] + J[2, 2]
        E = xp.eye(3, dtype=M.dtype)[:, :, None, None] * (trace / 2) - J
        spun = self.skew(self.algebra.times(J, V[:3]))
        upper = mul(E, self.skew(V[:3])) - spun - mul(h, self.skew(V[3:]))
        lower = -self.skew(self.algebra.times(M, V)[3:])
        left = xp.concatenate([upper, lower])
        return xp.concatenate([left, xp.zeros_like(left)], axis=1)

    def inertia_rate(self, x: Array, S: Array) -> Array:
        """x ×* S and its transpose."""
        xp, mul = self.ops.xp, self.algebra.matmul
        w, v = self.skew(x[:3]), self.skew(x[3:])
        half = xp.concatenate([mul(w, S[:3]) + mul(v, S[3:]), mul(w, S[3:])])
        return half + xp.swapaxes(half, 0, 1)

    def across(self, G: Array) -> Array:
        """I - G H."""
        eye = self.ops.xp.eye(6, dtype=self.numbers.H.dtype)[:, :, None, None]
        return eye - self.algebra.matmul(G, self.numbers.H)

    def congruence_across(self, S: Array, G: Array) -> Array:
        """(I - G H) S (I - G H)*."""
        across = self.across(G)
        return self.algebra.matmul_adjoint(self.algebra.matmul(across, S), across)

    def compliance_update(self, S: Array, G: Array, D: JointInertia) -> Array:
        """(I - G H)* S (I - G H) + H* D⁻¹ H."""
        mul, H = self.algebra.matmul, self.numbers.H
        across = self.across(G)
        own = self.algebra.adjoint_matmul(H, mul(D.inverse, H))
        return self.algebra.adjoint_matmul(across, mul(S, across)) + own

    def bias_gain(self, N: Array, S: Array, G: Array, D: JointInertia) -> Array:
        """N* H* D⁻¹ - S* G."""
        mul = self.algebra.matmul
        own = self.algebra.adjoint_matmul(mul(self.numbers.H, N), D.inverse)
        return own - self.algebra.adjoint_matmul(S, G)

    def transfer_update(self, S: Array, B: Array) -> Array:
        """S + H* B*."""
        xp = self.ops.xp
        return S + self.algebra.adjoint_matmul(self.numbers.H, xp.swapaxes(B, 0, 1))

    def dot(self, x: Array, y: Array) -> Array:
        """x* y, as one entry."""
        total: Array = (x * y).sum(0)[None]
        return total

    def to_world(self, x: Array, y: Array, z: Array, motion: Array) -> Array:
        """[R w; R v + p × R w] of the pose with rows x, y, z."""
        xp, times = self.ops.xp, self.algebra.times
        rows = xp.stack([x, y, z])
        turned = times(rows[:, :3], motion[:3])
        moved = times(rows[:, :3], motion[3:]) + self.algebra.cross(rows[:, 3], turned)
        return xp.concatenate([turned, moved])

    # -- between links, of a stream that is known at all of them

    def from_parents(self, x: Array) -> Array:
        """Of each link the value at its parent; zero at roots."""
        return self.ops.take(x, self.parent_places) * self.not_root

    def from_children(self, x: Array) -> Array:
        """Of each link the sum over its children of values there."""
        children = np.flatnonzero(self.numbers.parents != GROUND)
        own = self.ops.take(self._over_links(x), children)
        return self.ops.sum_by(own, self.numbers.parents[children], self.numbers.count)

    def from_roots(self, x: Array) -> Array:
        """The sum over the roots: (..., links, samples) -> (..., samples)."""
        roots = np.flatnonzero(self.numbers.parents == GROUND)
        total: Array = self.ops.take(self._over_links(x), roots).sum(axis=-2)
        return total

    def _over_links(self, x: Array) -> Array:
        return self.ops.xp.broadcast_to(x, (*x.shape[:-2], self.numbers.count, x.shape[-1]))


def _energy(fields: LinkFields, x: Array) -> Array:
    return fields.dot(x, fields.algebra.times(fields.numbers.inertia, x)) / 2


LOCAL: dict[str, Callable[..., Array]] = {
    "H": lambda f, x: f.H_times(x),
    "Ht": lambda f, x: f.Ht_times(x),
    "Ax": lambda f, x: f.numbers.armature * x,
    "inertia": lambda f, S, x: f.algebra.times(S, x),
    "inertia_t": lambda f, S, x: f.algebra.adjoint_times(S, x),
    "crm": lambda f, x, y: f.cross_motion(x, y),
    "crf": lambda f, x, y: f.cross_force(x, y),
    "gyro": lambda f, V: f.gyroscopic(V),
    "to_world": lambda f, x, y, z, m: f.to_world(x, y, z, m),
    "U": lambda f, P: f.algebra.matmul_adjoint(P, f.numbers.H),
    "D": lambda f, U: f.joint_inertia(U),
    "G": lambda f, U, D: f.algebra.matmul(U, D.inverse),
    "Gx": lambda f, G, x: f.algebra.times(G, x),
    "Gtx": lambda f, G, x: f.algebra.adjoint_times(G, x),
    "Dx": lambda f, D, x: f.algebra.times(D.matrix, x),
    "Dsolve": lambda f, D, x: f.algebra.times(D.inverse, x),
    "articulated_downdate": lambda f, P, U, G: P - f.algebra.matmul_adjoint(G, U),
    "project_across": lambda f, S, G: f.algebra.matmul(f.across(G), S),
    "inertia_rate": lambda f, x, S: f.inertia_rate(x, S),
    "congruence_across": lambda f, S, G: f.congruence_across(S, G),
    "compliance_update": lambda f, S, G, D: f.compliance_update(S, G, D),
    "bias_gain": lambda f, N, S, G, D: f.bias_gain(N, S, G, D),
    "transfer_update": lambda f, S, B: f.transfer_update(S, B),
    "link_energy": _energy,
    "rotor_energy": lambda f, x: f.dot(x, f.numbers.armature * x) / 2,
    "dot": lambda f, x, y: f.dot(x, y),
}
"""Operations whose operands belong to the same link, at all links."""

CROSSING: dict[str, Callable[..., Array]] = {
    "shift_out": lambda f, R, p, x: f.algebra.motion_out(R, p, x),
    "shift_in": lambda f, R, p, x: f.algebra.force_in(R, p, x),
    "congruence_in": lambda f, R, p, S: f.algebra.congruence_in(R, p, S),
    "congruence_out": lambda f, R, p, S: f.algebra.congruence_out(R, p, S),
    "point_in": lambda f, R, p, x: f.algebra.point_in(R, p, x),
    "plane_out": lambda f, R, p, y: f.algebra.plane_out(R, p, y),
    "to_ground": lambda f, R, p, x: f.algebra.force_in(R, p, x),
    "point_to_ground": lambda f, R, p, x: f.algebra.point_in(R, p, x),
    "total": lambda f, R, p, x: x,
}
"""What crosses joints, for poses of links or of whole segments."""
