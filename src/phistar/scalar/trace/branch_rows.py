# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of ``sweeps.split_matrices`` on a robot: walks along branches, row by row.

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

from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.scalar.graph import WORK, Graph, Scalar, Value
from phistar.scalar.linear.vectors import Matrix, Vector, dot, minus, plus, scaled, transposed
from phistar.scalar.program import BasicBlock, RowLoop, Store
from phistar.scalar.robot.link_numbers import LinkNumbers
from phistar.scalar.trace.branch_scalars import BranchScalars
from phistar.scalar.trace.link_tracer import LinkForce
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.sweeps.split_matrices import SplitMatrices
from phistar.thresholds import POLICY

RowEntry = tuple[str, int, Scalar]
"""A number of a row: the matrix, the column and the value."""

NUMBERS_PER_ROW = 15
"""Numbers that each row has of its own: w, slip and x."""


class BranchRows:
    """The matrices of a split on one robot.

    Attributes:
        entries: For each matrix the numbers within segments, by row and column.
        row_loops: What gives the others.
    """

    def __init__(
        self,
        split: SplitMatrices,
        model: Model,
        absent: Set[str],
        robot: TracedLinks,
        keep: Callable[[Scalar | None], int],
        link_force: LinkForce | None = None,
    ) -> None:
        """Trace everything.

        Args:
            split: The matrices.
            model: The robot.
            absent: Inputs that are not given.
            robot: Its links in common axes.
            keep: Stores a number for the loops over rows, or only reserves its slot, and says
                in which slot.
            link_force: External forces that are made of others, see ``TraceContext``.
        """
        self.numbers = BranchScalars(split, model, absent, robot, link_force)
        self.links: Sequence[LinkNumbers] = robot.links
        self.children = robot.children
        self.names = (split.inverse, *split.matrices)
        self.size = sum(link.size for link in self.links)
        self.entries: dict[str, dict[tuple[int, int], Scalar]] = {n: {} for n in self.names}
        self.row_loops: list[RowLoop] = []
        self._spill = keep
        self._slots: dict[int, int] = {}
        self.fork_slots: dict[int, tuple[int, int]] = {}
        for segment in self._segments():
            self._segment(segment)

    def _segments(self) -> list[list[LinkNumbers]]:
        """Links that follow one another without a branch."""
        found: list[list[LinkNumbers]] = []
        home: dict[int, list[LinkNumbers]] = {}
        for link in self.links:
            before = home.get(link.parent)
            if (
                before is None
                or len(self.children[link.parent]) > 1
                or len(before) >= POLICY.max_segment_links
            ):
                before = []
                found.append(before)
            before.append(link)
            home[link.index] = before
        return found

    def _segment(self, segment: Sequence[LinkNumbers]) -> None:
        """Blocks within a segment, and the operations on its rows."""
        rows = range(segment[0].v, segment[-1].v + segment[-1].size)
        firsts = []
        for place, link in enumerate(segment):
            for e in range(link.size):
                x = self._within_outward(segment[place:], e)
                w = self._within_inward(segment[: place + 1], e)
                slip = [row[e] for row in self.numbers.bias_gain[link.index][:3]]
                slots = [self._spill(number) for number in (*w, *slip, *x)]
                firsts.append(slots[0])
                if self.is_forking_root(segment[-1]):
                    for _ in range(len(self.names) * self.size):
                        self._spill(None)
        stride = firsts[1] - firsts[0] if len(firsts) > 1 else 0
        if self.is_forking_root(segment[-1]):
            self.fork_slots[segment[-1].index] = firsts[0] + NUMBERS_PER_ROW, stride
        body = _RowBlockTracer(self, segment, firsts[0], stride).trace_block()
        if body.stores:
            self.row_loops.append(RowLoop(rows, self.size, stride, body))

    def is_forking_root(self, link: LinkNumbers) -> bool:
        """Whether branches meet at a root."""
        return link.parent == GROUND and len(self.children[link.index]) > 1

    def _within_outward(self, links: Sequence[LinkNumbers], e: int) -> Vector:
        """Row e of the first link in the columns of some that follow; its motion at the last."""
        link, walker = links[0], BranchPropagator(self.numbers, lambda x: x)
        row, x = link.v + e, self.numbers.rows[link.index][e]
        for name, j, value in walker.column_entries(
            link, x, self.numbers.inverse_diagonal[link.index][e]
        ):
            self.entries[name][row, j] = value
        for other in links[1:]:
            x, found = walker.propagate_outward(other, x)
            for name, j, value in found:
                self.entries[name][row, j] = value
                if name == walker.inverse:
                    self.entries[name][j, row] = value
        return x

    def _within_inward(self, links: Sequence[LinkNumbers], e: int) -> Vector:
        """Row e of the last link in the columns of some before it; w at the parent of the first."""
        link, walker = links[-1], BranchPropagator(self.numbers, lambda x: x)
        w = walker.gain_columns(link)[e]
        slip = [row[e] for row in self.numbers.bias_gain[link.index][:3]]
        for c in reversed(links[:-1]):
            for name, j, value in walker.ancestor_entries(c, w, slip):
                if name != walker.inverse:
                    self.entries[name][link.v + e, j] = value
            w = walker.propagate_inward(c, w)
        return w

    def slot(self, value: Value) -> int:
        """Where a number of the unrolled program is stored."""
        if value.id not in self._slots:
            self._slots[value.id] = self._spill(value)
        return self._slots[value.id]

    def subtree(self, roots: Sequence[int]) -> list[LinkNumbers]:
        """Some links and all that they carry, in order."""
        found = list(roots)
        for j in found:
            found += self.children[j]
        return [self.links[j] for j in sorted(found)]


class BranchPropagator:
    """Steps of walks in one graph."""

    def __init__(self, numbers: BranchScalars, own: Callable[[Scalar], Scalar]) -> None:
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

    def axis_columns(self, link: LinkNumbers) -> Matrix:
        """The columns of H*."""
        place, size = self.numbers.traced_links.placed_links[link.index], range(link.size)
        return [self.own(place.apply_H_adjoint([float(i == j) for j in size])) for i in size]

    def gain_columns(self, link: LinkNumbers) -> Matrix:
        """The columns of G."""
        return [self.own(column) for column in transposed(self.numbers.gain[link.index])]

    def ancestor_entries(self, c: LinkNumbers, w: Vector, slip: Vector) -> Iterator[RowEntry]:
        """Entries of a row in the columns of an ancestor."""
        for e, j in enumerate(range(c.v, c.v + c.size)):
            yield self.inverse, j, -dot(self.own(self.numbers.rows[c.index][e]), w)
            for name in self.names:
                spin = self.own(self.numbers.columns[j].spin[name][:3])
                felt = self.own(self.numbers.residual[j][name])
                yield name, j, dot(w, felt) + dot(slip, spin)

    def propagate_inward(self, c: LinkNumbers, w: Vector) -> Vector:
        """(I - GH)w."""
        parts = [dot(axis, w) for axis in self.axis_columns(c)]
        for part, gain in zip(parts, self.gain_columns(c), strict=True):
            w = minus(w, scaled(part, gain))
        return w

    def propagate_outward(self, link: LinkNumbers, x: Vector) -> tuple[Vector, list[RowEntry]]:
        """x at a link from that of its parent, and the entries of the row there."""
        yielded = [-dot(x, gain) for gain in self.gain_columns(link)]
        for value, axis in zip(yielded, self.axis_columns(link), strict=True):
            x = plus(x, scaled(value, axis))
        return x, list(self.column_entries(link, x, yielded))

    def column_entries(
        self, link: LinkNumbers, x: Vector, inverse: Sequence[Scalar]
    ) -> Iterator[RowEntry]:
        """Entries of a row in the columns of a link, where its motion is x."""
        for e, j in enumerate(range(link.v, link.v + link.size)):
            yield self.inverse, j, inverse[e]
            column = self.numbers.columns[j]
            for name in self.names:
                value = dot(x, self.own(column.load[name]))
                if name in column.own:
                    value = value + dot(inverse, self.own(column.own[name]))
                yield name, j, value


class _RowBlockTracer:
    """The line for the rows of a segment, outside of it."""

    def __init__(
        self, all: BranchRows, segment: Sequence[LinkNumbers], first: int, stride: int
    ) -> None:
        self.rows = all
        self.head, self.last = segment[0], segment[-1]
        self.first = first
        self.stride = stride
        self.graph = Graph()
        self.stores: list[Store] = []
        self.walker = BranchPropagator(all.numbers, self._own)

    def _own(self, x: Scalar) -> Scalar:
        if not isinstance(x, Value) or x.graph is self.graph:
            return x
        return self.graph.load(WORK, self.rows.slot(x))

    def trace_block(self) -> BasicBlock:
        """All of it."""
        of_row: Vector = [
            self.graph.load(WORK, self.first + i, "row") for i in range(NUMBERS_PER_ROW)
        ]
        self._inward(of_row[:6], of_row[6:9])
        self._outward(self.last, of_row[9:], self.rows.children[self.last.index])
        return BasicBlock(self.graph, self.stores)

    def _inward(self, w: Vector, slip: Vector) -> None:
        before, c = self.head.index, self.head.parent
        while c != GROUND:
            link = self.rows.links[c]
            self._store(self.walker.ancestor_entries(link, w, slip))
            others = [j for j in self.rows.children[c] if j != before]
            if others and link.parent == GROUND:
                self._across_root(link, w, others)
            elif others:
                compliance = self.rows.numbers.compliance[c]
                rows = ([compliance.entry(i, k) for k in range(6)] for i in range(6))
                self._outward(link, [-dot(self.walker.own(row), w) for row in rows], others)
            if link.parent != GROUND:
                w = self.walker.propagate_inward(link, w)
            before, c = c, link.parent

    def _outward(self, link: LinkNumbers, x: Vector, children: Sequence[int]) -> None:
        motions = {link.index: x}
        for other in self.rows.subtree(children):
            motions[other.index], found = self.walker.propagate_outward(
                other, motions[other.parent]
            )
            self._store(found)

    def _across_root(self, root: LinkNumbers, w: Vector, others: Sequence[int]) -> None:
        parts = [dot(axis, w) for axis in self.walker.axis_columns(root)]
        first, stride = self.rows.fork_slots[root.index]
        for link in self.rows.subtree(others):
            for j in range(link.v, link.v + link.size):
                for n, name in enumerate(self.rows.names):
                    slots = (first + n * self.rows.size + j + r * stride for r in range(root.size))
                    rows = [self.graph.load(WORK, slot) for slot in slots]
                    self._store([(name, j, -dot(parts, rows))])

    def _store(self, found: Iterable[RowEntry]) -> None:
        for name, j, value in found:
            self.stores.append(Store(name, j, "row", value))
            if self.rows.is_forking_root(self.last):
                slot = (
                    self.first + NUMBERS_PER_ROW + self.rows.names.index(name) * self.rows.size + j
                )
                self.stores.append(Store(WORK, slot, "row", value))
