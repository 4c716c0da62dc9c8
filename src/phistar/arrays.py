# SPDX-License-Identifier: BSD-3-Clause
"""The types of every array, real or complex numbers of any precision, of its elements; shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
DType = np.dtype[Any]


def as_vectors(x: Array) -> Array:
    """The last two axes as one: (..., m * n) of (..., m, n), also of no samples.

    ``reshape`` with -1 does not know how long that is where nothing is in the array.
    """
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def has_no_precision(x: object) -> bool:
    """Whether a value is whole numbers, a number without axes, or a list of Python's numbers."""
    if isinstance(x, bool | int | float):
        return True
    if isinstance(x, list | tuple):
        return all(
            has_no_precision(each)
            if isinstance(each, list | tuple)
            else type(each) in (bool, int, float)
            for each in x
        )
    if isinstance(x, (np.ndarray, np.generic)):
        return x.ndim == 0 or x.dtype.kind in "biu"
    return False
