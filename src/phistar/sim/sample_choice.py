# SPDX-License-Identifier: BSD-3-Clause
"""Some samples of a batch: which are meant, what is given for each, what is random of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, ShapeError
from phistar.reprs import MAX_NUMBERS_SHOWN


def chosen_samples(mask: ArrayLike | None, batch: int, owner: str) -> Array:
    """Numbers of the samples that a mask, numbers or None (all) mean.

    Raises:
        ShapeError, ArgumentError: They are none of the batch.
    """
    if mask is None:
        return np.arange(batch)
    given = np.asarray(mask)
    if given.dtype == bool:
        if given.shape != (batch,):
            raise ShapeError("mask", given.shape, f"({batch},)", owner)
        return np.flatnonzero(given)
    numbers = np.atleast_1d(given)
    if numbers.dtype.kind not in "iu" or ((numbers < 0) | (numbers >= batch)).any():
        raise ArgumentError(
            f"mask is {_said(given)}, expected booleans (batch,) or numbers of samples below "
            f"{batch}"
        )
    return np.asarray(numbers)


def _said(given: Array) -> str:
    """A short array, or the shape and type of a long one."""
    if given.size <= MAX_NUMBERS_SHOWN:
        return repr(given.tolist())
    return f"an array {given.shape} of {given.dtype}"


def rows_for_samples(name: str, given: Array, chosen: Array, batch: int, owner: str) -> Array:
    """One row for all, one for each chosen sample, or one for each of the batch: (chosen, n)."""
    size = given.shape[-1]
    if given.ndim == 1 or given.shape == (len(chosen), size):
        return np.array(np.broadcast_to(given, (len(chosen), size)), float)
    if given.shape == (batch, size):
        return np.array(given[chosen], float)
    rows = f"({size},), ({len(chosen)}, {size}) for the samples that are reset, or"
    raise ShapeError(name, given.shape, f"{rows} ({batch}, {size})", owner)


def random_rows(seed: int, chosen: Array, resets: Array, size: int) -> Array:
    """(chosen, 2, size) standard normal numbers: by seed, sample and its number of resets alone."""
    found = np.empty((len(chosen), 2, size))
    for row, sample in zip(found, chosen.tolist(), strict=True):
        row[...] = np.random.default_rng((seed, sample, resets[sample])).normal(size=(2, size))
    return found
