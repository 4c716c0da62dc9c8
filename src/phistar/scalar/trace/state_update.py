# SPDX-License-Identifier: BSD-3-Clause
"""Updates of a state in time, unrolled: q' = q ⊕ h(Σ c v + h Σ c [v, v]), x' = x + h Σ d ẋ.

⊕ is each joint's X_J(q) exp(H* u): an addition for angles and lengths, the exponential of SO(3),
SE(3) or SE(2) for the others, as ``model.configuration.integrate`` has it. [v, w] is the bracket of
the joints' motions, zero where ⊕ is an addition. Joint vectors are in body order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phistar.model.joints import JointKind
from phistar.model.model import Model
from phistar.scalar.graph import Graph, Scalar, runtime_values
from phistar.scalar.linear.vectors import Vector, plus, scaled
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.robot.joint_transforms import GRAPH_OPS


@dataclass(frozen=True)
class StateUpdate:
    """Weights of an update; stages are numbered.

    Attributes:
        velocity_weights: Stage and weight c of each velocity v.
        bracket_weights: Two stages and the weight of each bracket [v, v] of velocities.
        rate_weights: Stage and weight d of each rate ẋ of the state variable.
    """

    velocity_weights: tuple[tuple[int, float], ...] = ()
    bracket_weights: tuple[tuple[int, int, float], ...] = ()
    rate_weights: tuple[tuple[int, float], ...] = ()

    @property
    def velocities(self) -> tuple[int, ...]:
        """The stages whose velocities it reads."""
        pairs = [stage for one, other, _ in self.bracket_weights for stage in (one, other)]
        return tuple(sorted({stage for stage, _ in self.velocity_weights} | set(pairs)))


@dataclass(frozen=True)
class JointOffsets:
    """Where a joint's numbers stand: its kind, the first entry in q, the first in joint vectors."""

    kind: JointKind
    q: int
    v: int


def joint_offsets(model: Model) -> tuple[JointOffsets, ...]:
    """The joints of a robot's bodies, joint vectors in body order."""
    found, place = [], 0
    for body in model.bodies:
        found.append(JointOffsets(body.joint_kind, body.q_slice.start, place))
        place += body.joint_kind.nv
    return tuple(found)


def own_joint_offsets(model: Model) -> tuple[JointOffsets, ...]:
    """The joints that have coordinates of their own, joint vectors in the robot's order."""
    return tuple(
        JointOffsets(body.joint_kind, body.q_slice.start, body.v_slice.start)
        for body in model.bodies
        if model.joints[body.joint].mimic is None
    )


def to_state_update(joints: Sequence[JointOffsets], update: StateUpdate) -> Unrolled:
    """An update, unrolled.

    It reads ``q``, ``x``, the step ``h``, velocities ``v<stage>`` and rates ``a<stage>``, and gives
    ``q_new`` and ``x_new``.
    """
    nq = sum(seat.kind.nq for seat in joints)
    nv = sum(seat.kind.nv for seat in joints)
    read = [f"v{stage}" for stage in update.velocities]
    read += [f"a{stage}" for stage, _ in update.rate_weights]
    inputs = {"q": nq, "x": nv, "h": 1, **dict.fromkeys(read, nv)}
    body = BasicBlock(Graph())
    g = body.graph
    h = g.load("h", 0)
    for seat in joints:
        own = range(seat.v, seat.v + seat.kind.nv)
        here: dict[int, Vector] = {s: [g.load(f"v{s}", i) for i in own] for s in update.velocities}
        moved = _weighted_motion(seat.kind, h, update, here)
        start: Vector = [g.load("q", seat.q + i) for i in range(seat.kind.nq)]
        # Without velocities nothing moves, and quaternions need not be made unit ones again.
        end = seat.kind.step(start, moved, GRAPH_OPS) if runtime_values(moved) else start
        body.stores += [Store("q_new", seat.q + i, "", y) for i, y in enumerate(end)]
        for i in own:
            total: Scalar = 0.0
            for stage, weight in update.rate_weights:
                total = total + weight * g.load(f"a{stage}", i)
            body.stores.append(Store("x_new", i, "", g.load("x", i) + h * total))
    return Unrolled(Signature(inputs, {"q_new": nq, "x_new": nv}), body)


def _weighted_motion(
    kind: JointKind, h: Scalar, update: StateUpdate, v: dict[int, Vector]
) -> Vector:
    """h(Σ c v + h Σ c [v, v])."""
    total: Vector = [0.0] * kind.nv
    for stage, weight in update.velocity_weights:
        total = plus(total, scaled(weight, v[stage]))
    if not kind.is_euclidean:
        for one, other, weight in update.bracket_weights:
            total = plus(total, scaled(weight * h, kind.bracket(v[one], v[other])))
    return scaled(h, total)
