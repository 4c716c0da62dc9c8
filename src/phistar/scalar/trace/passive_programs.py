# SPDX-License-Identifier: BSD-3-Clause
"""Forces of springs, dampers and sliding friction as scalars, joint by joint.

    tau = -K e(q) - B v - F sign(v),    e the way from where springs rest, in the axes of v

Inputs and outputs are in the robot's own coordinates: mimic joints are part of their leaders.
"""

from __future__ import annotations

from collections.abc import Sequence

from phistar.model.joint_map import joint_map
from phistar.model.joint_physics import passive_numbers
from phistar.model.model import Model
from phistar.scalar.graph import Graph, Scalar, select
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.lower import quaternion_entries
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.robot.joint_transforms import GRAPH_OPS
from phistar.scalar.trace.kinematics_programs import RESULT_OUTPUT


def passive_force(model: Model, parts: Sequence[str]) -> Unrolled:
    """The joint forces of some of ``FORCE_PARTS``: q, v -> nv numbers."""
    body = BasicBlock(Graph())
    q: Vector = [body.graph.load("q", i) for i in range(model.nq)]
    v: Vector = [body.graph.load("v", i) for i in range(model.nv)]
    forces = passive_scalars(model, q, v, parts)
    body.stores += [Store(RESULT_OUTPUT, i, "", x) for i, x in enumerate(forces)]
    inputs = {"q": model.nq, "v": model.nv}
    return Unrolled(Signature(inputs, {RESULT_OUTPUT: model.nv}, quaternion_entries(model)), body)


def forced(model: Model, parts: Sequence[str], own: bool = True) -> Unrolled:
    """Joint forces with those of springs and so on: q, v, tau -> tau_total.

    Args:
        model: The robot.
        parts: What pushes.
        own: Whether joint vectors are in the robot's own coordinates, or in body order.
    """
    body = BasicBlock(Graph())
    # Where in the given vectors each of the robot's coordinates stands.
    order = list(range(model.nv)) if own else joint_map(model).v_indices.tolist()
    place = {i: k for k, i in enumerate(order)}
    q: Vector = [body.graph.load("q", i) for i in range(model.nq)]
    v: Vector = [body.graph.load("v", place[i]) for i in range(model.nv)]
    more = passive_scalars(model, q, v, parts)
    body.stores += [
        Store("tau_total", k, "", body.graph.load("tau", k) + more[i]) for k, i in enumerate(order)
    ]
    inputs = {"q": model.nq, "v": model.nv, "tau": model.nv}
    return Unrolled(Signature(inputs, {"tau_total": model.nv}, quaternion_entries(model)), body)


def passive_scalars(model: Model, q: Vector, v: Vector, parts: Sequence[str]) -> Vector:
    """The joint forces at a state, zero where there is nothing."""
    numbers = passive_numbers(model)
    total: Vector = [0.0] * model.nv
    if "springs" in parts and numbers.has("springs"):
        total = [-k * x for k, x in zip(numbers.stiffness.tolist(), stretch(model, q), strict=True)]
    if "damping" in parts:
        total = [x - b * y for x, b, y in zip(total, numbers.damping.tolist(), v, strict=True)]
    if "friction" in parts:
        total = [
            x - _sliding(f, y) for x, f, y in zip(total, numbers.friction.tolist(), v, strict=True)
        ]
    return total


def stretch(model: Model, q: Vector) -> Vector:
    """e(q) of joints that have springs, zero for all others."""
    numbers = passive_numbers(model)
    result: Vector = [0.0] * model.nv
    for joint in (model.joints[name] for name in model.joint_names):
        if numbers.stiffness[joint.v_slice].any():
            rest: Vector = numbers.spring_reference[joint.q_slice].tolist()
            result[joint.v_slice] = joint.joint_kind.displacement(rest, q[joint.q_slice], GRAPH_OPS)
    return result


def _sliding(friction: float, v: Scalar) -> Scalar:
    """Friction against a velocity; none at rest."""
    if friction == 0.0:
        return 0.0
    return select(v, 0.0, friction, select(0.0, v, -friction, 0.0))
