# SPDX-License-Identifier: BSD-3-Clause
"""Scalar programs, in two shapes: a straight line for one robot, or loops over its links.

Both read inputs and write outputs that hold one row of numbers a sample. A straight line refers to
their entries directly: ``load(name, entry)``. In a loop over links, entries are counted from where
the link's own begin, and there are two more spaces:

    load(name, i, "q" | "v" | "body")      entry i of the link's own part of an input
    load("work", slot, "link" | "parent")  a number kept at this link or at its parent
    load("table", i, "link")               a constant of this link
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phistar.scalar.graph import Graph, Scalar, Value
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
        space: Name of an output, or ``"work"``.
        index: Entry of the output, or slot.
        base: What ``index`` is counted from: ``""`` (the row; straight lines only), ``"v"``,
            ``"body"`` (the link's own part of an output), ``"link"`` or ``"parent"`` (work).
        value: The number.
        add: Whether it is added to what is there.
        begins: If so, whether the first child of a parent that the walk meets does not add, but
            stores; for sums over children.
    """

    space: str
    index: Any
    base: str
    value: Scalar
    add: bool = False
    begins: bool = False


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
            (s.space, s.index, s.base, s.add, s.begins)
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
class Straight:
    """A straight line of operations."""

    signature: Signature
    body: Body

    def count(self) -> Counter[str]:
        """Operations on a sample."""
        return self.body.count()


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
    """

    class_of: Sequence[int]
    parent: Sequence[int]
    q: Sequence[int]
    v: Sequence[int]
    table: Sequence[Sequence[float]]

    def __len__(self) -> int:
        return len(self.class_of)


@dataclass(frozen=True)
class Rolled:
    """Loops over the links.

    Attributes:
        signature: Inputs and outputs.
        links: The links.
        loops: Walks, in order.
        slots: Numbers kept at each link.
    """

    signature: Signature
    links: Links
    loops: Sequence[Loop]
    slots: int

    def count(self) -> Counter[str]:
        """Operations on a sample."""
        members = Counter(self.links.class_of)
        total: Counter[str] = Counter()
        for loop in self.loops:
            for kind, body in loop.bodies.items():
                for op, times in body.count().items():
                    total[op] += times * members[kind]
        return total


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


def start_of(links: Links, base: str, k: int) -> int:
    """Where the part of link ``k`` begins in a row."""
    if base == "body":
        return 6 * k
    starts: Any = links.q if base == "q" else links.v
    return int(starts[k])
