# SPDX-License-Identifier: BSD-3-Clause
"""What a scheduled program costs on a robot: multiplications, additions and divisions, counted.

Counted as a person would do it: a transform is a rotation and an offset, an inertia is symmetric, a
joint map is used with its zeros and ones, a link's own inertia has ten numbers, gravity no angular
part. What vanishes at roots and tips, or without rotors, is left out; other vectors are dense.
Not counted: making the transforms from q, and moving forces on frames (B) to their links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.model.joints import JointKind
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
TRANSFER_SHIFT = Cost(126, 90)
"""The left half of a 6x6 matrix, the other being zero: two blocks turned, one moved."""
TRANSFER_TIMES = Cost(18, 12)
GYRO = Cost(48, 41)
"""E ω~ - (Jω)~ - h~v~ and the linear momentum."""
DENSE_TIMES = Cost(36, 30)
CROSS = Cost(18, 12)
TURN = CROSS * 6 + Cost(0, 21)
"""Six columns crossed, and one triangle of the sum with the transpose."""
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
    rotors: int
    rows: tuple[tuple[int, int], ...]
    spread: tuple[int, int]
    dyad: tuple[int, int]

    @classmethod
    def of(cls, body: Body, children: int) -> Place:
        """The place of a body that has so many children."""
        rows, spread, dyad = _pattern(body.motion)
        root, rotors = body.parent == GROUND, sum(inertia != 0 for inertia in body.armature)
        return cls(body.motion.nv, children, root, rotors, rows, spread, dyad)

    @property
    def filled(self) -> int:
        """Entries of H that are not zero."""
        return sum(sums + 1 for _, sums in self.rows)

    @property
    def picked(self) -> Cost:
        """H times a force."""
        return sum((Cost(*row) for row in self.rows), NOTHING)


@lru_cache(maxsize=256)
def _pattern(
    motion: JointKind,
) -> tuple[tuple[tuple[int, int], ...], tuple[int, int], tuple[int, int]]:
    """Products and sums of each row of H, of H* as a whole, and of one triangle of H* U."""
    columns = motion.motion_map()
    filled = columns != 0
    products = filled & (np.abs(columns) != 1)
    sums = np.maximum(filled.sum(axis=0) - 1, 0)
    rows = tuple(zip(products.sum(axis=0).tolist(), sums.tolist(), strict=True))
    into_link = int(np.maximum(filled.sum(axis=1) - 1, 0).sum())
    return rows, (int(products.sum()), into_link), _dyad(filled, products)


def _dyad(filled: NDArray[Any], products: NDArray[Any]) -> tuple[int, int]:
    """Of H* U, whose columns are zero but at the coordinates that the axes fill."""
    multiplications = additions = 0
    for i, terms in enumerate(filled.sum(axis=1).tolist()):
        entries = int((filled.sum(axis=1)[i:] > 0).sum())
        multiplications += entries * int(products[i].sum())
        additions += entries * max(terms - 1, 0)
    return multiplications, additions


@dataclass(frozen=True)
class Bill:
    """The cost of a program on a robot.

    Attributes:
        by_link: What it costs at each link, in body order.
        by_operation: For each operation of ``sweeps.ir``: how often it is done, and its cost.
        by_stream: For each stream, its cost at all links together.
    """

    by_link: tuple[Cost, ...]
    by_operation: dict[str, tuple[int, Cost]]
    by_stream: dict[int, Cost]

    @property
    def links(self) -> int:
        """Number of links that move."""
        return len(self.by_link)

    @property
    def total(self) -> Cost:
        """The cost of all operations."""
        return sum((cost for _, cost in self.by_operation.values()), NOTHING)


def places(model: Model) -> list[Place]:
    """The place of each link."""
    children = Counter(body.parent for body in model.bodies)
    return [Place.of(body, children[body.index]) for body in model.bodies]


def count(schedule: Schedule, model: Model) -> Bill:
    """Count what a program costs on a robot, for one sample.

    Args:
        schedule: The program.
        model: The robot.
    """
    here = places(model)
    by_operation: dict[str, tuple[int, Cost]] = {}
    by_stream: dict[int, Cost] = {}
    by_place: dict[Place, Cost] = {}
    for place, times in Counter(here).items():
        by_place[place] = NOTHING
        for stream, op, cost in _at(schedule, place):
            done, spent = by_operation.get(op, (0, NOTHING))
            by_operation[op] = (done + times, spent + cost * times)
            by_stream[stream] = by_stream.get(stream, NOTHING) + cost * times
            by_place[place] += cost
    return Bill(tuple(by_place[place] for place in here), by_operation, by_stream)


def _at(schedule: Schedule, place: Place) -> Iterator[tuple[int, str, Cost]]:
    """Streams at one link that are not nothing, with their operations and costs."""
    program = schedule.program
    absent = _absent(schedule, place)
    for each in schedule.passes:
        for stream in each.streams:
            node = program.nodes[stream]
            if stream not in absent and node.op not in ("rec", "leaf", "zero", "rigid"):
                yield stream, node.op, node_cost(program, node, place, absent)
    for stream in program.live():
        if place.root and _is_gravity(program.nodes[stream]):
            yield stream, "gravity", GRAVITY


def _is_gravity(node: Node) -> bool:
    return node.op == "leaf" and node.data == "gravity"


_PRODUCTS = frozenset({"crm", "crf", "turn", "through"})
"""Operations that are zero if one operand is, besides those that are linear."""


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
            if node.op in LINEAR or node.op in _PRODUCTS:
                gone = any(o in absent for o in operands)
            else:
                gone = node.op in ("sum", "rec") and all(o in absent for o in operands)
            if gone:
                absent.add(stream)
    return absent


def _vanishes(node: Node, place: Place) -> bool:
    if node.op in ("shout", "outcong", "outsim"):
        return place.root
    if node.op in ("shin", "cong"):
        return place.children == 0
    if _is_gravity(node):
        return not place.root
    return node.op == "zero" or (node.op == "Ax" and not place.rotors)


def node_cost(program: Program, node: Node, place: Place, absent: set[int]) -> Cost:
    """The cost of a statement at a link, with the streams that are zero there."""
    if node.op == "sum":
        return _sum(program, node, place, absent)
    if node.op == "cong" and node.type is Type.TRANSFER:
        return TRANSFER_SHIFT * place.children + Cost(0, 18) * (place.children - 1)
    if node.op == "inertia" and program.nodes[node.operands[0]].type is Type.TRANSFER:
        return TRANSFER_TIMES
    if node.op == "inertia":
        return RIGID_TIMES if program.nodes[node.operands[0]].op == "rigid" else DENSE_TIMES
    return _COSTS[node.op](place)


def _sum(program: Program, node: Node, place: Place, absent: set[int]) -> Cost:
    terms = [(c, o) for c, o in zip(node.data, node.operands, strict=True) if o not in absent]
    widths = [_width(program.nodes[o], place) for _, o in terms]
    scaled = sum(w for (c, _), w in zip(terms, widths, strict=True) if abs(c) != Fraction(1))
    return Cost(scaled, sum(widths) - max(widths))


def _width(node: Node, place: Place) -> int:
    """How many numbers of a stream are not zero by construction."""
    if node.op == "rigid":
        return RIGID_NUMBERS
    return 3 if _is_gravity(node) else numbers(node.type, place.size)


def numbers(type: Type, size: int) -> int:
    """How many numbers a stream holds at a link whose joint has ``size`` degrees of freedom."""
    own = {
        Type.JOINT: size,
        Type.INERTIA: 21,
        Type.TRANSFER: 18,
        Type.BLOCK: 6 * size,
        Type.FACTOR: size * (size + 1) // 2,
    }
    return own.get(type, 6)


def _factor(place: Place) -> Cost:
    """H U + A, of which one triangle is needed, and its factors L D L*."""
    d = place.size
    rows = (Cost(*row) * (d - i) for i, row in enumerate(place.rows))
    triangle = sum(rows, NOTHING)
    rotors = Cost(0, place.rotors)
    inner = sum(2 * j + (d - 1 - j) * (j + 1) for j in range(d))
    outer = sum(j + (d - 1 - j) * j for j in range(d))
    return triangle + rotors + Cost(inner, outer, d)


def _solve(place: Place) -> Cost:
    d = place.size
    return Cost(d * d, d * (d - 1))


def _give(place: Place) -> Cost:
    """Z = S G, L = D⁻¹ + G* Z, U = L H - Z*, and one triangle of S + H* U - Z H; roots: S = 0."""
    d = place.size
    inverse = _solve(place) * d if d > 1 else NOTHING
    picked = Cost(*place.spread) * d
    if place.root:
        return inverse + picked + Cost(*place.dyad)
    triangle = d * (d + 1) // 2
    filled = place.filled
    gains = Cost(36, 30) * d + Cost(6, 6) * triangle
    differences = Cost(0, d * (filled - place.spread[1]))
    return inverse + gains + picked + differences + Cost(7 * place.spread[0], 7 * filled)


def _through(place: Place) -> Cost:
    """U = S H*, W = U - G H U, and one triangle of S - G U* - W G*."""
    d = place.size
    square = sum((Cost(*row) * (d - i) for i, row in enumerate(place.rows)), NOTHING)
    return place.picked * 6 + square + Cost(6, 6) * (d * d) + Cost(42, 42) * d


def _bend(place: Place) -> Cost:
    """S + H* B*, of which three columns are not zero; roots: S = 0."""
    added = 0 if place.root else 3 * (place.filled - place.spread[1])
    return Cost(*place.spread) * 3 + Cost(0, added)


def _slip(place: Place) -> Cost:
    """D⁻¹ of the picked rows, and three rows of S* G; roots: S = 0."""
    told = place.picked * 3 + _solve(place) * 3
    return told if place.root else told + Cost(18, 18) * place.size


_COSTS: dict[str, Callable[[Place], Cost]] = {
    "H": lambda p: p.picked,
    "Ht": lambda p: Cost(*p.spread),
    "U": lambda p: p.picked * 6,
    "D": _factor,
    "G": lambda p: _solve(p) * 6,
    "down": lambda p: Cost(21, 21) * p.size,
    "gyro": lambda p: GYRO,
    "across": lambda p: Cost(18, 18) * p.size + p.picked * 3,
    "inertia_t": lambda p: Cost(18, 15),
    "Gx": lambda p: Cost(6 * p.size, 6 * (p.size - 1)),
    "Gtx": lambda p: Cost(6, 5) * p.size,
    "Dx": _solve,
    "Dsolve": _solve,
    "Ax": lambda p: Cost(p.rotors),
    "turn": lambda p: TURN,
    "through": _through,
    "crm": lambda p: CROSS,
    "crf": lambda p: CROSS,
    "shin": lambda p: FORCE_SHIFT * p.children + Cost(0, 6) * (p.children - 1),
    "cong": lambda p: INERTIA_SHIFT * p.children + Cost(0, 21) * (p.children - 1),
    "shout": lambda p: FORCE_SHIFT,
    "outcong": lambda p: INERTIA_SHIFT,
    "give": _give,
    "outsim": lambda p: TRANSFER_SHIFT,
    "slip": _slip,
    "bend": _bend,
}
"""Cost of each operation at a link; sums and inertias are above."""
