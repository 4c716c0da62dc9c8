# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of operators -> loops: what no column changes once, the rest again for each column.

A column is a unit vector at one link. What the others are to this link (``scalar.relations``)
decides what is zero, so there is a body for each class of links and relation. Rows and columns of a
matrix may also be frames; they hang on their links as links without a joint do.

Of an entry to which two columns add, that of row i and column j and its mirror image, the column
with the smaller number stores and the other one adds: columns are taken in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from phistar.scalar.graph import Scalar
from phistar.scalar.links import Link
from phistar.scalar.program import (
    Body,
    Columns,
    Links,
    Rolled,
    Signature,
    Store,
    Variant,
    Walk,
    pairs_of,
)
from phistar.scalar.relations import (
    ABOVE,
    AFTER,
    AT,
    BEFORE,
    BELOW,
    OPPOSITE,
    PARENTS,
    RELATIONS,
    presence,
)
from phistar.scalar.rolled import ClassTracer, Roller, early
from phistar.scalar.slots import Key, with_slots
from phistar.scalar.tracer import Setting, Unit
from phistar.sweeps.ir import SHIFTS, Direction, Node, Program, Type
from phistar.sweeps.lines import resolve
from phistar.sweeps.requests import Part
from phistar.sweeps.schedule import Pass, Schedule

FRAME = "frame"
"""Kind of the links that stand for frames."""


@dataclass(frozen=True)
class Job:
    """What a matrix is made of.

    Attributes:
        argument: Name of the leaf that holds the unit columns.
        rows, columns: What they are counted by: ``"v"``, ``"body"`` or ``"frame"``.
        parts: Streams that add up to the matrix.
        transposed: Whether the matrix is wanted the other way round.
        output: Its name.
    """

    argument: str
    rows: str
    columns: str
    parts: tuple[Part, ...]
    transposed: bool
    output: str

    def size_at(self, base: str, link: Link) -> int:
        """Rows or columns that a link has."""
        if base == "v":
            return link.size
        return 6 if (link.kind == FRAME) == (base == FRAME) else 0


def rolled_columns(
    schedule: Schedule, links: Sequence[Link], signature: Signature, setting: Setting, job: Job
) -> Rolled:
    """The loops of a matrix.

    Args:
        schedule: The program, whose argument is a leaf.
        links: The robot's links, then those that stand for frames.
        signature: Inputs, and the matrix.
        setting: What all links have in common.
        job: What the matrix is made of.
    """
    return _ColumnRoller(schedule, links, signature, setting, job).roll()


class _ColumnRoller(Roller):
    """All bodies of a matrix."""

    def __init__(
        self,
        schedule: Schedule,
        links: Sequence[Link],
        signature: Signature,
        setting: Setting,
        job: Job,
    ) -> None:
        self.job = job
        self.presence = presence(schedule.program, job.argument)
        given = early(schedule)
        once = _chosen((*given, *schedule.passes), lambda s: s not in self.presence)
        again = _merged(_chosen(schedule.passes, lambda s: s in self.presence))
        for each in _chosen(given, lambda s: s in self.presence):
            # Given streams need no direction; inward, a column's go to its ancestors only.
            inward = bool(again) and again[0].direction is Direction.INWARD
            own = again.pop(0).streams if inward else ()
            again.insert(0, Pass(Direction.INWARD, (*each.streams, *own)))
        self.once = len(once)
        super().__init__(schedule.program, (*once, *again), links, signature, setting)
        sizes = [job.size_at(job.columns, link) for link in links]
        self.column_link = [k for k, size in enumerate(sizes) for _ in range(size)]
        self.column_entry = [e for size in sizes for e in range(size)]
        self.pairs = pairs_of(self.link_table(), self.column_link, self.column_entry)
        made = [resolve(self.program, part.stream) for part in job.parts]
        self.kept |= set(made)
        self.homes = self._homes(made)

    def _homes(self, made: Sequence[int]) -> dict[str, int]:
        """The walk in which the rows of a link are written, by what it is to the column.

        That is the first one that knows them: what lies below the column often needs no sum over
        descendants, and then the walk inward goes to ancestors only.
        """
        known: dict[tuple[int, str], int] = {}

        def first(stream: int, relation: str) -> int:
            stream = resolve(self.program, stream)
            if relation not in self.presence.get(stream, ()):
                return self.once
            if (stream, relation) not in known:
                node = self.program.nodes[stream]
                way = SHIFTS.get(node.op)
                if way is None:
                    found = [first(o, relation) for o in node.operands]
                    known[stream, relation] = max(found, default=self.once)
                else:
                    walk = self.pass_of[resolve(self.program, node.operands[0])]
                    known[stream, relation] = walk + (self.passes[walk].direction is not way)
            return known[stream, relation]

        homes = {r: max(first(stream, r) for stream in made) for r in RELATIONS}
        return homes | dict.fromkeys((BEFORE, AFTER), max(homes[BEFORE], homes[AFTER]))

    def may_begin(self, stream: int) -> bool:
        return stream not in self.presence

    def roll(self) -> Rolled:
        """The matrix as loops."""
        loops = self.settled(lambda: self.loops(self.once))
        numbers = range(self.once, len(self.passes))
        walks = self.settled(lambda: [self._walk(i) for i in numbers])
        done = with_slots(loops, walks, self.places)
        columns = Columns(
            self.column_link, self.column_entry, done.walks, self._across(), self._leaves_gaps()
        )
        table = self.link_table()
        return Rolled(self.signature, table, done.loops, done.slots, columns, done.hands)

    def link_table(self) -> Links:
        frames = sum(link.kind == FRAME for link in self.links)
        return replace(super().link_table(), frames=frames)

    def _across(self) -> int:
        if not self.job.transposed:
            return len(self.column_link)
        return sum(self.job.size_at(self.job.rows, link) for link in self.links)

    def places(self, relation: str, key: Key, base: str) -> tuple[Any, ...]:
        """What a key may stand for: a number of all columns, or one that depends on relations."""
        if key[0] not in self.presence:
            return (key,)
        found = (relation,) if base == "link" else PARENTS[relation]
        return tuple((key, each) for each in found)

    def _walk(self, number: int) -> Walk:
        """A pass; after the column the same is done as before it."""
        found: dict[Variant, Body] = {}
        for c in self.members:
            for variant in ((c, ABOVE, 0), (c, BELOW, 0), *((c, AT, e) for e in range(6))):
                if self.pairs[variant]:
                    found[variant] = _ColumnTracer(self, number, variant).of(variant[1])
            aside = [r for r in (BEFORE, AFTER) if self.pairs[c, r, 0]]
            if aside:
                tracer = _ColumnTracer(self, number, (c, BEFORE, 0))
                found.update(((c, r, 0), tracer.of(r)) for r in aside)
        return Walk(self.passes[number].direction, found)

    # -- which columns write which entries

    def writes(self, part: Part, relation: str, i: int, entry: int) -> tuple[bool, bool]:
        """Whether a part gives row i of a link to a column, and to its mirror image."""
        if relation not in self.presence.get(resolve(self.program, part.stream), ()):
            return False, False
        if part.kind == "half":
            order = _order(relation, i, entry)
            return order <= 0, order < 0
        return True, part.kind == "mirror"

    def is_second(self, relation: str, i: int, entry: int, turned: bool) -> bool:
        """Whether an entry was stored before, by the column of its mirror image."""
        if _order(relation, i, entry) >= 0:
            return False
        other = OPPOSITE[relation]
        return any(self.writes(part, other, entry, i)[not turned] for part in self.job.parts)

    def _leaves_gaps(self) -> bool:
        """Whether there are entries that no column writes."""
        job = self.job
        for (c, relation, entry), times in self.pairs.items():
            rows = job.size_at(job.rows, self.links[self.members[c][0]])
            for i in range(rows if times else 0):
                own = any(self.writes(part, relation, i, entry)[0] for part in job.parts)
                other = OPPOSITE[relation]
                if not own and not any(self.writes(p, other, entry, i)[1] for p in job.parts):
                    return True
        return False


def work(program: Program, links: Sequence[Link], job: Job) -> int:
    """How much a matrix takes, roughly: streams at links, over all columns."""
    where = presence(program, job.argument)
    parents = [link.parent for link in links]
    one = Links([0] * len(links), parents, [], [], [])
    sizes = [job.size_at(job.columns, link) for link in links]
    columns = [k for k, size in enumerate(sizes) for _ in range(size)]
    pairs = pairs_of(one, columns, [0] * len(columns))
    streams = (s for s in where if program.nodes[s].op in _COSTLY)
    return sum(pairs[0, relation, 0] for s in streams for relation in where[s])


_COSTLY = {*SHIFTS, "inertia", "crm", "crf", "Gx", "Gtx", "Dsolve", "Dx"}
"""Operations on six or more numbers."""


def _chosen(passes: Sequence[Pass], wanted: Callable[[int], bool]) -> list[Pass]:
    """Passes with some of their streams only, without those that have none."""
    found = [Pass(each.direction, tuple(filter(wanted, each.streams))) for each in passes]
    return [each for each in found if each.streams]


def _merged(passes: Sequence[Pass]) -> list[Pass]:
    """Passes of which no two in a row go the same way: what stood between them is done once."""
    found: list[Pass] = []
    for each in passes:
        if found and found[-1].direction is each.direction:
            each = Pass(each.direction, (*found.pop().streams, *each.streams))
        found.append(each)
    return found


def _order(relation: str, i: int, entry: int) -> int:
    """Whether row i of a link comes before the column (negative), after it, or is the same."""
    if relation == AT:
        return i - entry
    return -1 if relation in (ABOVE, BEFORE) else 1


class _ColumnTracer(ClassTracer):
    """One pass at all links of a class that are the same to a column."""

    roller: _ColumnRoller

    def __init__(self, roller: _ColumnRoller, number: int, variant: Variant) -> None:
        c, self.relation, self.column = variant
        super().__init__(roller, number, c)
        unit = -1
        if self.relation == AT:
            unit = self.column + (self.v if roller.job.columns == "v" else 6 * self.number)
        self.setting = replace(self.setting, unit=Unit(roller.job.argument, unit))
        self._done: Body | None = None

    def of(self, relation: str) -> Body:
        """What is done at a link in this pass, if it is this to the column."""
        if self._done is None:
            self._done = self.body()
        outputs = self._entries(relation) if self.walk == self.roller.homes[relation] else []
        return Body(self.graph, [*self._done.stores, *outputs])

    def _outputs(self) -> None:
        """These depend on the order of rows and columns."""

    def places(self, key: Key, base: str) -> tuple[Any, ...]:
        return self.roller.places(self.relation, key, base)

    def _value(self, stream: int) -> Any:
        where = self.roller.presence.get(stream)
        if where is not None and self.relation not in where:
            return self._zero(self.program.nodes[stream])
        return super()._value(stream)

    def _leaf(self, node: Node) -> Any:
        given = node.type is Type.JOINT or node.data == self.roller.job.argument
        if self.place.link.kind == FRAME and not given:
            return self._zero(node)
        return super()._leaf(node)

    def _is_pushed(self, stream: int) -> bool:
        # An ancestor reads what is there: the child on the way to the column leaves a zero if need
        # be. Other children that have nothing to give must not touch it.
        if self.relation in (AT, ABOVE):
            return ABOVE in self.roller.presence[stream]
        return self.relation in self.roller.presence[self.program.nodes[stream].operands[0]]

    def _begins(self, stream: int, operand: int) -> bool | None:
        # Of the children of an ancestor all may push, or only the one on the way to the column.
        alone = BEFORE not in self.roller.presence[operand]
        return True if alone and self.relation in (AT, ABOVE) else self.begins

    def _entries(self, relation: str) -> list[Store]:
        """The rows of this link in the column, and in its mirror image."""
        roller, job = self.roller, self.roller.job
        link = roller.links[self.number]
        found = []
        for i in range(job.size_at(job.rows, link)):
            sides: list[Scalar | None] = [None, None]
            for part in job.parts:
                written = roller.writes(part, relation, i, self.column)
                if any(written):
                    kind = self.program.nodes[part.stream].type
                    x = self.shown(kind, self.value(part.stream))[i]
                    pairs = zip(sides, written, strict=True)
                    sides = [_plus(side, x) if w else side for side, w in pairs]
            if _order(relation, i, self.column) == 0:
                sides = [_plus(sides[1], sides[0]), None]
            for turned, x in enumerate(sides):
                add = roller.is_second(relation, i, self.column, bool(turned))
                if x is not None and not (add and x == 0.0):
                    swapped = bool(turned) != job.transposed
                    found.append(Store(job.output, i, job.rows, x, add, turned=swapped))
        return found


def _plus(total: Scalar | None, x: Scalar | None) -> Scalar | None:
    return total if x is None else x if total is None else total + x
