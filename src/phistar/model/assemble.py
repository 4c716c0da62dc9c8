# SPDX-License-Identifier: BSD-3-Clause
"""Links and joints as a file has them -> the bodies that the algorithms run over.

Fixed joints disappear into bodies (their frames survive), compound joints become rows of simple
ones with massless bodies in between, mimic joints share the coordinates of the joint they follow.
Everything is linear in the number of links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.model.joints import JointKind
from phistar.model.parts import GROUND, IDENTITY, Body, Frame, Joint, Link, Mimic, frozen
from phistar.model.tree import GROUND_NAME, depth_first, resolve_mimics
from phistar.spatial import inertia_parameters, transform_inertia

Array = NDArray[Any]

_NO_INERTIA = frozen(np.zeros(10), (10,))


@dataclass(frozen=True)
class Assembly:
    """Joints in tree order with their coordinates, bodies parents first, frames of all links."""

    joints: dict[str, Joint]
    order: tuple[str, ...]
    bodies: tuple[Body, ...]
    frames: dict[str, Frame]


def assemble(
    links: Sequence[Link], joints: Sequence[Joint], order: Sequence[str] | None = None
) -> Assembly:
    """Number coordinates and bodies of a sound forest.

    Args:
        links: In file order.
        joints: In file order; siblings keep it.
        order: Names of the independent moving joints in the wanted order of coordinates
            (default: depth first).
    """
    walk = depth_first(links, joints)
    placed = [joint for _, joint in walk if joint is not None]
    laws = resolve_mimics(placed)
    moving = [j.name for j in placed if j.motion.nv and j.name not in laws]
    names = tuple(moving if order is None else order)
    slices = _coordinate_slices(names, {j.name: j.motion for j in placed})
    return _Walk(links, laws, slices).run(walk, names)


def _coordinate_slices(
    names: Iterable[str], kinds: Mapping[str, JointKind]
) -> dict[str, tuple[slice, slice]]:
    slices: dict[str, tuple[slice, slice]] = {}
    nq = nv = 0
    for name in names:
        kind = kinds[name]
        slices[name] = (slice(nq, nq + kind.nq), slice(nv, nv + kind.nv))
        nq, nv = nq + kind.nq, nv + kind.nv
    return slices


class _Walk:
    """One pass over the tree: where every link sits, and the bodies met on the way."""

    def __init__(
        self,
        links: Sequence[Link],
        laws: Mapping[str, Mimic],
        slices: Mapping[str, tuple[slice, slice]],
    ) -> None:
        self.links = {link.name: link for link in links}
        self.laws = laws
        self.slices = slices
        self.seat: dict[str, tuple[int, Array]] = {GROUND_NAME: (GROUND, IDENTITY)}
        self.joints: dict[str, Joint] = {}
        self.bodies: list[Body] = []

    def run(self, walk: Sequence[tuple[str, Joint | None]], order: tuple[str, ...]) -> Assembly:
        for link, joint in walk:
            if joint is None:
                self.seat[link] = (GROUND, IDENTITY)
            else:
                self.seat[link] = self._place(joint)
        inertias = _body_inertias(list(self.links.values()), self.seat, len(self.bodies))
        inertias.flags.writeable = False
        for body, inertia in zip(self.bodies, inertias, strict=True):
            # Bodies are shared with nobody yet; copying each to fill in one field would be slow.
            object.__setattr__(body, "inertia", inertia)
        bodies = tuple(self.bodies)
        named = [link.name for link in self.links.values() if not link.virtual]
        frames = {name: self._frame(name) for name in named}
        return Assembly(self.joints, order, bodies, frames)

    def _frame(self, link: str) -> Frame:
        body, pose = self.seat[link]
        return Frame(link, link, IDENTITY, body, frozen(pose, (4, 4)))

    def _place(self, joint: Joint) -> tuple[int, Array]:
        """Add the joint and its bodies; returns body and pose of the child link in it."""
        parent, pose = self.seat[joint.parent]
        if joint.motion.nv == 0:
            self.joints[joint.name] = joint
            return parent, _compose(_compose(pose, joint.origin), joint.child_pose)
        law = self.laws.get(joint.name) or Mimic(joint.name)
        q_slice, v_slice = self.slices[law.joint]
        first = len(self.bodies)
        placement, q_at, v_at = _compose(pose, joint.origin), q_slice.start, v_slice.start
        inertia = joint.drive.reflected_inertia
        for part in joint.motion.parts:
            offset_v = v_at - v_slice.start
            self.bodies.append(
                Body(
                    index=len(self.bodies),
                    parent=parent,
                    joint=joint.name,
                    link=joint.child,
                    motion=part,
                    placement=frozen(placement, (4, 4)),
                    q_slice=slice(q_at, q_at + part.nq),
                    v_slice=slice(v_at, v_at + part.nv),
                    scale=law.multiplier,
                    offset=law.offset - joint.reference,
                    inertia=_NO_INERTIA,
                    armature=inertia[offset_v : offset_v + part.nv],
                )
            )
            parent, placement = len(self.bodies) - 1, IDENTITY
            q_at, v_at = q_at + part.nq, v_at + part.nv
        bodies = tuple(range(first, len(self.bodies)))
        self.joints[joint.name] = joint.placed(q_slice, v_slice, bodies)
        return parent, joint.child_pose


def _compose(first: Array, second: Array) -> Array:
    """The product of two poses; most of them are the identity."""
    if second is IDENTITY:
        return first
    return second if first is IDENTITY else first @ second


def _body_inertias(links: list[Link], seat: Mapping[str, tuple[int, Array]], count: int) -> Array:
    """Inertia parameters (count, 10) of the bodies: the sum over the links each one carries."""
    total = np.zeros((count, 10))
    carried = [link for link in links if link.mass or link.inertia.any()]
    owners = np.array([seat[link.name][0] for link in carried], dtype=int)
    keep = owners != GROUND
    if not keep.any():
        return total
    moving = [link for link, kept in zip(carried, keep, strict=True) if kept]
    own = inertia_parameters(
        np.array([link.mass for link in moving]),
        np.array([link.com for link in moving]),
        np.array([link.inertia for link in moving]),
    )
    poses = np.array([seat[link.name][1] for link in moving])
    np.add.at(total, owners[keep], transform_inertia(poses, own))
    return total
