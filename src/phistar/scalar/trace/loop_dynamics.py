# SPDX-License-Identifier: BSD-3-Clause
"""Forward dynamics with loops, and projection onto them, as straight lines for one robot.

With the factors 𝓜 = N D N* of the tree and Z = N⁻¹L*, one column per row:

    ε = N⁻¹(τ - 𝒞)
    Δ = L𝓜⁻¹L* = Z*D⁻¹Z
    Δλ = c - Z*D⁻¹ε
    v̇ = N⁻* D⁻¹(ε + Zλ)

The tree's sweeps are derived (``loops.programs.loop_factors``); here they are put together in one
graph, in which everything that does not depend on the column is shared. Where rows depend on
each other Δ is singular: as many pivots as there are independent rows are taken, each the largest
that is left, by selects.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from phistar.arrays import Array
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.scalar.graph import Graph, Scalar, guard, select
from phistar.scalar.linear.vectors import Matrix, Vector, dot, minus, plus, scaled, zeros
from phistar.scalar.lower import quaternion_entries
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.trace.configuration_programs import integrated
from phistar.scalar.trace.inline import inline

_ABOVE_ZERO = sys.float_info.min


@dataclass(frozen=True)
class RowScales:
    """What makes rows and coordinates dimensionless, and what counts as on the loops.

    Attributes:
        rows: (rows,).
        columns: (nv,).
        open_error: Length of an error without units from which loops count as open.
        rate: Fraction of ‖L‖‖v‖ from which a velocity opens them.
        smallest_pivot: Fraction of a row's Δ below which its pivot may be rounding, so that there
            is no result.
        held: Numbers of rows of loops that hold frames wherever they are: never open.
    """

    rows: Array
    columns: Array
    open_error: float
    rate: float
    smallest_pivot: float
    held: Set[int] = frozenset()


class LoopTracer:
    """The tree's factors and the loops' rows in one graph.

    Args:
        model: A robot whose joints all have coordinates of their own.
        factors: q, v, tau, zeta -> ``bias`` 𝒞, ``kappa`` N⁻¹τ, ``scaled`` D⁻¹N⁻¹τ, ``v`` N⁻*ζ,
            joint vectors in body order.
        closure: q, v -> rows, rate, bias, error; in the robot's own coordinates.
        rank: Number of independent rows.
        scales: See there.
    """

    def __init__(
        self, model: Model, factors: Unrolled, closure: Unrolled, rank: int, scales: RowScales
    ) -> None:
        joints = joint_map(model)
        assert joints.one_to_one
        assert (joints.scales == 1.0).all()
        self.model = model
        self.rank = rank
        self.scales = scales
        self._order = [int(i) for i in joints.v_indices]
        self._factors = factors
        self._closure = closure

    def sweeps(self, q: Vector, v: Vector, tau: Vector, zeta: Vector) -> Mapping[str, Vector]:
        """The tree's sweeps, joint vectors in the robot's own coordinates."""
        given = {"tau": tau, "zeta": zeta, "v": v}
        inputs = {name: self.in_body_order(x) for name, x in given.items()}
        found = inline(self._factors, {"q": q, **inputs})
        return {name: self._own(x) for name, x in found.items()}

    def in_body_order(self, x: Vector) -> Vector:
        """A joint vector as the tree's programs have it."""
        return [x[i] for i in self._order]

    def own_matrix(self, entries: Vector) -> Matrix:
        """A matrix over the joints of the tree's programs, rows one after the other."""
        size = self.model.nv
        result: Matrix = [zeros(size) for _ in range(size)]
        for k, i in enumerate(self._order):
            result[i] = self._own(entries[k * size : (k + 1) * size])
        return result

    def _own(self, x: Vector) -> Vector:
        result = zeros(len(x))
        for i, value in zip(self._order, x, strict=True):
            result[i] = value
        return result

    def rows(self, q: Vector, v: Vector) -> LineRows:
        """L, Lv, L̇v and e, without units, rows that are always zero left out."""
        found = inline(self._closure, {"q": q, "v": v})
        nv = self.model.nv
        L, rate, bias, error = [], [], [], []
        kept = []
        for i, scale in enumerate(self.scales.rows.tolist()):
            row = found["rows"][i * nv : (i + 1) * nv]
            if all(is_zero(x) for x in row):
                continue
            kept.append(i)
            L.append(scaled(scale, row))
            rate.append(scale * found["rate"][i])
            bias.append(scale * found["bias"][i])
            error.append(0.0 if i in self.scales.held else scale * found["error"][i])
        return LineRows(kept, L, rate, bias, error)

    def carried(self, q: Vector, L: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Z and D⁻¹Z, a list per row, and Δ."""
        nothing = zeros(self.model.nv)
        columns, weighted = [], []
        for row in L:
            found = self.sweeps(q, nothing, row, nothing)
            columns.append(found["kappa"])
            weighted.append(found["scaled"])
        delta: Matrix = [zeros(len(L)) for _ in L]
        for i, column in enumerate(columns):
            for j in range(i + 1):
                delta[i][j] = delta[j][i] = dot(column, weighted[j])
        return columns, weighted, delta

    def multipliers(self, delta: Matrix, right: Vector, *, guarded: bool) -> Vector:
        """λ with Δλ = right, in as many rows as are independent."""
        least = self.scales.smallest_pivot if guarded else 0.0
        if self.rank >= len(delta):
            return SymmetricFactor(delta, least).solve(right)
        return _solve_pivoted(delta, right, self.rank, least)


@dataclass(frozen=True)
class LineRows:
    """Rows of loops that are not zero for the robot as such, and their numbers."""

    numbers: Sequence[int]
    L: Matrix
    rate: Vector
    bias: Vector
    error: Vector


def is_zero(x: Scalar) -> bool:
    """Whether it is zero for the robot as such."""
    return isinstance(x, float) and x == 0.0


def _pivot(x: Scalar, size: Scalar, least: float) -> Scalar:
    return guard(x, least * size) if least else x


class SymmetricFactor:
    """A positive matrix Δ = C E C* without pivoting, C unit lower triangular."""

    def __init__(self, delta: Matrix, least: float) -> None:
        """Args:
        delta: The matrix.
        least: Fraction of a row's own number below which its pivot is none.
        """
        work = [list(row) for row in delta]
        count = len(delta)
        self._inverses: Vector = []
        self._lower: Matrix = [zeros(count) for _ in delta]
        for k in range(count):
            self._inverses.append(1.0 / _pivot(work[k][k], delta[k][k], least))
            for i in range(k + 1, count):
                self._lower[i][k] = work[i][k] * self._inverses[k]
                for j in range(k + 1, i + 1):
                    work[i][j] = work[i][j] - self._lower[i][k] * work[j][k]

    def forward(self, x: Vector) -> Vector:
        """C⁻¹x."""
        y = list(x)
        for i, row in enumerate(self._lower):
            for k in range(i):
                y[i] = y[i] - row[k] * y[k]
        return y

    def divided(self, x: Vector) -> Vector:
        """E⁻¹x."""
        return [value * inverse for value, inverse in zip(x, self._inverses, strict=True)]

    def backward(self, x: Vector) -> Vector:
        """C⁻*x."""
        y = list(x)
        for k in reversed(range(len(y))):
            for i in range(k + 1, len(y)):
                y[k] = y[k] - self._lower[i][k] * y[i]
        return y

    def solve(self, right: Vector) -> Vector:
        """Δ⁻¹ right."""
        return self.backward(self.divided(self.forward(right)))


def _solve_pivoted(delta: Matrix, right: Vector, rank: int, least: float) -> Vector:
    """The rows with the largest pivots, one after the other; multipliers of the others are zero."""
    work, y = [list(row) for row in delta], list(right)
    count = len(delta)
    left: Vector = [1.0] * count
    chosen: list[tuple[Vector, Vector, Scalar, Scalar]] = []
    largest = zeros(1)[0]
    for _ in range(rank):
        best, marks = _largest([work[i][i] * left[i] for i in range(count)])
        largest = best if not chosen else largest
        inverse = 1.0 / _pivot(best, largest, least)
        column = [dot(marks, [work[i][j] for i in range(count)]) for j in range(count)]
        value = dot(marks, y) * inverse
        chosen.append((marks, column, inverse, value))
        for i in range(count):
            y[i] = y[i] - column[i] * value
            left[i] = left[i] * (1.0 - marks[i])
            factor = column[i] * inverse
            for j in range(i + 1):
                work[i][j] = work[j][i] = work[i][j] - factor * column[j]
    x: Vector = zeros(count)
    for marks, column, inverse, value in reversed(chosen):
        own = value - dot(column, x) * inverse
        x = plus(x, scaled(own, marks))
    return x


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


def output_stores(name: str, values: Vector) -> list[Store]:
    """All entries of an output."""
    return [Store(name, i, "", x) for i, x in enumerate(values)]


def loop_dynamics(tracer: LoopTracer, *, guarded: bool) -> Unrolled:
    """q, v, tau -> ``vdot``; ``guarded``: not a number off the loops and where they lose rank."""
    model = tracer.model
    g = Graph()
    q: Vector = [g.load("q", i) for i in range(model.nq)]
    v: Vector = [g.load("v", i) for i in range(model.nv)]
    tau: Vector = [g.load("tau", i) for i in range(model.nv)]
    nothing = zeros(model.nv)
    rows = tracer.rows(q, v)
    columns, weighted, delta = tracer.carried(q, rows.L)
    bias = tracer.sweeps(q, v, nothing, nothing)["bias"]
    pushed = tracer.sweeps(q, nothing, minus(tau, bias), nothing)
    right = [
        -x - dot(column, pushed["scaled"]) for x, column in zip(rows.bias, columns, strict=True)
    ]
    multipliers = tracer.multipliers(delta, right, guarded=guarded)
    rates = pushed["scaled"]
    for x, column in zip(multipliers, weighted, strict=True):
        rates = plus(rates, scaled(x, column))
    vdot = tracer.sweeps(q, nothing, nothing, rates)["v"]
    if guarded:
        invalid = off_loops(tracer, rows, v)
        vdot = [x + invalid for x in vdot]
    inputs = {"q": model.nq, "v": model.nv, "tau": model.nv}
    signature = Signature(inputs, {"vdot": model.nv}, quaternion_entries(model))
    return Unrolled(signature, BasicBlock(g, output_stores("vdot", vdot)))


def off_loops(tracer: LoopTracer, rows: LineRows, v: Vector) -> Scalar:
    """Zero on the loops, else not a number."""
    scales = tracer.scales
    slack = scales.open_error**2 - dot(rows.error, rows.error)
    on = guard(slack, _ABOVE_ZERO) - slack
    # ‖L‖ and ‖v‖ without units, of all entries.
    units = scales.columns.tolist()
    size: Scalar = 0.0
    for row in rows.L:
        own = [x * unit for x, unit in zip(row, units, strict=True)]
        size = size + dot(own, own)
    speeds = [x * (1.0 / unit) for x, unit in zip(v, units, strict=True)]
    allowed = scales.rate**2 * size * dot(speeds, speeds) + 1e-24
    kept = allowed - dot(rows.rate, rows.rate)
    return on + (guard(kept, _ABOVE_ZERO) - kept)


def loop_projection(tracer: LoopTracer) -> Unrolled:
    """q, v -> ``q_next``, ``v_next`` nearer to the loops, and ``gap``, how far q is off.

    A Newton step of q in the mass metric, and of v at the new q in the metric of the old one.
    """
    model = tracer.model
    g = Graph()
    q: Vector = [g.load("q", i) for i in range(model.nq)]
    v: Vector = [g.load("v", i) for i in range(model.nv)]
    nothing = zeros(model.nv)
    rows = tracer.rows(q, nothing)
    step = _nearest(tracer, q, rows.L, scaled(-1.0, rows.error))
    q_next = integrated(model, q, step)
    ahead = tracer.rows(q_next, v)
    change = _nearest(tracer, q, ahead.L, scaled(-1.0, ahead.rate))
    stores = output_stores("q_next", q_next) + output_stores("v_next", plus(v, change))
    stores += output_stores("gap", [dot(rows.error, rows.error)])
    inputs = {"q": model.nq, "v": model.nv}
    outputs = {"q_next": model.nq, "v_next": model.nv, "gap": 1}
    return Unrolled(Signature(inputs, outputs, quaternion_entries(model)), BasicBlock(g, stores))


def _nearest(tracer: LoopTracer, q: Vector, L: Matrix, right: Vector) -> Vector:
    """The x of least x*𝓜x with Lx = right."""
    _, weighted, delta = tracer.carried(q, L)
    multipliers = tracer.multipliers(delta, right, guarded=False)
    rates = zeros(tracer.model.nv)
    for x, column in zip(multipliers, weighted, strict=True):
        rates = plus(rates, scaled(x, column))
    nothing = zeros(tracer.model.nv)
    return list(tracer.sweeps(q, nothing, nothing, rates)["v"])
