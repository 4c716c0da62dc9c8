# SPDX-License-Identifier: BSD-3-Clause
"""Where the numbers of a control law stand in the inputs of its programs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LawNumbers:
    """Where the numbers of a law stand.

    Attributes:
        fixed: Name and size of those that are the same at all times for all samples.
        varying: Of the others, in the order of the row ``reference``.
        own: Whether joint vectors of the state and of motors are in the robot's own coordinates;
            they are in body order else, as those that other programs give and take always are.
        passive: Forces of the joints themselves that motors make up for.
        shared: Whether the row ``reference`` is the same for all samples.
    """

    fixed: tuple[tuple[str, int], ...]
    varying: tuple[tuple[str, int], ...]
    own: bool = True
    passive: tuple[str, ...] = ()
    shared: bool = False

    def has(self, name: str) -> bool:
        """Whether a number is given."""
        return name in dict(self.fixed) or name in dict(self.varying)
