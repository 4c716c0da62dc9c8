# SPDX-License-Identifier: BSD-3-Clause
"""One step of time for a user's arrays: a straight line of machine code, or stage by stage.

The straight line has all stages of a scheme in it, so it is for robots of moderate size. What has
none (long robots, forces on frames, mimic joints, complex numbers) goes through the stages, each by
compiled forward dynamics and compiled steps of q.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from phistar.arguments import (
    check_shapes,
    checked_state,
    refuse_singular,
    require_valid_inputs,
    step_lengths,
)
from phistar.arrays import Array
from phistar.backends.base import OPTIONAL_INPUTS
from phistar.backends.policy import VectorWork
from phistar.compile import Kernel, cheapest_equivalent, joint_map, kernel
from phistar.compile.traced import Shape, TracedRequest, add_traced, run_traced_results
from phistar.dynamics import Forces, check_forces
from phistar.errors import UnknownNameError
from phistar.model.configuration import Coordinates, batch_shape
from phistar.model.kinematic_loops import require_tree
from phistar.model.model import Model
from phistar.model.singular import require_finite_results
from phistar.scalar.program import Unrolled
from phistar.sim.schemes import SCHEMES, EvaluateRates, Scheme
from phistar.sim.stages import next_state
from phistar.sim.variables import Variable, Velocity


def step(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    dt: ArrayLike,
    scheme: str = "semi_implicit",
    forces: Forces | None = None,
    reference: str = "world_aligned",
) -> tuple[Array, Array]:
    """See ``Robot.step``."""
    if scheme not in SCHEMES:
        raise UnknownNameError("scheme", scheme, SCHEMES)
    require_tree(model, "step")
    refuse_singular(model)
    forces = check_forces(forces, reference)
    arrays = check_shapes(model, q=q, v=v, tau=tau)
    lengths = step_lengths(dt)
    batch_shape(model, {**arrays, "dt": lengths})
    if np.ndim(dt) == 0:
        # A number has no precision of its own.
        lengths = lengths.astype(np.result_type(*arrays.values()).type(0).real.dtype)
    if not forces:
        found = run_traced_results(model, ("step", scheme), *arrays.values(), lengths)
        if found is not None:
            return found["q_next"], found["v_next"]
    return _by_stages(SCHEMES[scheme], Velocity(model, forces, reference), arrays, lengths)


def _by_stages(
    scheme: Scheme, variable: Variable, arrays: Mapping[str, Array], dt: Array
) -> tuple[Array, Array]:
    """The step, stage by stage; results that are not finite are an error."""
    model = variable.model
    q, v, tau = checked_state(model, **arrays)
    with np.errstate(over="ignore", invalid="ignore"):
        found = next_state(scheme, variable, q, v, tau, dt)
    results = dict(zip(("q", "v"), found, strict=True))
    if not all(np.isfinite(x).all() for x in found):
        require_valid_inputs(model, q=q, v=v, tau=tau)
        require_finite_results(model, q, results, found[0].ndim - 1)
    return found


def _rates(model: Model) -> Kernel:
    """Forward dynamics."""
    return kernel(cheapest_equivalent("forward_dynamics"), model)


def _trace(model: Model, scheme: str) -> Unrolled:
    from phistar.scalar.lower import to_unrolled
    from phistar.sim.step_program import step_program

    rates = to_unrolled(_rates(model).schedule, model, frozenset(OPTIONAL_INPUTS))
    return step_program(model, SCHEMES[scheme], rates)


def _work(model: Model, scheme: str) -> VectorWork | None:
    """Forward dynamics at all stages; None: followers of other joints, or joints with a scale."""
    joints = joint_map(model)
    if not joints.one_to_one or (joints.scales != 1.0).any():
        return None
    parts = SCHEMES[scheme].instructions
    stages = sum(isinstance(p, EvaluateRates) and not p.velocity_only for p in parts)
    return VectorWork(stages * sum(1 for _ in _rates(model).schedule.program.live()))


def _shapes(model: Model, scheme: str) -> Mapping[str, Shape]:
    return {"q_next": (model.nq,), "v_next": (model.nv,)}


STEP = add_traced(TracedRequest("step", ("q", "v", "tau", "dt"), _shapes, _trace, _work))
"""A step as a row of traced quantities; the choice is the name of a scheme."""
