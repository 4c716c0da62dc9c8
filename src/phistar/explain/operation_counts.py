# SPDX-License-Identifier: BSD-3-Clause
"""The last level of an explanation: numbers per stream, and operation counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from phistar.compile import Kernel
from phistar.explain.joint_crossings import link_labels
from phistar.explain.text_layout import align_columns, plural, truncate_lines
from phistar.model.model import Model
from phistar.sweeps.costs import NO_OPERATIONS, CostReport, OperationCount, count_operations
from phistar.sweeps.ir import Type
from phistar.sweeps.ops import OPS
from phistar.sweeps.parallel.parallel_costs import count_parallel
from phistar.sweeps.parallel.robot_tree import parallel_tree
from phistar.sweeps.printing import Statement, statements

_TYPE_SIZES = {
    Type.MOTION: ("motion", "6"),
    Type.FORCE: ("force", "6"),
    Type.JOINT: ("joint vector", "d"),
    Type.INERTIA: ("symmetric inertia", "21"),
    Type.TRANSFER: ("force per motion", "18, the linear half is zero"),
    Type.BLOCK: ("joint block", "6d"),
    Type.FACTOR: ("joint inertia", "d(d+1)/2"),
    Type.NUMBER: ("number", "1"),
    Type.TOTAL: ("number of the robot", "1 in all"),
    Type.GROUND_FORCE: ("force on the ground", "6 in all"),
    Type.WORLD_MOTION: ("motion in the world", "6"),
    Type.POINT: ("weighted point", "4"),
    Type.PLANE: ("function of place", "4"),
    Type.GROUND_POINT: ("point of the world", "4 in all"),
    Type.PLACE: ("place in the world", "3 in all"),
}
_HEADER = ("", "×", "+", "÷")


def scalar_lines(program: Kernel, model: Model | None) -> Iterator[str]:
    """Numbers per link; for a robot also the cost of each statement and each link."""
    if program.draft.parallel is not None:
        yield from _parallel_lines(program, model)
        return
    rows = [row for _, each in statements(program.schedule) for row in each]
    yield "numbers per link:"
    yield from (f"  {line}" for line in align_columns(list(_number_lines(program, rows)), "<><"))
    if model is None or not model.bodies:
        return
    bill = count_operations(program.schedule, model)
    yield "operations of each statement, at all links together:"
    table = [
        _HEADER,
        *((f"{row.name} = {row.body}", *_cells(_statement_cost(bill, row))) for row in rows),
    ]
    gravity = bill.by_operation.get("gravity", (0, NO_OPERATIONS))[1]
    if gravity.total:
        table.append(("γ rotated into the axes of the roots", *_cells(gravity)))
    yield from (f"  {line}" for line in align_columns(table, "<>>>"))
    yield "operations at each link:"
    links = zip(link_labels(model), bill.by_link, strict=True)
    table = [_HEADER, *((name, *_cells(cost)) for name, cost in links)]
    yield from truncate_lines([f"  {line}" for line in align_columns(table, "<>>>")])
    yield from _summary(bill, len(rows))


def _parallel_lines(program: Kernel, model: Model | None) -> Iterator[str]:
    """Work and span of the rounds, beside the sequential recursion."""
    assert program.draft.parallel is not None
    yield "numbers per segment: pose 12; of star products F 36, C 21, J 21, c 6, d 6"
    if model is None or not model.bodies:
        return
    cost = count_parallel(program.draft.parallel, model, parallel_tree(model))
    work = count_operations(program.schedule, model).total.total
    yield f"in rounds: {cost}"
    yield f"work: {cost.work} operations, {cost.work / max(work, 1):.2f} times the {work} of sweeps"
    yield f"span: {cost.span} operations one after the other, with processors enough"


def _number_lines(program: Kernel, rows: list[Statement]) -> Iterator[tuple[str, str, str]]:
    streams = program.schedule.program
    operations = {streams.nodes[stream].op for stream in streams.live()}
    if any(OPS[op].shift for op in operations):
        yield "transform", "12", "φ(k,j): a rotation and an offset, made from q"
    if "rigid" in operations:
        yield "rigid inertia", "10", "M: mass, mass times centre, moments"
    by_type: dict[Type, list[str]] = {}
    for row in rows:
        by_type.setdefault(streams.nodes[row.streams[0]].type, []).append(row.name)
    for type, (label, size) in _TYPE_SIZES.items():
        if type in by_type:
            yield label, size, ", ".join(by_type[type])


def _statement_cost(bill: CostReport, row: Statement) -> OperationCount:
    return sum((bill.by_stream.get(stream, NO_OPERATIONS) for stream in row.streams), NO_OPERATIONS)


def _cells(cost: OperationCount) -> tuple[str, str, str]:
    return str(cost.multiplications), str(cost.additions), str(cost.divisions)


def _summary(bill: CostReport, rows: int) -> Iterator[str]:
    common, times = Counter(bill.by_link).most_common(1)[0]
    yield f"{plural(rows, 'statement')} x {plural(bill.links, 'link')}, in all: {bill.total}"
    yield "not counted: making the transforms from q, moving forces on frames (B) to their links"
    yield (
        f"growth: linear, each link is visited once per pass; {times} of "
        f"{plural(bill.links, 'link')} cost {common.total} operations each, and so does one more"
    )
