# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of operators -> loops: what depends on no column once, the rest for each column.

A column is a unit vector at one link. The relation of the other links to it (``link_relations``)
decides what is zero, so there is a block for each class of links and relation. Rows and columns of
a matrix may also be frames, which are links without a joint.

Where two columns add to one entry, (i, j) and its mirror image, the first column stores and the
second one adds: columns are taken in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from phistar.scalar.allocate import Alias, allocate_slots
from phistar.scalar.graph import Scalar, SlotKey
from phistar.scalar.program import (
    BasicBlock,
    ColumnLoop,
    ColumnSweep,
    LinkTable,
    LinkVariant,
    Looped,
    Signature,
    Store,
    count_variants,
)
from phistar.scalar.robot.link_numbers import LinkNumbers
from phistar.scalar.robot.link_relations import (
    ABOVE,
    AFTER,
    AT,
    BEFORE,
    BELOW,
    INVERSE_RELATION,
    PARENT_RELATIONS,
    RELATIONS,
    nonzero_relations,
)
from phistar.scalar.trace.link_operations import LinkValue, as_vector
from phistar.scalar.trace.link_tracer import TraceContext, UnitVector
from phistar.scalar.trace.looped import ClassTracer, LoopedTracer, given_sweeps
from phistar.sweeps.inlining import defining_stream
from phistar.sweeps.ir import Direction, Node, StreamProgram, Type
from phistar.sweeps.matrix_requests import MatrixTerm
from phistar.sweeps.schedule import Schedule, Sweep

FRAME_KIND = "fixed"
"""Kind of the links that stand for frames."""


@dataclass(frozen=True)
class MatrixSpec:
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
    parts: tuple[MatrixTerm, ...]
    transposed: bool
    output: str

    def size_at(self, base: str, link: LinkNumbers) -> int:
        """Rows or columns that a link has."""
        if base == "v":
            return link.size
        return 6 if (link.kind == FRAME_KIND) == (base == "frame") else 0


def trace_looped_matrix(
    schedule: Schedule,
    links: Sequence[LinkNumbers],
    signature: Signature,
    setting: TraceContext,
    job: MatrixSpec,
) -> Looped:
    """The loops of a matrix.

    Args:
        schedule: The program, whose argument is a leaf.
        links: The robot's links, then those that stand for frames.
        signature: Inputs, and the matrix.
        setting: What all links have in common.
        spec: What the matrix is made of.
    """
    return _LoopedMatrixTracer(schedule, links, signature, setting, job).trace()


class _LoopedMatrixTracer(LoopedTracer):
    """All blocks of a matrix."""

    def __init__(
        self,
        schedule: Schedule,
        links: Sequence[LinkNumbers],
        signature: Signature,
        setting: TraceContext,
        spec: MatrixSpec,
    ) -> None:
        self.spec = spec
        self.nonzero = nonzero_relations(schedule.program, spec.argument)
        given = given_sweeps(schedule)
        once = _select_streams((*given, *schedule.sweeps), lambda s: s not in self.nonzero)
        again = _merge_same_direction(_select_streams(schedule.sweeps, lambda s: s in self.nonzero))
        for each in _select_streams(given, lambda s: s in self.nonzero):
            # Given streams need no direction; inward, a column's go to its ancestors only.
            inward = bool(again) and again[0].direction is Direction.INWARD
            if inward and _reads_parents(schedule.program, again[0], each):
                # A link comes before its parent then, which must have them already.
                again.insert(0, Sweep(Direction.OUTWARD, each.streams))
                continue
            own = again.pop(0).streams if inward else ()
            again.insert(0, Sweep(Direction.INWARD, (*each.streams, *own)))
        self.shared_count = len(once)
        super().__init__(schedule.program, (*once, *again), links, signature, setting)
        sizes = [spec.size_at(spec.columns, link) for link in links]
        self.column_link = [k for k, size in enumerate(sizes) for _ in range(size)]
        self.column_entry = [e for size in sizes for e in range(size)]
        self.variant_counts = count_variants(self.link_table(), self.column_link, self.column_entry)
        made = [defining_stream(self.program, part.stream) for part in spec.parts]
        self.stored_streams |= set(made)
        self.output_sweep = self._output_sweeps(made)

    def _output_sweeps(self, made: Sequence[int]) -> dict[str, int]:
        """The walk in which the rows of a link are written, by what it is to the column.

        That is the first one that knows them: what lies below the column often needs no sum over
        descendants, and then the walk inward goes to ancestors only.
        """
        known: dict[tuple[int, str], int] = {}

        def first(stream: int, relation: str) -> int:
            stream = defining_stream(self.program, stream)
            if relation not in self.nonzero.get(stream, ()):
                return self.shared_count
            if (stream, relation) not in known:
                node = self.program.nodes[stream]
                way = node.spec.shift
                if way is None:
                    found = [first(o, relation) for o in node.operands]
                    known[stream, relation] = max(found, default=self.shared_count)
                else:
                    walk = self.sweep_of[defining_stream(self.program, node.operands[0])]
                    known[stream, relation] = walk + (self.sweeps[walk].direction is not way)
            return known[stream, relation]

        homes = {r: max(first(stream, r) for stream in made) for r in RELATIONS}
        return homes | dict.fromkeys((BEFORE, AFTER), max(homes[BEFORE], homes[AFTER]))

    def may_hoist(self, stream: int) -> bool:
        return stream not in self.nonzero

    def trace(self) -> Looped:
        """The matrix as loops."""
        loops = self.trace_to_fixed_point(lambda: self.trace_sweeps(self.shared_count))
        numbers = range(self.shared_count, len(self.sweeps))
        walks = self.trace_to_fixed_point(lambda: [self._walk(i) for i in numbers])
        done = allocate_slots(loops, walks, self.key_aliases)
        columns = ColumnLoop(
            self.column_link,
            self.column_entry,
            done.column_sweeps,
            self._row_width(),
            self._leaves_gaps(),
        )
        table = self.link_table()
        return Looped(
            self.signature, table, done.link_sweeps, done.slots, columns, done.forward_slots
        )

    def link_table(self) -> LinkTable:
        frames = sum(link.kind == FRAME_KIND for link in self.links)
        return replace(super().link_table(), frames=frames)

    def _row_width(self) -> int:
        if not self.spec.transposed:
            return len(self.column_link)
        return sum(self.spec.size_at(self.spec.rows, link) for link in self.links)

    def key_aliases(self, relation: str, key: SlotKey, base: str) -> tuple[Alias, ...]:
        """What a key may stand for: a number of all columns, or one that depends on relations."""
        if key[0] not in self.nonzero:
            return (key,)
        found = (relation,) if base == "link" else PARENT_RELATIONS[relation]
        return tuple((key, each) for each in found)

    def _walk(self, number: int) -> ColumnSweep:
        """A pass; after the column the same is done as before it."""
        found: dict[LinkVariant, BasicBlock] = {}
        for c in self.members:
            for variant in ((c, ABOVE, 0), (c, BELOW, 0), *((c, AT, e) for e in range(6))):
                if self.variant_counts[variant]:
                    found[variant] = _ColumnClassTracer(self, number, variant).block_for(variant[1])
            aside = [r for r in (BEFORE, AFTER) if self.variant_counts[c, r, 0]]
            if aside:
                tracer = _ColumnClassTracer(self, number, (c, BEFORE, 0))
                found.update(((c, r, 0), tracer.block_for(r)) for r in aside)
        return ColumnSweep(self.sweeps[number].direction, found)

    # -- which columns write which entries

    def writes(self, part: MatrixTerm, relation: str, i: int, entry: int) -> tuple[bool, bool]:
        """Whether a part gives row i of a link to a column, and to its mirror image."""
        if relation not in self.nonzero.get(defining_stream(self.program, part.stream), ()):
            return False, False
        if part.kind == "half":
            order = _row_column_order(relation, i, entry)
            return order <= 0, order < 0
        return True, part.kind == "mirror"

    def is_accumulated(self, relation: str, i: int, entry: int, turned: bool) -> bool:
        """Whether an entry was stored before, by the column of its mirror image."""
        if _row_column_order(relation, i, entry) >= 0:
            return False
        other = INVERSE_RELATION[relation]
        return any(self.writes(part, other, entry, i)[not turned] for part in self.spec.parts)

    def _leaves_gaps(self) -> bool:
        """Whether there are entries that no column writes."""
        job = self.spec
        for (c, relation, entry), times in self.variant_counts.items():
            rows = job.size_at(job.rows, self.links[self.members[c][0]])
            for i in range(rows if times else 0):
                own = any(self.writes(part, relation, i, entry)[0] for part in job.parts)
                other = INVERSE_RELATION[relation]
                if not own and not any(self.writes(p, other, entry, i)[1] for p in job.parts):
                    return True
        return False


def estimate_work(program: StreamProgram, links: Sequence[LinkNumbers], job: MatrixSpec) -> int:
    """How much a matrix takes, roughly: streams at links, over all columns."""
    where = nonzero_relations(program, job.argument)
    parents = [link.parent for link in links]
    one = LinkTable([0] * len(links), parents, [], [], [])
    sizes = [job.size_at(job.columns, link) for link in links]
    columns = [k for k, size in enumerate(sizes) for _ in range(size)]
    pairs = count_variants(one, columns, [0] * len(columns))
    streams = (s for s in where if program.nodes[s].spec.is_dense)
    return sum(pairs[0, relation, 0] for s in streams for relation in where[s])


def _reads_parents(program: StreamProgram, walk: Sweep, given: Sweep) -> bool:
    """Whether a walk takes given streams from the parents of links."""
    outward = (s for s in walk.streams if program.nodes[s].spec.shift is Direction.OUTWARD)
    return any(set(program.nodes[s].operands) & set(given.streams) for s in outward)


def _select_streams(passes: Sequence[Sweep], wanted: Callable[[int], bool]) -> list[Sweep]:
    """Passes with some of their streams only, without those that have none."""
    found = [Sweep(each.direction, tuple(filter(wanted, each.streams))) for each in passes]
    return [each for each in found if each.streams]


def _merge_same_direction(passes: Sequence[Sweep]) -> list[Sweep]:
    """Passes of which no two in a row go the same way: what stood between them is done once."""
    found: list[Sweep] = []
    for each in passes:
        if found and found[-1].direction is each.direction:
            each = Sweep(each.direction, (*found.pop().streams, *each.streams))
        found.append(each)
    return found


def _row_column_order(relation: str, i: int, entry: int) -> int:
    """Whether row i of a link comes before the column (negative), after it, or is the same."""
    if relation == AT:
        return i - entry
    return -1 if relation in (ABOVE, BEFORE) else 1


class _ColumnClassTracer(ClassTracer):
    """One pass at all links of a class that are the same to a column."""

    program_tracer: _LoopedMatrixTracer

    def __init__(self, roller: _LoopedMatrixTracer, number: int, variant: LinkVariant) -> None:
        c, self.relation, self.column = variant
        super().__init__(roller, number, c)
        unit = -1
        if self.relation == AT:
            unit = self.column + (self.v if roller.spec.columns == "v" else 6 * self.number)
        self.context = replace(self.context, unit_vector=UnitVector(roller.spec.argument, unit))
        self._block: BasicBlock | None = None

    def block_for(self, relation: str) -> BasicBlock:
        """What is done at a link in this pass, if it is this to the column."""
        if self._block is None:
            self._block = self.trace_block()
        outputs = (
            self._entries(relation)
            if self.sweep == self.program_tracer.output_sweep[relation]
            else []
        )
        return BasicBlock(self.graph, [*self._block.stores, *outputs])

    def _outputs(self) -> None:
        """These depend on the order of rows and columns."""

    def key_aliases(self, key: SlotKey, base: str) -> tuple[Alias, ...]:
        return self.program_tracer.key_aliases(self.relation, key, base)

    def _value(self, stream: int) -> LinkValue:
        where = self.program_tracer.nonzero.get(stream)
        if where is not None and self.relation not in where:
            return self._zero(self.program.nodes[stream])
        return super()._value(stream)

    def _leaf(self, node: Node) -> LinkValue:
        given = node.type is Type.JOINT or node.data == self.program_tracer.spec.argument
        if self.placed.link.joint_kind.name == FRAME_KIND and not given:
            return self._zero(node)
        return super()._leaf(node)

    def _is_pushed(self, stream: int) -> bool:
        # An ancestor reads what is there: the child on the way to the column leaves a zero if need
        # be. Other children that have nothing to give must not touch it.
        if self.relation in (AT, ABOVE):
            return ABOVE in self.program_tracer.nonzero[stream]
        return self.relation in self.program_tracer.nonzero[self.program.nodes[stream].operands[0]]

    def _is_first_push(self, stream: int, operand: int) -> bool | None:
        # Of the children of an ancestor all may push, or only the one on the way to the column.
        alone = BEFORE not in self.program_tracer.nonzero[operand]
        return True if alone and self.relation in (AT, ABOVE) else self.is_first_visited

    def _entries(self, relation: str) -> list[Store]:
        """The rows of this link in the column, and in its mirror image."""
        roller, job = self.program_tracer, self.program_tracer.spec
        link = roller.links[self.number]
        found = []
        for i in range(job.size_at(job.rows, link)):
            sides: list[Scalar | None] = [None, None]
            for part in job.parts:
                written = roller.writes(part, relation, i, self.column)
                if any(written):
                    kind = self.program.nodes[part.stream].type
                    value = self.in_body_frame(kind, as_vector(self.value(part.stream)))
                    pairs = zip(sides, written, strict=True)
                    sides = [_add_optional(side, value[i]) if w else side for side, w in pairs]
            if _row_column_order(relation, i, self.column) == 0:
                sides = [_add_optional(sides[1], sides[0]), None]
            for turned, x in enumerate(sides):
                add = roller.is_accumulated(relation, i, self.column, bool(turned))
                if x is not None and not (add and x == 0.0):
                    swapped = bool(turned) != job.transposed
                    found.append(Store(job.output, i, job.rows, x, add, transposed=swapped))
        return found


def _add_optional(total: Scalar | None, x: Scalar | None) -> Scalar | None:
    return total if x is None else x if total is None else total + x
