# SPDX-License-Identifier: BSD-3-Clause
"""Small kernels for wrenches on frames: as forces on links, and what they change by as they turn.

Unrolled programs move wrenches to links themselves. Loops and matrices read forces on all links;
the first kernel runs before them. Along paths too long to be unrolled, loops carry wrenches:
with moment and force exchanged they go outward as motions do.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.backends.base import VectorExecutable, build_vectors
from phistar.backends.llvm.run.entry import make_entry
from phistar.backends.policy import NUMPY, TracedWork
from phistar.backends.robot_programs import TracedProgram, VectorProgram
from phistar.model.configuration import normalized_configuration
from phistar.model.model import Model
from phistar.model.model_cache import Entry, cached_for_equal_models
from phistar.model.wrenches import Wrenches, WrenchFrames
from phistar.model.wrenches import link_forces as numpy_link_forces
from phistar.scalar.program import Unrolled
from phistar.scalar.trace.wrench_programs import (
    RESULT_OUTPUT,
    link_force_program,
    stiffness_program,
)
from phistar.spatial import motion_transform, pose_inverse
from phistar.sweeps.ir import StreamProgram, Type
from phistar.sweeps.schedule import schedule

if TYPE_CHECKING:
    from phistar.backends.to_llvm import MachineCode


def link_forces(model: Model, q: Array, wrenches: Wrenches) -> Array:
    """Forces on all bodies in their axes, (..., bodies, 6).

    Args:
        model: The robot.
        q: (..., nq).
        wrenches: Their batches broadcast with that of q.
    """
    code = _link_force_code(model, wrenches.at)
    if code is None:
        return _carried_outward(model, q, wrenches)
    found = _run(code, q, wrenches)
    if found is None:
        # The kernel is not worth making yet, not ready, or q is not a configuration.
        return numpy_link_forces(model, normalized_configuration(model, q), wrenches)
    bodies = wrenches.at.bodies(model)
    result = np.zeros((*found.shape[:-1], len(model.bodies), 6), found.dtype)
    for i, body in enumerate(bodies):
        result[..., body, :] = found[..., 6 * i : 6 * i + 6]
    return result


def _carried_outward(model: Model, q: Array, wrenches: Wrenches) -> Array:
    """Forces on all bodies, for wrenches given in the world, by loops over the links."""
    q = normalized_configuration(model, q)
    frames = [model.frame(name) for name in wrenches.at.frames]
    starts: list[tuple[int, Array]] = []
    for frame, wrench in zip(frames, wrenches.arrays, strict=True):
        root, force = model.ancestors(frame.body)[0], wrench[..., 3:]
        if wrenches.at.reference == "world":
            starts.append((root, np.concatenate([force, wrench[..., :3]], axis=-1)))
        else:
            # What turns with the axes alone is an angular velocity.
            none = np.zeros_like(force)
            starts.append((root, np.concatenate([wrench[..., :3], none], axis=-1)))
            starts.append((root, np.concatenate([force, none], axis=-1)))
    batch = np.broadcast_shapes(q.shape[:-1], wrenches.batch)
    dtype = np.result_type(q, *wrenches.arrays)
    given = np.zeros((len(starts), *batch, len(model.bodies), 6), dtype)
    for i, (root, x) in enumerate(starts):
        inward = motion_transform(pose_inverse(model.bodies[root].transform(q)))
        given[i, ..., root, :] = (inward @ x[..., None])[..., 0]
    moved = _outward_code(model)(q, {MOTION_INPUT: given})[MOTION_INPUT]
    total = np.zeros((*batch, len(model.bodies), 6), dtype)
    for i, frame in enumerate(frames):
        if wrenches.at.reference == "world":
            here = moved[i, ..., frame.body, :]
            moment, force = here[..., 3:], here[..., :3]
        else:
            here = moved[2 * i : 2 * i + 2, ..., frame.body, :3]
            force = here[1]
            moment = here[0] + np.cross(frame.body_pose[:3, 3].astype(dtype), force)
        total[..., frame.body, :3] += moment
        total[..., frame.body, 3:] += force
    return total


MOTION_INPUT = "x"
"""Motions that are given at links, and what they make of all links that these carry."""


@cached_for_equal_models(1)
def _outward_code(model: Model) -> VectorExecutable:
    """φ*: motions at links, handed on outward."""
    program = StreamProgram()
    total = program.recursion(MOTION_INPUT, Type.MOTION)
    carried = program.apply("shift_out", total)
    one = Fraction(1)
    program.define(
        total, program.sum([(one, carried), (one, program.leaf(MOTION_INPUT, Type.MOTION))])
    )
    program.outputs = {MOTION_INPUT: total}
    return build_vectors("llvm", VectorProgram(schedule(program), model))


def stiffness(model: Model, q: Array, wrenches: Wrenches) -> Array | None:
    """Σ J*SJ (..., joints, joints) in the order of bodies, see ``scalar.trace.wrench_programs``.

    None where the kernel is not worth making, or not ready.
    """
    return _run(_stiffness_code(model, wrenches.at), q, wrenches)


def _run(code: MachineCode | None, q: Array, wrenches: Wrenches) -> Array | None:
    """The result of a kernel, if there is one and all is finite."""
    found = None if code is None else code.try_run({"q": q, **wrenches.inputs})
    return found[0][RESULT_OUTPUT] if found is not None and found[1] else None


@cached_for_equal_models(256)
def _link_force_code(model: Model, at: WrenchFrames) -> MachineCode | None:
    size = 6 * len(at.bodies(model))
    return _traced(model, at, "link_forces", (size,), link_force_program)


@cached_for_equal_models(256)
def _stiffness_code(model: Model, at: WrenchFrames) -> MachineCode | None:
    size = sum(body.joint_kind.nv for body in model.bodies)
    return _traced(model, at, "wrench_stiffness", (size, size), stiffness_program)


def _traced(
    model: Model,
    at: WrenchFrames,
    name: str,
    shape: tuple[int, ...],
    program: Callable[[Model, WrenchFrames], Unrolled],
) -> MachineCode | None:
    """A kernel; None where its paths are too long to be unrolled."""
    from phistar.backends.to_llvm import MachineCode

    paths = {k for body in at.bodies(model) for k in model.ancestors(body)} if at.turn else ()
    traced = _WrenchProgram(
        (name, at.reference, *at.frames),
        model,
        ("q", *at.inputs),
        {RESULT_OUTPUT: shape},
        TracedWork(max(len(paths), 1)),
        partial(program, model, at),
    )
    return None if traced.decision.shape == NUMPY else MachineCode(traced)


class _WrenchProgram(TracedProgram):
    """Loops have no wrenches without it, so it does not wait to be compiled beside them."""

    def is_eager(self, tier: str) -> bool:
        """See ``RobotProgram``."""
        return tier == "rolled" or super().is_eager(tier)


def entry_after_link_forces(model: Model, at: WrenchFrames, entry: Entry) -> Entry | None:
    """An entry that takes wrenches, made of one whose last argument is forces on links.

    Args:
        model: The robot.
        at: The frames.
        entry: Takes vectors, the configuration first, and forces (bodies * 6,), all of one batch.
    """
    code = _link_force_code(model, at)
    bodies = at.bodies(model)
    tiers = None if code is None else code.tiers_if_ready()
    shapes = {RESULT_OUTPUT: (6 * len(bodies),)}
    move = None if tiers is None else make_entry(tiers, ("q",), shapes, wrenches=at)
    if move is None:
        return None
    size = 6 * len(model.bodies)
    places = [(slice(6 * i, 6 * i + 6), slice(6 * k, 6 * k + 6)) for i, k in enumerate(bodies)]

    def through_both(*given: object, **out: Array | None) -> Array | None:
        *vectors, forces, reference = given
        found = move(vectors[0], forces, reference)
        if found is None:
            return None
        on_links = np.zeros((*found.shape[:-1], size))
        for here, there in places:
            on_links[..., there] = found[..., here]
        return entry(*vectors, on_links, **out)

    return through_both
