# SPDX-License-Identifier: BSD-3-Clause
"""One step of an explicit scheme as a straight line: the stages of small robots in one graph."""

from __future__ import annotations

from collections.abc import Sequence

from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.scalar.graph import Graph
from phistar.scalar.linear.vectors import Vector, plus
from phistar.scalar.lower import quaternion_entries
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.trace.implicit_programs import implicit_scalars
from phistar.scalar.trace.inline import inline
from phistar.scalar.trace.limit_programs import outside_limits
from phistar.scalar.trace.passive_programs import passive_scalars
from phistar.scalar.trace.state_update import joint_offsets, own_joint_offsets, to_state_update
from phistar.sim.schemes import EvaluateRates, Scheme


def step_program(
    model: Model, scheme: Scheme, rates: Unrolled, smooth: tuple[str, ...] = ()
) -> Unrolled:
    """A step: q, v, tau, dt -> q_next, v_next, in the robot's own coordinates.

    Args:
        model: The robot.
        scheme: What a step is.
        rates: Forward dynamics, q, v, tau -> vdot, joint vectors in body order; in the robot's own
            where mimic joints are reduced. Of an implicit scheme with springs or dampers it
            also reads the joint inertia that these add.
        smooth: Springs and dampers that push; with ``"limits"`` steps that lead beyond a limit
            have no result.
    """
    joints = joint_map(model)
    order, offsets = joints.v_indices.tolist(), joint_offsets(model)
    if not joints.one_to_one:
        order, offsets = list(range(model.nv)), own_joint_offsets(model)
    g = Graph()

    def load(name: str) -> Vector:
        return [g.load(name, i) for i in order]

    tau = load("tau")

    def accelerations(q: Vector, v: Vector) -> Vector:
        """Joint vectors in the order of the program."""
        if not set(smooth) & {"springs", "damping"}:
            (found,) = inline(rates, {"q": q, "v": v, "tau": tau}).values()
            return found
        here, push = _placed(order, v), _placed(order, tau)
        if scheme.implicit:
            h = g.load("dt", 0)
            found = implicit_scalars(model, smooth, rates, q, here, push, h)
            return [found[i] for i in order]
        total = plus(push, passive_scalars(model, q, here, smooth))
        (found,) = inline(rates, {"q": q, "v": v, "tau": [total[i] for i in order]}).values()
        return found

    start: Vector = [g.load("q", i) for i in range(model.nq)]
    states = {0: (start, load("v"))}
    known: dict[str, Vector] = {"q": start, "x": states[0][1], "h": [g.load("dt", 0)]}
    for part in scheme.instructions:
        if isinstance(part, EvaluateRates):
            q, v = states[part.stage]
            known[f"v{part.stage}"] = v
            if not part.velocity_only:
                known[f"a{part.stage}"] = accelerations(q, v)
            continue
        update = to_state_update(offsets, part.update)
        ahead = inline(update, {name: known[name] for name in update.signature.inputs})
        states[part.stage] = ahead["q_new"], ahead["x_new"]
    return _stored(model, g, order, states[0], start if "limits" in smooth else None)


def _stored(
    model: Model,
    g: Graph,
    order: Sequence[int],
    end: tuple[Vector, Vector],
    start: Vector | None,
) -> Unrolled:
    """The program that ends in a state.

    Args:
        model, g: The robot, and the graph.
        order: Numbers in v of what a joint vector of the program holds.
        end: The state.
        start: Configuration that the step began with, where it must stay within the limits.
    """
    q_next, v_next = end
    if start is not None:
        invalid = outside_limits(model, start, q_next)
        q_next = [x + invalid for x in q_next]
    stores = [Store("q_next", i, "", x) for i, x in enumerate(q_next)]
    stores += [Store("v_next", i, "", x) for i, x in zip(order, v_next, strict=True)]
    inputs = {"q": model.nq, "v": model.nv, "tau": model.nv, "dt": 1}
    outputs = {"q_next": model.nq, "v_next": model.nv}
    return Unrolled(Signature(inputs, outputs, quaternion_entries(model)), BasicBlock(g, stores))


def _placed(order: list[int], x: Vector) -> Vector:
    """A joint vector in the robot's own coordinates."""
    result: Vector = [0.0] * len(order)
    for i, value in zip(order, x, strict=True):
        result[i] = value
    return result
