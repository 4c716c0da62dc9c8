# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of every link and joint of a robot at a state, for all links together.

With B = H* the motions that a joint allows, its force f and the rate of its velocity v̇ are

    f = Tβ + S*(τ - Av̇)        v̇ = S(α - Xα_parent - c)        T*(α - Xα_parent - c) = 0

T spans the forces that do no work, B*T = 0, and S = (B*B)⁻¹B*. Everything is in the link's axes at
its origin; α is relative to free fall, that of the ground is minus gravity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.compile import joint_map, kernel
from phistar.model.components import GROUND, Body
from phistar.model.joints import JointKind
from phistar.model.model import Model
from phistar.model.wrenches import Wrenches, link_forces
from phistar.spatial import crf_apply, crm_apply, inertia_matrix, motion_transform, pose_inverse


@dataclass(frozen=True)
class JointSpace:
    """Directions of a kind of joint, and the links that have it.

    Attributes:
        links: (m,) numbers of the links.
        columns: (m, d) entries of their coordinates in v.
        B: (6, d) motions.
        T: (6, 6 - d) forces that do no work.
        S: (d, 6) from motions to rates.
    """

    links: Array
    columns: Array
    B: Array
    T: Array
    S: Array


@dataclass(frozen=True)
class LinkBlocks:
    """All links at a state.

    Attributes:
        parents: (n,), ``GROUND`` for none.
        X: (n, 6, 6) motions of the parent in the link's axes.
        M: (n, 6, 6) inertias.
        c: (n, 6) accelerations that rates of joints add.
        push: (n, 6) external less gyroscopic forces.
        spaces: Of all joints.
        armature: (nv,) inertia of rotors.
        ground: (6,) acceleration of the ground relative to free fall.
    """

    parents: Array
    X: Array
    M: Array
    c: Array
    push: Array
    spaces: Sequence[JointSpace]
    armature: Array
    ground: Array

    @property
    def count(self) -> int:
        """Number of links."""
        return len(self.parents)

    def allowed(self) -> Array:
        """(n,) coordinates of each joint."""
        result = np.zeros(self.count, dtype=int)
        for space in self.spaces:
            result[space.links] = space.B.shape[1]
        return result


def link_blocks(model: Model, q: Array, v: Array, wrenches: Wrenches | None = None) -> LinkBlocks:
    """All links at a state q (nq,), v (nv,)."""
    bodies = model.bodies
    count = len(bodies)
    X = np.empty((count, 6, 6))
    rates = np.zeros((count, 6))
    spaces = []
    for kind, group in _by_kind(bodies):
        numbers = np.array([body.index for body in group], dtype=int)
        entries = np.array([[b.q_slice.start] for b in group]) + np.arange(kind.nq)
        columns = np.array([[b.v_slice.start] for b in group]) + np.arange(kind.nv)
        placements = np.stack([body.placement for body in group])
        X[numbers] = motion_transform(pose_inverse(placements @ kind.transform(q[entries])))
        B = kind.motion_map()
        rates[numbers] = v[columns] @ B.T
        spaces.append(JointSpace(numbers, columns, B, workless_forces(B), np.linalg.pinv(B)))
    M = inertia_matrix(np.stack([body.inertia for body in bodies]))
    V = kernel("link_velocities", model)(model, q, {"v": joint_map(model).spread(v)})["V"]
    push = -crf_apply(V, (M @ V[..., None])[..., 0])
    if wrenches is not None:
        push = push + link_forces(model, q, wrenches)
    armature = np.zeros(len(v))
    for body in bodies:
        armature[body.v_slice] += body.armature or 0.0
    ground = np.array([0.0, 0.0, 0.0, *(-float(g) for g in model.gravity)])
    parents = np.array([body.parent for body in bodies], dtype=int)
    return LinkBlocks(parents, X, M, crm_apply(V, rates), push, spaces, armature, ground)


def _by_kind(bodies: Sequence[Body]) -> Iterator[tuple[JointKind, list[Body]]]:
    """Bodies whose joints move alike."""
    groups: dict[JointKind, list[Body]] = {}
    for body in bodies:
        groups.setdefault(body.joint_kind, []).append(body)
    yield from groups.items()


def workless_forces(B: Array) -> Array:
    """An orthonormal basis (6, 6 - d) of the forces with B*T = 0.

    Units are taken up one by one, those first that B reaches least, so that the basis is the same
    everywhere.
    """
    found: list[Array] = []
    for column in B.T:
        found.append(_rest(column, found))
    size = len(found)
    while len(found) < 6:
        rests = [_rest(unit, found, normed=False) for unit in np.eye(6)]
        lengths = [round(float(rest @ rest), 9) for rest in rests]
        best = rests[int(np.argmax(lengths))]
        found.append(best / np.sqrt(best @ best))
    return np.stack(found[size:], axis=1) if size < 6 else np.zeros((6, 0))


def _rest(x: Array, others: Sequence[Array], normed: bool = True) -> Array:
    """What others leave of a vector; twice, so that it is orthogonal to rounding."""
    for _ in range(2):
        for other in others:
            x = x - (other @ x) * other
    return np.asarray(x / np.sqrt(x @ x) if normed else x)


def inner_accelerations(blocks: LinkBlocks, accelerations: Array) -> Array:
    """Xα of the parents (n, 6)."""
    parents = blocks.parents
    inner = np.where((parents == GROUND)[:, None], blocks.ground, accelerations[parents])
    return np.asarray((blocks.X @ inner[..., None])[..., 0])


def joint_rates(blocks: LinkBlocks, accelerations: Array, size: int) -> Array:
    """v̇ (nv,) of link accelerations (n, 6)."""
    relative = accelerations - inner_accelerations(blocks, accelerations) - blocks.c
    result = np.zeros(size)
    for space in blocks.spaces:
        result[space.columns] = relative[space.links] @ space.S.T
    return result


def by_joint(model: Model, values: Array) -> Mapping[str, Array]:
    """Values (..., links, 6) at the links of joints, by the joint's name; of a compound joint those
    of its outermost link."""
    return {body.joint: values[..., body.index, :] for body in model.bodies}
