# SPDX-License-Identifier: BSD-3-Clause
"""The links of a robot in one graph: where unrolled programs begin."""

from __future__ import annotations

from collections.abc import Sequence

from phistar.model.components import GROUND
from phistar.scalar.graph import Graph
from phistar.scalar.linear.vectors import Rotation, Vector
from phistar.scalar.robot.joint_transforms import factor_rotation, joint_transform
from phistar.scalar.robot.link_numbers import LinkNumbers, Placement
from phistar.scalar.robot.link_scalars import link_scalars
from phistar.scalar.trace.link_operations import PlacedLink


class TracedLinks:
    """The links of a robot in one graph."""

    def __init__(self, links: Sequence[LinkNumbers]) -> None:
        self.links = links
        self.graph = Graph()
        self.children: list[list[int]] = [[] for _ in links]
        for link in links:
            if link.parent != GROUND:
                self.children[link.parent].append(link.index)
        self.placed_links = [self._place(link) for link in links]

    def _place(self, link: LinkNumbers) -> PlacedLink:
        own = link_scalars(link)
        return PlacedLink(own, *joint_transform(own, lambda i: self.graph.load("q", link.q + i)))

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
