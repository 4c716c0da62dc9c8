# SPDX-License-Identifier: BSD-3-Clause
"""A tree of links as segments that are joined in rounds: heavy paths, runs of them, pairs of runs.

A *path* goes from its head outward, at each link into the child with the largest subtree; the other
children head paths of their own and hang their results onto their parent link. A path is cut into
*runs*, inside which links are taken in one after the other, from outside; runs are joined in pairs,
so that a path of m runs takes about log₂ m rounds.

Segments are numbered: segment k < n is link k with all links beyond it in its run; those from n on
are joins of two segments, the inboard one called left. A segment is *closed* if it ends at the tip
of its path, where no force comes in. One run per path gives the levels of the tree itself: as many
rounds as the tree is deep, and no join.

Inside, links have numbers of their own, by the round in which they are taken in, so that what is
done side by side lies side by side: ``order`` lists the robot's links by these numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]
NONE = -1
"""No segment, or the ground as a parent."""


@dataclass(frozen=True, eq=False)
class Links:
    """Links that are taken in during one round.

    Attributes:
        index: Their numbers, which are those of the segments, too.
        next: The segment beyond each in its run.
        hung: Links whose light children hang on, as places in ``index``, once per child.
        children: The segments (whole paths) of those children.
    """

    index: Indices
    next: Indices
    hung: Indices
    children: Indices


@dataclass(frozen=True, eq=False)
class Joins:
    """Segments that are joined during one round; ``number`` counts joins alone."""

    index: Indices
    left: Indices
    right: Indices
    number: Indices


@dataclass(frozen=True, eq=False)
class Round:
    """What may be done side by side. Of links: ``last`` ones have nothing beyond in their run.

    Attributes:
        open_last, open_links: Links of segments that go on beyond their run.
        closed_last, closed_links: The same of segments that end at a tip.
        open_joins, closed_joins: Joins.
    """

    open_last: Links
    open_links: Links
    closed_last: Links
    closed_links: Links
    open_joins: Joins
    closed_joins: Joins

    @property
    def links(self) -> tuple[tuple[Links, bool, bool], ...]:
        """All links, with whether they are closed and last."""
        return (
            (self.open_last, False, True),
            (self.open_links, False, False),
            (self.closed_last, True, True),
            (self.closed_links, True, False),
        )

    @property
    def joins(self) -> tuple[tuple[Joins, bool], ...]:
        """All joins, with whether they are closed."""
        return (self.open_joins, False), (self.closed_joins, True)


class JoinTree:
    """The segments of a tree and the rounds in which they are made, and taken apart again.

    Attributes:
        count: Number of links.
        size: Number of segments.
        order: The robot's links by their numbers here; ``label`` is the inverse.
        parents: Of links.
        next, left, right: Segments that a segment is made of.
        closed: Whether a segment ends at a tip.
        heads: For each path its first link.
        paths: For each path the segment that is all of it.
    """

    def __init__(
        self,
        parents: Sequence[int],
        run_length: int | None = None,
        may_end: Sequence[bool] | None = None,
    ) -> None:
        """Build it.

        Args:
            parents: Of each link, numbered parents first; NONE: the ground.
            run_length: Links of a run at least; None: one run per path.
            may_end: Whether a run that goes on may end at a link; by default at any.
        """
        self.count = len(parents)
        self.parents = np.asarray(parents, dtype=np.intp)
        self._may_end = [True] * self.count if may_end is None else may_end
        weights, heavy = _heavy_children(parents)
        self._weights, self._heavy = weights, heavy
        self.next = np.full(self.count, NONE, dtype=np.intp)
        self._left: list[int] = []
        self._right: list[int] = []
        self._open_runs: list[bool] = [False] * self.count
        self._join_closed: list[bool] = []
        is_heavy = set(heavy)
        heads = [k for k in range(self.count) if k not in is_heavy]
        self.heads = np.array(heads, dtype=np.intp)
        self.paths = np.array([self._build_path(k, run_length) for k in heads], dtype=np.intp)
        self.left = np.array(self._left, dtype=np.intp)
        self.right = np.array(self._right, dtype=np.intp)
        self.size = self.count + len(self._left)
        self.closed = np.array(
            [not each for each in self._open_runs] + self._join_closed, dtype=bool
        )
        self._levels = {
            "up": self._heights(hanging=True),
            "up_alone": self._heights(hanging=False),
            "down": self._depths(hanging=True),
            "down_alone": self._depths(hanging=False),
        }
        self._renumber()

    def _renumber(self) -> None:
        """Links and joins by the round in which they are made, groups of a round together."""
        height, count = self._levels["up"], self.count
        last = np.concatenate([self.next == NONE, np.zeros(self.size - count, dtype=bool)])
        order = np.lexsort((np.arange(self.size), ~last, self.closed, height))
        order = np.concatenate([order[order < count], order[order >= count]])
        label = np.empty(self.size + 1, dtype=np.intp)
        label[order] = np.arange(self.size)
        label[NONE] = NONE
        joins = order[count:] - count
        self.order, self.label = order[:count], label[:count]
        self.parents = label[self.parents[self.order]]
        self.next = label[self.next[self.order]]
        self.left, self.right = label[self.left[joins]], label[self.right[joins]]
        self.heads, self.paths = label[self.heads], label[self.paths]
        self.closed = self.closed[order]
        self._levels = {name: level[order] for name, level in self._levels.items()}

    def _build_path(self, head: int, run_length: int | None) -> int:
        """The segment of a whole path."""
        links = [head]
        while self._heavy[links[-1]] != NONE:
            links.append(self._heavy[links[-1]])
        starts = self._runs(links, run_length)
        ends = [*starts[1:], len(links)]
        runs = []
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            self.next[links[start : end - 1]] = links[start + 1 : end]
            is_open = number + 1 < len(starts)
            for k in links[start:end]:
                self._open_runs[k] = is_open
            runs.append(links[start])
        # What a run weighs: its links with all that hangs onto them.
        beyond = [*(self._weights[links[end]] for end in ends[:-1]), 0]
        total = [self._weights[links[start]] for start in starts]
        return self._join(runs, [a - b for a, b in zip(total, beyond, strict=True)])

    def _runs(self, links: list[int], run_length: int | None) -> list[int]:
        """Places on a path at which runs start."""
        if run_length is None:
            return [0]
        starts, length = [0], 0
        for place, k in enumerate(links[:-1]):
            length += 1
            if length >= run_length and self._may_end[k]:
                starts.append(place + 1)
                length = 0
        return starts

    def _join(self, runs: list[int], weights: list[int]) -> int:
        """Runs joined pair by pair, so that heavy ones are few joins away from the whole."""
        sums = np.concatenate([[0], np.cumsum(weights)]).tolist()
        made: dict[tuple[int, int], int] = {}
        stack = [(0, len(runs))]
        while stack:
            low, high = stack[-1]
            if high - low == 1:
                made[low, high] = runs[low]
                stack.pop()
                continue
            cut = _balanced_cut(sums, low, high)
            parts = (low, cut), (cut, high)
            missing = [part for part in parts if part not in made]
            if missing:
                stack += missing
                continue
            self._left.append(made[parts[0]])
            self._right.append(made[parts[1]])
            self._join_closed.append(high == len(runs))
            made[low, high] = self.count + len(self._left) - 1
            stack.pop()
        return made[0, len(runs)]

    # -- rounds

    @cached_property
    def up(self) -> tuple[Round, ...]:
        """Rounds from links to whole paths, each after the paths that hang onto its links."""
        return self._rounds("up", hanging=True)

    @cached_property
    def up_alone(self) -> tuple[Round, ...]:
        """The same of each path by itself, nothing hanging on."""
        return self._rounds("up_alone", hanging=False)

    @cached_property
    def down(self) -> tuple[Round, ...]:
        """Rounds from whole paths to links, each path after the link that it hangs onto."""
        return self._rounds("down", hanging=True)

    @cached_property
    def down_alone(self) -> tuple[Round, ...]:
        """The same of each path by itself."""
        return self._rounds("down_alone", hanging=False)

    def _heights(self, hanging: bool) -> Indices:
        """The round in which each segment is made."""
        height = [0] * self.size
        hung: list[list[int]] = [[] for _ in range(self.count)]
        inside = self._joins_of_paths
        for number in reversed(range(len(self.heads))):
            head, path = int(self.heads[number]), int(self.paths[number])
            links = self._links_of(head)
            for k in reversed(links):
                below = [height[int(self.next[k])]] if self.next[k] != NONE else []
                if hanging:
                    below += [height[path] for path in hung[k]]
                height[k] = 1 + max(below, default=0)
            for join in inside[number]:
                left, right = self._left[join - self.count], self._right[join - self.count]
                height[join] = 1 + max(height[left], height[right])
            parent = int(self.parents[head])
            if parent != NONE:
                hung[parent].append(path)
        return np.array(height, dtype=np.intp)

    def _depths(self, hanging: bool) -> Indices:
        """The round in which each segment is taken apart."""
        depth = [1] * self.size
        inside = self._joins_of_paths
        for number in range(len(self.heads)):
            head, path = int(self.heads[number]), int(self.paths[number])
            parent = int(self.parents[head])
            depth[path] = 1 + depth[parent] if hanging and parent != NONE else 1
            for join in reversed(inside[number]):
                left, right = self._left[join - self.count], self._right[join - self.count]
                depth[left] = depth[right] = depth[join] + 1
            for k in self._links_of(head):
                beyond = int(self.next[k])
                if beyond != NONE:
                    depth[beyond] = depth[k] + 1
        return np.array(depth, dtype=np.intp)

    @cached_property
    def _joins_of_paths(self) -> list[list[int]]:
        """For each path its joins, parts first."""
        found: list[list[int]] = []
        start = self.count
        for path in self.paths.tolist():
            end = path + 1 if path >= self.count else start
            found.append(list(range(start, end)))
            start = max(start, end)
        return found

    def _links_of(self, head: int) -> list[int]:
        links = [head]
        while self._heavy[links[-1]] != NONE:
            links.append(self._heavy[links[-1]])
        return links

    def _rounds(self, name: str, hanging: bool) -> tuple[Round, ...]:
        level = self._levels[name]
        order = np.argsort(level, kind="stable")
        cuts = np.searchsorted(level[order], np.arange(1, level.max(initial=0) + 2))
        light = self._light if hanging else (np.zeros(0, np.intp),) * 2
        return tuple(self._round(order[first:last], light) for first, last in pairwise(cuts))

    @cached_property
    def _light(self) -> tuple[Indices, Indices]:
        """Links with light children, in order, once per child, and the children's paths."""
        parents = self.parents[self.heads]
        kept = parents != NONE
        order = np.argsort(parents[kept], kind="stable")
        return parents[kept][order], self.paths[kept][order]

    def _round(self, members: Indices, light: tuple[Indices, Indices]) -> Round:
        links, joins = members[members < self.count], members[members >= self.count]
        closed, last = self.closed[links], self.next[links] == NONE
        ended = self.closed[joins]
        return Round(
            self._links(links[~closed & last], light),
            self._links(links[~closed & ~last], light),
            self._links(links[closed & last], light),
            self._links(links[closed & ~last], light),
            self._pairs(joins[~ended]),
            self._pairs(joins[ended]),
        )

    def _links(self, index: Indices, light: tuple[Indices, Indices]) -> Links:
        parents, paths = light
        order = np.argsort(index, kind="stable")
        place = np.searchsorted(index[order], parents) if len(index) else parents[:0]
        if len(index):
            found = index[order][np.minimum(place, len(index) - 1)] == parents
            hung, children = order[place[found]], paths[found]
        else:
            hung, children = parents[:0], paths[:0]
        return Links(index, self.next[index], hung, children)

    def _pairs(self, joins: Indices) -> Joins:
        at = joins - self.count
        return Joins(joins, self.left[at], self.right[at], at)


def _heavy_children(parents: Sequence[int]) -> tuple[list[int], list[int]]:
    """Links of each subtree, and of each link the child with most of them."""
    weights = [1] * len(parents)
    for k in range(len(parents) - 1, -1, -1):
        if parents[k] != NONE:
            weights[parents[k]] += weights[k]
    heavy = [NONE] * len(parents)
    for k, parent in enumerate(parents):
        if parent != NONE and (heavy[parent] == NONE or weights[k] > weights[heavy[parent]]):
            heavy[parent] = k
    return weights, heavy


def _balanced_cut(sums: list[int], low: int, high: int) -> int:
    """Where to cut runs low to high so that both sides weigh about the same."""
    middle = (sums[low] + sums[high]) / 2
    cut = bisect_left(sums, middle, low + 1, high - 1)
    if cut > low + 1 and middle - sums[cut - 1] < sums[cut] - middle:
        cut -= 1
    return cut
