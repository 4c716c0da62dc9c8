# SPDX-License-Identifier: BSD-3-Clause
"""Rows of loops between the ground and a link, from what the sweeps over the links know already.

Such a row is a force Γ on the link per unit multiplier, constant in its axes for joints whose free
motions are a group, and with the motion V and the acceleration α of the link at v̇ = 0

    Lv = Γ*V        L̇v = Γ*α

so that neither L nor the chain of joints to the ground is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from phistar.model.components import GROUND, LoopJoint
from phistar.model.kinematic_loops import LoopEnd, active_loops, loop_ends
from phistar.model.loop_kinds import LOOP_KINDS, LowerPair, RelativePose
from phistar.model.model import Model
from phistar.scalar.linear.symmetric_factor import is_zero
from phistar.scalar.linear.vectors import Vector, cross, dot, minus, plus, times, zeros
from phistar.scalar.robot.joint_transforms import GRAPH_OPS
from phistar.scalar.robot.link_numbers import placement_in_link
from phistar.scalar.trace.link_operations import as_vector
from phistar.scalar.trace.loop_programs import row_counts
from phistar.scalar.trace.loop_tracer import LineRows, LinkForce
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.unrolled import UnrolledTrace
from phistar.sweeps.ir import StreamProgram


class LinkMotions:
    """Motions of links in the trace of a program with classical accelerations.

    Args:
        trace: The trace.
        program: Its streams.
    """

    def __init__(self, trace: UnrolledTrace, program: StreamProgram) -> None:
        self._trace = trace
        (turning,) = (n for n in program.nodes if n.op == "angular_acceleration_matrix")
        self._velocity, self._acceleration = turning.operands
        (self._gravity,) = (
            i for i, n in enumerate(program.nodes) if n.op == "leaf" and n.data == "gravity"
        )
        self._falls: dict[int, Vector] = {}

    def velocity(self, k: int) -> Vector:
        """V, in the axes of the link."""
        return as_vector(self._trace.tracers[k].value(self._velocity))

    def acceleration(self, k: int) -> Vector:
        """α at v̇ = 0 without gravity, in the axes of the link."""
        V = self.velocity(k)
        classical = as_vector(self._trace.tracers[k].value(self._acceleration))
        linear = minus(minus(classical[3:], self._fall(k)), cross(V[:3], V[3:]))
        return [*classical[:3], *linear]

    def _fall(self, k: int) -> Vector:
        """The linear acceleration that stands for gravity, in the axes of a link."""
        if k not in self._falls:
            robot = self._trace.traced_links
            parent = robot.links[k].parent
            if parent == GROUND:
                found = as_vector(self._trace.tracers[k].value(self._gravity))[3:]
            else:
                found = robot.placed_links[k].rotation.rotate_back(self._fall(parent))
            self._falls[k] = found
        return self._falls[k]


@dataclass(frozen=True)
class GroundLoop:
    """A loop from the ground to a link.

    Attributes:
        loop: The loop.
        ends: Its frames, the first one on the ground.
        rows: Numbers of its rows.
    """

    loop: LoopJoint
    ends: tuple[LoopEnd, LoopEnd]
    rows: range


def ground_loops(model: Model) -> Iterator[GroundLoop]:
    """The active loops whose rows are constant forces on a link."""
    first = 0
    for loop, count in zip(active_loops(model.loops), row_counts(model), strict=True):
        rows = range(first, first + count)
        first += count
        if not isinstance(loop, LoopJoint) or not isinstance(LOOP_KINDS[loop.kind], LowerPair):
            continue
        ends = loop_ends(model, loop)
        if ends[0].body == GROUND != ends[1].body:
            yield GroundLoop(loop, ends, rows)


def with_ground_rows(
    model: Model, robot: TracedLinks, motions: LinkMotions, rows: LineRows
) -> LineRows:
    """Rows, those of loops with the ground as forces on links and in their own units."""
    L, rate, bias, error = list(rows.L), list(rows.rate), list(rows.bias), list(rows.error)
    forces, units = dict(rows.forces), list(rows.units)
    places = {number: i for i, number in enumerate(rows.numbers)}
    for each in ground_loops(model):
        k = each.ends[1].body
        V, alpha = motions.velocity(k), motions.acceleration(k)
        gap = _gap(robot, each) if each.loop.kind == "spherical" else [None] * len(each.rows)
        for number, force, x in zip(each.rows, _forces(robot, each), gap, strict=True):
            if number not in places:
                continue
            i = places[number]
            L[i] = zeros(model.nv)
            forces[i] = LinkForce(k, force)
            rate[i] = dot(force, V)
            bias[i] = dot(force, alpha)
            if not is_zero(error[i]):
                # As long in these axes as in those of the rows: errors are only looked at.
                error[i] = (1.0 / units[i]) * error[i] if x is None else x
            units[i] = 1.0
    return replace(rows, L=L, rate=rate, bias=bias, error=error, forces=forces, units=units)


def _forces(robot: TracedLinks, each: GroundLoop) -> list[Vector]:
    """Γ of each row, in the axes and at the origin of the link."""
    end = each.ends[1]
    place = placement_in_link(robot.links, end.body, end.pose)
    axes, p = place.R.tolist(), place.p.tolist()
    found = []
    columns = LOOP_KINDS[each.loop.kind].columns(each.loop, RelativePose((), ()), GRAPH_OPS)
    for column in columns:
        force = times(axes, list(column[3:]))
        found.append([*plus(times(axes, list(column[:3])), cross(p, force)), *force])
    return found


def _gap(robot: TracedLinks, each: GroundLoop) -> Vector:
    """From the frame on the ground to the one on the link, in the axes of the world."""
    end = each.ends[1]
    k, r = end.body, placement_in_link(robot.links, end.body, end.pose).p.tolist()
    while k != GROUND:
        place = robot.placed_links[k]
        r = plus(place.rotation.rotate(r), place.offset)
        k = robot.links[k].parent
    return minus(r, each.ends[0].pose[:3, 3].tolist())
