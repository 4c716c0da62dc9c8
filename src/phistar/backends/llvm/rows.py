# SPDX-License-Identifier: BSD-3-Clause
"""A user's arrays as kernels take them: rows of numbers, one a sample or one for all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

REALS = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}
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
