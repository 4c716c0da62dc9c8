# SPDX-License-Identifier: BSD-3-Clause
"""Memory that the states of a simulation will take."""

from __future__ import annotations

from phistar import memory_limits
from phistar.errors import TooLargeError


def refuse_large_simulation(name: str, steps: int, every: int, row: int) -> None:
    """Raise if the states of a simulation would not fit.

    Args:
        name: Name of the robot.
        steps: Number of steps.
        every: Steps between stored states.
        row: Bytes per state of the batch.
    """
    needed = (steps // every + 1) * row
    if needed <= memory_limits.UNCHECKED_BYTES:
        return
    free = memory_limits.available_bytes()
    bound = int(memory_limits.MAX_SHARE_OF_FREE * free)
    if needed <= bound:
        return
    fits = next((n for n in _divisors(steps) if (steps // n + 1) * row <= bound), None)
    cure = f"keep fewer of them, e.g. every={fits}" if fits else "take smaller batches"
    what = f"{steps // every + 1:,} states of robot '{name}'"
    raise TooLargeError(
        f"{memory_limits.memory_text(what, needed, free)}; {cure}", needed, free, fits
    )


def large_simulation_text(steps: int, every: int, row: int) -> str:
    """How many states a simulation stores and their size, if they are many and fit; else nothing.

    Args: as of ``refuse_large_simulation``.
    """
    count = steps // every + 1
    needed = count * row
    if needed <= memory_limits.UNCHECKED_BYTES:
        return ""
    if needed > memory_limits.MAX_SHARE_OF_FREE * memory_limits.available_bytes():
        return ""
    return f"{count:,} states, {memory_limits.format_bytes(needed)}"


def _divisors(count: int) -> list[int]:
    """Round numbers that divide a count, and the count itself; the smallest first."""
    powers = (10**k for k in range(len(str(count))))
    divisors = {m * p for p in powers for m in (1, 2, 5) if count % (m * p) == 0}
    return sorted(divisors | {count})
