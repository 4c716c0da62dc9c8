# SPDX-License-Identifier: BSD-3-Clause
"""Samples of a batch that need another way than the others.

At a singular configuration fewer rows of L count, and machine code may have no result. Such samples
are worked out by themselves: what the others get must not depend on them.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np

from phistar.arrays import Array
from phistar.errors import SampleError
from phistar.model.configuration import read_coordinates
from phistar.model.wrenches import Wrenches

P = ParamSpec("P")
T = TypeVar("T")

_SPACES: Mapping[str, Literal["q", "v"]] = {
    "q": "q", **dict.fromkeys(("v", "tau", "vdot", "weights", "dq", "dv", "dtau"), "v")
}  # fmt: skip
_reported: ContextVar[bool] = ContextVar("reported", default=False)


class ApartError(Exception):
    """Samples of a batch go different ways; never seen by users.

    Attributes:
        ways: Integers (...), a number for each way.
    """

    def __init__(self, ways: Array) -> None:
        self.ways = ways
        super().__init__("samples of a batch go different ways")


def is_reported() -> bool:
    """Whether what is doubtful about samples has been said of the batch that they are from."""
    return _reported.get()


@contextmanager
def _silently() -> Iterator[None]:
    token = _reported.set(True)
    try:
        yield
    finally:
        _reported.reset(token)


def each_its_way(function: Callable[P, T]) -> Callable[P, T]:
    """A function of a model, states and wrenches that takes batches apart where it has to.

    Its arguments of the names in ``_SPACES`` are batches, ``wrenches`` may be; ``out`` is
    filled with the result; all others are the same for all samples.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def apart(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except ApartError as error:
            ways = error.ways
        given = signature.bind(*args, **kwargs).arguments
        out = given.pop("out", None)
        result = _taken_apart(function, given, ways)
        if out is not None:
            np.copyto(out, result)
            result = out
        return result  # type: ignore[no-any-return]

    return apart


def _taken_apart(function: Callable[..., Any], given: dict[str, Any], ways: Array) -> Any:
    states = {
        name: read_coordinates(given["model"], given[name], space, name)
        for name, space in _SPACES.items()
        if name in given
    }
    wrenches: Wrenches | None = given.get("wrenches")
    leads = [x.shape[:-1] for x in states.values()]
    batch = np.broadcast_shapes(ways.shape, *leads, wrenches.batch if wrenches else ())
    ways = np.broadcast_to(ways, batch)
    again = each_its_way(function)
    places, parts, failed = [], [], list[SampleError]()
    with _silently():
        for way in np.unique(ways):
            chosen = ways == way
            own = {**given, **{name: _some(x, chosen) for name, x in states.items()}}
            if wrenches is not None:
                arrays = tuple(_some(x, chosen) for x in wrenches.arrays)
                own["wrenches"] = replace(wrenches, arrays=arrays)
            places.append(chosen)
            try:
                parts.append(again(**own))
            except SampleError as error:
                bad = np.zeros(batch, dtype=bool)
                bad[chosen] = error.bad
                error.renumber(bad)
                failed.append(error)
    if failed:
        first = min(failed, key=lambda error: error.sample)
        first.bad = np.logical_or.reduce([error.bad for error in failed])
        raise first
    return merged(places, parts)


def _some(x: Array, chosen: Array) -> Array:
    """Samples (k, n) of an array (..., n)."""
    return np.asarray(np.broadcast_to(x, (*chosen.shape, x.shape[-1]))[chosen])


def merged(places: Sequence[Array], parts: Sequence[Any]) -> Any:
    """Results of parts of a batch as one, whatever they are kept in.

    Where they have different sizes, as the forces along motions that are free, what is missing is
    zero. Of whole numbers the largest is kept, of all else the first.

    Args:
        places: (...) booleans: the samples of each part.
        parts: With one axis of samples.
    """
    first = parts[0]
    if all(part is first for part in parts):
        return first
    if isinstance(first, np.ndarray):
        return _merged_arrays(places, parts)
    if isinstance(first, Mapping):
        return _merged_mappings(places, parts)
    if isinstance(first, tuple) and any(isinstance(x, np.ndarray) for x in first):
        return tuple(merged(places, each) for each in zip(*parts, strict=True))
    if is_dataclass(first) and not isinstance(first, type):
        return _merged_fields(places, parts)
    return max(parts) if isinstance(first, int) else first


def _merged_fields(places: Sequence[Array], parts: Sequence[Any]) -> Any:
    own = [each.name for each in fields(parts[0]) if each.init]
    found = {name: merged(places, [getattr(x, name) for x in parts]) for name in own}
    return replace(parts[0], **found)


def _merged_arrays(places: Sequence[Array], parts: Sequence[Array]) -> Array:
    first = parts[0]
    tail = tuple(np.max([x.shape[1:] for x in parts], axis=0)) if first.ndim > 1 else ()
    result = np.zeros((*places[0].shape, *(int(n) for n in tail)), first.dtype)
    for chosen, part in zip(places, parts, strict=True):
        whole = np.zeros((len(part), *result.shape[chosen.ndim :]), first.dtype)
        whole[tuple(slice(n) for n in part.shape)] = part
        result[chosen] = whole
    return result


def _merged_mappings(places: Sequence[Array], parts: Sequence[Mapping[str, Any]]) -> Any:
    """A copy of their kind, with what it knows besides its items."""
    kept: Any = copy.copy(parts[0])
    for key in parts[0]:
        dict.__setitem__(kept, key, merged(places, [dict(x)[key] for x in parts]))
    for name in getattr(parts[0], "__dict__", ()):
        setattr(kept, name, merged(places, [getattr(x, name) for x in parts]))
    return kept
