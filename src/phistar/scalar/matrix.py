# SPDX-License-Identifier: BSD-3-Clause
"""Whole matrices of operators -> one straight line: the program on each unit column in turn.

What does not depend on the column is computed once. What a unit column does not reach is zero and
folds away, so a column costs the walk from its joint to the root and back, as far as its rows are
wanted. Equal numbers of a symmetric matrix are computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
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
    NO_SCALAR_FORM,
    Options,
    choices,
    likeliest,
    robot_setting,
    sizes_of_inputs,
)
from phistar.scalar.program import Body, Rolled, Signature, Store, Straight, arithmetic
from phistar.scalar.straight import Robot, Trace
from phistar.scalar.tracer import Seat, Setting
from phistar.sweeps.ir import Direction, Node, Program, Type
from phistar.sweeps.requests import Form, Part
from phistar.sweeps.schedule import Schedule, schedule

OUTPUT = "matrix"
"""Name of the only output: rows one after the other."""


def to_matrix(
    forms: Sequence[Form],
    model: Model,
    frames: Sequence[str] = (),
    absent: Set[str] = frozenset(),
    options: Options = DEFAULT,
) -> Straight:
    """The matrix of an operator on a robot, by the cheapest of some programs and frames.

    Args:
        forms: Programs that give the same matrix.
        model: The robot.
        frames: Names of the frames that B speaks of.
        absent: Inputs that are not given.
        options: What may be chosen.

    Returns:
        A program with one output, the matrix in row-major order; joints in body order, frames in
        the order of ``frames``.
    """
    *others, first = choices(model, frozenset(), options)
    usable = [form for form in forms if _has_scalar_form(form)]
    if not usable:
        raise LoweringError("no program for this matrix has a scalar form")
    found = [(_Columns(form, first, model, frames, absent).program(), form) for form in usable]
    best, form = min(found, key=_cost)
    found = [(_Columns(form, each, model, frames, absent).program(), form) for each in others]
    return min([(best, form), *found], key=_cost)[0]


def _cost(found: tuple[Straight, Form]) -> int:
    return arithmetic(found[0].count())


def _has_scalar_form(form: Form) -> bool:
    program = form.schedule.program
    return not any(program.nodes[s].op in NO_SCALAR_FORM for s in program.live())


def size_of(space: Space, model: Model, frames: Sequence[str]) -> int:
    """Rows or columns of a matrix between spaces."""
    if space is JOINT:
        return sum(body.motion.nv for body in model.bodies)
    return 6 * (len(frames) if space in (TASK_FORCE, TASK_MOTION) else len(model.bodies))


def _without_last_outward(given: Schedule) -> Schedule:
    """The passes that must be walked in order; rows of a last outward one are asked for as such."""
    passes = given.passes
    while passes and passes[-1].direction is Direction.OUTWARD:
        passes = passes[:-1]
    return Schedule(given.program, passes)


class _Columns:
    """One form on one robot."""

    def __init__(
        self,
        form: Form,
        links: Sequence[Link],
        model: Model,
        frames: Sequence[str],
        absent: Set[str],
    ) -> None:
        self.form = form
        self.links = links
        self.model = model
        self.frames = frames
        self.robot = Robot(links)
        self.setting = robot_setting(form.schedule.program, model, absent)
        self.seats = _seats(model, frames)
        self.dependent = self._dependent()
        self.deep = _without_last_outward(form.schedule)
        self.rows = size_of(form.codomain, model, frames)
        self.columns = size_of(form.domain, model, frames)

    def _dependent(self) -> set[int]:
        """Streams that the argument reaches."""
        program = self.form.schedule.program
        live = list(program.live())
        found = {s for s in live if program.nodes[s].data == self.form.argument}
        grown = True
        while grown:
            before = len(found)
            found |= {s for s in live if found & set(program.operands(s))}
            grown = len(found) > before
        return found

    def program(self) -> Straight:
        """The straight line."""
        entries: dict[tuple[int, int], Scalar] = {}
        shared: list[dict[int, Any]] = [{} for _ in self.links]
        for column in range(self.columns):
            trace = self._trace(column, shared)
            for part in self.form.parts:
                for row, value in self._rows(trace, part.stream, part.kind, column):
                    self._add(entries, row, column, value)
                    if part.kind == "mirror" or (part.kind == "half" and row != column):
                        self._add(entries, column, row, value)
        across = self.columns
        if self.form.transposed:
            entries, across = {(c, r): x for (r, c), x in entries.items()}, self.rows
        stores = [Store(OUTPUT, r * across + c, "", x) for (r, c), x in sorted(entries.items())]
        present = {store.index for store in stores}
        rest = (i for i in range(self.rows * self.columns) if i not in present)
        stores += [Store(OUTPUT, i, "", 0.0) for i in rest]
        inputs = sizes_of_inputs(
            self.form.schedule.program,
            self.model,
            self.setting.absent | {self.form.argument},
            frozenset(),
        )
        signature = Signature(inputs, {OUTPUT: self.rows * self.columns})
        return Straight(signature, Body(self.robot.graph, stores))

    @staticmethod
    def _add(entries: dict[tuple[int, int], Scalar], row: int, column: int, value: Scalar) -> None:
        entries[row, column] = entries.get((row, column), 0.0) + value

    def _trace(self, column: int, shared: list[dict[int, Any]]) -> Trace:
        """The program on a unit column, with what other columns have found already."""
        setting = Setting(
            self.setting.program,
            self.setting.gravity,
            self.setting.absent,
            (self.form.argument, column),
            self.seats,
        )
        trace = Trace(self.robot, setting)
        for link, known in zip(trace.links, shared, strict=True):
            link.share(known, self.dependent)
        trace.run(self.deep)
        return trace

    def _rows(
        self, trace: Trace, stream: int, kind: str, column: int
    ) -> Iterator[tuple[int, Scalar]]:
        """Numbers of a column, of a symmetric matrix those above the diagonal."""
        last = column if kind == "half" else self.rows - 1
        if self.form.codomain is JOINT:
            for link in trace.links:
                if link.v <= last and len(link.place.link.columns):
                    for i, x in enumerate(link.value(stream)):
                        if link.v + i <= last:
                            yield link.v + i, x
            return
        if self.form.codomain is TASK_MOTION:
            for number, seat in enumerate(self.seats):
                if seat.body != GROUND and 6 * number <= last:
                    link = trace.links[seat.body]
                    motion = seat.motion(link.place.unseat_motion(link.value(stream)))
                    yield from self._six(6 * number, motion, last)
            return
        moves = self.form.codomain.name == "MOTION"
        for link in trace.links:
            value = link.value(stream)
            place = link.place
            shown = place.unseat_motion(value) if moves else place.unseat_force(value)
            yield from self._six(6 * link.link.index, shown, last)

    @staticmethod
    def _six(start: int, values: Sequence[Scalar], last: int) -> Iterator[tuple[int, Scalar]]:
        return ((start + i, x) for i, x in enumerate(values) if start + i <= last)


def to_rolled_matrix(
    forms: Sequence[Form],
    model: Model,
    frames: Sequence[str] = (),
    absent: Set[str] = frozenset(),
    options: Options = DEFAULT,
) -> Rolled:
    """The matrix of an operator on a robot as loops; arguments as for ``to_matrix``."""
    links = likeliest(model, frozenset(), options)
    usable = [form for form in forms if _has_scalar_form(form)]
    if not usable:
        raise LoweringError("no program for this matrix has a scalar form")
    seated = [*links, *_frame_links(links, model, frames)]
    if len(usable) > 1:
        usable = [min(usable, key=lambda form: _work(form, seated))]
    return _rolled(usable[0], seated, model, frames, absent)


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
    sizes = [size_of(space, model, frames) for space in (form.codomain, form.domain)]
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
