# SPDX-License-Identifier: BSD-3-Clause
"""A tree by depth: links of one depth side by side in a row, rows as wide as the widest.

A pass over the links is a scan over the rows. Places that no link takes hold nothing that others
read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.model.components import GROUND


@dataclass(frozen=True, eq=False)
class Levels:
    """Where each link stands.

    Attributes:
        links: (depths, width) number of the link at each place; one more than there are: none.
        places: (links,) place of each link in the rows, one row after the other.
        above: (links,) the parent of each link; ``GROUND`` for roots.
        parents: (depths, width) place of the parent in the row before; ``width`` at roots.
        children: (depths, width, most) places of the children in the row after; ``width``: none.
    """

    links: Array
    places: Array
    above: Array
    parents: Array
    children: Array

    @classmethod
    def of(cls, parents: Sequence[int]) -> Levels:
        """Those of a tree, given by the parent of each link; parents come first."""
        depth: list[int] = []
        position: list[int] = []
        counts: list[int] = []
        for parent in parents:
            d = 0 if parent == GROUND else depth[parent] + 1
            if d == len(counts):
                counts.append(0)
            depth.append(d)
            position.append(counts[d])
            counts[d] += 1
        n, width = len(parents), max(counts, default=0)
        links = np.full((len(counts), width), n, dtype=np.int32)
        before = np.full((len(counts), width), width, dtype=np.int32)
        children: list[list[int]] = [[] for _ in parents]
        for k, parent in enumerate(parents):
            links[depth[k], position[k]] = k
            if parent != GROUND:
                before[depth[k], position[k]] = position[parent]
                children[parent].append(position[k])
        most = max(map(len, children), default=0)
        below = np.full((len(counts), width, most), width, dtype=np.int32)
        for k, found in enumerate(children):
            below[depth[k], position[k], : len(found)] = found
        places = np.array(depth, dtype=np.int32) * width + np.array(position, dtype=np.int32)
        return cls(links, places, np.array(parents, dtype=np.int32), before, below)

    @property
    def count(self) -> int:
        """How many links there are."""
        return len(self.places)

    @property
    def width(self) -> int:
        """Links side by side, at most."""
        return int(self.links.shape[1])

    @property
    def is_chain(self) -> bool:
        """Whether each row is one link, on the one before."""
        return self.width == 1
