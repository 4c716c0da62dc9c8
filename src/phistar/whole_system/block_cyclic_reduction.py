# SPDX-License-Identifier: BSD-3-Clause
"""Block tridiagonal systems by cyclic reduction: every other block is eliminated, all at once.

What is left is a block tridiagonal system of half as many blocks, so that N blocks take about
log₂ N rounds, each of which could be done in parallel. Blocks smaller than the largest are filled
up with ones on the diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array

if TYPE_CHECKING:
    from scipy.sparse import csc_array


def solve_block_tridiagonal(matrix: csc_array, right: Array, widths: Sequence[int]) -> Array:
    """x with matrix @ x = right, blocks of given widths; the matrix is symmetric and positive."""
    width = max(widths, default=0)
    if not width:
        return np.zeros(0)
    starts = np.concatenate([[0], np.cumsum(widths)])
    number = np.repeat(np.arange(len(widths)), widths)
    within = np.arange(len(right)) - starts[number]
    count = len(widths)
    diagonal, above = np.zeros((count, width, width)), np.zeros((count, width, width))
    entries = matrix.tocoo()
    row, column = entries.coords
    for offset, blocks in ((0, diagonal), (1, above)):
        at = number[column] - number[row] == offset
        blocks[number[row[at]], within[row[at]], within[column[at]]] = entries.data[at]
    for i in range(width):
        diagonal[:, i, i] += np.asarray(widths) <= i
    b = np.zeros((count, width))
    b[number, within] = right
    return np.asarray(_solve(diagonal, above, b)[number, within])


def rounds(count: int) -> int:
    """How many rounds a number of blocks takes."""
    return max(count - 1, 0).bit_length()


def _solve(diagonal: Array, above: Array, b: Array) -> Array:
    """Blocks (n, w, w) on and above the diagonal, the last of which is not used, and b (n, w)."""
    count = len(diagonal)
    if count == 1:
        return np.asarray(np.linalg.solve(diagonal, b[..., None])[..., 0])
    odd, even = np.arange(1, count, 2), np.arange(0, count, 2)
    # Each even block has the odd ones beside it: those before by `above`, those after by its own.
    inverse = np.linalg.inv(diagonal[even])
    kept, taken = diagonal[odd].copy(), b[odd].copy()
    links = np.zeros_like(kept)
    before = above[even[: len(odd)]]  # from even i - 1 to odd i
    lower = np.swapaxes(before, -1, -2) @ inverse[: len(odd)]
    kept -= lower @ before
    taken -= (lower @ b[even[: len(odd)]][..., None])[..., 0]
    later = len(even) - 1  # odd blocks that have an even one after them
    after = above[odd[:later]]
    upper = after @ inverse[1:]
    kept[:later] -= upper @ np.swapaxes(after, -1, -2)
    taken[:later] -= (upper @ b[even[1:]][..., None])[..., 0]
    if len(odd) > 1:
        links[: len(odd) - 1] = -upper[: len(odd) - 1] @ above[even[1 : len(odd)]]
    x = np.zeros_like(b)
    x[odd] = _solve(kept, links, taken)
    rest = b[even].copy()
    rest[: len(odd)] -= (before @ x[odd][..., None])[..., 0]
    rest[1:] -= (np.swapaxes(after, -1, -2) @ x[odd[:later]][..., None])[..., 0]
    x[even] = (inverse @ rest[..., None])[..., 0]
    return x
