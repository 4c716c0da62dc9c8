# SPDX-License-Identifier: BSD-3-Clause
"""What inverse kinematics found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from phistar.arrays import Array
from phistar.errors import pluralize
from phistar.reprs import one_line_repr

REASONS = (
    "reached",
    "out of reach or at a local minimum",
    "out of reach or at a local minimum, joints at their limits",
    "more iterations needed",
    "not a number in q0 or a target",
)
"""Why a search ended, by code."""
REACHED, STUCK, AT_LIMITS, UNFINISHED, NOT_A_NUMBER = range(len(REASONS))


@one_line_repr
@dataclass(frozen=True, eq=False)
class InverseKinematics:
    """Configurations for targets; ``print`` it.

    Attributes:
        q: (..., nq), the best that was found, inside the limits also where nothing was reached.
        success: (...) whether all targets of the first priority are within the tolerance.
        residuals: For each target the length (...) of what is left of its error [rad and m].
        errors: For each target what is left of it (..., rows): of a pose a rotation vector in world
            axes [rad], then a distance [m].
        reason_codes: (...) index into ``REASONS``.
        iterations: (...) steps, those of all starts.
        starts: (...) how many configurations it was tried from.
        at_limits: (..., nq) which coordinates are at a limit.
    """

    q: Array
    success: Array
    residuals: Mapping[str, Array]
    errors: Mapping[str, Array] = field(repr=False)
    reason_codes: Array = field(repr=False)
    iterations: Array = field(repr=False)
    starts: Array = field(repr=False)
    at_limits: Array = field(repr=False)

    @property
    def reasons(self) -> Array:
        """(...) why each search ended, in words."""
        return np.array(REASONS, dtype=object)[self.reason_codes]

    def __bool__(self) -> bool:
        """Whether every sample succeeded."""
        return bool(np.all(self.success))

    def __str__(self) -> str:
        count, total = int(np.sum(self.success)), int(np.size(self.success))
        lines = [f"{count} of {pluralize(total, 'sample')} reached"]
        for label, left in self.residuals.items():
            known = left[np.isfinite(left)] if np.ndim(left) else np.atleast_1d(left)
            worst = float(known.max()) if known.size else float("nan")
            lines.append(f"  {label}: largest residual {worst:.2e}")
        codes, counts = np.unique(self.reason_codes, return_counts=True)
        for code, number in zip(codes.tolist(), counts.tolist(), strict=True):
            if code != REACHED:
                lines.append(f"  {number}: {REASONS[code]}")
        return "\n".join(lines)
