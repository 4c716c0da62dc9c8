# SPDX-License-Identifier: BSD-3-Clause
"""𝓜x = f + L*λ with Lx = c in scalars, by ways that share a tracer.

With the factors 𝓜 = N D N* of the tree and Z = N⁻¹L*, one column per row:

    ε = N⁻¹f
    Δ = L𝓜⁻¹L* = Z*D⁻¹Z
    Δλ = c - Z*D⁻¹ε
    x = N⁻* D⁻¹(ε + Zλ)

``JoinSolver`` does this in the order of ``loop_join``. Where rows depend on each other Δ is
singular: ``RangeSolver`` takes as many pivots as there are independent rows, each the largest that
is left, by selects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from phistar.scalar.graph import Graph, Scalar, guard, select
from phistar.scalar.linear.symmetric_factor import SymmetricFactor
from phistar.scalar.linear.vectors import Matrix, Vector, dot, plus, scaled, times, zeros
from phistar.scalar.lower import LoweringOptions, link_number_choices, quaternion_entries
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled, count_arithmetic
from phistar.scalar.trace.ground_rows import LinkMotions, with_ground_rows
from phistar.scalar.trace.loop_join import LoopJoin
from phistar.scalar.trace.loop_tracer import NO_EARLY_ROWS, LineRows, LoopTracer
from phistar.scalar.trace.node_sweeps import NodeSweeps
from phistar.scalar.trace.traced_links import ADDED_INERTIA, TracedLinks
from phistar.scalar.trace.unrolled import UnrolledTrace
from phistar.sweeps.ir import StreamProgram


class LoopSolver(ABC):
    """What solves 𝓜x = f + L*λ with Lx = c in a graph; vectors in the robot's own coordinates."""

    def __init__(self, tracer: LoopTracer, graph: Graph) -> None:
        self.tracer = tracer
        self.graph = graph

    def load(self, name: str, size: int) -> Vector:
        """An input."""
        return [self.graph.load(name, i) for i in range(size)]

    @property
    def added(self) -> dict[str, Vector]:
        """The input of more joint inertia, if the program reads it."""
        size = self.tracer.model.nv
        return {} if self.tracer.added is None else {ADDED_INERTIA: self.load(ADDED_INERTIA, size)}

    @abstractmethod
    def bias(self, q: Vector, v: Vector) -> Vector:
        """𝒞, of the inputs."""

    def rows(self, q: Vector, v: Vector) -> LineRows:
        """Rows at the inputs, as ``solve`` likes them best."""
        return self.tracer.rows(q, v)

    @abstractmethod
    def solve(
        self, q: Vector, rows: LineRows, force: Vector, wanted: Vector, guarded: bool = False
    ) -> tuple[Vector, Vector]:
        """x and λ; x is not a number where rows lose rank, if guarded."""


class RangeSolver(LoopSolver):
    """By all rows at once; as many pivots as there are independent rows, the largest first."""

    def __init__(self, tracer: LoopTracer) -> None:
        super().__init__(tracer, Graph())

    def bias(self, q: Vector, v: Vector) -> Vector:
        """See ``LoopSolver``."""
        nothing = zeros(self.tracer.model.nv)
        return self.tracer.sweeps(q, v, nothing, nothing, self.added)["bias"]

    def solve(
        self, q: Vector, rows: LineRows, force: Vector, wanted: Vector, guarded: bool = False
    ) -> tuple[Vector, Vector]:
        """See ``LoopSolver``."""
        tracer, L = self.tracer, rows.L
        nothing = zeros(tracer.model.nv)
        columns, weighted = [], []
        for row in L:
            found = tracer.sweeps(q, nothing, row, nothing, self.added)
            columns.append(found["kappa"])
            weighted.append(found["scaled"])
        delta: Matrix = [zeros(len(L)) for _ in L]
        for i, column in enumerate(columns):
            for j in range(i + 1):
                delta[i][j] = delta[j][i] = dot(column, weighted[j])
        rates = tracer.sweeps(q, nothing, force, nothing, self.added)["scaled"]
        right = [c - dot(column, rates) for c, column in zip(wanted, columns, strict=True)]
        least = tracer.scales.smallest_pivot if guarded else 0.0
        multipliers = _solve_pivoted(delta, right, tracer.rank, least)
        for x, column in zip(multipliers, weighted, strict=True):
            rates = plus(rates, scaled(x, column))
        return list(tracer.sweeps(q, nothing, nothing, rates, self.added)["v"]), multipliers


class JoinSolver(LoopSolver):
    """Loop by loop, each where its chain ends; rows are independent.

    Args:
        tracer, robot: The robot.
        early: Whether rows are solved further out where that is possible; not a number where they
            would have to be divided by too little.
    """

    def __init__(self, tracer: LoopTracer, robot: TracedLinks, early: bool) -> None:
        super().__init__(tracer, robot.graph)
        self._robot = robot
        self._early = tracer.early if early else NO_EARLY_ROWS

    @cached_property
    def _motion(self) -> tuple[UnrolledTrace, StreamProgram]:
        return self.tracer.traced_motion(self._robot)

    def bias(self, q: Vector, v: Vector) -> Vector:
        """See ``LoopSolver``."""
        return self.tracer.bias_of(self._motion[0])

    def rows(self, q: Vector, v: Vector) -> LineRows:
        """See ``LoopSolver``."""
        tracer, motions = self.tracer, LinkMotions(*self._motion)
        return with_ground_rows(tracer.model, self._robot, motions, tracer.rows(q, v))

    def solve(
        self, q: Vector, rows: LineRows, force: Vector, wanted: Vector, guarded: bool = False
    ) -> tuple[Vector, Vector]:
        """See ``LoopSolver``."""
        tracer = self.tracer
        least: list[float] | None = tracer.least_pivots(rows) if guarded else None
        early = {}
        for i, number in enumerate(rows.numbers):
            if number in self._early.links:
                early[i] = self._early.links[number]
                least = [0.0] * len(rows.numbers) if least is None else least
                least[i] = rows.units[i] ** 2 * self._early.least[number]
        own = [tracer.in_body_order(row) for row in rows.L]
        join = LoopJoin(self._robot, own, least, rows.forces, early)
        found, multipliers = join.solve(tracer.in_body_order(force), wanted)
        return tracer.own(found), multipliers


class NodeSolver(LoopSolver):
    """By all rows at once, of a robot with mimic joints: sweeps over nodes of links."""

    def __init__(self, tracer: LoopTracer, robot: TracedLinks) -> None:
        super().__init__(tracer, robot.graph)
        self._robot = robot
        self._sweeps = NodeSweeps(tracer.model, robot)

    def bias(self, q: Vector, v: Vector) -> Vector:
        """See ``LoopSolver``."""
        return self.tracer.bias_of(self.tracer.traced_motion(self._robot)[0])

    def solve(
        self, q: Vector, rows: LineRows, force: Vector, wanted: Vector, guarded: bool = False
    ) -> tuple[Vector, Vector]:
        """See ``LoopSolver``."""
        tracer, L = self.tracer, rows.L
        columns = [self._sweeps.solve(row) for row in L]
        delta: Matrix = [zeros(len(L)) for _ in L]
        for i, row in enumerate(L):
            for j in range(i + 1):
                delta[i][j] = delta[j][i] = dot(row, columns[j])
        found = self._sweeps.solve(force)
        right = [c - dot(row, found) for c, row in zip(wanted, L, strict=True)]
        if tracer.independent:
            least = tracer.least_pivots(rows) if guarded else None
            multipliers = SymmetricFactor(delta, least).solve(right)
        else:
            smallest = tracer.scales.smallest_pivot if guarded else 0.0
            multipliers = _solve_pivoted(delta, right, tracer.rank, smallest)
        for x, column in zip(multipliers, columns, strict=True):
            found = plus(found, scaled(x, column))
        return found, multipliers


Program = tuple[Mapping[str, int], list[Store]]
"""Sizes of inputs, and what a trace leaves."""


def cheapest_program(tracer: LoopTracer, trace: Callable[[LoopSolver], Program]) -> Unrolled:
    """The program of a trace by the solver that takes the fewest operations."""
    found = []
    for solver in _solvers(tracer):
        inputs, stores = trace(solver)
        outputs = Counter(store.space for store in stores)
        signature = Signature(inputs, dict(outputs), quaternion_entries(tracer.model))
        found.append(Unrolled(signature, BasicBlock(solver.graph, stores)))
    return min(found, key=lambda program: count_arithmetic(program.count()))


def _solvers(tracer: LoopTracer) -> Iterator[LoopSolver]:
    if not tracer.independent and not tracer.has_mimics:
        yield RangeSolver(tracer)
        return
    options = LoweringOptions(regroup=True)
    for links in link_number_choices(tracer.model, frozenset(), options, flat=True):
        if tracer.has_mimics:
            yield NodeSolver(tracer, TracedLinks(links, tracer.added))
            continue
        for early in (True, False) if tracer.early.links else (False,):
            yield JoinSolver(tracer, TracedLinks(links, tracer.added), early)


def _solve_pivoted(delta: Matrix, right: Vector, rank: int, least: float) -> Vector:
    """The rows with the largest pivots, one after the other; multipliers of the others are zero."""
    y, values = list(right), []
    chosen = _pivots(delta, rank, least)
    for marks, column, _, inverse in chosen:
        value = dot(marks, y) * inverse
        values.append(value)
        y = [x - c * value for x, c in zip(y, column, strict=True)]
    x: Vector = zeros(len(delta))
    for (marks, column, _, inverse), value in zip(reversed(chosen), reversed(values), strict=True):
        own = value - dot(column, x) * inverse
        x = plus(x, scaled(own, marks))
    return x


def _pivots(delta: Matrix, rank: int, least: float) -> list[tuple[Vector, Vector, Scalar, Scalar]]:
    """The largest pivots, each with a one at its row, its column of what is left, and its inverse;
    Δ is the sum of these columns' squares, each divided by its pivot."""
    work = [list(row) for row in delta]
    count = len(delta)
    left: Vector = [1.0] * count
    chosen: list[tuple[Vector, Vector, Scalar, Scalar]] = []
    largest = zeros(1)[0]
    for _ in range(rank):
        best, marks = _largest([work[i][i] * left[i] for i in range(count)])
        largest = best if not chosen else largest
        pivot = guard(best, least * largest) if least else best
        inverse = 1.0 / pivot
        column = [dot(marks, [work[i][j] for i in range(count)]) for j in range(count)]
        chosen.append((marks, column, pivot, inverse))
        for i in range(count):
            left[i] = left[i] * (1.0 - marks[i])
            factor = column[i] * inverse
            for j in range(i + 1):
                work[i][j] = work[j][i] = work[i][j] - factor * column[j]
    return chosen


class PseudoInverse:
    """What stands for Δ⁻¹ where rows depend on each other: multipliers with units are shortest.

    With Δ = T E T* by the largest pivots, and T with units: Δ⁺ = T(T*T)⁻¹ E⁻¹ (T*T)⁻¹T*.

    Attributes:
        matrix: For rows without units.
    """

    def __init__(self, delta: Matrix, rank: int, least: float, units: Sequence[float]) -> None:
        """Args:
        delta: Of rows without units.
        rank: Of it.
        least: Fraction of the largest pivot below which the last ones are none.
        units: What rows were multiplied by.
        """
        chosen = _pivots(delta, rank, least)
        columns = [
            [(1.0 / unit) * x for unit, x in zip(units, column, strict=True)]
            for _, column, _, _ in chosen
        ]
        gram = SymmetricFactor([[dot(x, y) for y in columns] for x in columns])
        rows = [gram.solve([column[i] for column in columns]) for i in range(len(delta))]
        pivots = [pivot for _, _, pivot, _ in chosen]
        weighted = [[p * x for p, x in zip(pivots, row, strict=True)] for row in rows]
        self.matrix: Matrix = [zeros(len(delta)) for _ in delta]
        for i, row in enumerate(weighted):
            for j in range(i + 1):
                value = (1.0 / (units[i] * units[j])) * dot(row, rows[j])
                self.matrix[i][j] = self.matrix[j][i] = value

    def solve(self, right: Vector) -> Vector:
        """Δ⁺ right."""
        return times(self.matrix, right)


def _largest(values: Vector) -> tuple[Scalar, Vector]:
    """The largest of values that are not negative, and a vector with a one at its place."""
    best, marks = values[0], [1.0, *zeros(len(values) - 1)]
    for i in range(1, len(values)):
        old = best
        best = select(values[i], old, values[i], old)
        for j in range(i):
            marks[j] = select(values[i], old, 0.0, marks[j])
        marks[i] = select(values[i], old, 1.0, 0.0)
    return best, marks
