# SPDX-License-Identifier: BSD-3-Clause
"""Nodes of robots with loops and mimic joints: v = Xy by node, at configurations.

The rows of a loop touch the joints of its own node only, so that X is solved for node by node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.loops.minimal import independent_of, partition
from phistar.loops.system import LoopSystem, loop_system
from phistar.model.components import Loop, LoopJoint
from phistar.model.kinematic_loops import loop_ends
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.model.node_tree import NodeRates, NodeTree
from phistar.model.nodes import LinkNode, between, joint_rates, mimic_groups, nodes_of


def loop_group(model: Model, loop: Loop) -> frozenset[int]:
    """Bodies that a loop ties together, maybe none."""
    if isinstance(loop, LoopJoint):
        return between(model, [end.body for end in loop_ends(model, loop)])
    names = (loop.joint, *([loop.source] if loop.source else ()))
    return between(model, (), [k for name in names for k in model.joints[name].bodies])


@cached_on_model
def loop_nodes(model: Model) -> tuple[tuple[LinkNode, tuple[int, ...]], ...]:
    """The nodes of a robot, carriers first, each with the rows of its loops."""
    system = loop_system(model)
    groups = [loop_group(model, loop) for loop in system.loops]
    found = nodes_of(model, (*mimic_groups(model), *(group for group in groups if group)))
    rows: dict[int, list[int]] = {}
    for group, own in zip(groups, system.slices, strict=True):
        if group:
            first = min(group)
            number = next(i for i, node in enumerate(found) if first in node.bodies)
            rows.setdefault(number, []).extend(range(own.start, own.stop))
    return tuple((node, tuple(rows.get(i, ()))) for i, node in enumerate(found))


@dataclass(frozen=True)
class Embedding:
    """v = Xy + 0 and v̇ = Xẏ + x̄, node by node.

    Attributes:
        parts: For the tree of nodes.
        blocks: For each node the entries of v that it has, the numbers of its rates in y, and X
            (..., entries, rates) between them.
        start: x̄ (..., nv), which makes Lx̄ what it has to be.
        size: Number of rates y.
    """

    parts: Sequence[NodeRates]
    blocks: Sequence[tuple[Array, Array, Array]]
    start: Array
    size: int

    def expand(self, y: Array) -> Array:
        """Xy (..., nv)."""
        shapes = [X.shape[:-2] for _, _, X in self.blocks]
        batch = np.broadcast_shapes(y.shape[:-1], *shapes)
        result = np.zeros((*batch, self.start.shape[-1]), np.result_type(y, self.start))
        for entries, rates, X in self.blocks:
            result[..., entries] = (X @ y[..., rates, None])[..., 0]
        return result

    def reduce(self, tau: Array) -> Array:
        """X*τ (..., n)."""
        shapes = [X.shape[:-2] for _, _, X in self.blocks]
        batch = np.broadcast_shapes(tau.shape[:-1], *shapes)
        result = np.zeros((*batch, self.size), np.result_type(tau, self.start))
        for entries, rates, X in self.blocks:
            result[..., rates] = (np.swapaxes(X, -1, -2) @ tau[..., entries, None])[..., 0]
        return result

    def tree(self, model: Model, q: Array) -> NodeTree:
        """The tree of nodes."""
        return NodeTree(model, q, self.parts, self.size)


def embedding(model: Model, L: Array, dependent: Array, c: Array | None = None) -> Embedding:
    """The nodes of a robot whose dependent coordinates are chosen.

    Args:
        model: The robot.
        L: (..., rows, nv).
        dependent: (rank,) numbers of the coordinates that follow from the others.
        c: (..., rows) what Lx̄ has to be; none: zero.
    """
    system = loop_system(model)
    follows = set(dependent.tolist())
    place = {k: i for i, k in enumerate(k for k in range(model.nv) if k not in follows)}
    c = np.zeros(L.shape[:-1]) if c is None else c
    start = np.zeros((*c.shape[:-1], model.nv))
    parts, blocks = [], []
    for node, rows in loop_nodes(model):
        entries = np.array(node.entries, dtype=int)
        X, free, own = _block(system, L, c, entries, rows, follows)
        start[..., entries] = own
        rates = np.array([place[k] for k in entries[free].tolist()], dtype=int)
        blocks.append((entries, rates, X))
        parts.append(NodeRates(node, rates, tuple(_joint_maps(model, node, X))))
    return Embedding(tuple(parts), tuple(blocks), start, model.nv - len(follows))


def _block(
    system: LoopSystem,
    L: Array,
    c: Array,
    entries: Array,
    rows: Sequence[int],
    follows: set[int],
) -> tuple[Array, Array, Array]:
    """X of a node, which of its entries are independent, and x̄."""
    local = np.array([i for i, k in enumerate(entries.tolist()) if k in follows], dtype=int)
    free = independent_of(local, len(entries))
    if not len(local):
        return np.eye(len(entries)), free, np.zeros(len(entries))
    own = L[..., list(rows), :][..., entries]
    X, start = partition(system, own, len(local), c[..., list(rows)], local)
    return X, free, start


def _joint_maps(model: Model, node: LinkNode, X: Array) -> Iterator[Array]:
    """Velocities of each body's joint per unit of the node's rates."""
    number = {entry: i for i, entry in enumerate(node.entries)}
    for k in node.bodies:
        own = np.zeros((model.bodies[k].joint_kind.nv, len(number)))
        for rate in joint_rates(model)[k]:
            own[rate.axis, number[rate.entry]] = rate.scale
        yield own @ X
