# SPDX-License-Identifier: BSD-3-Clause
"""Small kernels for wrenches on frames: as forces on links, and what they change by as they turn.

Unrolled programs move wrenches to links themselves. Loops and matrices read forces on all links;
the first kernel runs before them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from phistar.arrays import Array
from phistar.backends.llvm.run.entry import make_entry
from phistar.backends.policy import NUMPY, TracedWork
from phistar.backends.robot_programs import TracedProgram
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

if TYPE_CHECKING:
    from phistar.backends.to_llvm import MachineCode


def link_forces(model: Model, q: Array, wrenches: Wrenches) -> Array:
    """Forces on all bodies in their axes, (..., bodies, 6).

    Args:
        model: The robot.
        q: (..., nq).
        wrenches: Their batches broadcast with that of q.
    """
    found = _run(_link_force_code(model, wrenches.at), q, wrenches)
    if found is None:
        # The kernel is not worth making, not ready, or q is not a configuration.
        return numpy_link_forces(model, normalized_configuration(model, q), wrenches)
    return _on_all_bodies(model, wrenches.at, found)


def _on_all_bodies(model: Model, at: WrenchFrames, forces: Array) -> Array:
    """Forces (..., 6 carrying bodies) as (..., bodies, 6)."""
    bodies = at.bodies(model)
    result = np.zeros((*forces.shape[:-1], len(model.bodies), 6), forces.dtype)
    result[..., bodies, :] = forces.reshape(*forces.shape[:-1], len(bodies), 6)
    return result


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
    work = TracedWork(max(len(paths), 1))
    shapes = {RESULT_OUTPUT: shape}
    key = (name, at.reference, *at.frames)
    traced = TracedProgram(key, model, ("q", *at.inputs), shapes, work, partial(program, model, at))
    return None if traced.decision.shape == NUMPY else MachineCode(traced)


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
    columns = (6 * np.array(bodies)[:, None] + np.arange(6)).ravel()

    def through_both(*given: Any, **out: Array | None) -> Array | None:
        *vectors, forces, reference = given
        found = move(vectors[0], forces, reference)
        if found is None:
            return None
        on_links = np.zeros((*found.shape[:-1], size))
        on_links[..., columns] = found
        return entry(*vectors, on_links, **out)

    return through_both
