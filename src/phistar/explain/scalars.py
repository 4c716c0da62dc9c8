# SPDX-License-Identifier: BSD-3-Clause
"""The bottom of an explanation: numbers that the streams hold, and operations on them, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from phistar.compile import Kernel
from phistar.explain.layout import capped, columns, plural
from phistar.explain.links import link_labels
from phistar.model.model import Model
from phistar.sweeps.costs import NOTHING, Bill, Cost, count
from phistar.sweeps.ir import SHIFTS, Type
from phistar.sweeps.printing import Statement, statements

_HELD = {
    Type.MOTION: ("motion", "6"),
    Type.FORCE: ("force", "6"),
    Type.JOINT: ("joint vector", "d"),
    Type.INERTIA: ("symmetric inertia", "21"),
    Type.TRANSFER: ("force per motion", "18, the linear half is zero"),
    Type.BLOCK: ("joint block", "6d"),
    Type.FACTOR: ("joint inertia", "d(d+1)/2"),
}
_HEADER = ("", "×", "+", "÷")


def scalars(program: Kernel, model: Model | None) -> Iterator[str]:
    """What a link holds; for a robot also what each statement and each link costs."""
    rows = [row for _, each in statements(program.schedule) for row in each]
    yield "numbers at a link:"
    yield from (f"  {line}" for line in columns(list(_held(program, rows)), "<><"))
    if model is None or not model.bodies:
        return
    bill = count(program.schedule, model)
    yield "operations of each statement, at all links together:"
    table = [_HEADER, *((f"{row.name} = {row.body}", *_cells(_paid(bill, row))) for row in rows)]
    gravity = bill.by_operation.get("gravity", (0, NOTHING))[1]
    if gravity.total:
        table.append(("γ turned into the axes of the roots", *_cells(gravity)))
    yield from (f"  {line}" for line in columns(table, "<>>>"))
    yield "operations at each link:"
    links = zip(link_labels(model), bill.by_link, strict=True)
    table = [_HEADER, *((name, *_cells(cost)) for name, cost in links)]
    yield from capped([f"  {line}" for line in columns(table, "<>>>")])
    yield from _summary(bill, len(rows))


def _held(program: Kernel, rows: list[Statement]) -> Iterator[tuple[str, str, str]]:
    streams = program.schedule.program
    operations = {streams.nodes[stream].op for stream in streams.live()}
    if operations & set(SHIFTS):
        yield "transform", "12", "φ(k,j): a rotation and an offset, made from q"
    if "rigid" in operations:
        yield "rigid inertia", "10", "M: mass, mass times centre, moments"
    by_type: dict[Type, list[str]] = {}
    for row in rows:
        by_type.setdefault(streams.nodes[row.streams[0]].type, []).append(row.name)
    for type, (label, size) in _HELD.items():
        if type in by_type:
            yield label, size, ", ".join(by_type[type])


def _paid(bill: Bill, row: Statement) -> Cost:
    return sum((bill.by_stream.get(stream, NOTHING) for stream in row.streams), NOTHING)


def _cells(cost: Cost) -> tuple[str, str, str]:
    return str(cost.multiplications), str(cost.additions), str(cost.divisions)


def _summary(bill: Bill, rows: int) -> Iterator[str]:
    common, times = Counter(bill.by_link).most_common(1)[0]
    yield f"{plural(rows, 'statement')} x {plural(bill.links, 'link')}, in all: {bill.total}"
    yield "not counted: making the transforms from q, moving forces on frames (B) to their links"
    yield (
        f"growth: linear, a link is visited once a pass; {times} of {plural(bill.links, 'link')} "
        f"cost {common.total} operations each, and so does one more of them"
    )
