# SPDX-License-Identifier: BSD-3-Clause
"""Joins of parallel schedules are associative: segments may be joined in any order, so in pairs.

Three segments, 3 outermost, are joined from the inside, (1 2) 3, or from the outside, 1 (2 3).
Affine maps and congruences need nothing but the distributive law. The star product of segments
between two handles,

    E = (I + C₁J₂)⁻¹    w = E(c₁ - C₁d₂)
    F = F₂EF₁    C = C₂ + F₂EC₁F₂*    J = J₁ + F₁*J₂EF₁    c = c₂ + F₂w    d = d₁ + F₁*(d₂ + J₂w),

needs two lemmas about inverses: E* = I - J₂EC₁, and the inverse of 1 (2 3) by those of the others.
It *is* the relation of both segments with the handle between them eliminated (``star_split``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from phistar.algebra.ir import Expr, identity
from phistar.algebra.proof import Theorem
from phistar.algebra.segment_symbols import (
    ADDED_INERTIAS,
    ADDED_MOTIONS,
    COMPLIANCES,
    FORCES,
    INERTIAS,
    MAPS,
    MOTIONS,
    TRANSFERS,
)
from phistar.algebra.spaces import FORCE, MOTION
from phistar.algorithms.catalogue import algorithm, register_theorem
from phistar.refs import FO00

_I, _I_force = identity(MOTION), identity(FORCE)
_REF = FO00.at("section 4")


@dataclass(frozen=True)
class Segment:
    """A segment between two handles."""

    F: Expr
    C: Expr
    J: Expr
    c: Expr
    d: Expr


def star(one: Segment, two: Segment) -> Segment:
    """Segment two outboard of segment one."""
    E = (_I + one.C @ two.J).inv
    w = E @ (one.c - one.C @ two.d)
    return Segment(
        two.F @ E @ one.F,
        two.C + two.F @ E @ one.C @ two.F.T,
        one.J + one.F.T @ two.J @ E @ one.F,
        two.c + two.F @ w,
        one.d + one.F.T @ (two.d + two.J @ w),
    )


A1, A2, A3 = MAPS
b1, b2, b3 = ADDED_MOTIONS
P1, P2, P3 = ADDED_INERTIAS
f1, f2, f3 = FORCES
S1, S2, S3 = (
    Segment(*each) for each in zip(TRANSFERS, COMPLIANCES, INERTIAS, MOTIONS, FORCES, strict=True)
)
E12 = (_I + S1.C @ S2.J).inv
E23 = (_I + S2.C @ S3.J).inv
E12_3 = (_I + star(S1, S2).C @ S3.J).inv
E1_23 = (_I + S1.C @ star(S2, S3).J).inv


@algorithm
def affine_join() -> Theorem:
    """A₃(A₂b₁ + b₂) + b₃ = (A₃A₂)b₁ + (A₃b₂ + b₃)."""
    return Theorem(
        "affine_join",
        definition=A3 @ (A2 @ b1 + b2) + b3,
        result=(A3 @ A2) @ b1 + (A3 @ b2 + b3),
        doc="affine maps x ↦ Ax + b are joined in any order: sums φ and ψ, inward and outward",
        ref=_REF,
    )


@algorithm
def congruence_join() -> Theorem:
    """S₁ + A₁*(S₂ + A₂*S₃A₂)A₁ = (S₁ + A₁*S₂A₁) + (A₂A₁)*S₃(A₂A₁)."""
    return Theorem(
        "congruence_join",
        definition=P1 + A1.T @ (P2 + A2.T @ P3 @ A2) @ A1,
        result=(P1 + A1.T @ P2 @ A1) + (A2 @ A1).T @ P3 @ (A2 @ A1),
        doc="inertias moved on both sides are joined in any order: composite inertias",
        ref=_REF,
    )


@algorithm
def star_adjoint() -> Theorem:
    """E* = (I + J₂C₁)⁻¹ = I - J₂EC₁."""
    return Theorem(
        "star_adjoint",
        definition=(_I_force + S2.J @ S1.C).inv,
        result=_I_force - S2.J @ E12 @ S1.C,
        doc="the inverse between two handles, seen by forces",
        ref=_REF,
    )


@algorithm
def star_adjoint_outer() -> Theorem:
    """The same between segments 2 and 3."""
    return Theorem(
        "star_adjoint_outer",
        definition=(_I_force + S3.J @ S2.C).inv,
        result=_I_force - S3.J @ E23 @ S2.C,
        doc="the inverse between the outer two of three segments, seen by forces",
        ref=_REF,
    )


@algorithm
def star_inverse() -> Theorem:
    """(I + C₁J₂₃)⁻¹ = E₁₂ - E₁₂C₁F₂*J₃(I + C₁₂J₃)⁻¹F₂E₁₂."""
    return Theorem(
        "star_inverse",
        definition=E1_23,
        result=E12 - E12 @ S1.C @ S2.F.T @ S3.J @ E12_3 @ S2.F @ E12,
        doc="the handle inboard of two joined segments, by the handles when 1 and 2 come first",
        ref=_REF,
    )


@algorithm
def star_split() -> Theorem:
    """α = F₁α_in - C₁f + c₁, f = J₂α + F₂*f_out + d₂: α = E(F₁α_in + c₁ - C₁(F₂*f_out + d₂))."""
    inward, outward = b1, f3
    entered = S1.F @ inward + S1.c - S1.C @ (S2.F.T @ outward + S2.d)
    alpha = E12 @ entered
    force = S2.J @ alpha + S2.F.T @ outward + S2.d
    return Theorem(
        "star_split",
        definition=S1.F @ inward - S1.C @ force + S1.c,
        result=alpha,
        doc="the acceleration between two segments, from those at their ends: the way down",
        ref=_REF,
    )


_CANCELS = "an inverse at a handle cancels what it inverts"
_JOINED = S2.F @ E12 @ S1.C @ S2.F.T @ S3.J
_REST = _I + S2.C @ S3.J

inner_handle_left = register_theorem(
    Theorem("inner_handle_left", E12 @ S1.C @ S2.J, _I - E12, _CANCELS, _REF)
)
inner_handle_right = register_theorem(
    Theorem("inner_handle_right", S1.C @ S2.J @ E12, _I - E12, _CANCELS, _REF)
)
outer_handle_left = register_theorem(
    Theorem("outer_handle_left", E23 @ S2.C @ S3.J, _I - E23, _CANCELS, _REF)
)
outer_handle_right = register_theorem(
    Theorem("outer_handle_right", S2.C @ S3.J @ E23, _I - E23, _CANCELS, _REF)
)
joined_handle_left = register_theorem(
    Theorem("joined_handle_left", E12_3 @ _JOINED, _I - E12_3 @ _REST, _CANCELS, _REF)
)
joined_handle_right = register_theorem(
    Theorem("joined_handle_right", _JOINED @ E12_3, _I - _REST @ E12_3, _CANCELS, _REF)
)
HANDLES = (
    *(inner_handle_left, inner_handle_right),
    *(outer_handle_left, outer_handle_right),
    *(joined_handle_left, joined_handle_right),
)
"""What is known of the inverses at the handles between three segments."""


LEMMAS = tuple(
    replace(theorem.rule, one_way=True)
    for theorem in (star_inverse, star_adjoint, star_adjoint_outer, *HANDLES)
)
"""Inverses by E₁₂, E₂₃ and (I + C₁₂J₃)⁻¹; their adjoints would lead back."""


def _associative(part: str, symbol: str) -> Theorem:
    one_by_one, outer_first = star(star(S1, S2), S3), star(S1, star(S2, S3))
    return Theorem(
        f"star_associative_{part}",
        definition=getattr(outer_first, symbol),
        result=getattr(one_by_one, symbol),
        doc=f"star products are joined in any order: {symbol} of 1 (2 3) is that of (1 2) 3",
        ref=_REF,
        rules=LEMMAS,
    )


@algorithm
def star_associative_transfer() -> Theorem:
    """F of 1 (2 3) is that of (1 2) 3."""
    return _associative("transfer", "F")


@algorithm
def star_associative_inertia() -> Theorem:
    """J of 1 (2 3) is that of (1 2) 3."""
    return _associative("inertia", "J")


@algorithm
def star_associative_compliance() -> Theorem:
    """C of 1 (2 3) is that of (1 2) 3."""
    return _associative("compliance", "C")


@algorithm
def star_associative_motion() -> Theorem:
    """The acceleration c of 1 (2 3) is that of (1 2) 3."""
    return _associative("motion", "c")


@algorithm
def star_associative_force() -> Theorem:
    """The force d of 1 (2 3) is that of (1 2) 3."""
    return _associative("force", "d")
