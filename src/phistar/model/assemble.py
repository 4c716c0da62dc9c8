# SPDX-License-Identifier: BSD-3-Clause
"""Links and joints of a file -> the bodies of the algorithms.

Fixed joints disappear into bodies (their frames survive), compound joints become chains of simple
ones with massless bodies in between, mimic joints share the coordinates of the joint they follow.
Everything is linear in the number of links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.model.components import GROUND, IDENTITY, Body, Frame, Joint, Link, Mimic, frozen
from phistar.model.joints import JointKind
from phistar.model.tree import GROUND_NAME, depth_first, resolve_mimics
from phistar.spatial import inertia_parameters, pose_product, transform_inertia

_NO_INERTIA = frozen(np.zeros(10), (10,))


@dataclass(frozen=True)
class KinematicTree:
    """Joints in tree order with their coordinates, bodies parents first, frames of all links."""

    joints: dict[str, Joint]
    order: tuple[str, ...]
    bodies: tuple[Body, ...]
    frames: dict[str, Frame]


def assemble(
    links: Sequence[Link], joints: Sequence[Joint], order: Sequence[str] | None = None
) -> KinematicTree:
    """Number coordinates and bodies of a valid forest.

    Args:
        links: In file order.
        joints: In file order; siblings keep it.
        order: Names of the independent moving joints in the wanted order of coordinates
            (default: depth first).
    """
    link_order = depth_first(links, joints)
    placed = [joint for _, joint in link_order if joint is not None]
    laws = resolve_mimics(placed)
    moving = [j.name for j in placed if j.joint_kind.nv and j.name not in laws]
    names = tuple(moving if order is None else order)
    slices = _coordinate_slices(names, {j.name: j.joint_kind for j in placed})
    return _TreeAssembler(links, laws, slices).run(link_order, names)


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


class _TreeAssembler:
    """One pass over the tree: pose of every link in its body, and the bodies."""

    def __init__(
        self,
        links: Sequence[Link],
        laws: Mapping[str, Mimic],
        slices: Mapping[str, tuple[slice, slice]],
    ) -> None:
        self.links = {link.name: link for link in links}
        self.laws = laws
        self.slices = slices
        self.carriers: dict[str, tuple[int, Array]] = {GROUND_NAME: (GROUND, IDENTITY)}
        self.joints: dict[str, Joint] = {}
        self.bodies: list[Body] = []

    def run(
        self, link_order: Sequence[tuple[str, Joint | None]], order: tuple[str, ...]
    ) -> KinematicTree:
        for link, joint in link_order:
            if joint is None:
                self.carriers[link] = (GROUND, IDENTITY)
            else:
                self.carriers[link] = self._place(joint)
        inertias = _body_inertias(list(self.links.values()), self.carriers, len(self.bodies))
        inertias.flags.writeable = False
        for body, inertia in zip(self.bodies, inertias, strict=True):
            # Bodies are not shared yet; copying each to fill in one field would be slow.
            object.__setattr__(body, "inertia", inertia)
        bodies = tuple(self.bodies)
        named = [link.name for link in self.links.values() if not link.virtual]
        frames = {name: self._frame(name) for name in named}
        return KinematicTree(self.joints, order, bodies, frames)

    def _frame(self, link: str) -> Frame:
        body, pose = self.carriers[link]
        return Frame(link, link, IDENTITY, body, pose if pose is IDENTITY else frozen(pose, (4, 4)))

    def _place(self, joint: Joint) -> tuple[int, Array]:
        """Add the joint and its bodies; returns body and pose of the child link in it."""
        parent, pose = self.carriers[joint.parent]
        if joint.joint_kind.nv == 0:
            self.joints[joint.name] = joint
            return parent, _compose(_compose(pose, joint.origin), joint.child_pose)
        law = self.laws.get(joint.name)
        leader, scale, offset = (
            (joint.name, 1.0, 0.0) if law is None else (law.joint, law.multiplier, law.offset)
        )
        q_slice, v_slice = self.slices[leader]
        first = len(self.bodies)
        placement, q_at, v_at = _compose(pose, joint.origin), q_slice.start, v_slice.start
        inertia, simple_kinds = joint.drive.reflected_inertia, joint.joint_kind.parts
        offset = offset - joint.reference
        is_simple = len(simple_kinds) == 1
        for kind in simple_kinds:
            offset_v = v_at - v_slice.start
            self.bodies.append(
                Body(
                    len(self.bodies),
                    parent,
                    joint.name,
                    joint.child,
                    kind,
                    frozen(placement, (4, 4)),
                    q_slice if is_simple else slice(q_at, q_at + kind.nq),
                    v_slice if is_simple else slice(v_at, v_at + kind.nv),
                    scale,
                    offset,
                    _NO_INERTIA,
                    inertia if is_simple else inertia[offset_v : offset_v + kind.nv],
                )
            )
            parent, placement = len(self.bodies) - 1, IDENTITY
            q_at, v_at = q_at + kind.nq, v_at + kind.nv
        bodies = tuple(range(first, len(self.bodies)))
        self.joints[joint.name] = joint.placed(q_slice, v_slice, bodies)
        return parent, joint.child_pose


def _compose(first: Array, second: Array) -> Array:
    """The product of two poses; most of them are the identity."""
    if second is IDENTITY:
        return first
    return second if first is IDENTITY else pose_product(first, second)


def _body_inertias(
    links: list[Link], body_poses: Mapping[str, tuple[int, Array]], count: int
) -> Array:
    """Inertia parameters (count, 10) of the bodies: the sum over the links each one carries."""
    total = np.zeros((count, 10))
    carried = [link for link in links if link.mass or link.inertia.any()]
    owners = np.array([body_poses[link.name][0] for link in carried], dtype=int)
    is_moving = owners != GROUND
    if not is_moving.any():
        return total
    moving = [link for link, is_moved in zip(carried, is_moving, strict=True) if is_moved]
    parameters = inertia_parameters(
        np.array([link.mass for link in moving]),
        np.concatenate([link.com for link in moving]).reshape(-1, 3),
        np.concatenate([link.inertia for link in moving]).reshape(-1, 3, 3),
    )
    poses = np.concatenate([body_poses[link.name][1] for link in moving]).reshape(-1, 4, 4)
    np.add.at(total, owners[is_moving], transform_inertia(poses, parameters))
    return total
