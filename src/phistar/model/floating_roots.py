# SPDX-License-Identifier: BSD-3-Clause
"""Bodies that float in the world, over a step of time in which their axes stand still.

Velocities of a free joint are seen in the body's own axes, which turn: a step that adds h times
their rates makes a velocity longer by half of (h ω)² each time, so that what flies or rolls gains
speed. Here a step is seen from where the body was at its beginning: v* are velocities at the end of
the step in the axes of its beginning,

    v* = v + h v̇ + h c(v)        ω* = ω⁺,  (v + ω × c)* along R  =  (v + ω × c)⁺ along R⁺

with c(v) what turning axes had added, and the centre of mass goes on straight by h v*. A body
without children keeps its angular momentum as well: Iω* is Iω, turned back by what it turns by.
The formulas run on arrays (complex ones, too) and on values of scalar graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.model.components import GROUND, Body
from phistar.model.joints.free import Free
from phistar.model.joints.number_ops import ARRAY_OPS, Ops, join_entries, split_entries
from phistar.model.joints.spherical import turned_quaternion
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.spatial import inertia_components
from phistar.spatial.entries import (
    Entries,
    Number,
    cross,
    dot,
    minus,
    plus,
    quaternion_rotate,
    scaled,
)

Rows = tuple[tuple[float, ...], ...]
_ROUND = 1e-12
"""Part of an inertia up to which that of a ball may differ from the same about all axes."""


@dataclass(frozen=True)
class FloatingRoot:
    """A body that a free joint puts into the world.

    Attributes:
        q, v: Its first coordinates in configurations and joint vectors.
        com: Its centre of mass in its axes.
        inertia, inverse: Rotational inertia about it and the inverse, of a body that carries no
            others and whose angular velocity turns; None of other bodies.
    """

    q: int
    v: int
    com: tuple[float, ...]
    inertia: Rows | None = None
    inverse: Rows | None = None

    def carried(self, v: Entries, h: Number, ops: Ops) -> list[Number]:
        """h c(v) of a velocity of six numbers."""
        w = v[:3]
        center = plus(v[3:], cross(w, self.com))
        linear = scaled(h, cross(w, center))
        if self.inertia is None or self.inverse is None:
            return [0.0, 0.0, 0.0, *linear]
        momentum = [dot(row, w) for row in self.inertia]

        def turned_back(turn: Entries) -> list[Number]:
            back = _turned(scaled(-1.0, scaled(h, turn)), momentum, ops)
            return [dot(row, back) for row in self.inverse or ()]

        torque = [dot(row, cross(w, momentum)) for row in self.inverse]
        change = minus(turned_back(turned_back(w)), w)
        angular = plus(change, scaled(h, torque))
        return [*angular, *minus(linear, cross(angular, self.com))]

    def settled(
        self, q: Entries, v: Entries, h: Number, ops: Ops
    ) -> tuple[list[Number], list[Number]]:
        """q and v after a step, of v*."""
        w = v[:3]
        turn, center = scaled(h, w), plus(v[3:], cross(w, self.com))
        quaternion = turned_quaternion(q[3:], turn, ops)
        place = plus(q[:3], quaternion_rotate(q[3:], plus(self.com, scaled(h, center))))
        place = minus(place, quaternion_rotate(quaternion, self.com))
        linear = minus(_turned(scaled(-1.0, turn), center, ops), cross(w, self.com))
        return [*place, *quaternion], [*w, *linear]

    def unsettled(self, v: Entries, h: Number, ops: Ops) -> list[Number]:
        """v* of the velocity after a step."""
        w = v[:3]
        center = _turned(scaled(h, w), plus(v[3:], cross(w, self.com)), ops)
        return [*w, *minus(center, cross(w, self.com))]


@cached_on_model
def floating_roots(model: Model) -> tuple[FloatingRoot, ...]:
    """All of a robot."""
    carriers = {body.parent for body in model.bodies}
    return tuple(
        _root(body, body.index in carriers)
        for body in model.bodies
        if body.parent == GROUND and isinstance(body.joint_kind, Free)
    )


def _root(body: Body, carries: bool) -> FloatingRoot:
    mass, com, inertia = inertia_components(body.inertia)
    q, v = body.q_slice.start, body.v_slice.start
    if not mass > 0.0:
        return FloatingRoot(q, v, (0.0, 0.0, 0.0))
    center = tuple(float(x) for x in com)
    size = float(np.abs(inertia).max())
    ball = np.abs(inertia - inertia[0, 0] * np.eye(3)).max() <= _ROUND * size
    if carries or ball or any(body.armature):
        return FloatingRoot(q, v, center)
    rows = _rows(inertia)
    inverse = _inverse(rows)
    return FloatingRoot(q, v, center, rows if inverse else None, inverse)


def carried_velocity(model: Model, v: Array, h: float) -> Array:
    """h c(v) of joint vectors (..., nv); zero but for bodies that float."""
    found = np.zeros_like(v)
    for root in floating_roots(model):
        own = slice(root.v, root.v + 6)
        entries = split_entries(v[..., own])
        found[..., own] = join_entries(root.carried(entries, h, ARRAY_OPS), (v,))
    return found


def settled_state(model: Model, q: Array, v: Array, h: float, moved: Array) -> tuple[Array, Array]:
    """q and v after a step, of v*.

    Args:
        model: The robot.
        q: (..., nq) before the step.
        v: (..., nv) v*.
        h: Length of the step.
        moved: (..., nq) q ⊕ h v*, right for all but the bodies that float.
    """
    place, speed = moved.copy(), v.copy()
    for root in floating_roots(model):
        at, own = slice(root.q, root.q + 7), slice(root.v, root.v + 6)
        x, y = split_entries(q[..., at]), split_entries(v[..., own])
        found = root.settled(x, y, h, ARRAY_OPS)
        place[..., at] = join_entries(found[0], (q, v))
        speed[..., own] = join_entries(found[1], (q, v))
    return place, speed


def unsettled_velocity(model: Model, v: Array, h: float) -> Array:
    """v* of velocities (..., nv) after a step."""
    speed = v.copy()
    for root in floating_roots(model):
        own = slice(root.v, root.v + 6)
        entries = split_entries(v[..., own])
        speed[..., own] = join_entries(root.unsettled(entries, h, ARRAY_OPS), (v,))
    return speed


def _turned(turn: Entries, x: Entries, ops: Ops) -> list[Number]:
    """A vector, turned by a rotation vector."""
    arc, first = ops.arc(dot(turn, turn)), cross(turn, x)
    ahead = plus(x, scaled(arc.sine_ratio, first))
    return plus(ahead, scaled(arc.versine_ratio, cross(turn, first)))


def _rows(matrix: Sequence[Sequence[float]] | Array) -> Rows:
    return tuple(tuple(float(x) for x in row) for row in matrix)


def _inverse(rows: Rows) -> Rows | None:
    """Of a symmetric 3 x 3 matrix, by cofactors: a number of programs, which no library rounds.

    None of a rod's, which nothing turns about its axis.
    """
    x, y, z = rows
    cofactors = cross(y, z), cross(z, x), cross(x, y)
    determinant = float(dot(x, cofactors[0]))
    if determinant <= _ROUND * max(x[0], y[1], z[2]) ** 3:
        return None
    return tuple(tuple(float(each / determinant) for each in row) for row in cofactors)
