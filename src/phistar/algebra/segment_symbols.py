# SPDX-License-Identifier: BSD-3-Clause
"""Segments of a chain between two handles: what joins of parallel schedules are about.

Segment i takes the acceleration inboard of it and the force outboard of it to the other two,

    α_out = F α_in - C f_out + c        f_in = J α_in + F* f_out + d,

and a segment of an affine recursion takes x to A x + b. They stand for any segments: their values
are given from outside, link by link, C and J symmetric and positive.
"""

from __future__ import annotations

from phistar.algebra.ir import Symbol, symbol
from phistar.algebra.spaces import FORCE, MOTION
from phistar.algebra.symbols import _register, vector

_SUBSCRIPTS = "₁₂₃"


def _each(name: str, text: str, meaning: str, symmetric: str = "") -> tuple[Symbol, ...]:
    """An operator of three segments."""
    codomain = FORCE if symmetric == "inertia" else MOTION
    domain = FORCE if symmetric == "compliance" else MOTION
    return tuple(
        _register(
            symbol(f"{name}_{i}", codomain, domain, symmetric=bool(symmetric)),
            f"{text}{subscript}",
            f"{text}_{i}",
            f"{meaning}, of segment {i}.",
        )
        for i, subscript in enumerate(_SUBSCRIPTS, start=1)
    )


TRANSFERS = _each("segment_F", "F", "Acceleration outboard per acceleration inboard")
COMPLIANCES = _each("segment_C", "C", "Acceleration outboard taken by a force there", "compliance")
INERTIAS = _each("segment_J", "J", "Force inboard per acceleration there", "inertia")
MAPS = _each("segment_A", "A", "Linear part of an affine map across a segment")
ADDED_INERTIAS = _each("segment_S", "S", "Inertia that a segment adds in front of it", "inertia")
MOTIONS = tuple(
    vector(
        f"segment_c_{i}",
        MOTION,
        f"c{subscript}",
        f"Acceleration outboard of segment {i} by itself.",
    )
    for i, subscript in enumerate(_SUBSCRIPTS, start=1)
)
FORCES = tuple(
    vector(f"segment_d_{i}", FORCE, f"d{subscript}", f"Force inboard of segment {i} by itself.")
    for i, subscript in enumerate(_SUBSCRIPTS, start=1)
)
ADDED_MOTIONS = tuple(
    vector(f"segment_b_{i}", MOTION, f"b{subscript}", f"What segment {i} adds to a motion.")
    for i, subscript in enumerate(_SUBSCRIPTS, start=1)
)
