# SPDX-License-Identifier: BSD-3-Clause
"""Columns of a matrix that reach ancestors only: which of them pass each link.

A column that goes from link to link waits at each for what it computed at the one before. Columns
do not wait for each other, so such columns are taken side by side: from the tips on, at each link
all that begin at it and at its descendants. What a column carries from link to link is kept by
column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phistar.scalar.graph import WORK
from phistar.scalar.program import BasicBlock, ColumnSweep, Looped
from phistar.scalar.robot.link_relations import ABOVE, AT, AncestorRelations


@dataclass(frozen=True)
class AncestorColumns:
    """The columns at each link.

    Attributes:
        sweep: What is done.
        carried: Slots of what a column carries, and their places in its memory.
        first: The first column that begins at each link.
        below, end: The first column that begins at a descendant of each link, and the one after the
            last.
        count: All columns.
    """

    sweep: ColumnSweep
    carried: Mapping[int, int]
    first: Sequence[int]
    below: Sequence[int]
    end: Sequence[int]
    count: int

    @property
    def vectors(self) -> int:
        """Of the workspace, for what columns carry."""
        return self.count * len(self.carried)

    @classmethod
    def of(cls, program: Looped) -> AncestorColumns | None:
        """Those of a program; None if its columns reach more, or do not follow one another."""
        columns = program.column_loop
        if columns is None or len(columns.sweeps) != 1 or not columns.sweeps[0].is_ancestor_path:
            return None
        (sweep,) = columns.sweeps
        carried = _carried_slots(sweep)
        kinship = AncestorRelations(program.links.parent)
        enter = np.array(kinship.enter, dtype=np.int64)
        begins = enter[np.array(columns.link, dtype=np.int64)]
        if carried is None or (np.diff(begins) < 0).any():
            return None
        first, below, end = (
            np.searchsorted(begins, x).tolist() for x in (enter, enter + 1, kinship.leave)
        )
        return cls(sweep, carried, first, below, end, len(columns.link))

    @property
    def by_class(self) -> dict[int, tuple[dict[int, BasicBlock], BasicBlock | None]]:
        """For each class of links: what is done for its own columns, and for those from below."""
        found: dict[int, tuple[dict[int, BasicBlock], BasicBlock | None]] = {}
        for (kind, relation, entry), body in self.sweep.blocks.items():
            at, above = found.get(kind, ({}, None))
            found[kind] = ({**at, entry: body}, above) if relation == AT else (at, body)
        return found


def _carried_slots(sweep: ColumnSweep) -> dict[int, int] | None:
    """Slots that links hand to their parents; None if blocks keep, add or read anything else."""
    slots: set[int] = set()
    for store in (store for body in sweep.blocks.values() for store in body.stores):
        if store.add or (store.space == WORK and store.base != "parent"):
            return None
        if store.space == WORK:
            slots.add(store.index)
    for (_, relation, _), body in sweep.blocks.items():
        if any(
            base == "parent" or (slot in slots and relation != ABOVE) for slot, base in _reads(body)
        ):
            return None
    return {slot: place for place, slot in enumerate(sorted(slots))}


def _reads(body: BasicBlock) -> Iterator[tuple[int, str]]:
    """Slots that a block reads, and at which link."""
    for _, place in body.loads:
        if place.space == WORK:
            yield place.entry, place.base
