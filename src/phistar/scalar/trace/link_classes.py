# SPDX-License-Identifier: BSD-3-Clause
"""Classes of links that may share one block of a loop, and the values that pass between blocks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from phistar.arrays import Array
from phistar.model.components import GROUND
from phistar.scalar.graph import Scalar
from phistar.scalar.linear.inertias import (
    AngularTransfer,
    Inertia,
    RigidInertia,
    SymmetricInertia,
    ZeroInertia,
)
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.robot.link_numbers import FlatLayout, LinkNumbers, flat_table
from phistar.scalar.trace.link_operations import LdlFactor, LinkValue
from phistar.sweeps.ir import Node, StreamProgram, Type
from phistar.thresholds import POLICY

_MAX_AXIS_ROTATION_ENTRIES = 5
"""Most entries of a rotation about one of the axes."""


@dataclass(frozen=True)
class LinkClasses:
    """Which links share blocks.

    Attributes:
        class_of: Number of the class of each link.
        family_of: Number of the family of each link. Classes of a family have the same constants
            and differ in their place in the tree alone, so that many of their blocks are the same.
        flat: ``LinkNumbers.flat_numbers`` of each link, NaN behind those that are shorter.
    """

    class_of: list[int]
    family_of: list[int]
    flat_numbers: Array


def classify_links(
    links: Sequence[LinkNumbers], children: Sequence[Sequence[int]], streams: int
) -> LinkClasses:
    """By pattern of constants if that gives few classes, else by kind and place.

    Args:
        links: The robot.
        children: Of each link.
        streams: Of the program that will be done for the classes.
    """

    if not links:
        return LinkClasses([], [], np.zeros((0, 0)))
    kinds = _number_distinct([link.joint_kind for link in links])
    flat = flat_table(links)
    wholes = _mask_non_units(flat)
    R, p = flat[:, FlatLayout.R], flat[:, FlatLayout.p]
    scale, offset = flat[:, FlatLayout.scale], flat[:, FlatLayout.offset]
    entries = np.count_nonzero(R, axis=1)
    kind = np.stack([kinds, [link.size for link in links], R[:, 6] == 0.0], axis=1)
    driven = [any(link.armature) for link in links]
    drive = np.column_stack([kind, (scale != 1.0) | (offset != 0.0), driven])
    rotation = np.column_stack([drive, wholes[:, FlatLayout.R]])
    root = [link.parent == GROUND for link in links]
    ends = np.column_stack([root, [not c for c in children]])
    classes: list[int] = []
    families: list[int] = []
    same_constants, same_rotations, same_kind = (
        POLICY.max_class_weights_looped
        if len(links) * streams > POLICY.max_link_streams_unrolled
        else POLICY.max_class_weights
    )
    for columns, most in (
        ((drive, wholes), same_constants),
        ((rotation, p == 0.0), same_rotations),
        ((rotation,), same_rotations),
        ((drive, entries), same_kind),
        ((drive,), same_kind),
        ((kind,), same_kind),
    ):
        families = _number_distinct(_row_keys(np.column_stack(columns)))
        classes = _number_distinct(_row_keys(np.column_stack([families, ends])))
        if (
            _code_weight(np.array(classes), ends[:, 1], entries > _MAX_AXIS_ROTATION_ENTRIES)
            <= most
        ):
            break
    return LinkClasses(classes, families, flat)


def _code_weight(classes: Array, tips: Array, oblique: Array) -> float:
    """How much code the classes need; those of a class are all tips, or none.

    Formulas with oblique rotations are about half as long again.
    """
    long = set(classes[oblique].tolist())
    ends = dict(zip(classes.tolist(), tips.tolist(), strict=True))
    return sum((0.5 if tip else 1.0) * (1.5 if c in long else 1.0) for c, tip in ends.items())


def _number_distinct(keys: Sequence[Hashable]) -> list[int]:
    numbers = {each: i for i, each in enumerate(dict.fromkeys(keys))}
    return [numbers[each] for each in keys]


def _mask_non_units(x: Array) -> Array:
    """Numbers, those that are not 0, 1 or -1 as NaN."""
    # Adding 0 makes 0 of -0.
    return np.where((x == 0.0) | (np.abs(x) == 1.0), x + 0.0, math.nan)


def _row_keys(x: Array) -> list[bytes]:
    """Rows of numbers as keys."""
    text, size = x.tobytes(), x.itemsize * x.shape[1]
    return [text[i : i + size] for i in range(0, len(text), size)]


class InertiaKind(IntEnum):
    """What an inertia is; a sum is of the greatest kind of its terms."""

    ZERO = 0
    RIGID = 1
    SYMMETRIC = 2
    TRANSFER = 3


_ZERO_OF_KIND: dict[InertiaKind, Inertia] = {
    InertiaKind.ZERO: ZeroInertia(),
    InertiaKind.RIGID: RigidInertia(0.0, [0.0] * 3, [0.0] * 6),
    InertiaKind.SYMMETRIC: SymmetricInertia([0.0] * 6, [[0.0] * 3] * 3, [0.0] * 6),
    InertiaKind.TRANSFER: AngularTransfer([[0.0] * 3] * 3, [[0.0] * 3] * 3),
}
"""An inertia of each kind, for its form."""


def _result_kind(node: Node) -> InertiaKind | None:
    """The kind of inertia that an operation makes of whatever it is given; None if that depends."""
    if node.op == "rigid":
        return InertiaKind.RIGID
    if node.spec.value is None or node.spec.shift is not None:
        return None
    return InertiaKind.TRANSFER if node.type is Type.TRANSFER else InertiaKind.SYMMETRIC


def inertia_forms(program: StreamProgram) -> dict[int, Inertia]:
    """An inertia of the kind that each stream needs, by a fixed point over its recursions."""
    kinds: dict[int, InertiaKind] = defaultdict(lambda: InertiaKind.ZERO)
    changed = True
    while changed:
        changed = False
        for stream in program.live():
            node = program.nodes[stream]
            if node.type not in (Type.INERTIA, Type.TRANSFER):
                continue
            kind = _result_kind(node)
            if kind is None:
                given = (kinds[o] for o in program.operands(stream))
                kind = max(given, default=InertiaKind.ZERO)
            if kind != kinds[stream]:
                kinds[stream], changed = kind, True
    return {stream: _ZERO_OF_KIND[kind] for stream, kind in kinds.items()}


def flatten(value: LinkValue) -> Vector:
    """All numbers of a value."""
    if not isinstance(value, list):
        return value.scalars()
    return [x for row in value for x in (row if isinstance(row, list) else [row])]


def unflatten(value: LinkValue, scalars: Sequence[Scalar]) -> LinkValue:
    """Other numbers in the form of a value."""
    x = list(scalars)
    if isinstance(value, RigidInertia):
        return RigidInertia(x[0], x[1:4], x[4:])
    if isinstance(value, SymmetricInertia):
        return SymmetricInertia(x[:6], [x[6:9], x[9:12], x[12:15]], x[15:])
    if isinstance(value, AngularTransfer):
        return AngularTransfer([x[0:3], x[3:6], x[6:9]], [x[9:12], x[12:15], x[15:18]])
    if isinstance(value, ZeroInertia):
        return value
    if isinstance(value, LdlFactor):
        return LdlFactor.from_scalars(len(value.rows), x)
    if value and isinstance(value[0], list):
        width = len(value[0])
        return [x[i * width : (i + 1) * width] for i in range(len(value))]
    return x
