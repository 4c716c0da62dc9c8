# SPDX-License-Identifier: BSD-3-Clause
"""Diverged samples of a batch: found, parked and reported.

A sample is lost from the first knot at which one of its numbers is not finite; from there on it is
NaN. NumPy loops park it in a harmless state, so that the others continue.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phistar.arrays import Array
from phistar.errors import DivergenceError, SampleError
from phistar.model.configuration import random_configuration
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model

MAX_FINITE = 1e100
"""Numbers beyond this count as infinite in NumPy loops: their powers overflow."""


def not_finite(*arrays: Array) -> Array:
    """Which samples (...) of arrays (..., n) hold a number that is not finite."""
    lost = np.zeros(arrays[0].shape[:-1], dtype=bool)
    for array in arrays:
        if not np.isfinite(array).all():
            lost |= ~np.isfinite(array).all(axis=-1)
    return lost


def diverged_samples(*arrays: Array) -> Array:
    """Which samples (...) of arrays (..., n) hold a number that is not finite, or
    ``MAX_FINITE``."""
    lost = np.zeros(arrays[0].shape[:-1], dtype=bool)
    for array in arrays:
        if not surely_finite(array):
            lost |= ~_is_small(array).all(axis=-1)
    return lost


def surely_finite(array: Array) -> bool:
    """Whether all numbers are certainly below ``MAX_FINITE``, at the cost of one product."""
    return float(np.vdot(array, array).real) < MAX_FINITE


def _is_small(array: Array) -> Array:
    """Which numbers are finite and below ``MAX_FINITE``; single precision ends before that."""
    limit = min(MAX_FINITE, float(np.finfo(array.dtype).max))
    return np.asarray(np.abs(array) < limit)


@cached_on_model
def parking_configuration(model: Model) -> Array:
    """A configuration (nq,) for lost samples; not the neutral one, which may be singular."""
    return random_configuration(model, np.random.default_rng(0))


def park_lost(model: Model, q: Array, x: Array, lost: Array) -> tuple[Array, Array]:
    """A state (..., n) in which the lost samples are parked at rest."""
    if not lost.any():
        return q, x
    chosen = lost[..., None]
    return np.where(chosen, parking_configuration(model), q), np.where(chosen, 0.0, x)


def call_around_singular(
    model: Model,
    function: Callable[[Array, Array], tuple[Array, ...]],
    q: Array,
    x: Array,
    keep_going: bool,
) -> tuple[Array, ...]:
    """Functions of states (batch, n), NaN for samples in singular configurations.

    Args:
        model: The robot.
        function: Of q and x; raises if a sample has no result.
        q: (batch, nq).
        x: (batch, nv).
        keep_going: If false, such samples are an error.
    """
    try:
        return function(q, x)
    except SampleError as error:
        lost = np.broadcast_to(error.bad, len(q))
        if not keep_going or not lost.any():
            raise
    results = call_around_singular(
        model, function, *park_lost(model, q, x, lost), keep_going and not lost.all()
    )
    return tuple(np.where(lost[:, None], np.nan, each) for each in results)


def map_finite_samples(
    model: Model, function: Callable[..., Array], q: Array, *others: Array
) -> Array:
    """A function of states (..., n), NaN for lost samples, for which it is not evaluated."""
    fine = np.asarray(_is_small(q).all(axis=-1))
    for other in others:
        fine = np.asarray(fine & _is_small(other).all(axis=-1))
    if fine.all():
        return function(q, *others)
    chosen = fine[..., None]
    finite_others = (np.where(chosen, other, 0.0) for other in others)
    result = np.array(function(np.where(chosen, q, parking_configuration(model)), *finite_others))
    result[~fine] = np.nan
    return result


def first_lost_knots(qs: Array, xs: Array) -> Array:
    """(batch,): the first knot that is not finite, -1 if all are.

    Args:
        qs, xs: (knots, batch, n); what is not finite stays so at later knots.
    """
    knots = np.full(qs.shape[1], -1)
    lost = np.flatnonzero(not_finite(qs[-1], xs[-1]))
    if lost.size:
        some_q, some_x = qs[:, lost], xs[:, lost]
        bad = ~(np.isfinite(some_q).all(axis=-1) & np.isfinite(some_x).all(axis=-1))
        knots[lost] = bad.argmax(axis=0)
    return knots


def fill_nan_after(arrays: tuple[Array, ...], first: Array) -> None:
    """Fill arrays (knots, batch, n) with NaN from the first lost knot of each sample on."""
    for sample in np.flatnonzero(first >= 0):
        for array in arrays:
            array[first[sample] :, sample] = np.nan


def refuse_lost(
    model: Model, first: Array, knot_interval: float, batch: tuple[int, ...], fault: str
) -> None:
    """Raise if a sample is lost, and name the first one in time.

    Args:
        model: The robot.
        first: (batch,) as of ``first_lost_knots``.
        knot_interval: Time between knots [s].
        batch: Axes of the batch.
        fault: Text for the message.
    """
    if not (first >= 0).any():
        return
    sample = int(np.argmin(np.where(first >= 0, first, first.max() + 1)))
    index = tuple(int(i) for i in np.unravel_index(sample, batch)) if batch else ()
    knot = int(first[sample])
    where = f", sample {list(index)}," if batch else ""
    more = " (on_error='nan' continues with the others)" if len(first) > 1 else ""
    raise DivergenceError(
        f"the motion of robot '{model.name}'{where} {fault} at {knot_interval * knot:.6g} s; "
        "use smaller steps, other joint forces, a scheme that conserves energy, or for stiff "
        f"springs and damping scheme='implicit'{more}",
        index,
        knot,
        knot_interval * knot,
    )


def refuse_lost_samples(lost: Array, times: Array, steps: int) -> None:
    """Raise if a sample of a simulator is lost, and name it.

    Args:
        lost: (batch,) booleans.
        times: (batch,) after so many steps [s].
        steps: Since the last state that is kept.
    """
    if lost.any():
        sample = int(np.flatnonzero(lost)[0])
        time = float(times[sample])
        raise DivergenceError(
            f"sample {sample} diverges: not finite at {time:.6g} s; take a shorter dt or "
            'smaller forces, or on_error="freeze"',
            (sample,),
            steps,
            time,
        )
