# SPDX-License-Identifier: BSD-3-Clause
"""Configurations onto the loops: from afar, and the nearest ones in the mass metric.

From afar by Levenberg-Marquardt steps in the tangent space, whose damping follows the gain; where
that stalls by Newton steps with halving, then from random starts nearby. L stands for the
derivative of the error, from which it differs by the error itself, so that convergence stays
quadratic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from phistar import dynamics
from phistar.arguments import checked_state, names_in
from phistar.arrays import Array
from phistar.errors import (
    LoopOpenError,
    UnknownNameError,
    first_index,
)
from phistar.loops.held import NOT_HELD, Held
from phistar.loops.long_chains import long_chains
from phistar.loops.rank import rank_of
from phistar.loops.system import LoopSystem, loop_system, motion_at, refuse_complex, rows_at
from phistar.model.configuration import Coordinates, integrate_unchecked
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model

CLOSED_TOLERANCE = 1e-13
"""Errors below this without units, metres by the mechanism's size, are rounding."""
ASSEMBLED_TOLERANCE = 1e-9
"""Where steps no longer help, a loop is closed if its error without units is below this: redundant
rows of a file with rounded numbers contradict each other a little."""
USUAL_RANK_TOLERANCE = 1e-6
"""Singular values of L without units, at assembled configurations, that are no rows of their own:
rounded numbers of a file leave more than rounding where rows are redundant."""
MAX_ITERATIONS = 60
MAX_STEP = 0.5
"""Longest step of a coordinate without units: half a radian, or half the mechanism's size."""
RESTARTS = 12
_SHORTEST = 1e-4
"""Shortest fraction of a Newton step that is tried."""


def assemble(
    model: Model, q: Coordinates, fixed: Sequence[str] = (), *, restarts: int = RESTARTS
) -> Array:
    """Configurations (..., nq) on the loops, near given ones.

    Args:
        model: The robot.
        q: (..., nq).
        fixed: Names of joints that stay where they are.
        restarts: How often a start at random is tried if the given one leads nowhere.

    Raises:
        LoopOpenError: The loops of a sample cannot be closed from there.
    """
    (start,) = checked_state(model, q=q)
    refuse_complex(start)
    free = _free_coordinates(model, fixed)
    flat = start.reshape(-1, model.nq).astype(float)
    found, error = _descend(model, flat, free)
    rng = np.random.default_rng(0)
    for attempt in range(restarts):
        missing = np.flatnonzero(error > ASSEMBLED_TOLERANCE)
        if not missing.size:
            break
        spread = 0.3 * (1 + attempt % 4)
        # The same for all samples, so that none depends on the others.
        step = rng.normal(size=model.nv) * spread * free * loop_system(model).column_scale
        tried, left = _descend(model, integrate_unchecked(model, flat[missing], step), free)
        better = left < error[missing]
        found[missing[better]], error[missing[better]] = tried[better], left[better]
    open_samples = error > ASSEMBLED_TOLERANCE
    if open_samples.any():
        raise _open_error(model, found, open_samples.reshape(start.shape[:-1]), start.shape)
    return found.reshape(start.shape).astype(start.dtype, copy=False)


def _free_coordinates(model: Model, fixed: Sequence[str]) -> Array:
    """(nv,) ones, zeros for joints that are held."""
    free = np.ones(model.nv)
    for name in names_in("fixed", fixed):
        if name not in model.joint_names:
            raise UnknownNameError("independent joint", name, model.joint_names, model.name)
        free[model.joints[name].v_slice] = 0.0
    return free


def _open_error(model: Model, q: Array, bad: Array, shape: tuple[int, ...]) -> LoopOpenError:
    system = loop_system(model)
    error = rows_at(model, q).error.reshape(*shape[:-1], system.count)
    return open_loop_error(
        model, error, bad, "assemble", "start nearer, free more joints, or correct the loop's poses"
    )


def open_loop_error(
    model: Model, error: Array, bad: Array, purpose: str, cure: str
) -> LoopOpenError:
    """Names the loop that is furthest open in the first bad sample."""
    system = loop_system(model)
    sample = first_index(bad)
    first = error[sample]
    row = int(np.argmax(np.abs(first) * system.row_scale))
    (own,) = [rows for rows in system.slices if rows.start <= row < rows.stop]
    gap = float(np.sqrt((first[own] ** 2).sum()))
    unit = "m" if system.is_length[row] else "rad"
    return LoopOpenError(model.name, purpose, system.label(row), gap, unit, bad, cure)


def _size_of(system: LoopSystem, error: Array) -> Array:
    """Length (...) of errors without units."""
    scaled = system.row_scale * error
    return np.asarray(np.sqrt((scaled * scaled).sum(axis=-1)))


def _descend(model: Model, q: Array, free: Array) -> tuple[Array, Array]:
    """Configurations (B, nq) after Levenberg-Marquardt, then Newton, and their errors (B,).

    Each sample goes its own way, however long the others take.
    """
    q = np.array(q)
    system = loop_system(model)
    at = rows_at(model, q)
    # Rows may not exist somewhere: a rod whose ends coincide has no direction.
    exist = np.isfinite(at.L).all(axis=(-1, -2))
    error = np.where(exist, _size_of(system, at.error), np.inf)
    for method, enough in ((_levenberg, CLOSED_TOLERANCE), (_newton, ASSEMBLED_TOLERANCE)):
        left = np.flatnonzero((error > enough) & exist)
        if left.size:
            q[left], error[left] = method(model, q[left], free)
    return q, error


def _levenberg(model: Model, q: Array, free: Array) -> tuple[Array, Array]:
    """Steps (L*L + μ)⁻¹L*e without units; μ falls where the error does as foreseen."""
    system = loop_system(model)
    at = rows_at(model, q)
    error = _size_of(system, at.error)
    damping = np.full(len(q), 1e-3)
    done = np.zeros(len(q), dtype=bool)
    for _ in range(MAX_ITERATIONS):
        rows = system.scaled(at.L) * free
        e = system.row_scale * at.error
        total = (rows * rows).sum(axis=(-1, -2))
        step = -_damped(rows, e, damping * np.maximum(total, 1e-300) + 1e-300)
        tried = integrate_unchecked(model, q, step * system.column_scale)
        ahead = rows_at(model, tried)
        left = _size_of(system, ahead.error)
        predicted = e + (rows @ step[..., None])[..., 0]
        gain = (error**2 - left**2) / np.maximum(
            error**2 - (predicted * predicted).sum(axis=-1), 1e-300
        )
        good = (left < error) & ~done
        damping = np.where(good & (gain > 0.75), damping * 0.1, damping)
        damping = np.where(~good | (gain < 0.25), damping * 4.0, damping)
        damping = np.clip(damping, 1e-16, 1e6)
        moved = good[:, None]
        stalled = (error - left <= 1e-3 * error) & (error <= CLOSED_TOLERANCE * 100)
        q = np.where(moved, tried, q)
        error = np.where(good, left, error)
        done |= (error <= CLOSED_TOLERANCE) | stalled
        if done.all():
            break
        at = rows_at(model, q)
    return q, error


def _damped(rows: Array, e: Array, damping: Array) -> Array:
    """(L*L + μ)⁻¹L*e (B, nv); where rows are few, L*(LL* + μ)⁻¹e, which is the same."""
    across = np.swapaxes(rows, -1, -2)
    few = 2 * rows.shape[-2] < rows.shape[-1]
    square = rows @ across if few else across @ rows
    index = np.arange(square.shape[-1])
    square[:, index, index] += damping[:, None]
    if few:
        return np.asarray((across @ np.linalg.solve(square, e[..., None]))[..., 0])
    return np.asarray(np.linalg.solve(square, across @ e[..., None])[..., 0])


def _newton(model: Model, q: Array, free: Array) -> tuple[Array, Array]:
    """Least-norm Newton steps of limited length, halved until the error falls."""
    system = loop_system(model)
    at = rows_at(model, q)
    error = _size_of(system, at.error)
    done = np.zeros(len(q), dtype=bool)
    for _ in range(MAX_ITERATIONS):
        rows = system.scaled(at.L) * free
        e = system.row_scale * at.error
        step = -(np.linalg.pinv(rows, rcond=1e-6) @ e[..., None])[..., 0]
        longest = np.abs(step).max(axis=-1, initial=0.0)
        step *= np.minimum(1.0, MAX_STEP / np.maximum(longest, 1e-300))[:, None]
        fraction = np.ones(len(q))
        waiting = ~done
        while waiting.any() and fraction.min() > _SHORTEST:
            tried = integrate_unchecked(model, q, fraction[:, None] * step * system.column_scale)
            left = _size_of(system, rows_at(model, tried).error)
            good = waiting & (left < error)
            q, error = np.where(good[:, None], tried, q), np.where(good, left, error)
            waiting &= ~good
            fraction = np.where(waiting, fraction / 2, fraction)
        done |= waiting | (error <= CLOSED_TOLERANCE)
        if done.all():
            break
        at = rows_at(model, q)
    return q, error


@cached_on_model
def usual_rank(model: Model) -> int:
    """Rank of L at regular assembled configurations, the largest that some of them show."""
    system = loop_system(model)
    if not system.count:
        return 0
    found = rank_of(system, rows_at(model, usual_configurations(model)).L, USUAL_RANK_TOLERANCE)
    return int(found.max())


@cached_on_model
def usual_mobility(model: Model) -> Array:
    """Sizes (rows,) of the diagonal of L𝓜⁻¹L*, rows without units, at assembled configurations.

    Powers of two, so that code in which they stand does not depend on how libraries round.
    """
    system, q = loop_system(model), usual_configurations(model)
    rows = system.row_scale[:, None] * rows_at(model, q).L
    moved = np.linalg.solve(dynamics.mass_matrix(system.tree, q), np.swapaxes(rows, -1, -2))
    found: Array = np.max(np.einsum("...rn,...nr->...r", rows, moved), axis=0)
    return np.ldexp(1.0, np.frexp(found)[1])


@cached_on_model
def usual_configurations(model: Model) -> Array:
    """A few assembled configurations (count, nq); any, where none is found."""
    rng = np.random.default_rng(0)
    # Steps of a radian in each of many joints lead far off, from where the way back is long.
    spreads = (0.0, 0.1, 0.3, 0.3, 1.0) if long_chains(model) is None else (0.0, 0.1, 0.3)
    starts = np.stack([_start(model, rng, spread) for spread in spreads])
    q, error = _descend(model, starts, np.ones(model.nv))
    closed = error <= ASSEMBLED_TOLERANCE
    return q[closed] if closed.any() else starts


def _start(model: Model, rng: np.random.Generator, spread: float) -> Array:
    from phistar.model.configuration import neutral

    step = rng.normal(size=model.nv) * spread * loop_system(model).column_scale
    return integrate_unchecked(model, neutral(model), step)


def rank_near(model: Model, q: Array, held: Held) -> int:
    """Rank of L with loops that are held or driven, near configurations (..., nq).

    The others decide what is assembled: those hold wherever it is.
    """
    kept = [loop for loop in model.loops if loop.name not in held.loops]
    base, rng = model.with_loops(kept), np.random.default_rng(0)
    given = q.reshape(-1, model.nq)
    spread = 0.1 * loop_system(model).column_scale
    steps = rng.normal(size=(4, model.nv)) * spread
    starts = np.concatenate([given, *(integrate_unchecked(model, given[:1], x) for x in steps)])
    found, error = _descend(base, starts, np.ones(model.nv))
    closed = error <= ASSEMBLED_TOLERANCE
    at = found[closed] if closed.any() else starts
    ranks = rank_of(loop_system(model), rows_at(model, at).L, USUAL_RANK_TOLERANCE)
    return int(ranks.max(initial=0))


def nearest_configuration(
    model: Model, q: Array, rank: int, iterations: int = 20, held: Held = NOT_HELD
) -> Array:
    """Configurations (..., nq) on the loops, nearest in the mass metric: q ⊖ 𝓜⁻¹L*Δ⁻¹e."""
    system = loop_system(model)
    for _ in range(iterations):
        at = held.placed(model, rows_at(model, q))
        left = ~(_size_of(system, at.error) <= CLOSED_TOLERANCE)
        if not left.any():
            break
        step = _metric_step(model, q, at.L, np.where(system.holonomic, at.error, 0.0), rank)
        # What is closed stays, however long the others take.
        q = np.where(left[..., None], integrate_unchecked(model, q, -step), q)
    return q


def projection_step(
    model: Model, q: Array, v: Array, rank: int, held: Held = NOT_HELD
) -> tuple[Array, Array, Array]:
    """What the compiled ``loop_projection`` does: q and v nearer to the loops, and the gap squared.

    A Newton step of q in the mass metric, and of v at the new q in the metric of the old one.
    """
    system = loop_system(model)
    at = held.placed(model, rows_at(model, q))
    error = np.where(system.holonomic, at.error, 0.0)
    gap = _size_of(system, error)
    closer = integrate_unchecked(model, q, -_metric_step(model, q, at.L, error, rank))
    ahead = held.driven(model, motion_at(model, closer, v))
    return closer, v - _metric_step(model, q, ahead.L, ahead.rate, rank), gap * gap


def nearest_velocity(model: Model, q: Array, v: Array, rank: int, held: Held = NOT_HELD) -> Array:
    """Velocities (..., nv) that keep the loops, nearest in the mass metric: v - 𝓜⁻¹L*Δ⁻¹Lv."""
    at = held.driven(model, motion_at(model, q, v))
    return np.asarray(v - _metric_step(model, q, at.L, at.rate, rank))


def _metric_step(model: Model, q: Array, rows: Array, c: Array, rank: int) -> Array:
    """The x (..., nv) of least x*𝓜x with Lx = c."""
    from phistar.loops.routes import metric_step

    return metric_step(model, q, rows, c, rank)


def on_loops_inputs(model: Model, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs of a program with q (samples, nq) and v (samples, nv) on the loops, near home."""
    from phistar.model.configuration import neutral

    rng = np.random.default_rng(0)
    closed = assemble(model, model.configurations.get("home", neutral(model)))
    steps = 0.1 * rng.normal(size=inputs["v"].shape) * loop_system(model).column_scale
    q = assemble(model, integrate_unchecked(model, closed, steps))
    return {**inputs, "q": q, "v": nearest_velocity(model, q, inputs["v"], usual_rank(model))}


def project(
    model: Model, q: Coordinates, v: Coordinates | None = None, held: Held = NOT_HELD
) -> tuple[Array, Array] | Array:
    """States on the loops, and as they are told, nearest to given ones in the mass metric.

    Raises:
        LoopOpenError: The loops cannot be closed from there; see ``assemble``.
    """
    given = {"q": q} if v is None else {"q": q, "v": v}
    arrays = checked_state(model, **given)
    refuse_complex(*arrays)
    dtype = np.result_type(*arrays)
    start = arrays[0].astype(float)
    rank = rank_near(model, start, held) if held.loops else usual_rank(model)
    closed = nearest_configuration(model, start, rank, held=held)
    error = held.placed(model, rows_at(model, closed)).error
    bad = ~(_size_of(loop_system(model), error) <= ASSEMBLED_TOLERANCE)
    if bad.any():
        cure = "assemble(q) goes further"
        raise open_loop_error(model, error, bad, "project", cure)
    if v is None:
        return closed.astype(dtype)
    moved = nearest_velocity(model, closed, arrays[1].astype(float), rank, held)
    batch = moved.shape[:-1]
    closed = np.array(np.broadcast_to(closed, (*batch, model.nq)))
    return closed.astype(dtype), moved.astype(dtype)
