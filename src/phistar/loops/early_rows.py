# SPDX-License-Identifier: BSD-3-Clause
"""Which rows of loops with the ground can be solved before they get there.

A foot on the ground has as many rows as its leg needs joints to let the trunk move: once the sweep
has passed these joints, the rows are solved at the trunk as those of an inner loop are, and what
the trunk feels is a link with more inertia. This divides by the mobility of the foot while the
trunk stands still, Λ = L𝓜⁻¹L* of the joints between them, which vanishes on straight legs.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from phistar import dynamics
from phistar.arrays import Array
from phistar.loops.assembly import usual_configurations, usual_rank
from phistar.loops.long_chains import long_chains
from phistar.loops.system import loop_system, rows_at
from phistar.model.components import GROUND
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.thresholds import POLICY


@dataclass(frozen=True)
class EarlyRow:
    """A row that is solved further out than where its chain ends.

    Attributes:
        row: Its number.
        link: The body at which it is solved.
        mobility: A usual size of its number in Λ, in its own units; a power of two.
    """

    row: int
    link: int
    mobility: float


@cached_on_model
def early_rows(model: Model) -> tuple[EarlyRow, ...]:
    """The rows of a robot that are solved early: none where rows depend on each other."""
    from phistar.scalar.trace.ground_rows import ground_loops

    loops = list(ground_loops(model))
    if not loops or not joint_map(model).one_to_one or long_chains(model) is not None:
        return ()
    usual = _UsualRows(model)
    if usual_rank(model) < len(usual.live):
        return ()
    found: list[EarlyRow] = []
    for each in loops:
        rows = [row for row in each.rows if row in usual.live]
        path = model.ancestors(each.ends[1].body)[:-1]
        for link in reversed(path[-POLICY.max_joints_per_early_row * max(len(rows), 1) :]):
            solved = usual.solved_at(link, rows, found)
            if solved is not None:
                found += solved
                break
    return tuple(found)


class _UsualRows:
    """Rows without units, and inertias, at a few usual configurations."""

    def __init__(self, model: Model) -> None:
        q = usual_configurations(model)
        system = loop_system(model)
        self.model = model
        self.scale = system.row_scale
        self.L: Array = self.scale[:, None] * rows_at(model, q).L
        self.mass = dynamics.mass_matrix(system.tree, q)
        self.live = frozenset(np.flatnonzero((self.L != 0.0).any(axis=(0, 2))).tolist())
        self._ends = {row: self._end_of(row) for row in self.live}

    def _end_of(self, row: int) -> int:
        """The outermost body on whose acceleration, and those further in, it does not depend."""
        moved = (self.L[:, row] != 0.0).any(axis=0)
        paths = [
            self.model.ancestors(body.index)[:-1]
            for body in self.model.bodies
            if moved[body.v_slice].any()
        ]
        shared = [steps[0] for steps in zip(*paths, strict=False) if len(set(steps)) == 1]
        return shared[-1] if shared else GROUND

    def _coordinates_of(self, bodies: Set[int]) -> list[int]:
        """Numbers in v of the joints of some bodies."""
        slices = [b.v_slice for b in self.model.bodies if b.index in bodies]
        return sorted(i for own in slices for i in range(own.start, own.stop))

    def solved_at(
        self, link: int, rows: Sequence[int], early: Sequence[EarlyRow]
    ) -> list[EarlyRow] | None:
        """Rows solved at a body; None if they are not usually independent by then.

        Args:
            link: The body.
            rows: Numbers of the rows of a loop.
            early: Rows that are solved early already.
        """
        outboard = {b.index for b in self.model.bodies if link in self.model.ancestors(b.index)}
        ends = self._ends | {each.row: each.link for each in early}
        before = [row for row, end in ends.items() if end in outboard and row not in rows]
        joints = self._coordinates_of(outboard - {link})
        if len(joints) < len(rows) + len(before):
            return None
        L = self.L[:, [*before, *rows]][..., joints]
        mass = self.mass[:, joints][..., joints]
        mobility = L @ np.linalg.solve(mass, np.swapaxes(L, -1, -2))
        own = slice(len(before), None)
        diagonal = np.max(np.diagonal(mobility, axis1=-2, axis2=-1)[:, own], axis=0)
        if not (diagonal > 0.0).all():
            return None
        usual = np.ldexp(1.0, np.frexp(diagonal)[1])
        pivots = np.array([_pivots(each)[own] for each in mobility])
        if np.median((pivots / usual).min(axis=-1)) < POLICY.least_usual_early_pivot:
            return None
        units = self.scale[list(rows)] ** 2
        return [
            EarlyRow(row, link, float(size / unit))
            for row, size, unit in zip(rows, usual, units, strict=True)
        ]


def _pivots(matrix: Array) -> Array:
    """Of a symmetric matrix (n, n) without exchanges; zeros once one is not positive."""
    work, found = np.array(matrix), np.zeros(len(matrix))
    for k in range(len(work)):
        if not work[k, k] > 0.0:
            break
        found[k] = work[k, k]
        work -= np.outer(work[:, k], work[k]) / work[k, k]
    return found
