# SPDX-License-Identifier: BSD-3-Clause
"""Steps on the configuration space of one robot as unrolled programs, joint by joint.

Inputs and outputs are in the robot's own coordinates: joints that mimic others have none, so every
robot has these programs.
"""

from __future__ import annotations

from phistar.model.model import Model
from phistar.scalar.graph import Graph, Scalar
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.lower import quaternion_entries
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.robot.joint_transforms import GRAPH_OPS
from phistar.scalar.trace.kinematics_programs import RESULT_OUTPUT


def integrate(model: Model) -> Unrolled:
    """The configuration reached along a tangent step: q, dv -> nq numbers."""
    body = BasicBlock(Graph())
    q, dv = _loads(body.graph, "q", model.nq), _loads(body.graph, "dv", model.nv)
    _store(body, integrated(model, q, dv))
    inputs = {"q": model.nq, "dv": model.nv}
    return Unrolled(Signature(inputs, {RESULT_OUTPUT: model.nq}, quaternion_entries(model)), body)


def difference(model: Model) -> Unrolled:
    """The tangent step from one configuration to another: q0, q1 -> nv numbers."""
    body = BasicBlock(Graph())
    q0, q1 = (_loads(body.graph, name, model.nq) for name in ("q0", "q1"))
    result: Vector = [0.0] * model.nv
    for joint in (model.joints[name] for name in model.joint_names):
        kind = joint.joint_kind
        result[joint.v_slice] = kind.step_between(q0[joint.q_slice], q1[joint.q_slice], GRAPH_OPS)
    _store(body, result)
    inputs = {"q0": model.nq, "q1": model.nq}
    entries = quaternion_entries(model)
    return Unrolled(Signature(inputs, {RESULT_OUTPUT: model.nv}, entries, ("q0", "q1")), body)


def integrated(model: Model, q: Vector, dv: Vector) -> Vector:
    """q ⊕ dv of all joints."""
    result: Vector = [0.0] * model.nq
    for joint in (model.joints[name] for name in model.joint_names):
        result[joint.q_slice] = joint.joint_kind.step(
            q[joint.q_slice], dv[joint.v_slice], GRAPH_OPS
        )
    return result


def _loads(graph: Graph, name: str, size: int) -> Vector:
    return [graph.load(name, i) for i in range(size)]


def _store(body: BasicBlock, values: list[Scalar]) -> None:
    body.stores += [Store(RESULT_OUTPUT, i, "", x) for i, x in enumerate(values)]
