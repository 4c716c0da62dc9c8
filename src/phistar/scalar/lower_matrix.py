# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of operators, whole or in part -> one unrolled program: the program on each unit column.

What does not depend on the column is computed once. What a unit column does not reach is zero and
folds away, so a column costs the walk from its joint to the root and back, as far as its rows are
wanted. Equal numbers of a symmetric matrix are computed once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import accumulate, chain, pairwise

from phistar.algebra.spaces import JOINT, TASK_FORCE, TASK_MOTION, Space
from phistar.errors import LoweringError
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.scalar.graph import Scalar
from phistar.scalar.linear.sparse_entries import congruence, count_congruence
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.lower import (
    DEFAULT_OPTIONS,
    LoweringOptions,
    input_sizes,
    link_number_choices,
    quaternion_entries,
    trace_context,
    uniform_link_numbers,
)
from phistar.scalar.program import BasicBlock, Looped, Signature, Store, Unrolled, count_arithmetic
from phistar.scalar.robot.link_numbers import LinkNumbers, frames_as_links
from phistar.scalar.trace.link_operations import LinkValue, as_vector
from phistar.scalar.trace.link_tracer import BodyFrame, LinkForce, LinkTracer, UnitVector
from phistar.scalar.trace.looped_matrix import MatrixSpec, estimate_work, trace_looped_matrix
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.unrolled import UnrolledTrace
from phistar.sweeps.column_support import BlockPartition, set_bits
from phistar.sweeps.ir import Node, StreamProgram, Type
from phistar.sweeps.matrix_plans import as_tuple, plan_for_form
from phistar.sweeps.matrix_requests import Block, Diag, Full, MatrixForm, MatrixTerm, Request
from phistar.sweeps.schedule import schedule

MATRIX_OUTPUT = "matrix"
"""Name of the only output: rows one after the other."""

FULL_MATRIX = Full()

FactorForms = tuple[Sequence[MatrixForm], Sequence[MatrixForm]]
"""Forms of L and S, of a matrix L*SL."""

_StreamAtLink = tuple[int, int]
"""A stream and a link."""


def to_unrolled_matrix(
    forms: Sequence[MatrixForm],
    model: Model,
    frames: Sequence[str] = (),
    absent: Set[str] = frozenset(),
    options: LoweringOptions = DEFAULT_OPTIONS,
    request: Request = FULL_MATRIX,
    factors: FactorForms | None = None,
) -> Unrolled:
    """The matrix of an operator on a robot, by the cheapest of some programs and frames.

    Args:
        forms: Programs that give the same matrix.
        model: The robot.
        frames: Names of the frames that B selects.
        absent: Inputs that are not given.
        options: What may be chosen.
        request: Which part of the matrix the programs are for.
        factors: Of the whole matrix, if it has some: another way to it.

    Returns:
        A program with one output, what ``result_blocks`` says in row-major order; joints in body
        order, frames in the order of ``frames``.
    """
    *others, first = link_number_choices(model, frozenset(), options)
    rest = (model, frames, absent, request)
    found = [(MatrixTracer(form, first, *rest).program(), form) for form in forms]
    best, form = min(found, key=_cost)
    found = [(MatrixTracer(form, each, *rest).program(), form) for each in others]
    best = min([(best, form), *found], key=_cost)[0]
    if factors is None:
        return best
    multiplied = (_multiplied(factors, each, model, absent, best) for each in (first, *others))
    return min((x for x in (best, *multiplied) if x is not None), key=_operations)


def _cost(found: tuple[Unrolled, MatrixForm]) -> int:
    return _operations(found[0])


def _operations(program: Unrolled) -> int:
    return count_arithmetic(program.count())


def _multiplied(
    factors: FactorForms,
    links: Sequence[LinkNumbers],
    model: Model,
    absent: Set[str],
    other: Unrolled,
) -> Unrolled | None:
    """L*SL of factors L and S; None where that cannot be shorter than another program."""
    robot = TracedLinks(links)
    chosen = [cheapest_form(forms, links) for forms in factors]
    tracers = [MatrixTracer(x, links, model, (), absent, traced_links=robot) for x in chosen]
    lower, middle = (each.entries() for each in tracers)
    if count_congruence(lower, middle) >= _operations(other):
        return None
    entries = congruence(lower, middle)
    size = other.signature.outputs[MATRIX_OUTPUT]
    side = math.isqrt(size)
    stores = [Store(MATRIX_OUTPUT, i, "", entries.get(divmod(i, side), 0.0)) for i in range(size)]
    return Unrolled(other.signature, BasicBlock(robot.graph, stores))


def result_blocks(
    form: MatrixForm, model: Model, frames: Sequence[str] = (), request: Request = FULL_MATRIX
) -> list[tuple[list[int], list[int]]]:
    """Rows and columns of the matrices that answer a request: one, or each diagonal block."""
    spaces = (form.codomain, form.domain)
    rows, columns = (
        _ranges(BlockPartition.of(space, model, tuple(frames)))
        for space in (reversed(spaces) if form.transposed else spaces)
    )
    if isinstance(request, Diag):
        return [(list(r), list(c)) for r, c in zip(rows, columns, strict=True)]
    chosen = as_tuple(getattr(request, "row", tuple(range(len(rows)))))
    others = as_tuple(getattr(request, "column", tuple(range(len(columns)))))
    down, across = (rows[i] for i in chosen), (columns[j] for j in others)
    return [(list(chain(*down)), list(chain(*across)))]


def _ranges(blocks: BlockPartition) -> list[range]:
    return [range(a, b) for a, b in pairwise(accumulate(blocks.sizes, initial=0))]


class MatrixTracer:
    """One form on one robot."""

    def __init__(
        self,
        form: MatrixForm,
        links: Sequence[LinkNumbers],
        model: Model,
        frames: Sequence[str],
        absent: Set[str],
        request: Request = FULL_MATRIX,
        traced_links: TracedLinks | None = None,
        link_force: LinkForce | None = None,
    ) -> None:
        self.form = form
        self.result_blocks = result_blocks(form, model, frames, request)
        self.plan = plan_for_form(form, request, model, tuple(frames))
        self.rows = self.plan.rows
        self.columns = self.plan.columns
        self.links = links
        self.model = model
        self.frames = frames
        self.traced_links = TracedLinks(links) if traced_links is None else traced_links
        context = trace_context(form.schedule.program, model, absent)
        self.context = replace(context, link_force=link_force)
        self.body_frames = _body_frames(model, frames)

    def program(self) -> Unrolled:
        """The unrolled program."""
        entries = self.entries()
        places = [(r, c) for rows, columns in self.result_blocks for r in rows for c in columns]
        stores = [Store(MATRIX_OUTPUT, i, "", entries.get(at, 0.0)) for i, at in enumerate(places)]
        inputs = input_sizes(
            self.form.schedule.program,
            self.model,
            self.context.omitted_inputs | {self.form.argument},
            frozenset(),
        )
        signature = Signature(inputs, {MATRIX_OUTPUT: len(places)}, quaternion_entries(self.model))
        return Unrolled(signature, BasicBlock(self.traced_links.graph, stores))

    def entries(self) -> dict[tuple[int, int], Scalar]:
        """The numbers of the matrix by row and column; those left out are zero."""
        entries: dict[tuple[int, int], Scalar] = {}
        shared: list[dict[int, LinkValue]] = [{} for _ in self.links]
        wanted_columns = [(part, dict(self.plan.wanted_columns(part))) for part in self.form.parts]
        once, steps = self._steps()
        self._trace(0, 0, shared, once)
        for block, columns in enumerate(_ranges(self.columns)):
            asked = [
                (p, [r for r, held in w.items() if held >> block & 1]) for p, w in wanted_columns
            ]
            for column in columns if any(rows for _, rows in asked) else ():
                trace = self._trace(block, column, shared, steps[block])
                for part, rows in asked:
                    self._column(entries, trace, part, rows, column)
        if self.form.transposed:
            entries = {(c, r): x for (r, c), x in entries.items()}
        return entries

    def _column(
        self,
        entries: dict[tuple[int, int], Scalar],
        trace: UnrolledTrace,
        part: MatrixTerm,
        rows: Sequence[int],
        column: int,
    ) -> None:
        """Add what a part gives for a column; of a symmetric one what is not below the diagonal."""
        half = part.kind == "half" and not isinstance(self.plan.request, Block)
        for row, value in self._rows(trace, part.stream, rows):
            if half and row > column:
                continue
            entries[row, column] = entries.get((row, column), 0.0) + value
            if part.kind == "mirror" or (half and row != column):
                entries[column, row] = entries.get((column, row), 0.0) + value

    def _steps(self) -> tuple[list[_StreamAtLink], list[list[_StreamAtLink]]]:
        """Streams at links that must be known, in order: for all columns, and for each block."""
        support = self.plan.support
        once: list[_StreamAtLink] = []
        each: list[list[_StreamAtLink]] = [[] for _ in self.columns.sizes]
        for stream, k in support.execution_order():
            needed = support.needed[stream][k]
            if stream not in support.column_streams:
                once += [(stream, k)] if needed else []
                continue
            for block in set_bits(needed):
                each[block].append((stream, k))
        return once, each

    def _trace(
        self,
        block: int,
        column: int,
        shared: list[dict[int, LinkValue]],
        steps: Sequence[_StreamAtLink],
    ) -> UnrolledTrace:
        """The program on a unit column, with what other columns have found already.

        Steps are taken in order, because a walk to the end of a long robot would be too deep.
        """
        setting = replace(
            self.context,
            unit_vector=UnitVector(self.form.argument, column, self._misses(block)),
            body_frames=self.body_frames,
        )
        trace = UnrolledTrace(self.traced_links, setting)
        for link, known in zip(trace.tracers, shared, strict=True):
            link.share_values(known, self.plan.support.column_streams)
        for stream, k in steps:
            trace.tracers[k].value(stream)
        return trace

    def _misses(self, block: int) -> Callable[[int, int], bool]:
        """Whether the columns of a block are zero in a stream at a link."""
        support = self.plan.support

        def misses(stream: int, k: int) -> bool:
            return stream in support.column_streams and not support.present[stream][k] >> block & 1

        return misses

    def _rows(
        self, trace: UnrolledTrace, stream: int, rows: Sequence[int]
    ) -> Iterator[tuple[int, Scalar]]:
        """The numbers of some rows of blocks."""
        places = _ranges(self.rows)
        for row in rows:
            if self.rows.links[row] != GROUND and self.rows.sizes[row]:
                value = self._shown(trace.tracers[self.rows.links[row]], stream, row)
                yield from zip(places[row], value, strict=True)

    def _shown(self, link: LinkTracer, stream: int, row: int) -> Vector:
        """The value of a stream at a link in the axes of the model, or of a frame."""
        value = as_vector(link.value(stream))
        if self.form.codomain is JOINT:
            return value
        if self.form.codomain is TASK_MOTION:
            return self.body_frames[row].motion_to_frame(link.placed.motion_to_body_frame(value))
        moves = self.form.codomain.name == "MOTION"
        return (
            link.placed.motion_to_body_frame(value)
            if moves
            else link.placed.force_to_body_frame(value)
        )


def to_looped_matrix(
    forms: Sequence[MatrixForm],
    model: Model,
    frames: Sequence[str] = (),
    absent: Set[str] = frozenset(),
    options: LoweringOptions = DEFAULT_OPTIONS,
) -> Looped:
    """The matrix of an operator on a robot as loops; arguments as for ``to_unrolled_matrix``."""
    links = uniform_link_numbers(model, frozenset(), options)
    seated = [*links, *frames_as_links(links, model, frames)]
    return _trace_looped_form(cheapest_form(forms, seated), seated, model, frames, absent)


def cheapest_form(forms: Sequence[MatrixForm], links: Sequence[LinkNumbers]) -> MatrixForm:
    """The form with the least work, by an estimate; none in which branches meet.

    Raises:
        LoweringError: There is none.
    """
    usable = [form for form in forms if not _has_select(form)]
    if not usable:
        raise LoweringError("no program for this matrix has a form of loops")
    return (
        usable[0] if len(usable) == 1 else min(usable, key=lambda form: _estimate_form(form, links))
    )


def _has_select(form: MatrixForm) -> bool:
    """Whether walks meet: which one counts depends on column and link, which loops do not know."""
    program = form.schedule.program
    return any(program.nodes[s].op == "select" for s in program.live())


def _estimate_form(form: MatrixForm, links: Sequence[LinkNumbers]) -> int:
    program, parts = _with_frame_shifts(form)
    return estimate_work(program, links, _matrix_spec(form, parts))


def _matrix_spec(form: MatrixForm, parts: tuple[MatrixTerm, ...]) -> MatrixSpec:
    rows, columns = _index_base(form.codomain), _index_base(form.domain)
    return MatrixSpec(form.argument, rows, columns, parts, form.transposed, MATRIX_OUTPUT)


def _trace_looped_form(
    form: MatrixForm,
    links: Sequence[LinkNumbers],
    model: Model,
    frames: Sequence[str],
    absent: Set[str],
) -> Looped:
    program, parts = _with_frame_shifts(form)
    sizes = [
        sum(BlockPartition.of(s, model, tuple(frames)).sizes) for s in (form.codomain, form.domain)
    ]
    unread = absent | {form.argument}
    signature = Signature(
        input_sizes(program, model, unread, frozenset()),
        {MATRIX_OUTPUT: sizes[0] * sizes[1]},
        quaternion_entries(model),
    )
    setting = trace_context(program, model, absent)
    return trace_looped_matrix(
        schedule(program), links, signature, setting, _matrix_spec(form, parts)
    )


def _index_base(space: Space) -> str:
    if space is JOINT:
        return "v"
    return "frame" if space in (TASK_FORCE, TASK_MOTION) else "body"


def _with_frame_shifts(form: MatrixForm) -> tuple[StreamProgram, tuple[MatrixTerm, ...]]:
    """A program in which forces on frames come inward and motions of frames outward."""
    given = form.schedule.program
    program = StreamProgram(list(given.nodes), dict(given.definitions), dict(given.names))
    for stream, node in enumerate(given.nodes):
        if node.op == "scatter":
            leaf = program.leaf(node.data, Type.FORCE)
            program.nodes[stream] = Node("shift_in", (leaf,), Type.FORCE)
    parts = form.parts
    if form.codomain is TASK_MOTION:
        parts = tuple(
            MatrixTerm(program.add("shift_out", (part.stream,), Type.MOTION), part.kind)
            for part in parts
        )
    program.outputs = {part.kind: part.stream for part in parts}
    return program, parts


def _body_frames(model: Model, frames: Sequence[str]) -> tuple[BodyFrame, ...]:
    found = []
    for name in frames:
        frame = model.frame(name)
        pose = frame.body_pose
        found.append(BodyFrame(frame.body, pose[:3, :3].tolist(), pose[:3, 3].tolist()))
    return tuple(found)
