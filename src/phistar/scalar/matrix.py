# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of operators, whole or in part -> one straight line: the program on each unit column.

What does not depend on the column is computed once. What a unit column does not reach is zero and
folds away, so a column costs the walk from its joint to the root and back, as far as its rows are
wanted. Equal numbers of a symmetric matrix are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import accumulate, chain, pairwise
from typing import Any

from phistar.algebra.spaces import JOINT, TASK_FORCE, TASK_MOTION, Space
from phistar.errors import LoweringError
from phistar.model.model import Model
from phistar.model.parts import GROUND
from phistar.scalar.columns import Job, rolled_columns, work
from phistar.scalar.graph import Scalar
from phistar.scalar.links import Frame, Link, frame_link
from phistar.scalar.lower import (
    DEFAULT,
    Options,
    choices,
    robot_setting,
    sizes_of_inputs,
    uniform,
)
from phistar.scalar.program import Body, Rolled, Signature, Store, Straight, arithmetic
from phistar.scalar.straight import Robot, Trace
from phistar.scalar.tracer import LinkTracer, Seat, Unit
from phistar.scalar.vectors import Vector
from phistar.sweeps.ir import Node, Program, Type
from phistar.sweeps.matrix import listed, plan_of
from phistar.sweeps.requests import Block, Diag, Form, Full, Part, Request
from phistar.sweeps.schedule import schedule
from phistar.sweeps.support import Blocks, members

OUTPUT = "matrix"
"""Name of the only output: rows one after the other."""

WHOLE = Full()

_Step = tuple[int, int]
"""A stream and a link."""


def to_matrix(
    forms: Sequence[Form],
    model: Model,
    frames: Sequence[str] = (),
    absent: Set[str] = frozenset(),
    options: Options = DEFAULT,
    request: Request = WHOLE,
) -> Straight:
    """The matrix of an operator on a robot, by the cheapest of some programs and frames.

    Args:
        forms: Programs that give the same matrix.
        model: The robot.
        frames: Names of the frames that B speaks of.
        absent: Inputs that are not given.
        options: What may be chosen.
        request: Which part of the matrix the programs are for.

    Returns:
        A program with one output, what ``layout`` says in row-major order; joints in body order,
        frames in the order of ``frames``.
    """
    *others, first = choices(model, frozenset(), options)
    rest = (model, frames, absent, request)
    found = [(MatrixTracer(form, first, *rest).program(), form) for form in forms]
    best, form = min(found, key=_cost)
    found = [(MatrixTracer(form, each, *rest).program(), form) for each in others]
    return min([(best, form), *found], key=_cost)[0]


def _cost(found: tuple[Straight, Form]) -> int:
    return arithmetic(found[0].count())


def layout(
    form: Form, model: Model, frames: Sequence[str] = (), request: Request = WHOLE
) -> list[tuple[list[int], list[int]]]:
    """Rows and columns of the matrices that answer a request: one, or each diagonal block."""
    spaces = (form.codomain, form.domain)
    rows, columns = (
        _ranges(Blocks.of(space, model, tuple(frames)))
        for space in (reversed(spaces) if form.transposed else spaces)
    )
    if isinstance(request, Diag):
        return [(list(r), list(c)) for r, c in zip(rows, columns, strict=True)]
    chosen = listed(getattr(request, "row", tuple(range(len(rows)))))
    others = listed(getattr(request, "column", tuple(range(len(columns)))))
    down, across = (rows[i] for i in chosen), (columns[j] for j in others)
    return [(list(chain(*down)), list(chain(*across)))]


def _ranges(blocks: Blocks) -> list[range]:
    return [range(a, b) for a, b in pairwise(accumulate(blocks.sizes, initial=0))]


class MatrixTracer:
    """One form on one robot."""

    def __init__(
        self,
        form: Form,
        links: Sequence[Link],
        model: Model,
        frames: Sequence[str],
        absent: Set[str],
        request: Request = WHOLE,
        robot: Robot | None = None,
    ) -> None:
        self.form = form
        self.answer = layout(form, model, frames, request)
        self.plan = plan_of(form, request, model, tuple(frames))
        self.rows = self.plan.rows
        self.columns = self.plan.columns
        self.links = links
        self.model = model
        self.frames = frames
        self.robot = Robot(links) if robot is None else robot
        self.setting = robot_setting(form.schedule.program, model, absent)
        self.seats = _seats(model, frames)

    def program(self) -> Straight:
        """The straight line."""
        entries = self.entries()
        places = [(r, c) for rows, columns in self.answer for r in rows for c in columns]
        stores = [Store(OUTPUT, i, "", entries.get(at, 0.0)) for i, at in enumerate(places)]
        inputs = sizes_of_inputs(
            self.form.schedule.program,
            self.model,
            self.setting.absent | {self.form.argument},
            frozenset(),
        )
        return Straight(Signature(inputs, {OUTPUT: len(places)}), Body(self.robot.graph, stores))

    def entries(self) -> dict[tuple[int, int], Scalar]:
        """The numbers of the matrix by row and column; those left out are zero."""
        entries: dict[tuple[int, int], Scalar] = {}
        shared: list[dict[int, Any]] = [{} for _ in self.links]
        wanted = [(part, dict(self.plan.wanted(part))) for part in self.form.parts]
        once, steps = self._steps()
        self._trace(0, 0, shared, once)
        for block, columns in enumerate(_ranges(self.columns)):
            asked = [(p, [r for r, held in w.items() if held >> block & 1]) for p, w in wanted]
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
        trace: Trace,
        part: Part,
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

    def _steps(self) -> tuple[list[_Step], list[list[_Step]]]:
        """Streams at links that must be known, in order: for all columns, and for each block."""
        support = self.plan.support
        once: list[_Step] = []
        each: list[list[_Step]] = [[] for _ in self.columns.sizes]
        for stream, k in support.order():
            needed = support.needed[stream][k]
            if stream not in support.columned:
                once += [(stream, k)] if needed else []
                continue
            for block in members(needed):
                each[block].append((stream, k))
        return once, each

    def _trace(
        self, block: int, column: int, shared: list[dict[int, Any]], steps: Sequence[_Step]
    ) -> Trace:
        """The program on a unit column, with what other columns have found already.

        Steps are taken in order, because a walk to the end of a long robot would be too deep.
        """
        setting = replace(
            self.setting,
            unit=Unit(self.form.argument, column, self._misses(block)),
            seats=self.seats,
        )
        trace = Trace(self.robot, setting)
        for link, known in zip(trace.links, shared, strict=True):
            link.share(known, self.plan.support.columned)
        for stream, k in steps:
            trace.links[k].value(stream)
        return trace

    def _misses(self, block: int) -> Callable[[int, int], bool]:
        """Whether the columns of a block are zero in a stream at a link."""
        support = self.plan.support

        def misses(stream: int, k: int) -> bool:
            return stream in support.columned and not support.present[stream][k] >> block & 1

        return misses

    def _rows(self, trace: Trace, stream: int, rows: Sequence[int]) -> Iterator[tuple[int, Scalar]]:
        """The numbers of some rows of blocks."""
        places = _ranges(self.rows)
        for row in rows:
            if self.rows.links[row] != GROUND and self.rows.sizes[row]:
                value = self._shown(trace.links[self.rows.links[row]], stream, row)
                yield from zip(places[row], value, strict=True)

    def _shown(self, link: LinkTracer, stream: int, row: int) -> Vector:
        """The value of a stream at a link in the axes of the model, or of a frame."""
        value: Vector = link.value(stream)
        if self.form.codomain is JOINT:
            return value
        if self.form.codomain is TASK_MOTION:
            return self.seats[row].motion(link.place.unseat_motion(value))
        moves = self.form.codomain.name == "MOTION"
        return link.place.unseat_motion(value) if moves else link.place.unseat_force(value)


def to_rolled_matrix(
    forms: Sequence[Form],
    model: Model,
    frames: Sequence[str] = (),
    absent: Set[str] = frozenset(),
    options: Options = DEFAULT,
) -> Rolled:
    """The matrix of an operator on a robot as loops; arguments as for ``to_matrix``."""
    links = uniform(model, frozenset(), options)
    seated = [*links, *_frame_links(links, model, frames)]
    return _rolled(cheapest(forms, seated), seated, model, frames, absent)


def cheapest(forms: Sequence[Form], links: Sequence[Link]) -> Form:
    """The form with the least work, by an estimate; none in which branches meet.

    Raises:
        LoweringError: There is none.
    """
    usable = [form for form in forms if not _meets(form)]
    if not usable:
        raise LoweringError("no program for this matrix has a form of loops")
    return usable[0] if len(usable) == 1 else min(usable, key=lambda form: _work(form, links))


def _meets(form: Form) -> bool:
    """Whether walks meet: which one counts depends on column and link, which loops do not know."""
    program = form.schedule.program
    return any(program.nodes[s].op == "join" for s in program.live())


def _work(form: Form, links: Sequence[Link]) -> int:
    program, parts = _with_frames(form)
    return work(program, links, _job(form, parts))


def _job(form: Form, parts: tuple[Part, ...]) -> Job:
    rows, columns = _counted_by(form.codomain), _counted_by(form.domain)
    return Job(form.argument, rows, columns, parts, form.transposed, OUTPUT)


def _rolled(
    form: Form, links: Sequence[Link], model: Model, frames: Sequence[str], absent: Set[str]
) -> Rolled:
    program, parts = _with_frames(form)
    sizes = [sum(Blocks.of(s, model, tuple(frames)).sizes) for s in (form.codomain, form.domain)]
    unread = absent | {form.argument}
    signature = Signature(
        sizes_of_inputs(program, model, unread, frozenset()), {OUTPUT: sizes[0] * sizes[1]}
    )
    setting = robot_setting(program, model, absent)
    return rolled_columns(schedule(program), links, signature, setting, _job(form, parts))


def _counted_by(space: Space) -> str:
    if space is JOINT:
        return "v"
    return "frame" if space in (TASK_FORCE, TASK_MOTION) else "body"


def _frame_links(links: Sequence[Link], model: Model, frames: Sequence[str]) -> list[Link]:
    """Frames as links that hang on others without a joint."""
    found = []
    for number, name in enumerate(frames):
        frame = model.frame(name)
        pose = Frame(frame.body_pose[:3, :3], frame.body_pose[:3, 3])
        on_link = pose if frame.body == GROUND else links[frame.body].seat.inverse @ pose
        found.append(frame_link(len(links) + number, frame.body, on_link))
    return found


def _with_frames(form: Form) -> tuple[Program, tuple[Part, ...]]:
    """A program in which forces on frames come inward and motions of frames outward."""
    given = form.schedule.program
    program = Program(list(given.nodes), dict(given.definitions), dict(given.names))
    for stream, node in enumerate(given.nodes):
        if node.op == "scatter":
            leaf = program.leaf(node.data, Type.FORCE)
            program.nodes[stream] = Node("shin", (leaf,), Type.FORCE)
    parts = form.parts
    if form.codomain is TASK_MOTION:
        parts = tuple(
            Part(program.add("shout", (part.stream,), Type.MOTION), part.kind) for part in parts
        )
    program.outputs = {part.kind: part.stream for part in parts}
    return program, parts


def _seats(model: Model, frames: Sequence[str]) -> tuple[Seat, ...]:
    found = []
    for name in frames:
        frame = model.frame(name)
        pose = frame.body_pose
        found.append(Seat(frame.body, pose[:3, :3].tolist(), pose[:3, 3].tolist()))
    return tuple(found)
