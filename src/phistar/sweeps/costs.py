# SPDX-License-Identifier: BSD-3-Clause
"""What a scheduled program costs on a robot: multiplications, additions and divisions, counted.

Counted as a person would do it: a transform is a rotation and an offset, an inertia is symmetric, a
joint map is used with its zeros and ones, a link's own inertia has ten numbers. What vanishes at
roots and tips, or without rotors, is left out; other vectors are dense. Making the
transforms from q is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from phistar.model.model import Model
from phistar.model.parts import GROUND, Body
from phistar.sweeps.ir import LINEAR, SHIFTS, Node, Program, Type
from phistar.sweeps.schedule import Schedule


@dataclass(frozen=True)
class Cost:
    """Numbers of scalar operations; subtractions are additions."""

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.multiplications + other.multiplications,
            self.additions + other.additions,
            self.divisions + other.divisions,
        )

    def __mul__(self, times: int) -> Cost:
        return Cost(times * self.multiplications, times * self.additions, times * self.divisions)

    @property
    def total(self) -> int:
        """All operations."""
        return self.multiplications + self.additions + self.divisions

    def __str__(self) -> str:
        text = f"{self.multiplications} multiplications, {self.additions} additions"
        return f"{text}, {self.divisions} divisions" if self.divisions else text


NOTHING = Cost()
FORCE_SHIFT = Cost(24, 18)
"""A rotation of two 3-vectors and one cross product with the offset."""
INERTIA_SHIFT = Cost(186, 138)
"""A symmetric 6x6 matrix: three blocks turned (45+54+45, 30+36+30), then moved (42, 42)."""
RIGID_TIMES = Cost(24, 18)
DENSE_TIMES = Cost(36, 30)
CROSS = Cost(18, 12)
GRAVITY = Cost(9, 6)
"""One 3-vector turned into the axes of a root."""
RIGID_NUMBERS = 15
"""Entries of a rigid inertia's symmetric 6x6 matrix that are not zero by construction."""


@dataclass(frozen=True)
class Place:
    """All that the cost at a link depends on; a robot has few different ones."""

    size: int
    children: int
    root: bool
    armature: bool
    rows: tuple[tuple[int, int], ...]
    spread: tuple[int, int]

    @classmethod
    def of(cls, body: Body, children: int) -> Place:
        """The place of a body that has so many children."""
        columns = body.motion.motion_map()
        filled = columns != 0
        products = filled & (np.abs(columns) != 1)
        sums = np.maximum(filled.sum(axis=0) - 1, 0)
        rows = tuple(zip(products.sum(axis=0).tolist(), sums.tolist(), strict=True))
        into_link = int(np.maximum(filled.sum(axis=1) - 1, 0).sum())
        spread = (int(products.sum()), into_link)
        root, rotors = body.parent == GROUND, any(body.armature)
        return cls(body.motion.nv, children, root, rotors, rows, spread)

    @property
    def picked(self) -> Cost:
        """H times a force."""
        return sum((Cost(*row) for row in self.rows), NOTHING)


@dataclass(frozen=True)
class Bill:
    """The cost of a program on a robot.

    Attributes:
        links: Number of links that move.
        by_operation: For each operation of ``sweeps.ir``: how often it is done, and its cost.
    """

    links: int
    by_operation: dict[str, tuple[int, Cost]]

    @property
    def total(self) -> Cost:
        """The cost of all operations."""
        return sum((cost for _, cost in self.by_operation.values()), NOTHING)


def count(schedule: Schedule, model: Model) -> Bill:
    """Count what a program costs on a robot, for one sample.

    Args:
        schedule: The program.
        model: The robot.
    """
    children = Counter(body.parent for body in model.bodies)
    places = Counter(Place.of(body, children[body.index]) for body in model.bodies)
    bill: dict[str, tuple[int, Cost]] = {}
    for place, times in places.items():
        for op, cost in _at(schedule, place):
            done, spent = bill.get(op, (0, NOTHING))
            bill[op] = (done + times, spent + cost * times)
    return Bill(len(model.bodies), bill)


def _at(schedule: Schedule, place: Place) -> Iterator[tuple[str, Cost]]:
    """Operations at one link that are not nothing, with their costs."""
    program = schedule.program
    absent = _absent(schedule, place)
    for each in schedule.passes:
        for stream in each.streams:
            node = program.nodes[stream]
            if stream not in absent and node.op not in ("rec", "leaf", "zero", "rigid"):
                yield node.op, _cost(program, node, place, absent)
    nodes = (program.nodes[stream] for stream in program.live())
    gravity = any(node.op == "leaf" and node.data == "gravity" for node in nodes)
    if gravity and place.root:
        yield "gravity", GRAVITY


def _absent(schedule: Schedule, place: Place) -> set[int]:
    """Streams that are zero at a link by its place."""
    program = schedule.program
    absent = {s for s in program.live() if _vanishes(program.nodes[s], place)}
    for each in schedule.passes:
        for stream in each.streams:
            node = program.nodes[stream]
            if node.op in SHIFTS:
                continue
            operands = program.operands(stream)
            if node.op in LINEAR:
                gone = operands[-1] in absent
            elif node.op in ("crm", "crf"):
                gone = any(o in absent for o in operands)
            else:
                gone = node.op in ("sum", "rec") and all(o in absent for o in operands)
            if gone:
                absent.add(stream)
    return absent


def _vanishes(node: Node, place: Place) -> bool:
    if node.op == "shout":
        return place.root
    if node.op in ("shin", "cong"):
        return place.children == 0
    if node.op == "leaf":
        return node.data == "gravity" and not place.root
    return node.op == "zero" or (node.op == "Ax" and not place.armature)


def _cost(program: Program, node: Node, place: Place, absent: set[int]) -> Cost:
    if node.op == "sum":
        return _sum(program, node, place, absent)
    if node.op == "inertia":
        return RIGID_TIMES if program.nodes[node.operands[0]].op == "rigid" else DENSE_TIMES
    return _COSTS[node.op](place)


def _sum(program: Program, node: Node, place: Place, absent: set[int]) -> Cost:
    sizes = {Type.JOINT: place.size, Type.INERTIA: 21, Type.BLOCK: 6 * place.size}
    size = sizes.get(node.type, 6)
    terms = [(c, o) for c, o in zip(node.data, node.operands, strict=True) if o not in absent]
    widths = [RIGID_NUMBERS if program.nodes[o].op == "rigid" else size for _, o in terms]
    scaled = sum(w for (c, _), w in zip(terms, widths, strict=True) if abs(c) != Fraction(1))
    return Cost(scaled, sum(widths) - max(widths))


def _factor(place: Place) -> Cost:
    """H U + A, of which one triangle is needed, and its factors L D L*."""
    d = place.size
    rows = (Cost(*row) * (d - i) for i, row in enumerate(place.rows))
    triangle = sum(rows, NOTHING)
    rotors = Cost(0, d if place.armature else 0)
    inner = sum(2 * j + (d - 1 - j) * (j + 1) for j in range(d))
    outer = sum(j + (d - 1 - j) * j for j in range(d))
    return triangle + rotors + Cost(inner, outer, d)


def _solve(place: Place) -> Cost:
    d = place.size
    return Cost(d * d, d * (d - 1))


_COSTS: dict[str, Callable[[Place], Cost]] = {
    "H": lambda p: p.picked,
    "Ht": lambda p: Cost(*p.spread),
    "U": lambda p: p.picked * 6,
    "D": _factor,
    "G": lambda p: _solve(p) * 6,
    "down": lambda p: Cost(21, 21) * p.size,
    "Gx": lambda p: Cost(6 * p.size, 6 * (p.size - 1)),
    "Gtx": lambda p: Cost(6, 5) * p.size,
    "Dx": _solve,
    "Dsolve": _solve,
    "Ax": lambda p: Cost(p.size),
    "crm": lambda p: CROSS,
    "crf": lambda p: CROSS,
    "shin": lambda p: FORCE_SHIFT * p.children + Cost(0, 6) * (p.children - 1),
    "cong": lambda p: INERTIA_SHIFT * p.children + Cost(0, 21) * (p.children - 1),
    "shout": lambda p: FORCE_SHIFT,
}
"""Cost of each operation at a link; sums and inertias are above."""
