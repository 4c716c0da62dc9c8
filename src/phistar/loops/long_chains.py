# SPDX-License-Identifier: BSD-3-Clause
"""Rows of loops with many joints, in NumPy: all joints of a chain at once.

``scalar.trace.loop_chains`` has the formulas, and small robots get programs of them. A program of a
chain of a thousand joints would be longer than what it computes is worth. Here the poses of the
end frame in all links of its side are products over the links behind each, found by doubling, and
what a joint does to the successor is a column of one array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from phistar.arrays import Array
from phistar.model.components import Body, Coupling, LoopJoint
from phistar.model.configuration import normalized_configuration
from phistar.model.joints import JointKind
from phistar.model.kinematic_loops import LoopEnd, active_loops, loop_ends
from phistar.model.loop_kinds import wrench_columns, wrench_rates
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.spatial import crm_apply, motion_transform, pose_inverse
from phistar.thresholds import POLICY


@dataclass(frozen=True, eq=False)
class _Alike:
    """Joints of one side of a chain whose kinds are equal, at their places along it."""

    kind: JointKind
    places: Array
    coordinates: Array
    columns: Array
    scale: Array
    offset: Array
    placements: Array
    motion_map: Array

    @property
    def shared(self) -> bool:
        """Whether some move by the same coordinate: one mimics the other."""
        return len(np.unique(self.columns)) < self.columns.size

    @classmethod
    def of(cls, kind: JointKind, members: Sequence[tuple[int, Body]]) -> _Alike:
        bodies = [body for _, body in members]
        return cls(
            kind,
            np.array([place for place, _ in members], dtype=int),
            np.array([b.q_slice.start for b in bodies])[:, None] + np.arange(kind.nq),
            np.array([b.v_slice.start for b in bodies])[:, None] + np.arange(kind.nv),
            np.array([[b.scale] for b in bodies]),
            np.array([[b.offset] for b in bodies]),
            np.stack([b.placement for b in bodies]),
            kind.motion_map(),
        )


@dataclass(frozen=True, eq=False)
class _Side:
    """The joints from the common ancestor, outward, to an end frame."""

    end: LoopEnd
    joints: int
    groups: tuple[_Alike, ...]

    @classmethod
    def of(cls, model: Model, path: Sequence[int], end: LoopEnd) -> _Side:
        found: dict[JointKind, list[tuple[int, Body]]] = {}
        for place, k in enumerate(path):
            body = model.bodies[k]
            found.setdefault(body.joint_kind, []).append((place, body))
        return cls(end, len(path), tuple(_Alike.of(*each) for each in found.items()))

    def poses(self, q: Array) -> Array:
        """The end frame in the ancestor, then in each link outward, (..., joints + 1, 4, 4)."""
        steps = np.empty((*q.shape[:-1], self.joints + 1, 4, 4), q.dtype)
        steps[..., -1, :, :] = self.end.pose
        for each in self.groups:
            own = each.scale * q[..., each.coordinates] + each.offset
            steps[..., each.places, :, :] = each.placements @ each.kind.transform(own)
        reach = 1
        while reach <= self.joints:
            steps[..., :-reach, :, :] = steps[..., :-reach, :, :] @ steps[..., reach:, :, :]
            reach *= 2
        return steps

    def motions(self, poses: Array, nv: int) -> Array:
        """What coordinates do to the end frame, in its axes, (..., 6, nv)."""
        found = np.zeros((*poses.shape[:-3], 6, nv), poses.dtype)
        for each in self.groups:
            to_end = motion_transform(pose_inverse(poses[..., 1 + each.places, :, :]))
            own = to_end @ (each.scale[..., None] * each.motion_map)
            for i in range(each.kind.nv):
                own_columns = np.moveaxis(own[..., i], -2, -1)
                if each.shared:
                    for j, column in enumerate(each.columns[:, i]):
                        found[..., column] += own_columns[..., j]
                else:
                    found[..., each.columns[:, i]] += own_columns
        return found

    def rates(self, poses: Array, v: Array) -> Array:
        """The motion by each joint (..., joints, 6)."""
        batch = np.broadcast_shapes(poses.shape[:-3], v.shape[:-1])
        found = np.empty((*batch, self.joints, 6), np.result_type(poses, v))
        for each in self.groups:
            to_end = motion_transform(pose_inverse(poses[..., 1 + each.places, :, :]))
            own = (each.scale * v[..., each.columns]) @ each.motion_map.T
            found[..., each.places, :] = (to_end @ own[..., None])[..., 0]
        return found


@dataclass(frozen=True, eq=False)
class LongChain:
    """A loop with its joints on both sides of the common ancestor."""

    loop: LoopJoint
    inner: _Side
    outer: _Side

    @classmethod
    def of(cls, model: Model, loop: LoopJoint) -> LongChain:
        """That of a robot."""
        first, second = loop_ends(model, loop)
        one, two = model.ancestors(first.body), model.ancestors(second.body)
        shared = sum(1 for a, b in zip(one, two, strict=False) if a == b)
        return cls(
            loop, _Side.of(model, one[shared:], first), _Side.of(model, two[shared:], second)
        )

    @property
    def joints(self) -> int:
        """How many there are."""
        return self.inner.joints + self.outer.joints

    def at(self, q: Array, nv: int) -> _ChainAt:
        """The chain at normalized configurations."""
        first, second = self.inner.poses(q), self.outer.poses(q)
        relative = pose_inverse(first[..., 0, :, :]) @ second[..., 0, :, :]
        across = motion_transform(pose_inverse(relative))
        motions = self.outer.motions(second, nv) - across @ self.inner.motions(first, nv)
        wrenches = wrench_columns(self.loop, relative)
        return _ChainAt(self, first, second, relative, across, wrenches, wrenches @ motions)


@dataclass(frozen=True, eq=False)
class _ChainAt:
    chain: LongChain
    first: Array
    second: Array
    relative: Array
    across: Array
    wrenches: Array
    rows: Array

    def rate_and_bias(self, v: Array) -> tuple[Array, Array]:
        """Lv and L̇v of its rows (..., rows)."""
        inner = self.chain.inner.rates(self.first, v)
        outer = self.chain.outer.rates(self.second, v)
        turned_in = -(self.across[..., None, :, :] @ inner[..., ::-1, :, None])[..., 0]
        moved = np.concatenate([turned_in, outer], axis=-2)
        reached = np.cumsum(moved, axis=-2)
        velocity = moved.sum(axis=-2)
        behind = velocity[..., None, :] - reached
        turned = crm_apply(moved, behind).sum(axis=-2)
        rate = (self.wrenches @ velocity[..., None])[..., 0]
        bias = (self.wrenches @ turned[..., None])[..., 0]
        rates = wrench_rates(self.chain.loop, self.relative, velocity)
        if rates is not None:
            bias = bias + (rates @ velocity[..., None])[..., 0]
        return rate, bias


@cached_on_model
def long_chains(model: Model) -> tuple[LongChain | Coupling, ...] | None:
    """All loops, where so many joints are on them that a program of them does not pay."""
    loops = active_loops(model.loops)
    found = tuple(LongChain.of(model, x) if isinstance(x, LoopJoint) else x for x in loops)
    joints = sum(each.joints for each in found if isinstance(each, LongChain))
    return found if joints > POLICY.max_chain_joints_traced else None


def chain_results(
    chains: Sequence[LongChain | Coupling], model: Model, q: Array, v: Array | None = None
) -> dict[str, Array]:
    """``poses`` (..., loop joints, 4, 4), ``rows`` (..., rows, nv), with v ``rate`` and ``bias``.

    Args:
        chains: Of the active loops.
        model: The robot.
        q, v: (..., nq), (..., nv).
    """
    q = normalized_configuration(model, q)
    parts: dict[str, list[Array]] = {"poses": [], "rows": [], "rate": [], "bias": []}
    for chain in chains:
        if isinstance(chain, Coupling):
            rows, rates = _coupled(model, chain, q, v)
        else:
            at = chain.at(q, model.nv)
            parts["poses"].append(at.relative[..., None, :, :])
            rows, rates = at.rows, None if v is None else at.rate_and_bias(v)
        parts["rows"].append(rows)
        if rates is not None:
            parts["rate"].append(rates[0])
            parts["bias"].append(rates[1])
    axes = {"poses": -3, "rows": -2, "rate": -1, "bias": -1}
    found = {name: np.concatenate(x, axis=axes[name]) for name, x in parts.items() if x}
    return {"poses": np.zeros((*q.shape[:-1], 0, 4, 4)), **found}


def _coupled(
    model: Model, loop: Coupling, q: Array, v: Array | None
) -> tuple[Array, tuple[Array, Array] | None]:
    """The row (..., 1, nv) of y - f(x), and its rate and bias (..., 1)."""
    rows = np.zeros((*q.shape[:-1], 1, model.nv), q.dtype)
    y = model.bodies[model.joints[loop.joint].bodies[0]]
    rows[..., 0, y.v_slice.start] += y.scale
    curved = np.zeros(q.shape[:-1], q.dtype)
    if loop.source:
        x = model.bodies[model.joints[loop.source].bodies[0]]
        at = x.scale * q[..., x.q_slice.start] + x.offset - loop.references[1]
        f = np.polynomial.Polynomial(cast(Sequence[float], loop.coefficients or (0.0,)))
        rows[..., 0, x.v_slice.start] -= x.scale * f.deriv(1)(at)
        curved = x.scale**2 * f.deriv(2)(at)
    if v is None:
        return rows, None
    speed = v[..., x.v_slice.start] if loop.source else np.zeros(v.shape[:-1])
    return rows, ((rows @ v[..., None])[..., 0], -(curved * speed**2)[..., None])
