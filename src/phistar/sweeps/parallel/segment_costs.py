# SPDX-License-Identifier: BSD-3-Clause
"""What it costs to take in a link, to join two segments, and to take them apart again.

Counted as in ``sweeps.costs``: symmetric matrices by one triangle, a joint map by its zeros and
ones. Each function gives one link or one join; ``children`` light subtrees hang onto a link.
"""

from __future__ import annotations

from dataclasses import dataclass

from phistar.sweeps.ir import Type
from phistar.sweeps.op_costs import (
    DENSE_PRODUCT_COST,
    FORCE_SHIFT_COST,
    INERTIA_SHIFT_COST,
    NO_OPERATIONS,
    POINT_SHIFT_COST,
    LinkType,
    OperationCount,
)
from phistar.sweeps.ops import OPS

PRODUCT = OperationCount(216, 180)
"""Two 6x6 matrices."""
SYMMETRIC_PRODUCT = OperationCount(126, 105)
"""The same if the result is symmetric."""
INVERSE = OperationCount(210, 150, 6)
"""A 6x6 matrix inverted in place, pivot by pivot."""
POSE_PRODUCT = OperationCount(36, 27)
"""R₁ R₂ and p₁ + R₁ p₂."""
TRIANGLE = OperationCount(0, 21)
VECTOR = OperationCount(0, 6)


@dataclass(frozen=True)
class _Dense:
    """An operand of a cost: a symmetric inertia without zeros."""

    op: str = ""
    type: Type = Type.INERTIA


def rounds_of_sum(terms: int) -> int:
    """Additions one after the other of so many terms that are added in pairs."""
    return max(terms - 1, 0).bit_length()


def star_link(link: LinkType, closed: bool, last: bool) -> OperationCount:
    """The matrices of a link with what is beyond it in its run."""
    dense = _Dense()
    ops = ("U", "D", "G", "articulated_downdate")
    cost = sum((OPS[op].count(link, dense) for op in ops), INERTIA_SHIFT_COST)
    cost += NO_OPERATIONS if last else TRIANGLE
    if closed:
        return cost
    d = link.size
    moved = FORCE_SHIFT_COST * 6
    if last:
        across = OperationCount(6 * link.expansion[0], 6 * link.nonzeros)
        compliance = OPS["Dsolve"].count(link) * d + OperationCount(*link.dyad)
        return cost + moved + across + compliance
    picked = link.projection_cost * 6
    across = OperationCount(36 * d, 36 * d)
    compliance = OPS["Dsolve"].count(link) * 6 + OperationCount(21 * d, 21 * d)
    return cost + moved + picked + across + compliance


def star_join(closed: bool) -> OperationCount:
    """The matrices of two segments: I + C₁J₂, E, EF₁, EC₁, J and, of open ones, F and C."""
    cost = PRODUCT + VECTOR + INVERSE + PRODUCT + SYMMETRIC_PRODUCT
    cost += PRODUCT + SYMMETRIC_PRODUCT + TRIANGLE
    return cost if closed else cost + PRODUCT + PRODUCT + SYMMETRIC_PRODUCT + TRIANGLE


def vector_link(link: LinkType, closed: bool, last: bool) -> OperationCount:
    """z, ε, ν, d and, of open ones, c of a link."""
    cost = DENSE_PRODUCT_COST + VECTOR + (NO_OPERATIONS if last else VECTOR)
    cost += link.projection_cost + OperationCount(0, link.size) + OPS["Dsolve"].count(link)
    cost += OPS["Gx"].count(link) + VECTOR + FORCE_SHIFT_COST
    if closed:
        return cost
    cost += OperationCount(link.expansion[0], link.nonzeros)
    return cost if last else cost + DENSE_PRODUCT_COST + VECTOR


def vector_join(closed: bool) -> OperationCount:
    """w, d and, of open ones, c of two segments."""
    cost = DENSE_PRODUCT_COST * 4 + VECTOR * 3
    return cost if closed else cost + DENSE_PRODUCT_COST + VECTOR


def split_join(closed: bool) -> OperationCount:
    """The acceleration and the force between two segments."""
    cost = DENSE_PRODUCT_COST * 2 + VECTOR * 2
    return cost if closed else cost + DENSE_PRODUCT_COST * 2 + VECTOR * 2


def split_link(link: LinkType, closed: bool, last: bool) -> OperationCount:
    """The motion of a link and its joint."""
    cost = FORCE_SHIFT_COST + OPS["Gtx"].count(link) + OperationCount(0, link.size)
    cost += VECTOR + OperationCount(link.expansion[0], link.nonzeros)
    if closed:
        return cost
    held = link.projection_cost + OPS["Dsolve"].count(link) + OperationCount(0, link.size)
    return cost + held + (NO_OPERATIONS if last else DENSE_PRODUCT_COST)


def inertia_through(symmetric: bool = True) -> OperationCount:
    """F* J (I + C J)⁻¹ F, added to another inertia."""
    return PRODUCT + VECTOR + INVERSE + PRODUCT * 2 + SYMMETRIC_PRODUCT + TRIANGLE


def crossing(op: str, by_poses: bool) -> OperationCount:
    """What a value takes across a segment, with the sum at its end."""
    if op == "congruence_in":
        moved = INERTIA_SHIFT_COST if by_poses else PRODUCT + SYMMETRIC_PRODUCT
        return moved + TRIANGLE
    if op in ("point_in", "plane_out"):
        return POINT_SHIFT_COST + OperationCount(0, 4)
    return (FORCE_SHIFT_COST if by_poses else DENSE_PRODUCT_COST) + VECTOR
