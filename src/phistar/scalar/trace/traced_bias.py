# SPDX-License-Identifier: BSD-3-Clause
"""The bias 𝒞 of a robot's own velocities and gravity, in the graph of its links."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.scalar.linear.vectors import Vector, zeros
from phistar.scalar.lower import trace_context
from phistar.scalar.trace.link_operations import as_vector
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.unrolled import UnrolledTrace
from phistar.sweeps.schedule import Schedule


def traced_bias(model: Model, bias: Schedule, absent: Set[str], robot: TracedLinks) -> Vector:
    """𝒞 in body order, of the inputs q and v in the robot's own order.

    Args:
        model: A robot whose joints all have coordinates of their own.
        bias: The sweeps of 𝒞.
        absent: Inputs that they are not given.
        robot: Its links; results are in their graph and axes.
    """
    places = tuple((int(i), 1.0) for i in joint_map(model).v_indices)
    context = trace_context(bias.program, model, absent)
    trace = UnrolledTrace(robot, replace(context, joint_places=places))
    trace.run(bias)
    (stream,) = bias.program.outputs.values()
    found = zeros(model.nv)
    for link in trace.tracers:
        values = as_vector(link.value(stream))
        found[link.v : link.v + len(values)] = values
    return found
