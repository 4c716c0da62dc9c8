# SPDX-License-Identifier: BSD-3-Clause
"""Which lines of the caches have to be written where an output keeps the zeros that it had.

Rows of samples follow each other without gaps, so that the row of a lane begins some entries behind
an aligned place, by which its lines are shifted. Of a tile, so many entries that begin at a
multiple of their number, each lane writes one line: the tile's entries and the last ones of the
tile before, as many as the lane is behind. Tiles that are not all zero come in runs; at the ends of
a run some lanes have lines that are all zero.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class TileRun:
    """Tiles of a row that follow each other, none of which is all zero.

    Attributes:
        start, stop: The first entry, and that after the last one.
        lead: Lanes fewer entries behind than this write their line of the first tile: 1 to the
            width.
        trail: Lanes more entries behind than this write their line of the tile after the last one.
    """

    start: int
    stop: int
    lead: int
    trail: int


def lanes_behind(size: int, width: int) -> list[int]:
    """By how many entries each lane's row begins behind an aligned place.

    Args:
        size: Entries of a row.
        width: Lanes, and entries of a line.
    """
    return [lane * size % width for lane in range(width)]


def nonzero_runs(zeros: Collection[int], size: int, width: int) -> list[TileRun]:
    """Runs of the whole tiles of a row.

    Args:
        zeros: Entries that are zero for every state.
        size: Entries of a row.
        width: Entries of a tile.
    """
    found: list[TileRun] = []
    held = set(zeros)
    for start in range(0, size - size % width, width):
        kept = [entry for entry in range(start, start + width) if entry not in held]
        if not kept:
            continue
        stop = start + width
        trail = stop - kept[-1] - 1
        if found and found[-1].stop == start:
            last = found.pop()
            found.append(TileRun(last.start, stop, last.lead, trail))
        else:
            found.append(TileRun(start, stop, width - (kept[0] - start), trail))
    return found


def written_lines(zeros: Collection[int], size: int, width: int) -> Iterator[tuple[int, int]]:
    """Lane, and first entry in its row, of each line that is written in a block of samples.

    Lines that hold the begin of a row belong to the lane before, so that they are written with the
    end of its row; the first one of a block is the first lane's own.
    """
    whole = size - size % width
    runs = nonzero_runs(zeros, size, width)
    for lane, back in enumerate(lanes_behind(size, width)):
        for run in runs:
            inner = range(run.start + width, run.stop, width)
            first = [run.start] if back < run.lead and (run.start or not back) else []
            last = [run.stop] if back > run.trail and run.stop < whole else []
            yield from ((lane, tile - back) for tile in (*first, *inner, *last))
        yield from ((lane, tile) for tile in range(whole - back, size, width))


def unwritten_share(zeros: Collection[int], size: int, width: int) -> float:
    """Which share of its lines a block of samples leaves as they are."""
    return 1.0 - sum(1 for _ in written_lines(zeros, size, width)) / max(size, 1)
