# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of ``sweeps.split`` on a robot: walks along branches, row by row.

In common axes, for the row of a joint coordinate at link k, its ancestors c and other links j:

    w(p) = G(k), w(p(c)) = (I - G(c)H(c))w(c)               inward from k
        X(k,c) = w*(E - U*O)(c) + B*T(c),  𝓜⁻¹(k,c) = -U(c)w
    x(k) = U(k), x(c) = -Υ(c)w(c), x(j) = x(p) + 𝓜⁻¹(k,j)H(j)   outward from there
        𝓜⁻¹(k,j) = -x(p)G(j),  X(k,j) = x(j)Y(j) + 𝓜⁻¹(k,j)O(j)

Of a root c, Υ is H*U, so that the row beyond it is -(Hw)* times the rows of c.

Links that follow one another without a branch are a segment. Blocks within a segment are a straight
line. All rows of a segment do the same elsewhere: that is one line, repeated for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from phistar.model.model import Model
from phistar.model.parts import GROUND
from phistar.scalar.graph import Graph, Scalar, Value
from phistar.scalar.links import Link
from phistar.scalar.program import Body, Repeat, Store
from phistar.scalar.split_numbers import SplitNumbers
from phistar.scalar.straight import Robot
from phistar.scalar.vectors import Matrix, Vector, dot, minus, plus, scaled, transposed
from phistar.sweeps.split import Split

Entry = tuple[str, int, Scalar]
"""A number of a row: the matrix, the column and the value."""

LONGEST = 8
"""Links of a segment."""
ROW = 15
"""Numbers that each row has of its own: w, slip and x."""


class Branches:
    """The matrices of a split on one robot.

    Attributes:
        entries: For each matrix the numbers within segments, by row and column.
        repeats: What gives the others.
    """

    def __init__(
        self,
        split: Split,
        model: Model,
        absent: Set[str],
        robot: Robot,
        keep: Callable[[Scalar | None], int],
    ) -> None:
        """Trace everything.

        Args:
            split: The matrices.
            model: The robot.
            absent: Inputs that are not given.
            robot: Its links in common axes.
            keep: Keeps a number for what comes after the line, or only makes room for it, and says
                in which slot.
        """
        self.numbers = SplitNumbers(split, model, absent, robot)
        self.links: Sequence[Link] = robot.links
        self.children = robot.children
        self.names = (split.inverse, *split.matrices)
        self.size = sum(link.size for link in self.links)
        self.entries: dict[str, dict[tuple[int, int], Scalar]] = {n: {} for n in self.names}
        self.repeats: list[Repeat] = []
        self._keep = keep
        self._slots: dict[int, int] = {}
        self.results: dict[int, tuple[int, int]] = {}
        for segment in self._segments():
            self._segment(segment)

    def _segments(self) -> list[list[Link]]:
        """Links that follow one another without a branch."""
        found: list[list[Link]] = []
        home: dict[int, list[Link]] = {}
        for link in self.links:
            before = home.get(link.parent)
            if before is None or len(self.children[link.parent]) > 1 or len(before) >= LONGEST:
                before = []
                found.append(before)
            before.append(link)
            home[link.index] = before
        return found

    def _segment(self, segment: Sequence[Link]) -> None:
        """Blocks within a segment, and the line for its rows."""
        rows = range(segment[0].v, segment[-1].v + segment[-1].size)
        firsts = []
        for place, link in enumerate(segment):
            for e in range(link.size):
                x = self._within_outward(segment[place:], e)
                w = self._within_inward(segment[: place + 1], e)
                slip = [row[e] for row in self.numbers.slip[link.index][:3]]
                slots = [self._keep(number) for number in (*w, *slip, *x)]
                firsts.append(slots[0])
                if self.is_fork(segment[-1]):
                    for _ in range(len(self.names) * self.size):
                        self._keep(None)
        stride = firsts[1] - firsts[0] if len(firsts) > 1 else 0
        if self.is_fork(segment[-1]):
            self.results[segment[-1].index] = firsts[0] + ROW, stride
        body = _RowBody(self, segment, firsts[0], stride).body()
        if body.stores:
            self.repeats.append(Repeat(rows, self.size, stride, body))

    def is_fork(self, link: Link) -> bool:
        """Whether branches meet at a root."""
        return link.parent == GROUND and len(self.children[link.index]) > 1

    def _within_outward(self, links: Sequence[Link], e: int) -> Vector:
        """Row e of the first link in the columns of some that follow; its motion at the last."""
        link, walker = links[0], Walker(self.numbers, lambda x: x)
        row, x = link.v + e, self.numbers.rows[link.index][e]
        for name, j, value in walker.loads(link, x, self.numbers.corner[link.index][e]):
            self.entries[name][row, j] = value
        for other in links[1:]:
            x, found = walker.step(other, x)
            for name, j, value in found:
                self.entries[name][row, j] = value
                if name == walker.inverse:
                    self.entries[name][j, row] = value
        return x

    def _within_inward(self, links: Sequence[Link], e: int) -> Vector:
        """Row e of the last link in the columns of some before it; w at the parent of the first."""
        link, walker = links[-1], Walker(self.numbers, lambda x: x)
        w = walker.gains(link)[e]
        slip = [row[e] for row in self.numbers.slip[link.index][:3]]
        for c in reversed(links[:-1]):
            for name, j, value in walker.above(c, w, slip):
                if name != walker.inverse:
                    self.entries[name][link.v + e, j] = value
            w = walker.inward(c, w)
        return w

    def slot(self, value: Value) -> int:
        """Where a number of the line is kept."""
        if value.id not in self._slots:
            self._slots[value.id] = self._keep(value)
        return self._slots[value.id]

    def beyond(self, roots: Sequence[int]) -> list[Link]:
        """Some links and all that they carry, in order."""
        found = list(roots)
        for j in found:
            found += self.children[j]
        return [self.links[j] for j in sorted(found)]


class Walker:
    """Steps of walks in one graph."""

    def __init__(self, numbers: SplitNumbers, own: Callable[[Scalar], Scalar]) -> None:
        """Args:
        numbers: Those of the links.
        own: Takes a number of theirs to one of this graph.
        """
        self.numbers = numbers
        self.inverse, self.names = numbers.split.inverse, numbers.names
        self._own = own

    def own(self, vector: Sequence[Scalar]) -> Vector:
        """Numbers of the links in this graph."""
        return [self._own(x) for x in vector]

    def axes(self, link: Link) -> Matrix:
        """The columns of H*."""
        place, size = self.numbers.robot.places[link.index], range(link.size)
        return [self.own(place.from_axes([float(i == j) for j in size])) for i in size]

    def gains(self, link: Link) -> Matrix:
        """The columns of G."""
        return [self.own(column) for column in transposed(self.numbers.gain[link.index])]

    def above(self, c: Link, w: Vector, slip: Vector) -> Iterator[Entry]:
        """Entries of a row in the columns of an ancestor."""
        for e, j in enumerate(range(c.v, c.v + c.size)):
            yield self.inverse, j, -dot(self.own(self.numbers.rows[c.index][e]), w)
            for name in self.names:
                spin = self.own(self.numbers.columns[j].spin[name][:3])
                felt = self.own(self.numbers.felt[j][name])
                yield name, j, dot(w, felt) + dot(slip, spin)

    def inward(self, c: Link, w: Vector) -> Vector:
        """(I - GH)w."""
        parts = [dot(axis, w) for axis in self.axes(c)]
        for part, gain in zip(parts, self.gains(c), strict=True):
            w = minus(w, scaled(part, gain))
        return w

    def step(self, link: Link, x: Vector) -> tuple[Vector, list[Entry]]:
        """x at a link from that of its parent, and the entries of the row there."""
        yielded = [-dot(x, gain) for gain in self.gains(link)]
        for value, axis in zip(yielded, self.axes(link), strict=True):
            x = plus(x, scaled(value, axis))
        return x, list(self.loads(link, x, yielded))

    def loads(self, link: Link, x: Vector, inverse: Sequence[Scalar]) -> Iterator[Entry]:
        """Entries of a row in the columns of a link, where its motion is x."""
        for e, j in enumerate(range(link.v, link.v + link.size)):
            yield self.inverse, j, inverse[e]
            column = self.numbers.columns[j]
            for name in self.names:
                value = dot(x, self.own(column.load[name]))
                if name in column.own:
                    value = value + dot(inverse, self.own(column.own[name]))
                yield name, j, value


class _RowBody:
    """The line for the rows of a segment, outside of it."""

    def __init__(self, all: Branches, segment: Sequence[Link], first: int, stride: int) -> None:
        self.all = all
        self.head, self.last = segment[0], segment[-1]
        self.first = first
        self.stride = stride
        self.graph = Graph()
        self.stores: list[Store] = []
        self.walker = Walker(all.numbers, self._own)

    def _own(self, x: Scalar) -> Scalar:
        if not isinstance(x, Value) or x.graph is self.graph:
            return x
        return self.graph.load("work", self.all.slot(x))

    def body(self) -> Body:
        """All of it."""
        of_row: Vector = [self.graph.load("work", self.first + i, "row") for i in range(ROW)]
        self._inward(of_row[:6], of_row[6:9])
        self._outward(self.last, of_row[9:], self.all.children[self.last.index])
        return Body(self.graph, self.stores)

    def _inward(self, w: Vector, slip: Vector) -> None:
        before, c = self.head.index, self.head.parent
        while c != GROUND:
            link = self.all.links[c]
            self._store(self.walker.above(link, w, slip))
            others = [j for j in self.all.children[c] if j != before]
            if others and link.parent == GROUND:
                self._across_root(link, w, others)
            elif others:
                compliance = self.all.numbers.compliance[c]
                rows = ([compliance.entry(i, k) for k in range(6)] for i in range(6))
                self._outward(link, [-dot(self.walker.own(row), w) for row in rows], others)
            if link.parent != GROUND:
                w = self.walker.inward(link, w)
            before, c = c, link.parent

    def _outward(self, link: Link, x: Vector, children: Sequence[int]) -> None:
        motions = {link.index: x}
        for other in self.all.beyond(children):
            motions[other.index], found = self.walker.step(other, motions[other.parent])
            self._store(found)

    def _across_root(self, root: Link, w: Vector, others: Sequence[int]) -> None:
        parts = [dot(axis, w) for axis in self.walker.axes(root)]
        first, stride = self.all.results[root.index]
        for link in self.all.beyond(others):
            for j in range(link.v, link.v + link.size):
                for n, name in enumerate(self.all.names):
                    slots = (first + n * self.all.size + j + r * stride for r in range(root.size))
                    rows = [self.graph.load("work", slot) for slot in slots]
                    self._store([(name, j, -dot(parts, rows))])

    def _store(self, found: Iterable[Entry]) -> None:
        for name, j, value in found:
            self.stores.append(Store(name, j, "row", value))
            if self.all.is_fork(self.last):
                slot = self.first + ROW + self.all.names.index(name) * self.all.size + j
                self.stores.append(Store("work", slot, "row", value))
