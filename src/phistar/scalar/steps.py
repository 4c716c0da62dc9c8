# SPDX-License-Identifier: BSD-3-Clause
"""Updates of a state in time as straight lines: q' = q ⊕ h(Σ c v + h Σ c [v, v]), x' = x + h Σ d ẋ.

⊕ is each joint's X_J(q) exp(H* u): an addition for angles and lengths, the exponential of SO(3),
SE(3) or SE(2) for the others, as ``model.configuration.integrate`` has it. [v, w] is the bracket of
the joints' motions, zero where ⊕ is an addition. Joint vectors are in body order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from phistar.model.joints import Free, JointKind, Planar, Spherical
from phistar.model.model import Model
from phistar.scalar.graph import Graph, Scalar, cos, sin, sqrt, values
from phistar.scalar.program import Body, Signature, Store, Straight
from phistar.scalar.vectors import Vector, cross, dot, minus, plus, scaled

TINY = 1e-100
"""Added to squares of angles, so that quotients of small angles are their limits, not 0 / 0."""


@dataclass(frozen=True)
class Update:
    """Weights of an update; stages are numbered.

    Attributes:
        moves: Stage and weight c of each velocity v.
        turns: Two stages and the weight of each bracket [v, v] of velocities.
        rates: Stage and weight d of each rate ẋ of the state variable.
    """

    moves: tuple[tuple[int, float], ...] = ()
    turns: tuple[tuple[int, int, float], ...] = ()
    rates: tuple[tuple[int, float], ...] = ()

    @property
    def velocities(self) -> tuple[int, ...]:
        """The stages whose velocities it reads."""
        pairs = [stage for one, other, _ in self.turns for stage in (one, other)]
        return tuple(sorted({stage for stage, _ in self.moves} | set(pairs)))


@dataclass(frozen=True)
class Seat:
    """Where a joint's numbers stand: its kind, the first entry in q, the first in joint vectors."""

    kind: JointKind
    q: int
    v: int


def seats(model: Model) -> tuple[Seat, ...]:
    """The joints of a robot's bodies, joint vectors in body order."""
    found, place = [], 0
    for body in model.bodies:
        found.append(Seat(body.motion, body.q_slice.start, place))
        place += body.motion.nv
    return tuple(found)


def to_update(joints: Sequence[Seat], update: Update) -> Straight:
    """The straight line of an update.

    It reads ``q``, ``x``, the step ``h``, velocities ``v<stage>`` and rates ``a<stage>``, and gives
    ``q_new`` and ``x_new``.
    """
    nq = sum(seat.kind.nq for seat in joints)
    nv = sum(seat.kind.nv for seat in joints)
    read = [f"v{stage}" for stage in update.velocities]
    read += [f"a{stage}" for stage, _ in update.rates]
    inputs = {"q": nq, "x": nv, "h": 1, **dict.fromkeys(read, nv)}
    body = Body(Graph())
    g = body.graph
    h = g.load("h", 0)
    for seat in joints:
        own = range(seat.v, seat.v + seat.kind.nv)
        here: dict[int, Vector] = {s: [g.load(f"v{s}", i) for i in own] for s in update.velocities}
        moved = _moved(seat.kind, h, update, here)
        start: Vector = [g.load("q", seat.q + i) for i in range(seat.kind.nq)]
        end = integrated(seat.kind, start, moved)
        body.stores += [Store("q_new", seat.q + i, "", y) for i, y in enumerate(end)]
        for i in own:
            total: Scalar = 0.0
            for stage, weight in update.rates:
                total = total + weight * g.load(f"a{stage}", i)
            body.stores.append(Store("x_new", i, "", g.load("x", i) + h * total))
    return Straight(Signature(inputs, {"q_new": nq, "x_new": nv}), body)


def _moved(kind: JointKind, h: Scalar, update: Update, v: dict[int, Vector]) -> Vector:
    """h(Σ c v + h Σ c [v, v])."""
    total: Vector = [0.0] * kind.nv
    for stage, weight in update.moves:
        total = plus(total, scaled(weight, v[stage]))
    if not kind.is_euclidean:
        for one, other, weight in update.turns:
            total = plus(total, scaled(weight * h, bracket(kind, v[one], v[other])))
    return scaled(h, total)


def bracket(kind: JointKind, a: Vector, b: Vector) -> Vector:
    """[a, b] of two motions of a joint whose steps are no additions."""
    if isinstance(kind, Spherical):
        return cross(a, b)
    if isinstance(kind, Free):
        turn = minus(cross(a[:3], b[3:]), cross(b[:3], a[3:]))
        return [*cross(a[:3], b[:3]), *turn]
    assert isinstance(kind, Planar)
    return [b[2] * a[1] - a[2] * b[1], a[2] * b[0] - b[2] * a[0], 0.0]


def integrated(kind: JointKind, q: Vector, u: Vector) -> Vector:
    """q ⊕ u of one joint."""
    if kind.is_euclidean:
        return plus(q, u)
    if not values(u):
        return q
    return _STEPS[type(kind)](q, u)


def _spherical(q: Vector, u: Vector) -> Vector:
    half = scaled(0.5, u)
    angle = sqrt(dot(half, half) + TINY)
    x, y, z = scaled(sin(angle) / angle, half)
    w = cos(angle)
    a, b, c, d = q
    product = [
        d * x + a * w + b * z - c * y,
        d * y - a * z + b * w + c * x,
        d * z + a * y - b * x + c * w,
        d * w - a * x - b * y - c * z,
    ]
    return scaled(1.0 / sqrt(dot(product, product)), product)


def _free(q: Vector, u: Vector) -> Vector:
    w, v = u[:3], u[3:]
    square = dot(w, w) + TINY
    angle = sqrt(square)
    half = sin(0.5 * angle)
    turn = cross(w, v)
    # The second factor loses digits at small angles, as many as the square of w makes up for.
    shift = plus(v, scaled(2.0 * half * half / square, turn))
    shift = plus(shift, scaled((angle - sin(angle)) / (square * angle), cross(w, turn)))
    r = q[3:6]
    # R p = p + 2 r × (r × p + w p)
    inner = plus(cross(r, shift), scaled(q[6], shift))
    place = plus(q[:3], plus(shift, scaled(2.0, cross(r, inner))))
    return [*place, *_spherical(q[3:], w)]


def _planar(q: Vector, u: Vector) -> Vector:
    turn = u[2]
    square = turn * turn + TINY
    angle = sqrt(square)
    half = sin(0.5 * angle)
    ahead = sin(angle) / angle
    aside = turn * (2.0 * half * half / square)
    x, y = ahead * u[0] - aside * u[1], aside * u[0] + ahead * u[1]
    c, s = cos(q[2]), sin(q[2])
    return [q[0] + (c * x - s * y), q[1] + (s * x + c * y), q[2] + turn]


_STEPS: dict[type[JointKind], Callable[[Vector, Vector], Vector]] = {
    Spherical: _spherical,
    Free: _free,
    Planar: _planar,
}
