# SPDX-License-Identifier: BSD-3-Clause
"""Forward dynamics over a step with springs and dampers at its end, unrolled.

    (𝓜 + h B + h² K) v̇ = τ - K e(q) - B v - h K v - 𝒞(q, v)

The left side is the mass matrix of a robot whose joints have more inertia: h B + h² K is added to
A, and the sweeps are those of forward dynamics.
"""

from __future__ import annotations

from collections.abc import Sequence

from phistar.model.joint_map import joint_map
from phistar.model.joint_physics import passive_numbers
from phistar.model.model import Model
from phistar.scalar.graph import Graph, Scalar
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.lower import quaternion_entries
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.trace.inline import inline
from phistar.scalar.trace.passive_programs import passive_scalars
from phistar.scalar.trace.traced_links import ADDED_INERTIA


def added_entries(model: Model, parts: Sequence[str]) -> dict[int, int]:
    """Joint velocities, in body order, that springs or dampers make heavier, and their place in v.

    Of joints that share a coordinate the leader is made heavier.
    """
    numbers = passive_numbers(model)
    heavy = (numbers.stiffness != 0.0) & ("springs" in parts)
    heavy |= (numbers.damping != 0.0) & ("damping" in parts)
    found: dict[int, int] = {}
    place = 0
    for body in model.bodies:
        for i in range(body.v_slice.start, body.v_slice.start + body.joint_kind.nv):
            if heavy[i] and model.joints[body.joint].mimic is None:
                found[place] = i
            place += 1
    return found


def implicit_dynamics(model: Model, parts: Sequence[str], heavier: Unrolled) -> Unrolled:
    """q, v, tau, dt -> vdot, in the robot's own coordinates.

    Args:
        model: The robot.
        parts: Those of the joint physics that push.
        heavier: Forward dynamics with more joint inertia, in body order or, where mimic joints are
            reduced, in the robot's own coordinates.
    """
    body = BasicBlock(Graph())
    q: Vector = [body.graph.load("q", i) for i in range(model.nq)]
    v: Vector = [body.graph.load("v", i) for i in range(model.nv)]
    tau: Vector = [body.graph.load("tau", i) for i in range(model.nv)]
    found = implicit_scalars(model, parts, heavier, q, v, tau, body.graph.load("dt", 0))
    body.stores += [Store("vdot", i, "", x) for i, x in enumerate(found)]
    inputs = {"q": model.nq, "v": model.nv, "tau": model.nv, "dt": 1}
    return Unrolled(Signature(inputs, {"vdot": model.nv}, quaternion_entries(model)), body)


def implicit_scalars(
    model: Model,
    parts: Sequence[str],
    heavier: Unrolled,
    q: Vector,
    v: Vector,
    tau: Vector,
    h: Scalar,
) -> Vector:
    """The accelerations at a state, all in the robot's own coordinates."""
    numbers = passive_numbers(model)
    K = (numbers.stiffness * ("springs" in parts)).tolist()
    B = (numbers.damping * ("damping" in parts)).tolist()
    pushed = zip(tau, passive_scalars(model, q, v, parts), K, v, strict=True)
    total: Vector = [x + p - h * (k * y) if k else x + p for x, p, k, y in pushed]
    added: Vector = [h * (b + h * k) if b or k else 0.0 for b, k in zip(B, K, strict=True)]
    joints = joint_map(model)
    order = joints.v_indices.tolist() if joints.one_to_one else list(range(model.nv))
    given = {"v": [v[i] for i in order], "tau": [total[i] for i in order]}
    (found,) = inline(heavier, {"q": q, ADDED_INERTIA: added, **given}).values()
    result: Vector = [0.0] * model.nv
    for i, x in zip(order, found, strict=True):
        result[i] = x
    return result
