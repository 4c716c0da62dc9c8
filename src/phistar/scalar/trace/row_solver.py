# SPDX-License-Identifier: BSD-3-Clause
"""Impulses of rows whose Δ is given, as a program: projected Gauss-Seidel on its own.

It is the solver of ``unilateral_step`` for robots whose Δ does not come from the sweeps of a tree,
and the laws of its rows alone, whose slopes derivatives need.
"""

from __future__ import annotations

from collections.abc import Sequence

from phistar.model.model import Model
from phistar.scalar.graph import Graph
from phistar.scalar.linear.vectors import Matrix, Vector, dot, scaled, times
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.trace.iterated_line import ChangingSlots, IterationStage, iterated_line
from phistar.scalar.trace.projected_gauss_seidel import start_scale, stay_at_stops, sweep
from phistar.scalar.trace.row_laws import RowLaws, RowState
from phistar.scalar.trace.row_systems import PairSystem
from phistar.scalar.trace.unilateral_rows import StepRows


def row_state_sizes(rows: StepRows) -> dict[str, int]:
    """Inputs of the laws: place and rate of bounded joints, then of gaps; free rates; dt."""
    places = len(rows.bounded) + len(rows.contacts)
    return {"places": places, "rates": places, "free": rows.count, "dt": 1}


def _laws(
    model: Model, rows: StepRows, g: Graph, least: Sequence[float] = ()
) -> tuple[RowLaws, Vector]:
    sizes = row_state_sizes(rows)
    states = [RowState(g.load("places", i), g.load("rates", i)) for i in range(sizes["places"])]
    first = len(rows.bounded)
    laws = RowLaws(model, rows, g.load("dt", 0), states[:first], states[first:], least)
    return laws, [g.load("free", i) for i in range(rows.count)]


def row_solver(model: Model, rows: StepRows, least: Sequence[float] = ()) -> Unrolled:
    """delta, places, rates, free, dt, impulses -> ``impulses_next``.

    Args:
        model: The robot, for its gravity.
        rows: Of which there is at least one.
        least: As of ``RowLaws``.
    """
    g, count = Graph(), rows.count
    delta: Matrix = [[g.load("delta", i * count + j) for j in range(count)] for i in range(count)]
    laws, free = _laws(model, rows, g, least)
    groups, offset = laws.groups(delta, free)
    slots = ChangingSlots(g)
    own = slots.take(count)
    state = slots.load(own)
    given: Vector = [g.load("impulses", i) for i in range(count)]
    weight = dot(given, times(delta, given))
    scale = start_scale(groups, given, offset, weight)
    begun = dict(zip(own, scaled(scale, given), strict=True))
    after = sweep(groups, PairSystem(delta, offset, state))
    stages = [IterationStage(dict(zip(own, after, strict=True)), rows.sweeps)]
    last = stay_at_stops(groups, PairSystem(delta, offset, state)) if least else None
    if last is not None:
        stages.append(IterationStage(dict(zip(own, last, strict=True))))
    stores = [Store("impulses_next", i, "", x) for i, x in enumerate(state)]
    inputs = {"delta": count * count, **row_state_sizes(rows), "impulses": count}
    signature = Signature(inputs, {"impulses_next": count}, ())
    return iterated_line(signature, g, slots.count, begun, stages, stores)


def row_bounds(model: Model, rows: StepRows) -> Unrolled:
    """places, rates, free, dt -> ``approach``: c of normal rows, ``lower`` and ``upper`` of joints.

    Bounds that a joint does not have are zero.
    """
    g = Graph()
    laws, free = _laws(model, rows, g)
    stores: list[Store] = []
    for i, (row, state) in enumerate(zip(rows.bounded, laws.joints, strict=True)):
        bounds = laws.bounds(row, state, free[i])
        stores.append(Store("lower", i, "", 0.0 if bounds.lower is None else bounds.lower))
        stores.append(Store("upper", i, "", 0.0 if bounds.upper is None else bounds.upper))
    first = len(rows.bounded)
    for k, (contact, state) in enumerate(zip(rows.contacts, laws.contacts, strict=True)):
        way, speed, rate = state.place, state.rate, free[first + 3 * k]
        c = laws.approach(contact.restitution, way, speed, rate)
        stores.append(Store("approach", k, "", c))
    outputs = {"lower": first, "upper": first, "approach": len(rows.contacts)}
    return Unrolled(Signature(row_state_sizes(rows), outputs, ()), BasicBlock(g, stores))
