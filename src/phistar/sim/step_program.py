# SPDX-License-Identifier: BSD-3-Clause
"""One step of an explicit scheme as a straight line: the stages of small robots in one graph."""

from __future__ import annotations

from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.scalar.graph import Graph
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.lower import quaternion_entries
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled, count_arithmetic
from phistar.scalar.trace.inline import inline
from phistar.scalar.trace.state_update import joint_offsets, own_joint_offsets, to_state_update
from phistar.sim.schemes import EvaluateRates, Scheme


def step_operations(scheme: Scheme, rates: Unrolled) -> int:
    """About how many operations a step takes: those of the dynamics at its stages."""
    stages = sum(isinstance(p, EvaluateRates) and not p.velocity_only for p in scheme.instructions)
    return stages * count_arithmetic(rates.count())


def step_program(model: Model, scheme: Scheme, rates: Unrolled) -> Unrolled:
    """A step: q, v, tau, dt -> q_next, v_next, in the robot's own coordinates.

    Args:
        model: The robot.
        scheme: What a step is.
        rates: Forward dynamics, q, v, tau -> vdot, joint vectors in body order; in the robot's own
            where mimic joints are reduced.
    """
    joints = joint_map(model)
    order, offsets = joints.v_indices.tolist(), joint_offsets(model)
    if not joints.one_to_one:
        order, offsets = list(range(model.nv)), own_joint_offsets(model)
    g = Graph()

    def load(name: str) -> Vector:
        return [g.load(name, i) for i in order]

    tau = load("tau")
    start: Vector = [g.load("q", i) for i in range(model.nq)]
    states = {0: (start, load("v"))}
    known: dict[str, Vector] = {"q": start, "x": states[0][1], "h": [g.load("dt", 0)]}
    for part in scheme.instructions:
        if isinstance(part, EvaluateRates):
            q, v = states[part.stage]
            known[f"v{part.stage}"] = v
            if not part.velocity_only:
                given = {"q": q, "v": v, "tau": tau}
                (known[f"a{part.stage}"],) = inline(rates, given).values()
            continue
        update = to_state_update(offsets, part.update)
        ahead = inline(update, {name: known[name] for name in update.signature.inputs})
        states[part.stage] = ahead["q_new"], ahead["x_new"]
    q_next, v_next = states[0]
    stores = [Store("q_next", i, "", x) for i, x in enumerate(q_next)]
    stores += [Store("v_next", i, "", x) for i, x in zip(order, v_next, strict=True)]
    inputs = {"q": model.nq, "v": model.nv, "tau": model.nv, "dt": 1}
    outputs = {"q_next": model.nq, "v_next": model.nv}
    return Unrolled(Signature(inputs, outputs, quaternion_entries(model)), BasicBlock(g, stores))
