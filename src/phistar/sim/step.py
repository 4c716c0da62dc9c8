# SPDX-License-Identifier: BSD-3-Clause
"""One step of time for a user's arrays: a straight line of machine code, or stage by stage.

The straight line has all stages of a scheme in it, so it is for robots of moderate size. What has
none (long robots, forces on frames, complex numbers) goes through the stages, each by
compiled forward dynamics and compiled steps of q.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from phistar.arguments import (
    check_shapes,
    checked_numbers,
    refuse_singular,
    step_lengths,
)
from phistar.arrays import Array
from phistar.backends import OPTIONAL_INPUTS
from phistar.backends.policy import StagesWork
from phistar.compile import (
    TRACED,
    Kernel,
    RequestKey,
    Traced,
    add_traced,
    cheapest_equivalent,
    embedded_request,
    joint_map,
    kernel,
    run_traced_results,
)
from phistar.errors import UnknownNameError
from phistar.joint_physics.implicit import SMOOTH_PARTS, heavier_dynamics
from phistar.loops.assembly import open_loop_error, usual_rank
from phistar.loops.constrained_dynamics import require_on_loops, warn_where_singular
from phistar.loops.system import motion_at, rows_at
from phistar.model.configuration import Coordinates, batch_shape
from phistar.model.joint_physics import Passive
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.model.model_cache import entries
from phistar.model.singular import require_finite_results
from phistar.model.wrenches import Forces, Wrenches, check_batch, check_wrenches
from phistar.scalar.program import Unrolled
from phistar.sim.joint_rows import JointRows, refuse_scheme, used_parts
from phistar.sim.loop_stepper import (
    LoopVelocity,
    accelerates_on_loops,
    onto_loops,
    step_by_program,
)
from phistar.sim.manifold import is_euclidean
from phistar.sim.scheme_choice import AUTO, scheme_of_step
from phistar.sim.schemes import SCHEMES, EvaluateRates, Scheme
from phistar.sim.stages import StateFunctions, functions_of, next_state
from phistar.sim.variables import ImplicitVelocity, Variable, Velocity


def step(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    dt: ArrayLike,
    scheme: str = AUTO,
    forces: Forces | None = None,
    reference: str = "world_aligned",
    passive: Passive = True,
) -> tuple[Array, Array]:
    """See ``Robot.step``."""
    smooth, rows = used_parts(model, passive)
    scheme = scheme_of_step(model, scheme, smooth)
    if scheme not in SCHEMES:
        raise UnknownNameError("scheme", scheme, (AUTO, *SCHEMES))
    refuse_scheme(model, scheme, smooth)
    if not active_loops(model.loops):
        refuse_singular(model)
    arrays = check_shapes(model, q=q, v=v, tau=tau)
    wrenches = check_wrenches(model, arrays["q"], forces, reference)
    lengths = step_lengths(dt)
    batch_shape(model, {**arrays, "dt": lengths})
    check_batch(model, arrays, wrenches)
    if np.ndim(dt) == 0:
        # A number has no precision of its own.
        lengths = lengths.astype(np.result_type(*arrays.values()).type(0).real.dtype)
    variable = _variable(model, wrenches, smooth, lengths if SCHEMES[scheme].implicit else None)
    if rows:
        return _step_with_rows(SCHEMES[scheme], variable, rows, arrays, lengths)
    return _smooth_step(SCHEMES[scheme], variable, arrays, lengths)


def _variable(
    model: Model, wrenches: Wrenches | None, smooth: tuple[str, ...], ends: Array | None
) -> Velocity:
    """What a step moves: v, on closed loops, or with springs and damping at the end of the step.

    Args:
        model: The robot.
        wrenches: On its frames.
        smooth: Parts of the joints' physics that are no rows.
        ends: Lengths of the steps by an implicit scheme.
    """
    implicit = ends if smooth else None
    if active_loops(model.loops):
        return LoopVelocity(model, wrenches, smooth, implicit_dt=implicit)
    if implicit is not None:
        return ImplicitVelocity(model, wrenches, smooth, implicit)
    return Velocity(model, wrenches, smooth)


def _step_with_rows(
    scheme: Scheme,
    variable: Velocity,
    rows: tuple[str, ...],
    arrays: Mapping[str, Array],
    lengths: Array,
) -> tuple[Array, Array]:
    """The step with dry friction and limits."""
    model, wrenches = variable.model, variable.wrenches
    if rows == ("limits",) and wrenches is None and not isinstance(variable, LoopVelocity):
        key = step_key(scheme.name, (*variable.smooth, *rows))
        inside = run_traced_results(model, key, *arrays.values(), lengths)
        if inside is not None:
            return inside["q_next"], inside["v_next"]
    q0, v0, tau0 = checked_numbers(model, **arrays)
    leads = (x.shape[:-1] for x in (q0, v0, tau0, lengths))
    batch = np.broadcast_shapes(*leads, () if wrenches is None else wrenches.batch)
    if wrenches is not None:
        variable = replace(variable, wrenches=wrenches.with_batch(batch))

    def smooth(q: Array, v: Array, tau: Array, dt: Array) -> tuple[Array, Array]:
        return _smooth_step(scheme, _at(variable, dt), {"q": q, "v": v, "tau": tau}, dt)

    constraint = JointRows(variable, rows, scheme.implicit)
    return constraint.step((q0, v0, tau0), lengths, smooth, batch)


def _at(variable: Velocity, dt: Array) -> Velocity:
    """A variable for some of the samples."""
    if isinstance(variable, ImplicitVelocity):
        return replace(variable, dt=dt)
    if isinstance(variable, LoopVelocity) and variable.implicit_dt is not None:
        return replace(variable, implicit_dt=dt)
    return variable


def step_key(scheme: str, smooth: tuple[str, ...]) -> RequestKey:
    """Key of the program of a step."""
    return ("step", scheme, smooth) if smooth else ("step", scheme)


def _smooth_step(
    scheme: Scheme, variable: Velocity, arrays: Mapping[str, Array], dt: Array
) -> tuple[Array, Array]:
    """The step without dry friction and limits."""
    if isinstance(variable, LoopVelocity):
        return _on_loops(scheme, variable, arrays, dt)
    model = variable.model
    if variable.wrenches is None:
        key = step_key(scheme.name, variable.smooth)
        found = run_traced_results(model, key, *arrays.values(), dt)
        if found is not None:
            return found["q_next"], found["v_next"]
        ahead = None if variable.smooth else _by_entries(model, scheme, arrays, dt)
        if ahead is not None:
            return ahead
    return _by_stages(scheme, variable, arrays, dt)


def _on_loops(
    scheme: Scheme, variable: LoopVelocity, arrays: Mapping[str, Array], dt: Array
) -> tuple[Array, Array]:
    """The step of a robot with loops, projected: by the program of simulations, or by stages."""
    model = variable.model
    q, v, tau = checked_numbers(model, **arrays)
    dtype = np.result_type(q, v, tau)
    q, v, tau = (x.astype(float) for x in (q, v, tau))
    # Guarded dynamics has results on the loops only; where it has none, the rows say why.
    if dtype != np.float64 or not accelerates_on_loops(model, q, v, tau):
        precision, rows = float(np.finfo(dtype).eps), motion_at(model, q, v)
        require_on_loops(model, rows, v, "step", precision)
        if rank := usual_rank(model):
            warn_where_singular(model, rows.L, "step", rank)
    closed = None
    if variable.wrenches is None:
        closed = step_by_program(model, scheme, q, v, tau, dt.astype(float), variable.smooth)
    if closed is None:
        q, v = _by_stages(scheme, variable, {"q": q, "v": v, "tau": tau}, dt)
        closed = onto_loops(model, q, v)
    lost = np.asarray(np.isnan(closed[0]).any(axis=-1))
    if lost.any():
        cure = "take a shorter step, or smaller forces"
        raise open_loop_error(model, rows_at(model, q).error, lost, "step", cure)
    return closed[0].astype(dtype), closed[1].astype(dtype)


def _by_stages(
    scheme: Scheme, variable: Variable, arrays: Mapping[str, Array], dt: Array
) -> tuple[Array, Array]:
    """The step, stage by stage; results that are not finite are an error."""
    model = variable.model
    q, v, tau = checked_numbers(model, **arrays)
    with np.errstate(over="ignore", invalid="ignore"):
        found = next_state(scheme, functions_of(variable), q, v, tau, dt)
    # What a scheme does not read decides the shape and precision of its results all the same.
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in (q, v, tau, dt)))
    dtype = np.result_type(q, v, tau, dt)
    q, v = (np.array(np.broadcast_to(x, (*batch, x.shape[-1])), dtype) for x in found)
    if not (np.isfinite(q).all() and np.isfinite(v).all()):
        require_finite_results(model, arrays["q"], {"q": q, "v": v}, len(batch))
    return q, v


class _NoEntryError(Exception):
    """An entry gave no result; the general path says why, or copes."""


def _by_entries(
    model: Model, scheme: Scheme, arrays: Mapping[str, Array], dt: Array
) -> tuple[Array, Array] | None:
    """The step of plain arrays by the entries of forward dynamics and ``integrate``.

    Returns:
        None if there are none yet, or they cannot say it.
    """
    table = entries(model)
    dynamics, turn = table.get("forward_dynamics"), table.get(("integrate",))
    if dynamics is None or (turn is None and not is_euclidean(model)):
        return None

    def rate(q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        vdot = dynamics(q, v, tau)
        if vdot is None:
            raise _NoEntryError
        return v, vdot

    def move(q: Array, step: Array) -> Array:
        moved = np.asarray(q + step) if turn is None else turn(q, step)
        if moved is None:
            raise _NoEntryError
        return moved

    functions = StateFunctions(model, lambda q, v: v, rate, move)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            found = next_state(scheme, functions, arrays["q"], arrays["v"], arrays["tau"], dt)
    except _NoEntryError:
        return None
    return found if all(np.isfinite(x).all() for x in found) else None


def _rates(model: Model) -> Kernel:
    """Forward dynamics."""
    return kernel(cheapest_equivalent("forward_dynamics"), model)


def _trace(model: Model, scheme: str, parts: tuple[str, ...] = ()) -> Unrolled:
    from phistar.scalar.lower import to_unrolled
    from phistar.sim.step_program import step_program

    if set(parts) & set(SMOOTH_PARTS) and SCHEMES[scheme].implicit:
        rates = heavier_dynamics(model, parts)
    elif joint_map(model).one_to_one:
        rates = to_unrolled(_rates(model).schedule, model, frozenset(OPTIONAL_INPUTS))
    else:
        rates = TRACED[embedded_request("forward_dynamics", model)].trace(model)
    return step_program(model, SCHEMES[scheme], rates, parts)


def _work(model: Model, scheme: str, parts: tuple[str, ...] = ()) -> StagesWork | None:
    """Forward dynamics at all stages, over nodes where mimic joints are reduced."""
    joints = joint_map(model)
    if active_loops(model.loops) or (joints.one_to_one and (joints.scales != 1.0).any()):
        return None
    told = SCHEMES[scheme].instructions
    stages = sum(isinstance(p, EvaluateRates) and not p.velocity_only for p in told)
    return StagesWork(sum(1 for _ in _rates(model).schedule.program.live()), stages)


def _shapes(
    model: Model, scheme: str, parts: tuple[str, ...] = ()
) -> Mapping[str, tuple[int, ...]]:
    return {"q_next": (model.nq,), "v_next": (model.nv,)}


STEP = add_traced(
    Traced(
        "step",
        ("q", "v", "tau", "dt"),
        _shapes,
        _trace,
        _work,
        choices={"scheme": "semi_implicit", "parts": ()},
        defined="a step of time: forward dynamics at the stages of a scheme, q ⊕ h v",
    )
)
"""A step as a row of traced quantities: of a scheme, with springs and dampers that push."""
