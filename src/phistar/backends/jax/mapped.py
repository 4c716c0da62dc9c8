# SPDX-License-Identifier: BSD-3-Clause
"""Functions of one sample on arrays with batch axes: mapped by JAX, all in one precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array, DType
from phistar.backends.batch_axes import cast_to_precision, real_dtype
from phistar.backends.jax.package import double_precision, jax
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.backends.jax.package import JaxArray

Pure = Callable[[Array, Mapping[str, Array]], dict[str, Array]]
"""q (nq,) and inputs by name -> outputs by name, of one sample, all of one dtype."""
Shape = tuple[int, ...]


def mapped(pure: Pure, given: Mapping[str, Array], axes: Mapping[str, int]) -> dict[str, Array]:
    """The outputs for arrays of JAX, q among them, whose leading axes broadcast.

    Args:
        pure: Of one sample.
        given: The arrays.
        axes: How many trailing axes of each are one sample.
    """
    xp = jax().numpy
    dtype = xp.result_type(*given.values())
    arrays = {name: x.astype(dtype) for name, x in given.items()}
    own = {name: x.shape[: x.ndim - axes[name]] for name, x in arrays.items()}
    batch = np.broadcast_shapes(*own.values())
    many = {name: math.prod(shape) != 1 for name, shape in own.items()}
    flat = {}
    for name, x in arrays.items():
        sample = x.shape[len(own[name]) :]
        whole = xp.broadcast_to(x, (*batch, *sample)) if many[name] else x
        flat[name] = whole.reshape(*((math.prod(batch),) if many[name] else ()), *sample)

    def one(values: Mapping[str, Array]) -> dict[str, Array]:
        return pure(values["q"], {name: x for name, x in values.items() if name != "q"})

    if not any(many.values()):
        return {name: x.reshape(*batch, *x.shape) for name, x in one(flat).items()}
    over = ({name: 0 if each else None for name, each in many.items()},)
    found = jax().vmap(one, in_axes=over)(flat)
    return {name: x.reshape(*batch, *x.shape[1:]) for name, x in found.items()}


class CompiledFunction:
    """The same on arrays of NumPy, compiled; what is compiled for a size of batch is kept.

    Attributes:
        compiled: ``mapped`` on arrays of JAX: traced where they are, compiled where not.
    """

    def __init__(self, pure: Pure, axes: Mapping[str, int]) -> None:
        self._pure, self._axes = pure, axes
        self.compiled: Callable[..., JaxArray] = jax().jit(self._mapped)

    def _mapped(self, given: Mapping[str, Array]) -> dict[str, Array]:
        return mapped(self._pure, given, self._axes)

    def __call__(self, given: Mapping[str, Array], shapes: Mapping[str, Shape]) -> dict[str, Array]:
        """The outputs.

        Args:
            given: q and inputs.
            shapes: Of one sample, of each output.
        """
        dtype = np.result_type(real_dtype(given.values()), *given.values())
        own = {name: x.shape[: x.ndim - self._axes[name]] for name, x in given.items()}
        batch = np.broadcast_shapes(*own.values())
        size = math.prod(batch)
        if not size:
            return {name: np.zeros((*batch, *shape), dtype) for name, shape in shapes.items()}
        arrays = {
            name: _padded(cast_to_precision(x, real_dtype([x, *given.values()])), own[name], batch)
            for name, x in given.items()
        }
        with double_precision():
            found = {name: np.asarray(x) for name, x in self.compiled(arrays).items()}
        return {name: _cut(x, batch, shapes[name]).astype(dtype) for name, x in found.items()}

    def text(self, sizes: Mapping[str, Shape], precision: DType) -> str:
        """What JAX makes of one sample, for people."""
        with double_precision():
            given = {name: jax().ShapeDtypeStruct(each, precision) for name, each in sizes.items()}
            return str(jax().make_jaxpr(self._mapped)(given))


def _padded(x: Array, own: Shape, batch: Shape) -> Array:
    """One batch axis, as long as the next power of two: few sizes are compiled; or none."""
    sample = x.shape[len(own) :]
    if math.prod(own) == 1:
        return x.reshape(sample)
    size = math.prod(batch)
    flat = np.broadcast_to(x, (*batch, *sample)).reshape(size, *sample)
    more = (1 << (max(size, POLICY.jax_smallest_batch) - 1).bit_length()) - size
    return np.concatenate([flat, np.broadcast_to(flat[:1], (more, *sample))]) if more else flat


def _cut(x: Array, batch: Shape, sample: Shape) -> Array:
    """The samples that were wanted, in the shape of their batch."""
    if x.shape == sample:
        return np.broadcast_to(x, (*batch, *sample))
    return x[: math.prod(batch)].reshape(*batch, *sample)
