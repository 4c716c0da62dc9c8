# SPDX-License-Identifier: BSD-3-Clause
"""A robot's links, all at once: arrays with an axis over the links.

Joints with fewer than the most velocities are filled up with axes that move nothing: rows of zeros
in H, a rotor inertia of one, so that D stays regular. The last row of each table is such a link: it
stands at the places of ``depth_rows.Levels`` that no link takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array, DType
from phistar.backends.jax.depth_rows import Levels
from phistar.backends.jax.package import jax
from phistar.model.components import GROUND, Body
from phistar.model.configuration import quaternion_starts
from phistar.model.joints import JointKind
from phistar.model.joints.number_ops import ARRAY_OPS, JointRotation, Turn
from phistar.model.model import Model
from phistar.model.singular import pivot_thresholds
from phistar.spatial import force_transform, inertia_matrix
from phistar.spatial.any_namespace import force_transform as any_force_transform
from phistar.spatial.entries import Number, quaternion_matrix
from phistar.sweeps.op_values import GroundState

if TYPE_CHECKING:
    from phistar.backends.jax.package import JaxArray

_Matrix = Sequence[Sequence[Number]]


@dataclass(frozen=True)
class DepthArrays:
    """What ``sweeps.op_values`` reads of a link, of many side by side; see ``LinkState`` there."""

    transform: Array
    phi: Array
    H: Array
    armature: Array
    rigid_inertia: Array
    min_pivots: Array | None

    def as_tree(self) -> dict[str, Array]:
        """By name, for functions of JAX that take such."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: x for name, x in found.items() if x is not None}

    @classmethod
    def from_tree(cls, arrays: Mapping[str, Array]) -> DepthArrays:
        """The inverse."""
        return cls(**{"min_pivots": None, **arrays})  # type: ignore[arg-type]

    def take(self, links: Array) -> DepthArrays:
        """Those of some links."""
        return self.from_tree({name: x[links] for name, x in self.as_tree().items()})


@dataclass(frozen=True, eq=False)
class KindGroup:
    """Links whose joints differ in axes and parameters alone: one formula for all.

    Attributes:
        kind: About z, its parameters arrays (links,).
        bodies: Their numbers.
        coordinates: (links, nq) entries of q.
        scale, offset: (links, 1) of mimic joints.
        placed, turned_back: (links, 3, 3) constant rotations before and after the joint's own.
        offsets: (links, 3) constant offsets.
    """

    kind: JointKind
    bodies: Array
    coordinates: Array
    scale: Array
    offset: Array
    placed: Array
    turned_back: Array
    offsets: Array

    @classmethod
    def of(cls, kind: JointKind, bodies: Sequence[Body]) -> KindGroup:
        """The group of some bodies."""
        bases = np.array([[b.joint_kind.direction(i) for i in range(3)] for b in bodies])
        placements = np.array([b.placement for b in bodies])
        parameters = {
            name: np.array([getattr(b.joint_kind, name) for b in bodies])
            for name in kind.parameters
        }
        return cls(
            kind.replaced(dict(parameters)),
            np.array([b.index for b in bodies], dtype=np.int32),
            np.array([range(b.q_slice.start, b.q_slice.stop) for b in bodies], dtype=np.int32),
            np.array([[b.scale] for b in bodies]),
            np.array([[b.offset] for b in bodies]),
            placements[:, :3, :3] @ bases.swapaxes(-1, -2),
            bases,
            placements[:, :3, 3],
        )

    def cast(self, precision: DType) -> KindGroup:
        """The same in a precision."""
        named = {name: getattr(self.kind, name).astype(precision) for name in self.kind.parameters}
        arrays = ("scale", "offset", "placed", "turned_back", "offsets")
        changed = {name: getattr(self, name).astype(precision) for name in arrays}
        return replace(self, kind=self.kind.replaced(dict(named)), **changed)

    def transforms(self, q: Array) -> tuple[Array, Array]:
        """Rotations (links, 3, 3) and offsets (links, 3) in the parents."""
        xp = jax().numpy
        own = self.scale * q[self.coordinates] + self.offset
        entries = [own[:, i] for i in range(own.shape[1])]
        factors, offset = self.kind.placement(entries, ARRAY_OPS)
        rotation = self.placed
        for matrix in _rotations(factors):
            rotation = rotation @ _stacked(matrix, len(self.bodies), q)
        moved = _stacked([offset], len(self.bodies), q)[:, 0]
        place = self.offsets + (self.placed @ moved[:, :, None])[:, :, 0]
        return xp.asarray(rotation @ self.turned_back, dtype=q.dtype), place


def _rotations(factors: JointRotation) -> list[_Matrix]:
    return [
        _axis_rotation(each) if isinstance(each, Turn) else quaternion_matrix(list(each.quaternion))
        for each in factors
    ]


def _axis_rotation(turn: Turn) -> _Matrix:
    cosine, sine = ARRAY_OPS.cos_sin(turn.angle)
    rows: list[list[Number]] = [[0.0] * 3 for _ in range(3)]
    i, j = (turn.axis + 1) % 3, (turn.axis + 2) % 3
    rows[turn.axis][turn.axis] = 1.0
    rows[i][i] = rows[j][j] = cosine
    rows[j][i], rows[i][j] = sine, -sine
    return rows


def _stacked(rows: _Matrix, count: int, like: Array) -> Array:
    """Entries, arrays (count,) or numbers, as (count, rows, columns)."""
    xp = jax().numpy
    full = [[xp.broadcast_to(xp.asarray(x, like.dtype), (count,)) for x in row] for row in rows]
    found: Array = xp.stack([xp.stack(row, axis=-1) for row in full], axis=-2)
    return found


class DepthTables:
    """The numbers of a model that do not depend on q.

    Attributes:
        levels: The tree by depth.
        joint_width: Velocities of a joint, at most; at least one.
        joint_places: (joints,) entry of the (links, joint_width) array that each velocity is.
        roots: Links on the ground.
        frame_numbers, frame_bodies: Those of the given frames that move, and their links.
        frame_forces: (frames, 6, 6) from forces on them to forces on their links.
    """

    def __init__(self, model: Model, frames: Sequence[str], locked: Set[int]) -> None:
        bodies = model.bodies
        self.levels = Levels.of([body.parent for body in bodies])
        self.roots = np.array([b.index for b in bodies if b.parent == GROUND], dtype=np.int32)
        self._set_groups(bodies)
        self._set_joints(model, locked)
        self.inertia = np.concatenate([inertia_matrix(model.inertias), np.zeros((1, 6, 6))])
        self.mass_points = np.roll(model.inertias[:, :4], -1, axis=1)
        self.ground = GroundState.of(model)
        self.quaternions = [start for _, start in quaternion_starts(model)]
        self._set_frames(model, frames)

    def _set_frames(self, model: Model, names: Sequence[str]) -> None:
        frames = list(enumerate(map(model.frame, names)))
        moving = [(number, frame) for number, frame in frames if frame.body != GROUND]
        self.frame_numbers = np.array([number for number, _ in moving], dtype=np.int32)
        self.frame_bodies = np.array([frame.body for _, frame in moving], dtype=np.int32)
        poses = np.array([frame.body_pose for _, frame in moving]).reshape(-1, 4, 4)
        self.frame_forces = force_transform(poses)

    def _set_groups(self, bodies: Sequence[Body]) -> None:
        kinds: dict[JointKind, list[Body]] = {}
        for body in bodies:
            kinds.setdefault(body.joint_kind.canonical(), []).append(body)
        self.groups = [KindGroup.of(kind, members) for kind, members in kinds.items()]
        order = np.concatenate(
            [np.zeros(0, dtype=np.int32), *(each.bodies for each in self.groups)]
        )
        self.from_groups = np.argsort(order).astype(np.int32)

    def _set_joints(self, model: Model, locked: Set[int]) -> None:
        bodies, pivots = model.bodies, pivot_thresholds(model)
        sizes = [0 if b.index in locked else b.joint_kind.nv for b in bodies]
        count, width = len(bodies), max([1, *sizes])
        self.joint_width = width
        self.joint_map = np.zeros((count + 1, width, 6))
        self.armature = np.ones((count + 1, width))
        self.min_pivots = np.full((count + 1, width), -np.inf)
        places: list[int] = []
        for k, (body, size) in enumerate(zip(bodies, sizes, strict=True)):
            if size:
                self.joint_map[k, :size] = body.joint_kind.motion_map().T
                self.armature[k, :size] = body.armature
                self.min_pivots[k, :size] = pivots.get(k, -np.inf)
            places += range(k * width, k * width + size)
        self.has_pivots = bool(np.isfinite(self.min_pivots).any())
        self.joint_places = np.array(places, dtype=np.int32)

    def at(self, q: Array) -> DepthLinks:
        """The links at a configuration."""
        return DepthLinks(self, q)


class DepthLinks:
    """The links at one configuration.

    Attributes:
        flat: Of each link.
        rows: (depths, width) the same by depth, with a link that is none where there is none.
    """

    def __init__(self, tables: DepthTables, q: Array) -> None:
        self.tables = tables
        self.precision = np.finfo(q.dtype).dtype
        self._xp = jax().numpy
        transform = self._transforms(self._unit_quaternions(q))
        phi = any_force_transform(transform)
        count = tables.levels.count
        self.flat = self._arrays(np.arange(count), transform, phi)
        self.q = q

    def rows(self) -> DepthArrays:
        """(depths, width, ...) of the links by depth."""
        levels = self.tables.levels
        poses = self.by_depth(self.flat.transform, np.eye(4))
        phi = self.by_depth(self.flat.phi, np.eye(6))
        return self._arrays(levels.links, poses, phi)

    def _arrays(self, links: Array, transform: Array, phi: Array) -> DepthArrays:
        tables = self.tables
        constants = [tables.joint_map, tables.armature, tables.inertia]
        if tables.has_pivots:
            coarser = float(np.finfo(self.precision).eps / np.finfo(float).eps)
            constants.append(coarser * tables.min_pivots)
        H, armature, inertia, *pivots = (self.constant(x[links]) for x in constants)
        return DepthArrays(transform, phi, H, armature, inertia, pivots[0] if pivots else None)

    def constant(self, x: Array) -> Array:
        """A table in the precision of q."""
        found: Array = self._xp.asarray(x.astype(self.precision))
        return found

    def _unit_quaternions(self, q: Array) -> Array:
        for start in self.tables.quaternions:
            own = slice(start, start + 4)
            # Imaginary parts are derivatives, along which the length does not change.
            square = (q[own].real ** 2).sum()
            q = q.at[own].set(q[own] / self._xp.sqrt(square))  # type: ignore[attr-defined]
        return q

    def _transforms(self, q: Array) -> Array:
        """(links, 4, 4)."""
        xp, tables = self._xp, self.tables
        if not tables.groups:
            return xp.zeros((0, 4, 4), q.dtype)  # type: ignore[no-any-return]
        found = [group.cast(self.precision).transforms(q) for group in tables.groups]
        rotations, offsets = (xp.concatenate(each) for each in zip(*found, strict=True))
        if len(found) > 1:
            rotations, offsets = rotations[tables.from_groups], offsets[tables.from_groups]
        upper = xp.concatenate([rotations, offsets[:, :, None]], axis=-1)
        last = np.broadcast_to(np.eye(4)[3:], (len(tables.from_groups), 1, 4))
        return xp.concatenate([upper, last.astype(q.dtype)], axis=-2)  # type: ignore[no-any-return]

    def by_depth(self, x: Array, nothing: Array) -> Array:
        """(links, ...) -> (depths, width, ...); ``nothing`` at places without a link."""
        levels = self.tables.levels
        if levels.is_chain:
            return x[:, None]
        filling = self._xp.asarray(nothing.astype(x.dtype))
        return self._xp.concatenate([x, filling[None]])[levels.links]  # type: ignore[no-any-return]

    def by_link(self, x: Array) -> Array:
        """(depths, width, ...) -> (links, ...)."""
        levels = self.tables.levels
        if levels.is_chain:
            return x[:, 0]
        return x.reshape(-1, *x.shape[2:])[levels.places]

    # -- what is given

    def joint_vector(self, x: Array) -> Array:
        """(joints,) -> (links, joint width)."""
        tables = self.tables
        shape = (tables.levels.count, tables.joint_width)
        if len(tables.joint_places) == shape[0] * shape[1]:
            return x.reshape(shape)
        index = np.full(shape[0] * shape[1], len(tables.joint_places), dtype=np.int32)
        index[tables.joint_places] = np.arange(len(tables.joint_places))
        padded = self._xp.concatenate([x, self._xp.zeros(1, x.dtype)])
        return padded[index].reshape(shape)  # type: ignore[no-any-return]

    def from_joints(self, x: Array) -> Array:
        """(links, joint width) -> (joints,)."""
        places = self.tables.joint_places
        flat = x.reshape(-1)
        return flat if len(places) == len(flat) else flat[places]

    def at_roots(self, x: Array) -> Array:
        """(links, ...) with zeros at links that do not hang on the ground."""
        chosen = np.zeros(self.tables.levels.count, dtype=bool)
        chosen[self.tables.roots] = True
        found: Array = self._xp.where(chosen.reshape(-1, *(1,) * (x.ndim - 1)), x, 0)
        return found

    def gravity(self) -> Array:
        """The upward acceleration of the ground on the roots, nothing elsewhere."""
        upward = self.constant(-self.tables.ground.gravity)
        turned = upward @ self.flat.transform[:, :3, :3]
        found = self._xp.concatenate([self._xp.zeros_like(turned), turned], axis=-1)
        return self.at_roots(found)

    def frame_forces(self, forces: Array) -> Array:
        """Forces on frames (frames, 6) as forces on the links that carry them."""
        tables = self.tables
        given = forces[tables.frame_numbers]
        moved = (self.constant(tables.frame_forces) @ given[..., None])[..., 0]
        total: JaxArray = self._xp.zeros((tables.levels.count, 6), forces.dtype)
        found: Array = total.at[tables.frame_bodies].add(moved)
        return found

    @property
    def ground(self) -> GroundState:
        """The robot as a whole."""
        known = self.tables.ground
        return replace(
            known, gravity=self.constant(known.gravity), point=self.constant(known.point)
        )
