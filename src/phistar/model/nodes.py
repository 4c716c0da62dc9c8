# SPDX-License-Identifier: BSD-3-Clause
"""Links whose rates depend on each other, as nodes of a tree again (constraint embedding).

Joints that mimic one another, and joints on a closed loop, move together. The links between them
and the link that carries them all are one node; every other link is a node of its own. Each node
has rates of its own and hangs on a single link, so that sweeps over nodes are those over links.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from phistar.model.components import GROUND
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model


@dataclass(frozen=True)
class JointRate:
    """A velocity of a body's joint as a multiple of an entry of v.

    Attributes:
        axis: Which of the joint's velocities.
        entry: Entry of v.
        scale: The joint's velocity per unit of v; not zero.
    """

    axis: int
    entry: int
    scale: float


@dataclass(frozen=True)
class LinkNode:
    """Bodies that move together.

    Attributes:
        bodies: Their numbers, parents first.
        entries: Entries of v that move them, those of joints far from the root first.
        carrier: The body that carries the node, or ``GROUND``.
        roots: Those of its bodies whose parent is the carrier.
    """

    bodies: tuple[int, ...]
    entries: tuple[int, ...]
    carrier: int
    roots: tuple[int, ...]


@cached_on_model
def joint_rates(model: Model) -> tuple[tuple[JointRate, ...], ...]:
    """For each body what moves its joint; joints that follow with factor zero are not moved."""
    joints = joint_map(model)
    pairs = list(zip(joints.v_indices.tolist(), joints.scales.tolist(), strict=True))
    found, first = [], 0
    for body in model.bodies:
        own = pairs[first : first + body.joint_kind.nv]
        first += len(own)
        found.append(tuple(JointRate(i, v, s) for i, (v, s) in enumerate(own) if s != 0.0))
    return tuple(found)


def between(model: Model, ends: Iterable[int], moved: Iterable[int] = ()) -> frozenset[int]:
    """Bodies that something between others ties together, maybe none.

    Args:
        model: The robot.
        ends: Bodies that are held by each other; ``GROUND`` is the ground.
        moved: Bodies whose joints' rates depend on each other.

    Returns:
        Those on the ways from them to, without, their common ancestor; of joints the ancestor of
        the bodies that carry them.
    """
    ends, moved = set(ends), set(moved)
    carriers = [*ends, *(model.bodies[k].parent for k in moved)]
    ways = [set(model.ancestors(k)) for k in carriers]
    shared = set.intersection(*ways) if ways else set()
    found: set[int] = set()
    for k in ends | moved:
        found.update(model.ancestors(k))
    return frozenset(found - shared)


@cached_on_model
def mimic_groups(model: Model) -> tuple[frozenset[int], ...]:
    """Bodies between joints that share an entry of v, a group for each such entry."""
    sharing: dict[int, set[int]] = {}
    for body, rates in zip(model.bodies, joint_rates(model), strict=True):
        for rate in rates:
            sharing.setdefault(rate.entry, set()).add(body.index)
    found = {between(model, (), moved) for moved in sharing.values() if len(moved) > 1}
    return tuple(sorted(found, key=sorted))


@cached_on_model
def mimic_nodes(model: Model) -> tuple[LinkNode, ...]:
    """The nodes of a robot whose mimic joints are reduced, its loops open; carriers first."""
    return nodes_of(model, mimic_groups(model))


def nodes_of(model: Model, groups: Iterable[frozenset[int]]) -> tuple[LinkNode, ...]:
    """The nodes of a robot, carriers first; groups that share a body are one node."""
    number = list(range(len(model.bodies)))
    for group in groups:
        members = {number[k] for k in group}
        number = [min(members) if each in members else each for each in number]
    together: dict[int, list[int]] = {}
    for k, each in enumerate(number):
        together.setdefault(each, []).append(k)
    rates = joint_rates(model)
    return tuple(_node(model, rates, bodies) for _, bodies in sorted(together.items()))


def _node(model: Model, rates: Sequence[Sequence[JointRate]], bodies: Sequence[int]) -> LinkNode:
    own = set(bodies)
    roots = [k for k in bodies if model.bodies[k].parent not in own]
    carriers = {model.bodies[k].parent for k in roots}
    assert len(carriers) == 1, "a node hangs on one link"
    outward = reversed(bodies)
    entries = dict.fromkeys(rate.entry for k in outward for rate in reversed(rates[k]))
    return LinkNode(tuple(bodies), tuple(entries), carriers.pop(), tuple(roots))


def is_plain(model: Model, node: LinkNode) -> bool:
    """Whether a node is a single body whose joint has coordinates of its own."""
    if len(node.bodies) > 1:
        return False
    own = joint_rates(model)[node.bodies[0]]
    return len(own) == model.bodies[node.bodies[0]].joint_kind.nv and all(
        rate.scale == 1.0 for rate in own
    )


__all__ = [
    "GROUND",
    "JointRate",
    "LinkNode",
    "between",
    "is_plain",
    "joint_rates",
    "mimic_groups",
    "mimic_nodes",
    "nodes_of",
]
