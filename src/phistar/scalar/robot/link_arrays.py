# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of all links while their frames are chosen: an array per quantity, a row per link."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from phistar.arrays import Array
from phistar.model.components import GROUND, Body
from phistar.model.joints import JointKind
from phistar.model.model import Model
from phistar.spatial import inertia_matrix
from phistar.spatial.reproducible_products import matvec, product


class LinkArrays:
    """All links on their way: an array for each kind of number, a row for each link.

    Attributes:
        kinds, parents, is_free: Of each link; whether its joint moves freely.
        children: Of each link.
        R, p: Placements of the joints in the parent links.
        mass, h, J: Inertias about the links' origins.
        angle: Angles added to the joints' own.
        body_R, body_p: The link frames in the body frames of the model.
        own, all: (links, 2), the largest first and second moment that those of a link were computed
            from. Own are those of the file, and of what other links handed over: the moments that a
            joint feels of its own link (h_x, h_y, J_zz) do not change when the frame is slid along
            the joint's axis. All are these and those of the link in all places where it was seen.
    """

    def __init__(self, model: Model, locked: frozenset[int]) -> None:
        bodies = model.bodies
        self.kinds = _canonical_kinds(bodies)
        self.parents = [body.parent for body in bodies]
        self.is_free = [body.index not in locked for body in bodies]
        self.children: list[list[int]] = [[] for _ in bodies]
        for body in bodies:
            if body.parent != GROUND:
                self.children[body.parent].append(body.index)
        placements = np.concatenate([body.placement for body in bodies]).reshape(-1, 4, 4)
        self.R, self.p = placements[:, :3, :3], placements[:, :3, 3]
        matrices = inertia_matrix(model.inertias)
        self.mass = matrices[:, 5, 5].copy()
        self.h = np.stack([matrices[:, 2, 4], matrices[:, 0, 5], matrices[:, 1, 3]], axis=-1)
        self.J = matrices[:, :3, :3]
        self.angle = np.zeros(len(bodies))
        self.body_R, self.body_p = identity_rotations(len(bodies)), np.zeros((len(bodies), 3))
        self.own_scales = self.total_scales = self._moments()
        self.update_scales()

    def rotate_frames(self, T: Array) -> None:
        """Turn the frames of all links; each turn must commute with the joint's motion."""
        back = T.swapaxes(-1, -2)
        before = np.concatenate([back, np.eye(3)[None]])[self.parents]
        self.R = product(product(before, self.R), T)
        self.p = matvec(before, self.p)
        self.h = matvec(back, self.h)
        self.J = product(product(back, self.J), T)
        self.body_R = product(self.body_R, T)

    def slide_frames(self, s: Array) -> None:
        """Slide the frames of all links along their axes; no joint's motion may notice."""
        before = np.concatenate([s, np.zeros((1, 3))])[self.parents]
        self.p = (self.p - before) + matvec(self.R, s)
        moved = self.mass[:, None] * s
        self.J = self.J + _inertia_shift(s, self.h - 0.5 * moved)
        self.h = self.h - moved
        self.body_p = self.body_p + matvec(self.body_R, s)

    def _moments(self) -> Array:
        return np.stack([np.abs(self.h).max(axis=1), np.abs(self.J).max(axis=(1, 2))], axis=-1)

    def offset_moments(self) -> Array:
        """(links, 2): moments that a link would have one offset away; none if it is not slid."""
        far = np.maximum(np.abs(self.body_p).max(axis=1), np.abs(self.p).max(axis=1))
        mass = np.abs(self.mass) * [kind.commutes_with_axis for kind in self.kinds]
        return np.stack([mass * far, mass * far * far], axis=-1)

    def update_scales(self) -> None:
        """Look how large the moments are."""
        self.total_scales = np.max(
            [self._moments(), self.offset_moments(), self.own_scales, self.total_scales], axis=0
        )
        prismatic = np.array([[kind.slides_only] for kind in self.kinds])
        self.own_scales = np.where(prismatic, self.total_scales, self.own_scales)


def _canonical_kinds(bodies: Sequence[Body]) -> list[JointKind]:
    """Kinds of the bodies' joints about z without their parameters; equal ones are one object."""
    shared: dict[JointKind, JointKind] = {}
    given = {id(body.joint_kind): body.joint_kind for body in bodies}
    made = {number: kind.canonical() for number, kind in given.items()}
    return [shared.setdefault(kind, kind) for kind in (made[id(b.joint_kind)] for b in bodies)]


def identity_rotations(count: int) -> Array:
    """Rotations (count, 3, 3) that do nothing."""
    return np.tile(np.eye(3), (count, 1, 1))


def _inertia_shift(p: Array, g: Array) -> Array:
    """p g* + g p* - 2 (p·g) 1: what moments of inertia gain by a shift of the origin.

    With g = h - m p/2 it is p~h~ + h~p~ - m p~p~.
    """
    mixed = p[..., :, None] * g[..., None, :]
    trace = mixed[..., 0, 0] + mixed[..., 1, 1] + mixed[..., 2, 2]
    spread = (2.0 * trace)[..., None, None] * np.eye(3)
    return np.asarray(mixed + mixed.swapaxes(-1, -2) - spread)


def rows_to_array(rows: Sequence[Sequence[float]], width: int) -> Array:
    """Rows as an array, three times as fast as ``np.array`` makes it of many short ones."""
    return np.fromiter(chain.from_iterable(rows), float, len(rows) * width).reshape(-1, width)
