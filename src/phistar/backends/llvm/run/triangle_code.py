# SPDX-License-Identifier: BSD-3-Clause
"""Triangles of QR factorizations by machine code of our own.

LAPACK reflects a whole tall matrix once for each of its columns and cuts that for threads, which
wait for each other; its last bits depend on how many there are.
"""

from __future__ import annotations

from array import array

from phistar.arrays import Array
from phistar.backends.llvm.abi import data_address
from phistar.backends.llvm.emit.triangle_module import triangle_module, workspace_bytes
from phistar.backends.llvm.run.calls import code_of_process, thread_workspace


def take_rows(
    triangle: Array,
    addresses: Array,
    strides: Array,
    count: int,
    weights: Array,
    shift: Array,
) -> None:
    """Reflect rows into a triangle, in place: RᵀR grows by AᵀA.

    Args:
        triangle: (n, n) R, in C order; zeros for no rows.
        addresses: (n,) int64, where the first number of each column is.
        strides: (n,) int64, bytes from a number of a column to its next one.
        count: Rows.
        weights: (count,) factors of the rows, or one of all, (1,).
        shift: (n,) multiples of the columns that are added to the last one.
    """
    size = len(triangle)
    step = weights.strides[0] if len(weights) > 1 else 0
    given = array(
        "q",
        (
            data_address(addresses),
            data_address(strides),
            size,
            data_address(weights),
            step,
            data_address(shift),
            data_address(triangle),
        ),
    )
    run = code_of_process(triangle_module)
    run(given.buffer_info()[0], thread_workspace(workspace_bytes(size)), 0, count)
