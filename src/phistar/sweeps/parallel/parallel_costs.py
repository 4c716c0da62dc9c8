# SPDX-License-Identifier: BSD-3-Clause
"""What a parallel program costs on a robot: its work, and the operations on its longest path.

A processor takes in a link, joins two segments or computes a stream at a link, one operation after
the other; what a round or a stage has of these is done side by side. The span is the longest path
through the stages: of a round what its dearest link or join costs, of a sum over m children what
adding in pairs takes. Counted as in ``sweeps.costs``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from phistar.model.model import Model
from phistar.sweeps.costs import node_cost, stream_size, zero_streams
from phistar.sweeps.ir import Direction
from phistar.sweeps.op_costs import (
    FORCE_SHIFT_COST,
    GRAVITY_COST,
    NO_OPERATIONS,
    LinkType,
    OperationCount,
    link_types,
)
from phistar.sweeps.parallel import segment_costs as cost
from phistar.sweeps.parallel.join_tree import Indices, JoinTree, Round
from phistar.sweeps.parallel.parallel_schedule import (
    Local,
    ParallelSchedule,
    RiccatiScan,
    RoundStage,
    Scan,
    StarPair,
)


@dataclass(frozen=True)
class ParallelCount(OperationCount):
    """Operations of a parallel program.

    Attributes:
        longest: Those on the longest path.
        rounds: Rounds of all passes together, stages at all links not counted.
    """

    longest: int = 0
    rounds: int = 0

    @property
    def span(self) -> int:
        """Operations on the longest path, with processors enough."""
        return self.longest

    def __str__(self) -> str:
        return f"{super().__str__()}; {self.span} on the longest path; rounds: {self.rounds}"


LinkCost = Callable[[LinkType, bool, bool], OperationCount]
JoinCost = Callable[[bool], OperationCount]


def count_parallel(schedule: ParallelSchedule, model: Model, tree: JoinTree) -> ParallelCount:
    """Count what a program costs on a robot whose links are joined as in a tree, for one sample."""
    counter = _Counter(schedule, link_types(model), tree)
    for stage in schedule.stages:
        counter.count(stage)
    work = counter.work
    longest = max((counter.ready[s] for s in schedule.program.outputs.values()), default=0)
    return ParallelCount(
        work.multiplications, work.additions, work.divisions, longest, counter.rounds
    )


class _Counter:
    """Work so far, and when each stream is ready."""

    def __init__(
        self, schedule: ParallelSchedule, here: Iterable[LinkType], tree: JoinTree
    ) -> None:
        self.program, self.tree = schedule.program, tree
        given = list(here)
        places = [given[k] for k in tree.order.tolist()]
        self.places = list(dict.fromkeys(places))
        number = {place: i for i, place in enumerate(self.places)}
        self.codes = np.array([number[place] for place in places], dtype=np.intp)
        self.times = np.bincount(self.codes, minlength=len(self.places)).tolist()
        order = [s for stage in schedule.stages for s in stage.gives]
        self.absent = [zero_streams(self.program, order, place) for place in self.places]
        self.work = NO_OPERATIONS
        self.rounds = 0
        self.ready: dict[int, int] = {}
        self.transfers: dict[object, int] = {}
        self.factored: int | None = None

    def count(self, stage: RoundStage) -> None:
        """One stage."""
        start = max((self.ready[s] for s in stage.needs), default=0)
        if isinstance(stage, Local):
            end = start + self._at_links(stage.gives)
        elif isinstance(stage, Scan):
            end = self._scan(stage, start)
        elif isinstance(stage, RiccatiScan):
            end = self._riccati(stage, start)
        else:
            assert isinstance(stage, StarPair)
            end = self._pair(start)
        self.ready.update(dict.fromkeys(stage.gives, end))

    def _add(self, each: OperationCount, times: int = 1) -> None:
        self.work = self.work + each * times

    # -- at all links

    def _at_links(self, streams: Iterable[int], without: frozenset[int] = frozenset()) -> int:
        """Streams one after the other at each link; how long the dearest link takes."""
        streams = list(streams)
        longest = 0
        for place, times, gone in zip(self.places, self.times, self.absent, strict=True):
            absent = gone
            if without:
                absent = zero_streams(self.program, streams, place, gone | without)
            path = 0
            for stream in streams:
                own, wait = self._statement(stream, place, absent)
                self._add(own, times)
                path += wait
            longest = max(longest, path)
        return longest

    def _statement(
        self, stream: int, place: LinkType, absent: set[int]
    ) -> tuple[OperationCount, int]:
        """What a stream costs at a link, and how long it takes."""
        node = self.program.nodes[stream]
        if node.op == "leaf" and node.data == "gravity" and place.root:
            return GRAVITY_COST, GRAVITY_COST.total
        if stream in absent or node.spec.is_free:
            return NO_OPERATIONS, 0
        if node.type.at_ground and node.spec.reduction is None:
            return NO_OPERATIONS, 0
        own = node_cost(self.program, node, place, absent)
        if node.spec.reduction is not None:
            return own, own.total * cost.rounds_of_sum(len(self.codes) + 1)
        if node.spec.shift is not Direction.INWARD:
            return own, own.total
        crossing = node.spec.count(place, *(self.program.nodes[o] for o in node.operands))
        size = stream_size(node.type, place.size)
        return own, crossing.total + size * cost.rounds_of_sum(place.children)

    # -- rounds

    def _rounds(
        self,
        rounds: tuple[Round, ...],
        of_link: LinkCost | None,
        of_join: JoinCost | None,
        hung: int = 0,
    ) -> int:
        """Work and time of rounds, ``hung`` additions for each light child."""
        longest = 0
        for each in rounds:
            dearest = 0
            for links, closed, last in each.links:
                if not len(links.index):
                    continue
                added = 0
                if hung and len(links.children):
                    self._add(OperationCount(0, hung), len(links.children))
                    most = int(np.bincount(links.hung).max())
                    added = hung * cost.rounds_of_sum(most + 1)
                own = self._links(links.index, closed, last, of_link)
                dearest = max(dearest, added + own)
            for joins, closed in each.joins:
                if of_join is not None and len(joins.index):
                    self._add(of_join(closed), len(joins.index))
                    dearest = max(dearest, of_join(closed).total)
            longest += dearest
            self.rounds += dearest > 0
        return longest

    def _links(self, index: Indices, closed: bool, last: bool, of_link: LinkCost | None) -> int:
        if of_link is None:
            return 0
        codes, times = np.unique(self.codes[index], return_counts=True)
        found = [of_link(self.places[code], closed, last) for code in codes.tolist()]
        for each, count in zip(found, times.tolist(), strict=True):
            self._add(each, count)
        return max(each.total for each in found)

    def _transfers(self, stage: Scan, start: int) -> int:
        """When the products of segments are ready."""
        key = stage.transfer_key
        if key not in self.transfers:
            product = cost.POSE_PRODUCT if stage.by_poses else cost.PRODUCT
            begin = 0
            if not stage.by_poses:
                letters = {s for word, _ in stage.words for _, others in word for s in others}
                begin = max((self.ready[s] for s in letters), default=start)
                begin += self._links(np.arange(len(self.codes)), True, True, _matrix_of_link)
            self.transfers[key] = begin + self._rounds(
                self.tree.up_alone,
                lambda link, closed, last: NO_OPERATIONS if closed or last else product,
                lambda closed: NO_OPERATIONS if closed else product,
            )
        return self.transfers[key]

    def _scan(self, stage: Scan, start: int) -> int:
        cycle = stage.cycle
        node = self.program.nodes[cycle.shift]
        others = tuple(s for s in stage.gives if s != cycle.shift)
        start = start + self._at_links(others, frozenset({cycle.shift}))
        start = max(start, self._transfers(stage, start))
        through = cost.crossing(node.op, stage.by_poses)
        if stage.direction is Direction.OUTWARD:
            start += self._rounds(
                self.tree.up_alone,
                lambda link, closed, last: NO_OPERATIONS if closed or last else through,
                lambda closed: NO_OPERATIONS if closed else through,
            )
            start += self._rounds(
                self.tree.down, lambda link, closed, last: through, lambda closed: through
            )
            return start + self._at_links(s for s in stage.gives if s != cycle.state)
        size = stream_size(node.type, 0)
        add = OperationCount(0, size)
        start += self._links(np.arange(len(self.codes)), True, True, lambda *_: through)
        start += self._rounds(
            self.tree.up,
            lambda link, closed, last: NO_OPERATIONS if last else through,
            lambda closed: through,
            size,
        )
        start += self._rounds(
            self.tree.down_alone,
            lambda link, closed, last: add if closed or last else through + add,
            lambda closed: NO_OPERATIONS if closed else through,
        )
        return start + self._at_links(others)

    def _factor(self, start: int) -> int:
        """When the matrices of star products are ready."""
        if self.factored is None:
            rounds = self._rounds(self.tree.up, cost.star_link, cost.star_join, 21)
            self.factored = start + rounds
        return max(start, self.factored)

    def _riccati(self, stage: RiccatiScan, start: int) -> int:
        through = cost.inertia_through()
        start = self._factor(start) + self._rounds(
            self.tree.down_alone,
            lambda link, closed, last: NO_OPERATIONS if closed or last else through,
            lambda closed: NO_OPERATIONS if closed else through,
        )
        return start + self._at_links(s for s in stage.gives if s != stage.cycle.shift)

    def _pair(self, start: int) -> int:
        """One pass up, the matrices' with it if they are not there yet, and one down."""
        if self.factored is None:
            start += self._rounds(self.tree.up, _star_and_vectors, _join_both, 27)
            self.factored = start
        else:
            start = max(start, self.factored)
            start += self._rounds(self.tree.up, cost.vector_link, cost.vector_join, 6)
        return start + self._rounds(self.tree.down, cost.split_link, cost.split_join)


def _star_and_vectors(link: LinkType, closed: bool, last: bool) -> OperationCount:
    return cost.star_link(link, closed, last) + cost.vector_link(link, closed, last)


def _join_both(closed: bool) -> OperationCount:
    return cost.star_join(closed) + cost.vector_join(closed)


def _matrix_of_link(link: LinkType, closed: bool, last: bool) -> OperationCount:
    """I - G H moved across the joint, about what any linear part takes."""
    return OperationCount(36, 36) * link.size + FORCE_SHIFT_COST * 6
