# SPDX-License-Identifier: BSD-3-Clause
"""Kernels on arrays with any batch axes: rows of numbers, one per sample or one for all."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from phistar.arrays import Array
from phistar.backends.llvm.run.machine_kernel import MachineKernel
from phistar.backends.llvm.run.result_pool import pool

LLVM_REAL_BY_DTYPE = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}
"""What kernels compute in, by dtype."""


def as_rows(
    arrays: Mapping[str, Array], axes: Mapping[str, int]
) -> tuple[tuple[int, ...], dict[str, Array]]:
    """The shape of a batch and its inputs as rows.

    Args:
        arrays: Inputs by name, batches broadcast.
        axes: How many axes of each belong to a sample.

    Returns:
        The shape of the batch, and arrays (samples, size) or (1, size).
    """
    own = {name: x.shape[: x.ndim - axes[name]] for name, x in arrays.items()}
    batch = np.broadcast_shapes(*own.values())
    return batch, {name: _rows(x, own[name], batch) for name, x in arrays.items()}


def _rows(x: Array, own: tuple[int, ...], batch: tuple[int, ...]) -> Array:
    tail = x.shape[len(own) :]
    if own != batch and math.prod(own) != 1:
        own, x = batch, np.broadcast_to(x, (*batch, *tail))
    return x.reshape(math.prod(own), math.prod(tail))


def run_on_batch(
    kernel: MachineKernel,
    arrays: Mapping[str, Array],
    axes: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    out: Mapping[str, Array] | None = None,
) -> tuple[dict[str, Array], bool]:
    """Run a kernel on arrays with any leading batch axes.

    Args:
        kernel: Of the precision of the arrays.
        arrays: Inputs by name.
        axes: How many trailing axes of each input are one sample.
        shapes: Shape of each output for one sample.
        out: Arrays for some of the outputs, of the right shape and dtype.

    Returns:
        The outputs by name, and whether all that was read and found is finite.
    """
    batch, lines = as_rows(arrays, axes)
    count = math.prod(batch)
    call = kernel.call
    rows = [lines[name] for name in call.signature.inputs]
    sizes = call.signature.outputs
    given = {n: x.reshape(count, sizes[n]) for n, x in (out or {}).items()}
    results = {
        n: given[n] if n in given else pool.empty((count, m), call.dtype) for n, m in sizes.items()
    }
    finite = not count or call(rows, list(results.values()), outputs_are_new=not given)
    for name, x in (out or {}).items():
        if not np.may_share_memory(x, given[name]):
            # Its rows have no constant stride: they were computed elsewhere.
            np.copyto(x, given[name].reshape(x.shape))
    shaped = {name: x.reshape((*batch, *shapes[name])) for name, x in results.items()}
    return {**shaped, **(out or {})}, finite
