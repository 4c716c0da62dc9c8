# SPDX-License-Identifier: BSD-3-Clause
"""Batches in which some samples have no result: an error, or NaN for those samples alone.

``on_error="nan"`` of every method that takes a batch comes from here. Nothing is looked at as long
as all is well. Otherwise the samples that are bad are replaced by one that is not, the method is
asked once more, and their results become NaN.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, SampleError
from phistar.model.configuration import (
    Coordinates,
    as_numbers,
    batch_shape,
    normalize_quaternions,
    random_configuration,
    read_coordinates,
)
from phistar.model.model import Model

T = TypeVar("T")

RAISE = "raise"
"""The default of ``on_error``. Methods ask for it by identity, which takes least time, before they
look for machine code; whoever gives an equal string goes the way on which wrong ones are refused.
"""
ON_ERROR = (RAISE, "nan")
_CONFIGURATIONS = ("q", "q0", "q1")
_MAX_RETRIES = 8
"""Random configurations at which the shape of results is looked up if no sample is good."""


def bad_samples(model: Model, **arguments: Coordinates) -> Array:
    """Which samples (...) have numbers that are not finite or a quaternion that is not unit.

    Args:
        model: The robot.
        arguments: ``q``, ``q0`` and ``q1`` are configurations, all others tangent vectors.

    Returns:
        Booleans of the shape of the batch.

    Raises:
        ShapeError, ArgumentError: Something is no batch of samples.
    """
    arrays = {name: read_coordinates(model, x, _space(name), name) for name, x in arguments.items()}
    batch = batch_shape(model, arrays)
    return np.broadcast_to(_bad(model, arrays), batch)


def _space(name: str) -> Literal["q", "v"]:
    return "q" if name in _CONFIGURATIONS else "v"


def _bad(model: Model, arrays: Mapping[str, Array]) -> Array:
    bad: Array = np.zeros((), dtype=bool)
    for name, array in arrays.items():
        fine = np.isfinite(array)
        if not fine.all():
            bad = bad | ~fine.all(axis=-1)
        if name in _CONFIGURATIONS:
            for far in normalize_quaternions(model, array)[1].values():
                bad = bad | far
    return bad


def check_on_error(on_error: str) -> None:
    """Raise unless it is a known wish."""
    if on_error not in ON_ERROR:
        known = " or ".join(map(repr, ON_ERROR))
        raise ArgumentError(f"on_error is {on_error!r}, expected {known}")


def nan_where_bad(
    model: Model,
    on_error: str,
    call: Callable[..., T],
    arguments: Mapping[str, Coordinates],
    forces: Mapping[str, ArrayLike] | None = None,
) -> T:
    """What a method gives, with NaN for the samples for which it would raise.

    Args:
        model: The robot.
        on_error: ``"nan"``; anything else is refused.
        call: The method that raises: of the arguments by name and, if there are any, ``forces``.
        arguments: Configurations and tangent vectors that it takes, by name.
        forces: Wrenches (..., 6) on frames.

    Raises:
        ArgumentError: What is wrong is wrong for all samples: shapes, names.
    """
    check_on_error(on_error)
    try:
        return call(**arguments, **({"forces": forces} if forces else {}))
    except SampleError:
        # Which samples are bad is found out below.
        pass
    arrays = {name: read_coordinates(model, x, _space(name), name) for name, x in arguments.items()}
    wrenches = {name: as_numbers(x, f"forces[{name!r}]") for name, x in (forces or {}).items()}
    batch = batch_shape(model, {**arrays, **{f"forces[{n!r}]": x for n, x in wrenches.items()}})
    found = _bad(model, {**arrays, **{f"forces {n}": x for n, x in wrenches.items()}})
    bad = np.array(np.broadcast_to(found, batch))
    for _ in range(_MAX_RETRIES):
        try:
            return _call_with_replacements(model, call, arrays, wrenches, bad)
        except SampleError as error:
            if bad.all() and bad.size:
                raise
            more = error.bad.any(axis=tuple(range(len(batch), error.bad.ndim)))
            bad |= np.broadcast_to(more, batch)
    raise AssertionError("bad samples were left after they were replaced")


def _call_with_replacements(
    model: Model,
    call: Callable[..., T],
    arrays: Mapping[str, Array],
    wrenches: Mapping[str, Array],
    bad: Array,
) -> T:
    """The results with the bad samples replaced, and then NaN."""
    extra = {"forces": wrenches} if wrenches else {}
    if not bad.any():
        return call(**arrays, **extra)
    good = tuple(int(i) for i in np.argwhere(~bad)[0]) if not bad.all() else None
    if good is None:
        return _all_nan(model, call, arrays, wrenches, bad)

    def mended(x: Array) -> Array:
        # A copy of its own: a result may hold on to what it was made from.
        whole = np.array(np.broadcast_to(x, (*bad.shape, x.shape[-1])))
        whole[bad] = whole[good]
        return whole

    if wrenches:
        extra = {"forces": {n: mended(x) for n, x in wrenches.items()}}
    result: T = with_nan(call(**{n: mended(x) for n, x in arrays.items()}, **extra), bad)
    return result


def _all_nan(
    model: Model,
    call: Callable[..., T],
    arrays: Mapping[str, Array],
    wrenches: Mapping[str, Array],
    bad: Array,
) -> T:
    """Results that are NaN everywhere: only their shapes have to be found out."""
    extra = {"forces": {n: np.zeros_like(x) for n, x in wrenches.items()}} if wrenches else {}
    for seed in range(_MAX_RETRIES):
        some = random_configuration(model, np.random.default_rng(seed))
        given = {
            name: np.array(
                np.broadcast_to(some if _space(name) == "q" else 0.0, (*bad.shape, x.shape[-1])),
                dtype=x.dtype,
            )
            for name, x in arrays.items()
        }
        for name in given:
            # Directions must not be zero: some methods divide by their length.
            given[name] += 0.0 if _space(name) == "q" else np.arange(1, model.nv + 1) * len(name)
        try:
            return with_nan(call(**given, **extra), bad)  # type: ignore[no-any-return]
        except SampleError:
            if seed == _MAX_RETRIES - 1:
                raise
    raise AssertionError("not reached")


def with_nan(found: object, bad: Array) -> Any:
    """Results with NaN for bad samples, whatever they are kept in."""
    if isinstance(found, np.ndarray):
        if found.dtype.kind in "biu":
            return found
        found = found if found.flags.writeable else np.array(found)
        found[bad] = np.nan
        return found
    if isinstance(found, Mapping):
        kept_mapping = copy.copy(found)
        for name, x in found.items():
            kept_mapping[name] = with_nan(x, bad)  # type: ignore[index]
        return kept_mapping
    if isinstance(found, tuple):
        parts = [with_nan(x, bad) for x in found]
        return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)
    assert is_dataclass(found)
    assert not isinstance(found, type)
    kept = {each.name: getattr(found, each.name) for each in fields(found)}
    arrays = {
        name: with_nan(x, bad) for name, x in kept.items() if isinstance(x, np.ndarray | Mapping)
    }
    return type(found)(**{**kept, **arrays})
