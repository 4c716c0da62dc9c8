# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of forward dynamics with loops, as straight lines and two products for one robot.

With A = 𝓜⁻¹L*, Δ = LA, W* = AΔ⁻¹, and r₁ = ID(q, v, v̇) - L*λ, r₂ = Lv̇ + L̇v at fixed v̇ and λ:

    ∂(v̇, λ) = -G ∂(r₁, r₂),    G = [𝓜⁻¹ - W*A*   W*]
                                   [    -W        Δ⁻¹]

The tree's inverse mass matrix and the derivatives of its inverse dynamics are programs of their
own, put together here in one graph with those of the rows. G is formed once and multiplied with the
derivatives along q and v; its first columns, negative below, are the derivatives along τ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from phistar.scalar.graph import WORK, Graph, Scalar
from phistar.scalar.linear.symmetric_factor import SymmetricFactor, is_zero
from phistar.scalar.linear.vectors import Matrix, Vector, dot, minus, plus, scaled, times, zeros
from phistar.scalar.lower import quaternion_entries
from phistar.scalar.program import BasicBlock, MatrixProduct, Signature, Store, Unrolled
from phistar.scalar.trace.inline import inline
from phistar.scalar.trace.loop_dynamics import off_loops, output_stores
from phistar.scalar.trace.loop_solvers import PseudoInverse
from phistar.scalar.trace.loop_tracer import LineRows, LoopTracer
from phistar.thresholds import POLICY


@dataclass(frozen=True)
class TreePrograms:
    """Programs that are put together; joint vectors and matrices of the tree in body order.

    Attributes:
        inverse: q -> 𝓜⁻¹, its only output; in the robot's own coordinates where joints mimic
            others.
        bias: q, v -> 𝒞, its only output.
        derivatives: q, v, vdot -> ``tau_q`` and ``tau_v`` of inverse dynamics.
        tangents: q, v, vdot, multipliers -> ``acceleration_q``, ``acceleration_v``, ``force_q``.
    """

    inverse: Unrolled
    bias: Unrolled
    derivatives: Unrolled
    tangents: Unrolled


def loop_linearization(tracer: LoopTracer, programs: TreePrograms) -> Unrolled:
    """q, v, tau -> ``vdot``, ``multipliers`` and the derivatives of both.

    ``change_q``, ``change_v`` and ``change_tau`` (nv + rows, nv) are derivatives of v̇ and, below
    these, of λ; rows one after the other. Nothing of it is a number off the loops.
    """
    return _Linearization(tracer, programs).program()


def loop_step_rates(tracer: LoopTracer, programs: TreePrograms) -> Unrolled:
    """q, v, tau, dt -> the rate x = (v' - v)/dt of a step that keeps the loops, its derivatives.

    𝓜x = τ - 𝒞 + L*λ with Lv' = 0; outputs as of ``loop_linearization``, of x in place of v̇.
    """
    return _Linearization(tracer, programs).step_program()


@dataclass(frozen=True)
class _Solution:
    """What solves for accelerations and multipliers, of the rows that are not zero, without units.

    Attributes:
        inverse: 𝓜⁻¹.
        carried: A, a list per row.
        factor: Of Δ.
    """

    inverse: Matrix
    carried: Matrix
    factor: SymmetricFactor | PseudoInverse


class _Linearization:
    def __init__(self, tracer: LoopTracer, programs: TreePrograms) -> None:
        self.tracer = tracer
        self.programs = programs
        self.graph = Graph()
        self.nv = tracer.model.nv
        self.count = len(tracer.scales.rows)
        self.stores: list[Store] = []
        self.products: list[MatrixProduct] = []
        self.slots = 0

    def program(self) -> Unrolled:
        """Of accelerations."""
        q, v, tau = self._inputs()
        rows = self.tracer.rows(q, v)
        solution = self._solution(q, rows)
        vdot, multipliers = self._accelerations(q, v, tau, rows, solution, rows.bias)
        self.stores += output_stores("vdot", vdot) + output_stores("multipliers", multipliers)
        G = self._solution_matrix(rows, solution)
        by_q, by_v, loops = self._force_changes(q, v, vdot, multipliers)
        by_q += self._row_changes(loops["acceleration_q"])
        by_v += self._row_changes(loops["acceleration_v"])
        along = {} if self.tracer.independent else {"along_q": self._along(rows, by_q)}
        return self._finished(G, {"change_q": by_q, "change_v": by_v, **along}, ())

    def step_program(self) -> Unrolled:
        """Of the rate (v' - v)/dt of a step."""
        q, v, tau = self._inputs()
        dt = self.graph.load("dt", 0)
        rows = self.tracer.rows(q, v)
        solution = self._solution(q, rows)
        per_time = 1.0 / dt
        missing = scaled(per_time, rows.rate)
        rate, multipliers = self._accelerations(q, v, tau, rows, solution, missing)
        self.stores += output_stores("vdot", rate) + output_stores("multipliers", multipliers)
        G = self._solution_matrix(rows, solution)
        by_q, by_v, _ = self._force_changes(q, v, rate, multipliers)
        later = plus(v, scaled(dt, rate))
        nothing = zeros(self.nv), zeros(self.count)
        given = {"q": q, "v": later, "vdot": nothing[0], "multipliers": nothing[1]}
        turned = inline(self.programs.tangents, given)["rate_q"]
        by_q += self._row_changes(scaled(per_time, turned))
        held: Matrix = [zeros(self.nv) for _ in range(self.count)]
        for i, unit, row in zip(rows.numbers, rows.units, rows.L, strict=True):
            held[i] = scaled(per_time, scaled(1.0 / unit, row))
        return self._finished(G, {"change_q": by_q, "change_v": by_v + held}, ("dt",))

    def _along(self, rows: LineRows, by_q: Matrix) -> Matrix:
        """Derivatives along q of what is left of steps on the loops: times I - L*(LL*)⁺L."""
        squares = [[dot(x, y) for y in rows.L] for x in rows.L]
        least = self.tracer.scales.smallest_pivot
        inverse = PseudoInverse(squares, self.tracer.rank, least, [1.0] * len(rows.L))
        columns = [inverse.solve([row[j] for row in rows.L]) for j in range(self.nv)]
        result = []
        for change in by_q:
            moved = [dot(row, change) for row in rows.L]
            result.append([x - dot(moved, c) for x, c in zip(change, columns, strict=True)])
        return result

    def _inputs(self) -> tuple[Vector, Vector, Vector]:
        sizes = {"q": self.tracer.model.nq, "v": self.nv, "tau": self.nv}
        found: dict[str, Vector] = {
            name: [self.graph.load(name, i) for i in range(size)] for name, size in sizes.items()
        }
        return found["q"], found["v"], found["tau"]

    def _finished(
        self, G: Matrix, residuals: Mapping[str, Matrix], more: Sequence[str]
    ) -> Unrolled:
        """The program with all derivatives; ``more`` are numbers that it reads."""
        model, nv = self.tracer.model, self.nv
        self.stores += output_stores("change_tau", [x for row in G for x in row[:nv]])
        self._multiply(G, residuals)
        changes = dict.fromkeys((*residuals, "change_tau"), len(G) * nv)
        outputs = {"vdot": nv, "multipliers": self.count, **changes}
        inputs = {"q": model.nq, "v": nv, "tau": nv, **dict.fromkeys(more, 1)}
        signature = Signature(inputs, outputs, quaternion_entries(model))
        body = BasicBlock(self.graph, self.stores)
        return Unrolled(signature, body, tuple(self.products), self.slots)

    def _solution(self, q: Vector, rows: LineRows) -> _Solution:
        (entries,) = inline(self.programs.inverse, {"q": q}).values()
        if self.tracer.has_mimics:
            inverse = [list(entries[i * self.nv : (i + 1) * self.nv]) for i in range(self.nv)]
        else:
            inverse = self.tracer.own_matrix(entries)
        carried = [times(inverse, row) for row in rows.L]
        delta: Matrix = [zeros(len(carried)) for _ in carried]
        for i, row in enumerate(rows.L):
            for j in range(i + 1):
                delta[i][j] = delta[j][i] = dot(row, carried[j])
        return _Solution(inverse, carried, self._factor(delta, rows))

    def _factor(self, delta: Matrix, rows: LineRows) -> SymmetricFactor | PseudoInverse:
        tracer = self.tracer
        if tracer.independent:
            return SymmetricFactor(delta, tracer.least_pivots(rows))
        return PseudoInverse(delta, tracer.rank, tracer.scales.smallest_pivot, rows.units)

    def _accelerations(
        self,
        q: Vector,
        v: Vector,
        tau: Vector,
        rows: LineRows,
        solution: _Solution,
        missing: Vector,
    ) -> tuple[Vector, Vector]:
        """v̇ with Lv̇ = -missing, not a number off the loops, and λ with units."""
        order = self.tracer.in_body_order
        (joint_forces,) = inline(self.programs.bias, {"q": q, "v": order(v)}).values()
        bias = self.tracer.own(joint_forces)
        vdot = times(solution.inverse, minus(tau, bias))
        right = [-x - dot(row, vdot) for x, row in zip(missing, rows.L, strict=True)]
        found = solution.factor.solve(right)
        multipliers = zeros(self.count)
        for i, x, column in zip(rows.numbers, found, solution.carried, strict=True):
            vdot = plus(vdot, scaled(x, column))
            multipliers[i] = self.tracer.scales.rows[i].item() * x
        invalid = off_loops(self.tracer, rows, v)
        return [x + invalid for x in vdot], multipliers

    def _solution_matrix(self, rows: LineRows, solution: _Solution) -> Matrix:
        """G, zero at rows that are always zero."""
        nv, factor = self.nv, solution.factor
        if isinstance(factor, PseudoInverse):
            return self._tangential_matrix(rows, solution, factor)
        G: Matrix = [zeros(nv + self.count) for _ in range(nv + self.count)]
        units = self.tracer.scales.rows.tolist()
        halves = [factor.forward([a[k] for a in solution.carried]) for k in range(nv)]
        weighted = [factor.divided(x) for x in halves]
        for k in range(nv):
            for other in range(k + 1):
                taken = dot(halves[k], weighted[other])
                G[k][other] = G[other][k] = solution.inverse[k][other] - taken
            for i, x in zip(rows.numbers, factor.backward(weighted[k]), strict=True):
                G[k][nv + i] = units[i] * x
                G[nv + i][k] = -units[i] * x
        for column, i in enumerate(rows.numbers):
            unit = zeros(len(rows.numbers))
            unit[column] = units[i]
            found = factor.solve(unit)
            for row in range(column, len(found)):
                j = rows.numbers[row]
                G[nv + i][nv + j] = G[nv + j][nv + i] = units[j] * found[row]
        return G

    def _tangential_matrix(
        self, rows: LineRows, solution: _Solution, factor: PseudoInverse
    ) -> Matrix:
        """The same with Δ⁺, where rows depend on each other."""
        nv, units = self.nv, self.tracer.scales.rows.tolist()
        G: Matrix = [zeros(nv + self.count) for _ in range(nv + self.count)]
        carried = [[a[k] for a in solution.carried] for k in range(nv)]
        weighted = [factor.solve(x) for x in carried]
        for k in range(nv):
            for other in range(k + 1):
                taken = dot(carried[k], weighted[other])
                G[k][other] = G[other][k] = solution.inverse[k][other] - taken
            for i, x in zip(rows.numbers, weighted[k], strict=True):
                G[k][nv + i] = units[i] * x
                G[nv + i][k] = -units[i] * x
        for i, row in zip(rows.numbers, factor.matrix, strict=True):
            for j, x in zip(rows.numbers, row, strict=True):
                G[nv + i][nv + j] = units[i] * units[j] * x
        return G

    def _row_changes(self, entries: Vector) -> Matrix:
        return [entries[i * self.nv : (i + 1) * self.nv] for i in range(self.count)]

    def _force_changes(
        self, q: Vector, v: Vector, vdot: Vector, multipliers: Vector
    ) -> tuple[Matrix, Matrix, Mapping[str, Vector]]:
        """Derivatives (nv, nv) of r₁ along q and v, and the tangents of the rows."""
        nv, tracer = self.nv, self.tracer
        order = tracer.in_body_order
        given = {"q": q, "v": order(v), "vdot": order(vdot)}
        tree = inline(self.programs.derivatives, given)
        given = {"q": q, "v": v, "vdot": vdot, "multipliers": multipliers}
        loops = inline(self.programs.tangents, given)
        turned = [loops["force_q"][i * nv : (i + 1) * nv] for i in range(nv)]
        held = tracer.own_matrix(tree["tau_q"])
        by_q = [minus(x, y) for x, y in zip(held, turned, strict=True)]
        return by_q, tracer.own_matrix(tree["tau_v"]), loops

    def _multiply(self, G: Matrix, changes: Mapping[str, Matrix]) -> None:
        """Minus G times each; small products are multiplied out."""
        if len(G) <= POLICY.max_product_rows_unrolled:
            for name, right in changes.items():
                columns = [[row[j] for row in right] for j in range(self.nv)]
                found = [-dot(row, column) for row in G for column in columns]
                self.stores += output_stores(name, found)
            return
        left = self.slots
        for row in G:
            for x in row:
                self._spill(x)
        for name, right in changes.items():
            slots = [
                {k: self._spill(row[j]) for k, row in enumerate(right) if not is_zero(row[j])}
                for j in range(self.nv)
            ]
            self.products.append(MatrixProduct(name, left, len(G), slots))

    def _spill(self, x: Scalar) -> int:
        self.stores.append(Store(WORK, self.slots, "", x))
        self.slots += 1
        return self.slots - 1
