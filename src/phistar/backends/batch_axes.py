# SPDX-License-Identifier: BSD-3-Clause
"""Batch axes: leading for users, trailing inside, where one NumPy call runs over whole batches.

Arrays of one batch shape get a single axis, a batch of one gets none, so that a single sample costs
no detour. Large batches are cut into pieces that stay in the processor's cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array, DType
from phistar.model.configuration import normalize_quaternions
from phistar.model.model import Model
from phistar.thresholds import POLICY


class Batch:
    """The batch axes that some arrays have in common.

    Attributes:
        shape: Leading axes of the results.
        inner_shape: Trailing axes inside: none, one, or as many as ``shape`` has.
    """

    def __init__(self, shapes: list[tuple[int, ...]]) -> None:
        self.shape = np.broadcast_shapes(*shapes)
        size = math.prod(self.shape)
        if all(shape == self.shape or math.prod(shape) == 1 for shape in shapes):
            self.inner_shape: tuple[int, ...] = () if size == 1 else (size,)
        else:
            self.inner_shape = self.shape

    def to_inner(self, x: Array, tail: int) -> Array:
        """(*own batch, *tail) -> (*tail, *inner), axes of size 1 where it does not vary."""
        own, rest = x.shape[: x.ndim - tail], x.shape[x.ndim - tail :]
        if len(self.inner_shape) == len(self.shape):
            axes = (1,) * (len(self.inner_shape) - len(own)) + own
        else:
            axes = (math.prod(own),) * len(self.inner_shape)
        x = x.reshape(axes + rest)
        count = len(axes)
        order = (*range(count, count + tail), *range(count))
        return np.ascontiguousarray(x.transpose(order))

    def to_outer(self, x: Array, tail: int) -> Array:
        """(*tail, *inner) -> (*shape, *tail)."""
        order = (*range(tail, x.ndim), *range(tail))
        return np.ascontiguousarray(x.transpose(order)).reshape(self.shape + x.shape[:tail])

    def pieces(self) -> Iterator[slice]:
        """Slices of the first inner axis, each of about PIECE samples; one if there is no axis."""
        length = self.inner_shape[0] if self.inner_shape else 1
        step = max(1, POLICY.numpy_piece_samples // max(1, math.prod(self.inner_shape[1:])))
        for start in range(0, max(length, 1), step):
            yield slice(start, min(start + step, length))

    def take_piece(self, x: Array, tail: int, part: slice) -> Array:
        """The part of an entered array that belongs to a piece."""
        if not self.inner_shape or x.shape[tail] == 1:
            return x
        return x[(slice(None),) * tail + (part,)]


def as_inexact(x: ArrayLike) -> Array:
    """x as an array of float or complex numbers."""
    array = np.asarray(x)
    return array if array.dtype.kind in "fc" else array.astype(float)


def real_dtype(arrays: Iterable[Array]) -> DType:
    """The real dtype in which to compute with some arrays."""
    return np.finfo(np.result_type(*arrays)).dtype


def cast_to_precision(x: Array, real: DType) -> Array:
    """x with real and imaginary parts in a precision."""
    wanted = np.result_type(real, np.complex64) if x.dtype.kind == "c" else real
    return x.astype(wanted, copy=False)


def all_finite(arrays: Iterable[ArrayLike]) -> bool:
    """Whether there is no infinite number and none that is not a number."""
    return all(bool(np.isfinite(np.asarray(x)).all()) for x in arrays)


def all_valid(model: Model, q: ArrayLike, arrays: Iterable[ArrayLike]) -> bool:
    """Whether all numbers are finite, and the quaternions of q unit but for drift."""
    return all_finite([q, *arrays]) and not normalize_quaternions(model, as_inexact(q))[1]


def copy_into_out(out: Mapping[str, Array] | None, outputs: dict[str, Array]) -> dict[str, Array]:
    """Outputs, those for which there is an array copied into it."""
    for name, array in (out or {}).items():
        np.copyto(array, outputs[name])
        outputs[name] = array
    return outputs
