# SPDX-License-Identifier: BSD-3-Clause
"""Several matrices and vectors of one robot in one straight line: what they share is done once.

Products of matrices come last. Small ones are multiplied out in the line, where zeros vanish; large
ones are loops over numbers that the line kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from phistar.errors import LoweringError
from phistar.model.model import Model
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
from phistar.scalar.program import Body, Product, Signature, Store, Straight
from phistar.scalar.straight import Robot, Trace, outputs
from phistar.sweeps.requests import Assembly, Form

Entries = Mapping[tuple[int, int], Scalar]

EXPANDED = 12
"""Rows of a product up to which it is multiplied out."""


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
    return _Assembler(assembly, model, absent, options).program()


class _Assembler:
    """One assembly on one robot."""

    def __init__(
        self, assembly: Assembly, model: Model, absent: Set[str], options: Options
    ) -> None:
        self.assembly = assembly
        self.model = model
        self.absent = absent
        self.links: Sequence[Link] = uniform(model, frozenset(), options)
        self.robot = Robot(self.links)
        self.size = sum(body.motion.nv for body in model.bodies)
        self.stores: list[Store] = []
        self.products: list[Product] = []
        self.slots = 0

    def program(self) -> Straight:
        assembly = self.assembly
        chosen = {n: cheapest(forms, self.links) for n, forms in assembly.matrices.items()}
        vectors = self._vectors()
        found = {name: self._matrix(form) for name, form in chosen.items()}
        kept: dict[str, int] = {}
        for name, (left, right) in assembly.products.items():
            if self.size <= EXPANDED:
                found[name] = self._expanded(found[left], found[right])
            else:
                self._product(name, left, right, found, kept)
        sizes = dict.fromkeys(assembly.outputs, self.size**2)
        for name in assembly.outputs:
            if name in found:
                self._store(name, found[name])
        programs = [assembly.vectors.program, *(f.schedule.program for f in chosen.values())]
        unread = self.absent | {form.argument for form in chosen.values()}
        given: dict[str, int] = {}
        for program in programs:
            given |= sizes_of_inputs(program, self.model, unread, frozenset())
        order = sorted(given, key=_place)
        signature = Signature({n: given[n] for n in order}, {**vectors, **sizes})
        return Straight(
            signature, Body(self.robot.graph, self.stores), tuple(self.products), self.slots
        )

    def _vectors(self) -> dict[str, int]:
        schedule = self.assembly.vectors
        trace = Trace(self.robot, robot_setting(schedule.program, self.model, self.absent))
        trace.run(schedule)
        for name, stream in schedule.program.outputs.items():
            kind = schedule.program.nodes[stream].type
            for link in trace.links:
                self.stores += outputs(name, kind, link, link.value(stream))
        return dict.fromkeys(schedule.program.outputs, self.size)

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
        for (k, j), x in sorted(found[right].items()):
            if not (isinstance(x, float) and x == 0.0):
                columns[j][k] = self._keep(x)
        self.products.append(Product(name, kept[left], self.size, columns))

    def _keep(self, x: Scalar) -> int:
        self.stores.append(Store("work", self.slots, "", x))
        self.slots += 1
        return self.slots - 1

    def _store(self, name: str, entries: Entries) -> None:
        size = self.size
        self.stores += [
            Store(name, i * size + j, "", entries.get((i, j), 0.0))
            for i in range(size)
            for j in range(size)
        ]


def _place(name: str) -> tuple[int, str]:
    """The configuration comes first, then the vectors that people give, then others by name."""
    order = ("q", *ORDER)
    return (order.index(name) if name in order else len(order), name)
