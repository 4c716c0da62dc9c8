# SPDX-License-Identifier: BSD-3-Clause
"""Several matrices and vectors of one robot in one straight line: what they share is done once.

Products of matrices come last. Small ones are multiplied out in the line, where zeros vanish; large
ones are loops over numbers that the line kept. Matrices that come from single walks are in the axes
of the root (``scalar.branches``), and what rows have in common is a loop over them. Where matrices
can be had in both ways, the quicker one is taken.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set

from phistar.errors import LoweringError
from phistar.model.model import Model
from phistar.scalar.branches import Branches
from phistar.scalar.common import CommonRobot
from phistar.scalar.graph import Scalar
from phistar.scalar.links import Link
from phistar.scalar.lower import (
    DEFAULT,
    ORDER,
    Options,
    robot_setting,
    sizes_of_inputs,
    uniform,
)
from phistar.scalar.matrix import MatrixTracer, cheapest
from phistar.scalar.program import Body, Product, Repeat, Signature, Store, Straight
from phistar.scalar.straight import Robot, Trace, outputs
from phistar.sweeps.ir import Program
from phistar.sweeps.requests import Assembly, Form

Entries = Mapping[tuple[int, int], Scalar]

EXPANDED = 12
"""Rows of a product up to which it is multiplied out."""
WORTH = 0.7
"""Estimated share of the time at which walks are quicker for sure. A humanoid with 41 joint
velocities, at 0.74, takes the same time either way."""


def to_assembly(
    assembly: Assembly,
    model: Model,
    absent: Set[str] = frozenset(),
    options: Options = DEFAULT,
) -> Straight:
    """The straight line of an assembly on a robot.

    Args:
        assembly: What is wanted.
        model: The robot.
        absent: Inputs that are not given: zero, or for gravity the robot's own.
        options: What may be chosen.
    """
    rest = (assembly, model, absent, options)
    if not assembly.matrices and assembly.split is not None:
        return _Walked(*rest).program()
    first = _Multiplied(*rest)
    multiplied = first.program()
    if assembly.split is None or first.size <= EXPANDED:
        return multiplied
    walked = _Walked(*rest).program()
    return walked if _time(walked) < WORTH * _time(multiplied) else multiplied


def _time(program: Straight) -> int:
    """About how long a program takes: an operation in a line as long as two in a loop."""
    loops = sum(product.count()["mul"] for product in program.products)
    for repeat in program.repeats:
        loops += len(repeat.rows) * repeat.body.graph.fused(repeat.body.roots)
    return loops + 2 * program.body.graph.fused(program.body.roots)


class _Assembler(ABC):
    """One assembly on one robot."""

    axes: type[Robot] = Robot

    def __init__(
        self, assembly: Assembly, model: Model, absent: Set[str], options: Options
    ) -> None:
        self.assembly = assembly
        self.model = model
        self.absent = absent
        self.links: Sequence[Link] = uniform(model, frozenset(), options)
        self.robot = self.axes(self.links)
        self.size = sum(body.motion.nv for body in model.bodies)
        self.stores: list[Store] = []
        self.products: list[Product] = []
        self.repeats: list[Repeat] = []
        self.slots = 0

    def program(self) -> Straight:
        """The straight line."""
        vectors = self._vectors()
        programs, unread = self._matrices()
        sizes = dict.fromkeys(self.assembly.outputs, self.size**2)
        given: dict[str, int] = {}
        for program in (self.assembly.vectors.program, *programs):
            given |= sizes_of_inputs(program, self.model, self.absent | unread, frozenset())
        order = sorted(given, key=_place)
        signature = Signature({n: given[n] for n in order}, {**vectors, **sizes})
        body = Body(self.robot.graph, self.stores)
        return Straight(signature, body, tuple(self.products), self.slots, tuple(self.repeats))

    @abstractmethod
    def _matrices(self) -> tuple[list[Program], set[str]]:
        """Store all matrices; the programs that they came from, and inputs these do not read."""

    def _vectors(self) -> dict[str, int]:
        schedule = self.assembly.vectors
        trace = Trace(self.robot, robot_setting(schedule.program, self.model, self.absent))
        trace.run(schedule)
        for name, stream in schedule.program.outputs.items():
            kind = schedule.program.nodes[stream].type
            for link in trace.links:
                self.stores += outputs(name, kind, link, link.value(stream))
        return dict.fromkeys(schedule.program.outputs, self.size)

    def _keep(self, x: Scalar | None) -> int:
        """The slot of a number; None only makes room."""
        if x is not None:
            self.stores.append(Store("work", self.slots, "", x))
        self.slots += 1
        return self.slots - 1

    def _store(self, name: str, entries: Entries, others: Set[int] = frozenset()) -> None:
        """All entries but some; what has no number is zero."""
        size = self.size
        self.stores += [
            Store(name, i * size + j, "", entries.get((i, j), 0.0))
            for i in range(size)
            for j in range(size)
            if i * size + j not in others
        ]


class _Multiplied(_Assembler):
    """Products of matrices as such."""

    def _matrices(self) -> tuple[list[Program], set[str]]:
        assembly = self.assembly
        chosen = {n: cheapest(forms, self.links) for n, forms in assembly.matrices.items()}
        found = {name: self._matrix(form) for name, form in chosen.items()}
        kept: dict[str, int] = {}
        for name, (left, right) in assembly.products.items():
            if self.size <= EXPANDED:
                found[name] = self._expanded(found[left], found[right])
            else:
                self._product(name, left, right, found, kept)
        for name in assembly.outputs:
            if name in found:
                self._store(name, found[name])
        programs = [form.schedule.program for form in chosen.values()]
        return programs, {form.argument for form in chosen.values()}

    def _matrix(self, form: Form) -> Entries:
        rest = (self.links, self.model, (), self.absent)
        return MatrixTracer(form, *rest, robot=self.robot).entries()

    def _expanded(self, left: Entries, right: Entries) -> Entries:
        result: dict[tuple[int, int], Scalar] = {}
        by_row: dict[int, list[tuple[int, Scalar]]] = {}
        for (i, k), x in left.items():
            by_row.setdefault(i, []).append((k, x))
        for i, row in by_row.items():
            for j in range(self.size):
                total: Scalar = 0.0
                for k, x in row:
                    total = total + x * right.get((k, j), 0.0)
                result[i, j] = -total
        return result

    def _product(
        self,
        name: str,
        left: str,
        right: str,
        found: Mapping[str, Entries],
        kept: dict[str, int],
    ) -> None:
        if left in self.assembly.products:
            raise LoweringError(f"{left} is itself a product; it cannot be a factor of {name}")
        if left not in kept:
            kept[left] = self.slots
            for i in range(self.size):
                for k in range(self.size):
                    self._keep(found[left].get((i, k), 0.0))
        columns: list[dict[int, int]] = [{} for _ in range(self.size)]
        for (k, j), x in sorted(found[right].items(), key=lambda item: item[0][::-1]):
            if not (isinstance(x, float) and x == 0.0):
                columns[j][k] = self._keep(x)
        self.products.append(Product(name, kept[left], self.size, columns))


class _Walked(_Assembler):
    """Single walks, the rows of each segment of the robot repeated."""

    axes = CommonRobot

    def _matrices(self) -> tuple[list[Program], set[str]]:
        split = self.assembly.split
        assert split is not None
        found = Branches(split, self.model, self.absent, self.robot, self._keep)
        self.repeats += found.repeats
        for name in self.assembly.outputs:
            others = {
                row * self.size + store.index
                for repeat in found.repeats
                for store in repeat.body.stores
                if store.space == name
                for row in repeat.rows
            }
            self._store(name, found.entries[name], others)
        return [split.schedule.program], {split.argument}


def _place(name: str) -> tuple[int, str]:
    """The configuration comes first, then the vectors that people give, then others by name."""
    order = ("q", *ORDER)
    return (order.index(name) if name in order else len(order), name)
