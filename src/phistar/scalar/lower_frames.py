# SPDX-License-Identifier: BSD-3-Clause
"""Poses, velocities and Jacobians of frames: streams of the links, picked off where frames are.

A frame is a link of its own that does not move on the one that carries it, so its values are those
of any other link. Only the paths from the roots to the frames are walked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from phistar.algebra.ir import Expr
from phistar.algebra.symbols import POSE_ROWS, B, H, phi, velocities
from phistar.model.components import GROUND
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.scalar.linear.vectors import Vector, times
from phistar.scalar.lower import (
    DEFAULT_OPTIONS,
    in_own_coordinates,
    link_number_choices,
    signature_of,
    trace_context,
)
from phistar.scalar.lower_matrix import to_unrolled_matrix
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled, count_arithmetic
from phistar.scalar.robot.link_numbers import frames_as_links
from phistar.scalar.trace.kinematics_programs import RESULT_OUTPUT
from phistar.scalar.trace.link_operations import as_vector
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.unrolled import UnrolledTrace
from phistar.sweeps.lower import lower
from phistar.sweeps.matrix_requests import Full, MatrixForm, matrix_forms
from phistar.sweeps.prune import prune
from phistar.sweeps.schedule import Schedule, schedule
from phistar.sweeps.verify import verified

Arrange = Callable[[Mapping[str, Vector]], Vector]
"""Outputs at a frame by name -> the numbers that are stored."""


def frame_poses(model: Model, frames: Sequence[str]) -> Unrolled:
    """World poses of some frames: q -> 16 numbers each, rows one after the other."""

    def pose(rows: Mapping[str, Vector]) -> Vector:
        return [*rows["x"], *rows["y"], *rows["z"], 0.0, 0.0, 0.0, 1.0]

    return _at_frames(_PROGRAMS.poses, model, frames, pose)


def frame_velocity(model: Model, frame: str, reference: str = "local") -> Unrolled:
    """Velocity of a frame at its origin: q, v -> 6 numbers.

    Args:
        model: The robot.
        frame: Name of the frame.
        reference: ``"local"``, its own axes, or ``"world_aligned"``, those of the world.
    """
    if reference == "local":
        return _at_frames(_PROGRAMS.velocities, model, (frame,), lambda found: found["V"])

    def turned(found: Mapping[str, Vector]) -> Vector:
        R, V = [found[axis][:3] for axis in "xyz"], found["V"]
        return [*times(R, V[:3]), *times(R, V[3:])]

    return _at_frames(_PROGRAMS.poses_and_velocities, model, (frame,), turned)


def frame_jacobian(model: Model, frame: str) -> Unrolled | None:
    """Jacobian of a frame in its own axes, q -> 6 nv numbers: H φ B of unit forces on the frame.

    None where the robot's coordinates are not those of the joints of its bodies, in their order.
    """
    if not joint_map(model).is_identity:
        return None
    return to_unrolled_matrix([_PROGRAMS.jacobian_rows], model, (frame,))


class _FramePrograms:
    """Programs at frames before there is a robot, each made when it is first needed."""

    @cached_property
    def jacobian_rows(self) -> MatrixForm:
        """The form of B*φ*H* that walks inward, a row at a time."""
        forms = matrix_forms(B.T @ phi.T @ H.T, Full())
        return next(form for form in forms if form.transposed)

    @cached_property
    def poses(self) -> Schedule:
        """Rows of the poses."""
        return _scheduled(POSE_ROWS)

    @cached_property
    def velocities(self) -> Schedule:
        """Velocities in the frames' own axes."""
        return _scheduled({"V": velocities})

    @cached_property
    def poses_and_velocities(self) -> Schedule:
        """Both."""
        return _scheduled({**POSE_ROWS, "V": velocities})


_PROGRAMS = _FramePrograms()


def _scheduled(outputs: Mapping[str, Expr]) -> Schedule:
    return verified(schedule(prune(lower(outputs))))


def _at_frames(
    scheduled: Schedule, model: Model, frames: Sequence[str], arrange: Arrange
) -> Unrolled:
    """A program at frames, unrolled, in the axes with the fewest operations.

    Args:
        scheduled: Its outputs are motions or functions of place.
        model: The robot.
        frames: Names.
        arrange: The numbers of a frame.
    """
    program = scheduled.program
    signature, setting = in_own_coordinates(
        model,
        program,
        signature_of(scheduled, model, frozenset(), frozenset()),
        trace_context(program, model, frozenset()),
    )
    carriers = {model.frame(name).body for name in frames}
    paths = {k for body in carriers - {GROUND} for k in model.ancestors(body)}
    found = []
    for links in link_number_choices(model, frozenset(), DEFAULT_OPTIONS):
        robot = TracedLinks([*links, *frames_as_links(links, model, frames)])
        trace = UnrolledTrace(robot, setting)
        stores: list[Store] = []
        for k in sorted(paths):
            for stream in program.outputs.values():
                trace.tracers[k].value(stream)
        for tracer in trace.tracers[len(links) :]:
            here = {n: as_vector(tracer.value(s)) for n, s in program.outputs.items()}
            for x in arrange(here):
                stores.append(Store(RESULT_OUTPUT, len(stores), "", x))
        own = Signature(signature.inputs, {RESULT_OUTPUT: len(stores)}, signature.quaternions)
        found.append(Unrolled(own, BasicBlock(robot.graph, stores)))
    return min(found, key=lambda each: count_arithmetic(each.count()))
