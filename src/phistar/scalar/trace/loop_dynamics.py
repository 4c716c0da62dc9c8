# SPDX-License-Identifier: BSD-3-Clause
"""Forward dynamics with loops, and projection onto them, as straight lines for one robot."""

from __future__ import annotations

import sys

from phistar.scalar.graph import Scalar, guard
from phistar.scalar.linear.vectors import Vector, dot, minus, plus, scaled, zeros
from phistar.scalar.program import Store, Unrolled
from phistar.scalar.trace.configuration_programs import integrated
from phistar.scalar.trace.loop_solvers import LoopSolver, Program, cheapest_program
from phistar.scalar.trace.loop_tracer import LineRows, LoopTracer, RowScales

_ABOVE_ZERO = sys.float_info.min


def output_stores(name: str, values: Vector) -> list[Store]:
    """All entries of an output."""
    return [Store(name, i, "", x) for i, x in enumerate(values)]


def loop_dynamics(tracer: LoopTracer, *, guarded: bool, with_multipliers: bool = False) -> Unrolled:
    """q, v, tau -> ``vdot``, and ``multipliers`` of rows that are independent if wanted.

    ``guarded``: not a number off the loops and where they lose rank.
    """

    def trace(solver: LoopSolver) -> Program:
        model = tracer.model
        q, v = solver.load("q", model.nq), solver.load("v", model.nv)
        tau = solver.load("tau", model.nv)
        rows = solver.rows(q, v)
        bias = solver.bias(q, v)
        wanted = scaled(-1.0, rows.bias)
        vdot, found = solver.solve(q, rows, minus(tau, bias), wanted, guarded)
        if guarded:
            invalid = off_loops(tracer, rows, v)
            vdot = [x + invalid for x in vdot]
        stores = output_stores("vdot", vdot)
        if with_multipliers:
            multipliers = zeros(len(tracer.scales.rows))
            for i, unit, x in zip(rows.numbers, rows.units, found, strict=True):
                multipliers[i] = unit * x
            stores += output_stores("multipliers", multipliers)
        more = {name: model.nv for name in solver.added}
        return {"q": model.nq, "v": model.nv, "tau": model.nv, **more}, stores

    return cheapest_program(tracer, trace)


def off_loops(tracer: LoopTracer, rows: LineRows, v: Vector) -> Scalar:
    """Zero on the loops, else not a number."""
    scales = tracer.scales
    slack = scales.open_error**2 - _size_squared(scales, rows, rows.error)
    on = guard(slack, _ABOVE_ZERO) - slack
    # Rows without units have lengths of about one.
    speeds = [x * (1.0 / unit) for x, unit in zip(v, scales.columns.tolist(), strict=True)]
    allowed = scales.rate**2 * len(scales.rows) * dot(speeds, speeds) + scales.rest**2
    kept = allowed - _size_squared(scales, rows, rows.rate)
    return on + (guard(kept, _ABOVE_ZERO) - kept)


def _size_squared(scales: RowScales, rows: LineRows, x: Vector) -> Scalar:
    """Of a vector over the rows, without units."""
    alike: dict[float, Vector] = {}
    for number, unit, value in zip(rows.numbers, rows.units, x, strict=True):
        alike.setdefault((float(scales.rows[number]) / unit) ** 2, []).append(value)
    total: Scalar = 0.0
    for weight, values in alike.items():
        total = total + weight * dot(values, values)
    return total


def loop_projection(tracer: LoopTracer) -> Unrolled:
    """q, v -> ``q_next``, ``v_next`` nearer to the loops, and ``gap``, how far q is off.

    A Newton step of q in the mass metric, and of v at the new q in the metric of the old one.
    """

    def trace(solver: LoopSolver) -> Program:
        model = tracer.model
        q, v = solver.load("q", model.nq), solver.load("v", model.nv)
        nothing = zeros(model.nv)
        rows = tracer.rows(q, nothing)
        step, _ = solver.solve(q, rows, nothing, scaled(-1.0, rows.error))
        q_next = integrated(model, q, step)
        ahead = tracer.rows(q_next, v)
        change, _ = solver.solve(q, ahead, nothing, scaled(-1.0, ahead.rate))
        stores = output_stores("q_next", q_next) + output_stores("v_next", plus(v, change))
        stores += output_stores("gap", [dot(rows.error, rows.error)])
        return {"q": model.nq, "v": model.nv}, stores

    return cheapest_program(tracer, trace)
