# SPDX-License-Identifier: BSD-3-Clause
"""Scalar programs, in two shapes: a straight line for one robot, or loops over its links.

Both read inputs and write outputs that hold one row of numbers a sample. A straight line refers to
their entries directly: ``load(name, entry)``. In a loop over links, entries are counted from where
the link's own begin, and there are three more spaces:

    load(name, i, "q" | "v" | "body")      entry i of the link's own part of an input
    load("work", slot, "link" | "parent")  a number kept at this link or at its parent
    load("hand", slot, "link" | "parent")  one that links hand to each other within one loop
    load("table", i, "link")               a constant of this link

A matrix in loops has, after these, walks that are done again for each of its columns, with bodies
for each way in which a link may stand to the link at which the column begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phistar.scalar.graph import Graph, Scalar, Value
from phistar.scalar.relations import ABOVE, AFTER, AT, BEFORE, BELOW
from phistar.sweeps.ir import Direction


@dataclass(frozen=True)
class Signature:
    """Sizes of inputs and outputs per sample, in the order of the arguments."""

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass(frozen=True)
class Store:
    """A number that is left behind.

    Attributes:
        space: Name of an output, ``"work"`` or ``"hand"``.
        index: Entry of the output, or slot.
        base: What ``index`` is counted from: ``""`` (the row; straight lines only), ``"v"``,
            ``"body"`` (the link's own part of an output), ``"link"`` or ``"parent"`` (the others).
            In a walk for a column, ``"v"``, ``"body"`` and ``"frame"`` say which row it is.
        value: The number.
        add: Whether it is added to what is there.
        begins: If so, whether the first child of a parent that the walk meets does not add, but
            stores; for sums over children.
        turned: Whether row and column are exchanged.
    """

    space: str
    index: Any
    base: str
    value: Scalar
    add: bool = False
    begins: bool = False
    turned: bool = False


@dataclass
class Body:
    """Scalar operations and what they leave behind."""

    graph: Graph = field(default_factory=Graph)
    stores: list[Store] = field(default_factory=list)

    @property
    def roots(self) -> list[Value]:
        """The stored numbers that are not constants."""
        return [store.value for store in self.stores if isinstance(store.value, Value)]

    @property
    def live(self) -> list[int]:
        """Numbers of the nodes that are needed, operands first."""
        return self.graph.live(self.roots)

    def key(self) -> tuple[Any, ...]:
        """Equal for bodies that do the same in the same order."""
        stores = (
            (s.space, s.index, s.base, s.add, s.begins, s.turned)
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
class Product:
    """A matrix that is minus the product of two others, whose numbers a straight line kept.

    Attributes:
        output: Its name; rows one after the other.
        left: The slot of the first entry of the left matrix, whose rows follow one another.
        rows: How many rows and columns the left matrix has.
        right: For each column of the right matrix, the rows that are not zero and their slots.
    """

    output: str
    left: int
    rows: int
    right: Sequence[Mapping[int, int]]

    def count(self) -> Counter[str]:
        """Operations on a sample."""
        filled = sum(map(len, self.right))
        empty = sum(not column for column in self.right)
        additions = self.rows * (filled - len(self.right) + empty)
        return Counter(mul=self.rows * filled, add=additions)


@dataclass(frozen=True)
class Repeat:
    """A line that is done for each of some rows of matrices, after a straight line.

    It reads numbers that were kept: ``load("work", slot)``, the same for all rows, and
    ``load("work", slot, "row")``, of which each row has its own. A store with base ``"row"`` is an
    entry of the row, or a number of its own that is kept.

    Attributes:
        rows: The rows.
        across: Numbers in a row of the outputs.
        stride: Slots from a number of a row to that of the next.
        body: What is done.
    """

    rows: range
    across: int
    stride: int
    body: Body

    def slot(self, slot: int, row: int) -> int:
        """Where a row's own number is kept."""
        return slot + (row - self.rows.start) * self.stride

    def count(self) -> Counter[str]:
        """Operations on a sample."""
        return Counter({op: times * len(self.rows) for op, times in self.body.count().items()})


@dataclass(frozen=True)
class Straight:
    """A straight line of operations, and after it rows or products of matrices.

    Attributes:
        signature: Inputs and outputs.
        body: The line; it may keep numbers in slots for what follows: ``Store("work", slot, ...)``.
        products: Products of matrices of such numbers.
        slots: How many numbers are kept.
        repeats: Lines for rows of matrices, in order.
    """

    signature: Signature
    body: Body
    products: Sequence[Product] = ()
    slots: int = 0
    repeats: Sequence[Repeat] = ()

    def count(self) -> Counter[str]:
        """Operations on a sample."""
        parts: list[Product | Repeat] = [*self.products, *self.repeats]
        return sum((part.count() for part in parts), self.body.count())


@dataclass(frozen=True)
class Loop:
    """A walk over the links; classes without a body are passed over."""

    direction: Direction
    bodies: Mapping[int, Body]


@dataclass(frozen=True)
class Links:
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


Variant = tuple[int, str, int]
"""Class of a link, what it is to the column's link and, if it is that link, the column's entry."""


@dataclass(frozen=True)
class Walk:
    """A walk for one column; what has no body is passed over."""

    direction: Direction
    bodies: Mapping[Variant, Body]

    @property
    def relations(self) -> set[str]:
        """What links must be to the column's link to be visited."""
        return {relation for _, relation, _ in self.bodies}

    @property
    def path(self) -> bool:
        """Whether it goes from the column's link to its ancestors, and nowhere else."""
        return self.direction is Direction.INWARD and self.relations <= {AT, ABOVE}

    @property
    def span(self) -> tuple[bool, bool]:
        """Whether there are links to visit before the column's link in number, and after it."""
        return bool(self.relations & {ABOVE, BEFORE}), bool(self.relations & {BELOW, AFTER})

    def order(self, c: int, links: Links) -> Iterator[int]:
        """The links that are visited for a column at link ``c``."""
        if self.path:
            while c >= 0:
                yield c
                c = links.parent[c]
            return
        before, after = self.span
        order = range(0 if before else c, len(links) if after else c + 1)
        yield from order if self.direction is Direction.OUTWARD else reversed(order)


@dataclass(frozen=True)
class Columns:
    """Walks that are done for each column of a matrix.

    Attributes:
        link: The link at which each column begins.
        entry: Which of that link's columns it is.
        walks: Walks, in order.
        across: Numbers in a row of the output.
        fill: Whether the output begins as zeros; otherwise every entry is stored.
    """

    link: Sequence[int]
    entry: Sequence[int]
    walks: Sequence[Walk]
    across: int
    fill: bool

    def place(self, store: Store, row: int, column: int) -> int:
        """The entry of the output that a store is about."""
        first, second = (column, row) if store.turned else (row, column)
        return first * self.across + second


@dataclass(frozen=True)
class Rolled:
    """Loops over the links.

    Attributes:
        signature: Inputs and outputs.
        links: The links.
        loops: Walks, in order.
        slots: Numbers kept at each link.
        columns: What is done for each column after that, if the output is a matrix.
        hands: Numbers in each of the places for what links hand to each other.
    """

    signature: Signature
    links: Links
    loops: Sequence[Loop]
    slots: int
    columns: Columns | None = None
    hands: int = 0

    def count(self) -> Counter[str]:
        """Operations on a sample."""
        members = Counter(self.links.class_of)
        total: Counter[str] = Counter()
        for loop in self.loops:
            for kind, body in loop.bodies.items():
                _add(total, body, members[kind])
        if self.columns is not None:
            pairs = pairs_of(self.links, self.columns.link, self.columns.entry)
            for walk in self.columns.walks:
                for variant, body in walk.bodies.items():
                    _add(total, body, pairs[variant])
        return total


def _add(total: Counter[str], body: Body, times: int) -> None:
    for op, once in body.count().items():
        total[op] += once * times


def pairs_of(links: Links, link: Sequence[int], entry: Sequence[int]) -> Counter[Variant]:
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
    found: Counter[Variant] = Counter()
    for relation, count in counts.items():
        for kind, total in enumerate((times @ count).tolist()):
            found[kind, relation, 0] = total
    found.update((links.class_of[c], AT, e) for c, e in zip(link, entry, strict=True))
    return +found


ScalarProgram = Straight | Rolled


def arithmetic(bill: Mapping[str, int]) -> int:
    """Additions, subtractions and multiplications of a bill."""
    return sum(bill.get(op, 0) for op in ("add", "sub", "mul"))


def first_met(parents: Sequence[int], direction: Direction) -> list[bool]:
    """Whether each link is the first of its siblings that a walk meets; all are on the ground."""
    order = range(len(parents))
    met: dict[int, int] = {}
    for k in order if direction is Direction.OUTWARD else reversed(order):
        met.setdefault(parents[k], k)
    return [parents[k] < 0 or met[parents[k]] == k for k in order]


def hand_places(parents: Sequence[int], direction: Direction) -> list[int]:
    """The place for what each link hands to its children (outward) or gets from them (inward).

    Links take places again that nobody needs any more, so that a chain has one and a tree about as
    many as branches are begun at a time. At a link, what is read there is read before it writes.
    """
    inward = direction is Direction.INWARD
    waiting = Counter(parents)
    places = [-1] * len(parents)
    free: list[int] = []
    used = 0

    def take(k: int) -> None:
        nonlocal used
        used += not free
        places[k] = free.pop() if free else used - 1

    for k in reversed(range(len(parents))) if inward else range(len(parents)):
        parent = parents[k]
        if inward:
            free += [places[k]] if places[k] >= 0 else []
            if parent >= 0 and places[parent] < 0:
                take(parent)
            continue
        waiting[parent] -= 1
        free += [places[parent]] if parent >= 0 and not waiting[parent] else []
        take(k)
        free += [] if waiting[k] else [places[k]]
    return [max(place, 0) for place in places]


def start_of(links: Links, base: str, k: int) -> int:
    """Where the part of link ``k`` begins in a row."""
    if base in ("body", "frame"):
        return 6 * (k if base == "body" else k - len(links) + links.frames)
    starts: Any = links.q if base == "q" else links.v
    return int(starts[k])
