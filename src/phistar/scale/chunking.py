# SPDX-License-Identifier: BSD-3-Clause
"""How many rows a task gets: enough to be worth its overhead, few enough for its memory.

The number follows from operation counts and sizes alone, so that it is the same on every machine.
"""

from __future__ import annotations

import numpy as np

from phistar.errors import PhistarError
from phistar.kernels import RobotKernel
from phistar.scale.work import Work
from phistar.thresholds import POLICY


def operations_per_row(work: Work) -> int | None:
    """Additions and multiplications of a row; None if nobody knows, as for a user's function."""
    quantity = work.quantity
    try:
        if isinstance(quantity, str):
            quantity = work.robot.compile(quantity)
        if isinstance(quantity, RobotKernel):
            cost = quantity.cost
            return int(cost.multiplications + cost.additions)
    except PhistarError:
        return None  # a method that is no program, such as simulate
    return None


def rows_per_task(work: Work, numbers_per_row: int, itemsize: int = 8) -> int:
    """Rows of a task.

    Args:
        work: What it does.
        numbers_per_row: Of inputs and outputs together.
        itemsize: Bytes of a number.
    """
    rows = POLICY.task_bytes // max(1, numbers_per_row * itemsize)
    operations = operations_per_row(work)
    if operations:
        rows = min(rows, POLICY.task_operations // operations)
    return int(np.clip(rows, 1, POLICY.task_rows))
