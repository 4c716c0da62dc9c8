# SPDX-License-Identifier: BSD-3-Clause
"""Scalar programs, in two shapes: unrolled for one robot, or loops over its links.

Both read inputs and write outputs that hold one row of numbers per sample. An unrolled program
refers to their entries directly: ``load(name, entry)``. In a loop over links, entries
are counted from where the link's own begin, and there are three more spaces:

    load(name, i, "q" | "v" | "body")        entry i of the link's own part of an input
    load(WORK, slot, "link" | "parent")      a number kept at this link or at its parent
    load(FORWARD, slot, "link" | "parent")   one that links forward to each other within one loop
    load(TABLE, i, "link")                   a constant of this link

A matrix in loops has, after these, walks that are done again for each of its columns, with blocks
for each way in which a link may stand to the link at which the column begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from phistar.model.fast_init import fast_init
from phistar.scalar.graph import WORK, Graph, Place, Scalar, SlotKey, Value
from phistar.scalar.linear_scan import LiveRange, linear_scan
from phistar.scalar.robot.link_relations import ABOVE, AFTER, AT, BEFORE, BELOW
from phistar.sweeps.ir import Direction


@dataclass(frozen=True)
class Signature:
    """Sizes of inputs and outputs per sample, in the order of the arguments.

    Attributes:
        inputs, outputs: Sizes by name.
        quaternions: Entries of configurations with which unit quaternions begin.
        configurations: Inputs that are configurations.
        common: Inputs whose rows are the same for all samples; of unrolled programs.
    """

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    quaternions: Sequence[int] = ()
    configurations: Sequence[str] = ("q",)
    common: Sequence[str] = ()


@fast_init
@dataclass(frozen=True)
class Store:
    """A store.

    Attributes:
        space: Name of an output, ``WORK`` or ``FORWARD``.
        index: Entry of the output, or slot; -1 while there is none.
        base: What ``index`` is counted from: ``""`` (the row; unrolled programs only), ``"v"``,
            ``"body"`` or ``"plane"`` (the link's own part of an output, six or four numbers),
            ``"ground"`` (the row, to which links add), ``"link"`` or ``"parent"`` (the others).
            In a walk for a column, ``"v"``, ``"body"`` and ``"frame"`` say which row it is.
        value: The number.
        add: Whether it is added to what is there.
        first_child_stores: If so, whether the first child of a parent that the walk meets does not
            add, but stores; for sums over children.
        transposed: Whether row and column are exchanged.
        key: What a kept number is called until it has a slot.
    """

    space: str
    index: int
    base: str
    value: Scalar
    add: bool = False
    first_child_stores: bool = False
    transposed: bool = False
    key: SlotKey | None = None


def keyed_store(
    key: SlotKey, base: str, value: Scalar, add: bool = False, first_child_stores: bool = False
) -> Store:
    """A number that is kept, before it has a slot."""
    return Store(WORK, -1, base, value, add, first_child_stores, key=key)


@dataclass
class BasicBlock:
    """Scalar operations and what they leave behind."""

    graph: Graph = field(default_factory=Graph)
    stores: list[Store] = field(default_factory=list)

    @property
    def roots(self) -> list[Value]:
        """The stored numbers that are not constants."""
        return [store.value for store in self.stores if isinstance(store.value, Value)]

    @property
    def live_nodes(self) -> list[int]:
        """Numbers of the nodes that are needed, operands first."""
        return self.graph.live_nodes(self.roots)

    @property
    def loads(self) -> Iterator[tuple[int, Place]]:
        """Numbers of the needed loads, and where they read."""
        return self.graph.loads(self.live_nodes)

    def key(self) -> tuple[object, ...]:
        """Equal for blocks that do the same in the same order."""
        stores = (
            (s.space, s.index, s.base, s.add, s.first_child_stores, s.transposed)
            + ((s.value.id,) if isinstance(s.value, Value) else ("const", s.value))
            for s in self.stores
        )
        return (*self.graph.nodes, *stores)

    def count(self) -> Counter[str]:
        """How often each operation occurs."""
        bill = self.graph.count(self.roots)
        bill["add"] += sum(store.add for store in self.stores)
        return bill


@dataclass(frozen=True)
class ProductBand:
    """Some rows of the left matrix of a product, zero but for the same columns.

    Attributes:
        rows: The rows of the product that come of them.
        inner: The columns, in order.
        left_slot: The slot of the first entry; of each row follow as many as there are columns.
    """

    rows: Sequence[int]
    inner: Sequence[int]
    left_slot: int


@dataclass(frozen=True)
class MatrixProduct:
    """A matrix that is minus the product of two others, whose numbers an unrolled program kept.

    Attributes:
        output: Its name; rows one after the other.
        left_slot: The slot of the first entry of the left matrix, whose rows follow one another.
        rows: How many rows the left matrix has.
        right_slots: For each column of the right matrix, the rows that are not zero and their
            slots.
        left_columns: Columns of the left matrix; 0: as many as rows.
        known: Entries of the result that are not multiplied but were kept, and their slots. They
            stand in columns whose column of the right matrix is empty.
        bands: All rows of a left matrix of which other numbers than these are zero and not kept.
        mirrored: Entries of the result that are not multiplied but equal to others.
    """

    output: str
    left_slot: int
    rows: int
    right_slots: Sequence[Mapping[int, int]]
    left_columns: int = 0
    known: Mapping[int, int] = field(default_factory=dict)
    bands: Sequence[ProductBand] = ()
    mirrored: Mapping[int, int] = field(default_factory=dict)

    @property
    def inner(self) -> int:
        """Columns of the left matrix, which are rows of the right one."""
        return self.left_columns or self.rows

    @cached_property
    def all_bands(self) -> Sequence[ProductBand]:
        """The bands; one where all of the left matrix is kept."""
        return self.bands or (ProductBand(range(self.rows), range(self.inner), self.left_slot),)

    def columns_of(self, band: ProductBand) -> Iterator[tuple[int, Sequence[int]]]:
        """Columns of the result in which a band is multiplied, and with which rows on the right."""
        across = len(self.right_slots)
        for j, column in enumerate(self.right_slots):
            if not all(i * across + j in self.mirrored for i in band.rows):
                yield j, [k for k in band.inner if k in column]

    def count(self) -> Counter[str]:
        """Operations on a sample."""
        found: Counter[str] = Counter()
        for band in self.all_bands:
            for _, read in self.columns_of(band):
                found["mul"] += len(band.rows) * len(read)
                found["add"] += len(band.rows) * max(0, len(read) - 1)
        return found


@dataclass(frozen=True)
class RowLoop:
    """Operations that are done for each of some rows of matrices, after an unrolled program.

    It reads numbers that were kept: ``load(WORK, slot)``, the same for all rows, and
    ``load(WORK, slot, "row")``, of which each row has its own. A store with base ``"row"`` is an
    entry of the row, or a number of its own that is kept.

    Attributes:
        rows: The rows.
        row_width: Numbers in a row of the outputs.
        stride: Slots from a number of a row to that of the next.
        block: What is done.
        in_order: Whether a row reads what the one before it left: rows are rounds of an iteration,
            done one by one.
        condition: A slot: where its number is not above zero in any lane, nothing that these rows
            leave is used, and they may be skipped; -1: never. Rows that may be skipped leave
            numbers in slots only.
    """

    rows: range
    row_width: int
    stride: int
    block: BasicBlock
    in_order: bool = False
    condition: int = -1

    def slot(self, slot: int, row: int) -> int:
        """Where a row's own number is kept."""
        return slot + (row - self.rows.start) * self.stride

    def count(self) -> Counter[str]:
        """Operations on a sample."""
        return Counter({op: times * len(self.rows) for op, times in self.block.count().items()})


@dataclass(frozen=True)
class Unrolled:
    """Straight-line code, and after it rows or products of matrices.

    Attributes:
        signature: Inputs and outputs.
        block: The line; it may keep numbers in slots for what follows: ``Store(WORK, slot,
            ...)``.
        products: Products of matrices of such numbers.
        slots: How many numbers are kept.
        row_loops: Lines for rows of matrices, in order.
        short_lived: Whether numbers are used soon after they are made, and results of one place
            share few of them with others: inputs are read, and looked at, where they are used.
        keeps_zeros: Whether entries of outputs that are zero for every state are zero before, too,
            so that they need not be written.
    """

    signature: Signature
    block: BasicBlock
    products: Sequence[MatrixProduct] = ()
    slots: int = 0
    row_loops: Sequence[RowLoop] = ()
    short_lived: bool = False
    keeps_zeros: bool = False

    def count(self) -> Counter[str]:
        """Operations on a sample."""
        parts: list[MatrixProduct | RowLoop] = [*self.products, *self.row_loops]
        return sum((part.count() for part in parts), self.block.count())


@dataclass(frozen=True)
class LinkSweep:
    """A walk over the links; classes without a block are passed over."""

    direction: Direction
    blocks: Mapping[int, BasicBlock]


@dataclass(frozen=True)
class LinkTable:
    """What loops know about the links.

    Attributes:
        class_of: Number of the class of each link.
        parent: Number of the parent; -1 is the ground.
        q, v: First entries in configurations and in joint vectors.
        table: Constants of each link; links of a class have equally many.
        frames: How many of the last ones are frames on links rather than links.
    """

    class_of: Sequence[int]
    parent: Sequence[int]
    q: Sequence[int]
    v: Sequence[int]
    table: Sequence[Sequence[float]]
    frames: int = 0

    def __len__(self) -> int:
        return len(self.class_of)

    @cached_property
    def forward_places(self) -> dict[Direction, list[int]]:
        """``allocate_forward_places`` of both ways."""
        return {way: allocate_forward_places(self.parent, way) for way in Direction}


LinkVariant = tuple[int, str, int]
"""Class of a link, what it is to the column's link and, if it is that link, the column's entry."""


@dataclass(frozen=True)
class ColumnSweep:
    """A walk for one column; what has no block is passed over."""

    direction: Direction
    blocks: Mapping[LinkVariant, BasicBlock]

    @property
    def relations(self) -> set[str]:
        """What links must be to the column's link to be visited."""
        return {relation for _, relation, _ in self.blocks}

    @property
    def is_ancestor_path(self) -> bool:
        """Whether it goes from the column's link to its ancestors, and nowhere else."""
        return self.direction is Direction.INWARD and self.relations <= {AT, ABOVE}

    @property
    def visits_before_after(self) -> tuple[bool, bool]:
        """Whether there are links to visit before the column's link in number, and after it."""
        return bool(self.relations & {ABOVE, BEFORE}), bool(self.relations & {BELOW, AFTER})

    def order(self, c: int, links: LinkTable) -> Iterator[int]:
        """The links that are visited for a column at link ``c``."""
        if self.is_ancestor_path:
            while c >= 0:
                yield c
                c = links.parent[c]
            return
        before, after = self.visits_before_after
        order = range(0 if before else c, len(links) if after else c + 1)
        yield from order if self.direction is Direction.OUTWARD else reversed(order)


@dataclass(frozen=True)
class ColumnLoop:
    """Walks that are done for each column of a matrix.

    Attributes:
        link: The link at which each column begins.
        entry: Which of that link's columns it is.
        sweeps: Walks, in order.
        row_width: Numbers in a row of the output.
        zero_fill: Whether the output begins as zeros; otherwise every entry is stored.
    """

    link: Sequence[int]
    entry: Sequence[int]
    sweeps: Sequence[ColumnSweep]
    row_width: int
    zero_fill: bool

    def output_entry(self, store: Store, row: int, column: int) -> int:
        """The entry of the output that a store is about."""
        first, second = (column, row) if store.transposed else (row, column)
        return first * self.row_width + second


@dataclass(frozen=True)
class Looped:
    """Loops over the links.

    Attributes:
        signature: Inputs and outputs.
        links: The links.
        sweeps: Walks, in order.
        slots: Numbers kept at each link.
        column_loop: What is done for each column after that, if the output is a matrix.
        forward_slots: Numbers in each of the places for what links hand to each other.
        ground_start: What outputs begin with that are sums over links, by name.
    """

    signature: Signature
    links: LinkTable
    sweeps: Sequence[LinkSweep]
    slots: int
    column_loop: ColumnLoop | None = None
    forward_slots: int = 0
    ground_start: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def count(self) -> Counter[str]:
        """Operations on a sample."""
        members = Counter(self.links.class_of)
        total: Counter[str] = Counter()
        for loop in self.sweeps:
            for kind, body in loop.blocks.items():
                _add_count(total, body, members[kind])
        if self.column_loop is not None:
            pairs = count_variants(self.links, self.column_loop.link, self.column_loop.entry)
            for walk in self.column_loop.sweeps:
                for variant, body in walk.blocks.items():
                    _add_count(total, body, pairs[variant])
        return total


def _add_count(total: Counter[str], body: BasicBlock, times: int) -> None:
    for op, once in body.count().items():
        total[op] += once * times


def count_variants(
    links: LinkTable, link: Sequence[int], entry: Sequence[int]
) -> Counter[LinkVariant]:
    """How many links of each variant the columns of a matrix have, all taken together."""
    own = np.eye(max(links.class_of, default=0) + 1, dtype=int)[list(links.class_of)]
    above, below = np.zeros_like(own), np.zeros_like(own)
    for k, parent in enumerate(links.parent):
        if parent >= 0:
            above[k] = above[parent] + own[parent]
    for k in reversed(range(len(links))):
        if links.parent[k] >= 0:
            below[links.parent[k]] += below[k] + own[k]
    earlier = np.cumsum(own, axis=0) - own
    counts = {
        ABOVE: above,
        BELOW: below,
        BEFORE: earlier - above,
        AFTER: own.sum(axis=0) - own - earlier - below,
    }
    times = np.bincount(np.array(link, int), minlength=len(links))
    found: Counter[LinkVariant] = Counter()
    for relation, count in counts.items():
        for kind, total in enumerate((times @ count).tolist()):
            found[kind, relation, 0] = total
    found.update((links.class_of[c], AT, e) for c, e in zip(link, entry, strict=True))
    return +found


ScalarProgram = Unrolled | Looped


def count_arithmetic(bill: Mapping[str, int]) -> int:
    """Additions, subtractions and multiplications of a bill."""
    return sum(bill.get(op, 0) for op in ("add", "sub", "mul"))


def first_visited_siblings(parents: Sequence[int], direction: Direction) -> list[bool]:
    """Whether each link is the first of its siblings that a walk meets; all are on the ground."""
    order = list(enumerate(parents))
    walk = reversed(order) if direction is Direction.OUTWARD else order
    met = {parent: k for k, parent in walk}  # of equal keys the last one stays
    return [parent < 0 or met[parent] == k for k, parent in order]


def allocate_forward_places(parents: Sequence[int], direction: Direction) -> list[int]:
    """The place for what each link hands to its children (outward) or gets from them (inward).

    Links take places again that nobody needs any more, so that a chain has one and a tree about as
    many as branches are begun at a time. At a link, what is read there is read before it writes:
    visit k reads at time 2k and writes at 2k + 1.
    """
    count = len(parents)
    if direction is Direction.OUTWARD:
        owners = list(range(count))
        read = {parent: 2 * k for k, parent in enumerate(parents)}
        ranges = [LiveRange(2 * k + 1, read.get(k, 2 * k + 1)) for k in owners]
    else:
        last = {parent: k for k, parent in enumerate(parents) if parent >= 0}
        owners = sorted(last, key=last.__getitem__, reverse=True)
        ranges = [LiveRange(2 * (count - last[k]) + 1, 2 * (count - k)) for k in owners]
    slots, _ = linear_scan(ranges)
    places = dict(zip(owners, slots, strict=True))
    return [places.get(k, 0) for k in range(count)]


def entry_start(links: LinkTable, base: str, k: int) -> int:
    """Where the part of link ``k`` begins in a row."""
    if base == "ground":
        return 0
    if base == "plane":
        return 4 * k
    if base in ("body", "frame"):
        return 6 * (k if base == "body" else k - len(links) + links.frames)
    return (links.q if base == "q" else links.v)[k]


def consecutive_runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Where numbers that follow one another begin and stop."""
    found = sorted(numbers)
    first = 0
    for i, number in enumerate(found):
        if i + 1 == len(found) or found[i + 1] != number + 1:
            yield found[first], number + 1
            first = i + 1
