# SPDX-License-Identifier: BSD-3-Clause
"""The links of a robot in one graph: where unrolled programs begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from phistar.model.components import GROUND
from phistar.scalar.graph import Graph
from phistar.scalar.linear.vectors import Rotation, Vector
from phistar.scalar.robot.joint_transforms import factor_rotation, joint_transform
from phistar.scalar.robot.link_numbers import LinkNumbers, Placement
from phistar.scalar.robot.link_scalars import link_scalars
from phistar.scalar.trace.link_operations import PlacedLink

ADDED_INERTIA = "added_inertia"
"""Name of the input that adds to the inertia of joints."""


class TracedLinks:
    """The links of a robot in one graph."""

    def __init__(
        self, links: Sequence[LinkNumbers], added: Mapping[int, int] | None = None
    ) -> None:
        """Args:
        links: Their numbers.
        added: Joint velocities, in body order, whose inertia is more by an entry of the input
            ``ADDED_INERTIA``, and which.
        """
        self.links = links
        self._added = added or {}
        self.graph = Graph()
        self.children: list[list[int]] = [[] for _ in links]
        for link in links:
            if link.parent != GROUND:
                self.children[link.parent].append(link.index)
        self.placed_links = [self._place(link) for link in links]

    def _place(self, link: LinkNumbers) -> PlacedLink:
        own = link_scalars(link)
        moved = joint_transform(own, lambda i: self.graph.load("q", link.q + i))
        return PlacedLink(own, *moved, self._added_inertia(link))

    def _added_inertia(self, link: LinkNumbers) -> Vector:
        """What is added to the inertia of a joint when the program runs; empty if nothing is."""
        own = range(link.v, link.v + len(link.columns))
        if not any(i in self._added for i in own):
            return []
        return [
            self.graph.load(ADDED_INERTIA, self._added[i]) if i in self._added else 0.0 for i in own
        ]

    def path(self, k: int) -> list[int]:
        """The links from the ground to one of them, itself included."""
        found = []
        while k != GROUND:
            found.append(k)
            k = self.links[k].parent
        return found[::-1]

    def frame_place(self, k: int, place: Placement) -> tuple[Rotation, Vector]:
        """A frame on a link, in the axes that vectors on this link have."""
        return Rotation(factor_rotation(place.R.tolist())), place.p.tolist()
