# SPDX-License-Identifier: BSD-3-Clause
"""What each operation of ``sweeps.ops`` costs at one link: multiplications, additions, divisions.

Counted as a person would do it, see ``sweeps.costs``. Functions take the link and the operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from phistar.arrays import Array
from phistar.model.components import GROUND
from phistar.model.joints import JointKind
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.sweeps.stream_types import Type


@dataclass(frozen=True)
class OperationCount:
    """Numbers of scalar operations; subtractions are additions."""

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0

    @classmethod
    def of_scalars(cls, bill: Mapping[str, int]) -> OperationCount:
        """From how often each scalar operation occurs; sines, cosines and roots not counted."""
        times = {op: bill.get(op, 0) for op in ("mul", "add", "sub", "div")}
        return cls(times["mul"], times["add"] + times["sub"], times["div"])

    def __add__(self, other: OperationCount) -> OperationCount:
        return OperationCount(
            self.multiplications + other.multiplications,
            self.additions + other.additions,
            self.divisions + other.divisions,
        )

    def __mul__(self, times: int) -> OperationCount:
        return OperationCount(
            times * self.multiplications, times * self.additions, times * self.divisions
        )

    @property
    def total(self) -> int:
        """All operations."""
        return self.multiplications + self.additions + self.divisions

    @property
    def work(self) -> int:
        """All operations."""
        return self.total

    @property
    def span(self) -> int:
        """Operations on the longest path, with processors enough: all, where one waits for another.

        Of a parallel schedule fewer, see ``sweeps.parallel.parallel_costs``.
        """
        return self.total

    def __str__(self) -> str:
        text = f"{self.multiplications} multiplications, {self.additions} additions"
        return f"{text}, {self.divisions} divisions" if self.divisions else text


NO_OPERATIONS = OperationCount()
FORCE_SHIFT_COST = OperationCount(24, 18)
"""A rotation of two 3-vectors and one cross product with the offset."""
POINT_SHIFT_COST = OperationCount(12, 9)
"""A rotation of one 3-vector, and the offset times the mass."""
INERTIA_SHIFT_COST = OperationCount(186, 138)
"""A symmetric 6x6 matrix: three blocks turned (45+54+45, 30+36+30), then moved (42, 42)."""
RIGID_PRODUCT_COST = OperationCount(24, 18)
TRANSFER_SHIFT_COST = OperationCount(126, 90)
"""The left half of a 6x6 matrix, the other being zero: two blocks turned, one moved."""
TRANSFER_PRODUCT_COST = OperationCount(18, 12)
GYROSCOPIC_COST = OperationCount(48, 41)
"""E ω~ - (Jω)~ - h~v~ and the linear momentum."""
DENSE_PRODUCT_COST = OperationCount(36, 30)
CROSS_PRODUCT_COST = OperationCount(18, 12)
INERTIA_RATE_COST = CROSS_PRODUCT_COST * 6 + OperationCount(0, 21)
"""Six columns crossed, and one triangle of the sum with the transpose."""
LINK_ENERGY_COST = OperationCount(19, 14)
"""ω · (½ Jω + h × v) + ½ m v · v, each product of two rates once."""
GRAVITY_COST = OperationCount(9, 6)
"""One 3-vector turned into the axes of a root."""


@dataclass(frozen=True)
class LinkType:
    """All that the cost at a link depends on; a robot has few different ones."""

    size: int
    children: int
    root: bool
    rotor_count: int
    rows: tuple[tuple[int, int], ...]
    expansion: tuple[int, int]
    dyad: tuple[int, int]

    @property
    def nonzeros(self) -> int:
        """Entries of H that are not zero."""
        return sum(sums + 1 for _, sums in self.rows)

    @property
    def projection_cost(self) -> OperationCount:
        """H times a force."""
        return sum((OperationCount(*row) for row in self.rows), NO_OPERATIONS)


def _joint_map_counts(
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


def _dyad(filled: Array, products: Array) -> tuple[int, int]:
    """Of H* U, whose columns are zero but at the coordinates that the axes fill."""
    multiplications = additions = 0
    for i, terms in enumerate(filled.sum(axis=1).tolist()):
        entries = int((filled.sum(axis=1)[i:] > 0).sum())
        multiplications += entries * int(products[i].sum())
        additions += entries * max(terms - 1, 0)
    return multiplications, additions


class Operand(Protocol):
    """What a cost may depend on: the operation that makes an operand, and its type."""

    @property
    def op(self) -> str:
        """Name of the operation."""

    @property
    def type(self) -> Type:
        """What the operand holds."""


@cached_on_model
def link_types(model: Model) -> Sequence[LinkType]:
    """The type of each link."""
    children = Counter(body.parent for body in model.bodies)
    counts = {kind: _joint_map_counts(kind) for kind in {b.joint_kind for b in model.bodies}}
    return [
        LinkType(
            body.joint_kind.nv,
            children[body.index],
            body.parent == GROUND,
            sum(inertia != 0 for inertia in body.armature),
            *counts[body.joint_kind],
        )
        for body in model.bodies
    ]


def fixed(cost: OperationCount) -> Callable[..., OperationCount]:
    """The same cost at every link."""
    return lambda link, *operands: cost


def per_freedom(cost: OperationCount) -> Callable[..., OperationCount]:
    """A cost for each degree of freedom of the joint."""
    return lambda link, *operands: cost * link.size


def projection(link: LinkType, *operands: Operand) -> OperationCount:
    """H x."""
    return link.projection_cost


def expansion(link: LinkType, *operands: Operand) -> OperationCount:
    """H* x."""
    return OperationCount(*link.expansion)


def product(link: LinkType, matrix: Operand, *operands: Operand) -> OperationCount:
    """An inertia, a link's own inertia or a transfer times a vector."""
    if matrix.type is Type.TRANSFER:
        return TRANSFER_PRODUCT_COST
    return RIGID_PRODUCT_COST if matrix.op == "rigid" else DENSE_PRODUCT_COST


def congruence_in(link: LinkType, matrix: Operand) -> OperationCount:
    """φ S φ*."""
    return TRANSFER_SHIFT_COST if matrix.type is Type.TRANSFER else INERTIA_SHIFT_COST


def joint_block(link: LinkType, *operands: Operand) -> OperationCount:
    """P H*."""
    return link.projection_cost * 6


def joint_inertia(link: LinkType, *operands: Operand) -> OperationCount:
    """H U + A, of which one triangle is needed, and its factors L D L*."""
    d = link.size
    inner = sum(2 * j + (d - 1 - j) * (j + 1) for j in range(d))
    outer = sum(j + (d - 1 - j) * j for j in range(d))
    rotors = OperationCount(0, link.rotor_count)
    return _projected_triangle(link) + rotors + OperationCount(inner, outer, d)


def _projected_triangle(link: LinkType) -> OperationCount:
    """One triangle of H U."""
    rows = (OperationCount(*row) * (link.size - i) for i, row in enumerate(link.rows))
    return sum(rows, NO_OPERATIONS)


def joint_product(link: LinkType, *operands: Operand) -> OperationCount:
    """D x, or D⁻¹ x by the factors."""
    d = link.size
    return OperationCount(d * d, d * (d - 1))


def gain(link: LinkType, *operands: Operand) -> OperationCount:
    """U D⁻¹."""
    return joint_product(link) * 6


def gain_product(link: LinkType, *operands: Operand) -> OperationCount:
    """G x."""
    return OperationCount(6 * link.size, 6 * (link.size - 1))


def rotor_product(link: LinkType, *operands: Operand) -> OperationCount:
    """A x."""
    return OperationCount(link.rotor_count)


def rotor_energy(link: LinkType, *operands: Operand) -> OperationCount:
    """½ x* A x."""
    if not link.rotor_count:
        return NO_OPERATIONS
    return OperationCount(link.size + link.rotor_count, link.rotor_count - 1)


def dot(link: LinkType, vector: Operand, *operands: Operand) -> OperationCount:
    """x* y."""
    size = link.size if vector.type is Type.JOINT else 6
    return OperationCount(size, max(size - 1, 0))


def project_across(link: LinkType, *operands: Operand) -> OperationCount:
    """S - G H S of a transfer."""
    return OperationCount(18, 18) * link.size + link.projection_cost * 3


def compliance_update(link: LinkType, *operands: Operand) -> OperationCount:
    """Z = S G, L = D⁻¹ + G* Z, U = L H - Z*, and one triangle of S + H* U - Z H; roots: S = 0."""
    d = link.size
    inverse = joint_product(link) * d if d > 1 else NO_OPERATIONS
    picked = OperationCount(*link.expansion) * d
    if link.root:
        return inverse + picked + OperationCount(*link.dyad)
    nonzeros = link.nonzeros
    gains = OperationCount(36, 30) * d + OperationCount(6, 6) * (d * (d + 1) // 2)
    differences = OperationCount(0, d * (nonzeros - link.expansion[1]))
    triangle = OperationCount(7 * link.expansion[0], 7 * nonzeros)
    return inverse + gains + picked + differences + triangle


def congruence_across(link: LinkType, *operands: Operand) -> OperationCount:
    """U = S H*, W = U - G H U, and one triangle of S - G U* - W G*."""
    d = link.size
    blocks = link.projection_cost * 6 + _projected_triangle(link)
    return blocks + OperationCount(6, 6) * (d * d) + OperationCount(42, 42) * d


def transfer_update(link: LinkType, *operands: Operand) -> OperationCount:
    """S + H* B*, of which three columns are not zero; roots: S = 0."""
    added = 0 if link.root else 3 * (link.nonzeros - link.expansion[1])
    return OperationCount(*link.expansion) * 3 + OperationCount(0, added)


def bias_gain(link: LinkType, *operands: Operand) -> OperationCount:
    """D⁻¹ of the picked rows, and three rows of S* G; roots: S = 0."""
    own = link.projection_cost * 3 + joint_product(link) * 3
    return own if link.root else own + OperationCount(18, 18) * link.size
