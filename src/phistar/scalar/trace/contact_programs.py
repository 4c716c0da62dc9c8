# SPDX-License-Identifier: BSD-3-Clause
"""Where a robot's pairs that may touch are, as a program: q, v -> gaps, places, axes, rates."""

from __future__ import annotations

from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.lower import DEFAULT_OPTIONS, link_number_choices, quaternion_entries
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.trace.contact_geometry import PLANES, ContactFrames
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.unilateral_rows import StepRows


def contact_points(model: Model, rows: StepRows) -> Unrolled:
    """q, v, planes -> ``gap``, ``position``, ``axes`` (normal, two tangents) and ``rates``.

    Places and axes in the world; rates of the gap and along the tangents. Planes, if any are given.
    """
    *_, links = link_number_choices(model, frozenset(), DEFAULT_OPTIONS)
    robot = TracedLinks(links)
    joints = joint_map(model)
    v: Vector = [
        float(scale) * robot.graph.load("v", int(i))
        for i, scale in zip(joints.v_indices, joints.scales, strict=True)
    ]
    frames = ContactFrames(model, robot, v)
    stores: list[Store] = []
    for k, row in enumerate(rows.contacts):
        point = frames.touching(row)
        stores.append(Store("gap", k, "", point.gap))
        for i in range(3):
            stores.append(Store("position", 3 * k + i, "", point.position[i]))
            stores.append(Store("rates", 3 * k + i, "", point.rates[i]))
            stores += [Store("axes", 9 * k + 3 * i + j, "", point.axes[i][j]) for j in range(3)]
    inputs = {"q": model.nq, "v": model.nv}
    if rows.given_planes:
        inputs[PLANES] = 4 * rows.given_planes
    count = len(rows.contacts)
    outputs = {"gap": count, "position": 3 * count, "axes": 9 * count, "rates": 3 * count}
    signature = Signature(inputs, outputs, quaternion_entries(model))
    return Unrolled(signature, BasicBlock(robot.graph, stores))
