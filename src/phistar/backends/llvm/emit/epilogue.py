# SPDX-License-Identifier: BSD-3-Clause
"""Outputs of a block from the workspace, one vector per entry, to rows, one row per sample.

A table says which slot holds each entry. Tiles of as many entries as there are lanes are transposed
in a loop. Where the output begins with a line of the caches and samples follow each other without
gaps, whole vectors are written to aligned places, which are not where the rows of most lanes begin:
a vector that would cross a line costs twice as much. A vector in which one row ends and the next
begins is put together of both. Outputs that are larger than the caches need not be read into them
before they are written: the same vectors then go past them, with streaming stores.

Where an output keeps the zeros that it had, lines that are all zero for every state are passed
over: tiles come in runs then (``nonzero_runs``), the first one from the text, others by a table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.nonzero_runs import TileRun, lanes_behind, nonzero_runs
from phistar.backends.llvm.emit.skeleton import (
    STORE_ANYWHERE,
    STORE_STREAMING,
    KernelArguments,
    SampleBlock,
    add_to_slot,
    row_tiles,
    streamed_outputs,
)
from phistar.scalar.program import Signature
from phistar.thresholds import POLICY

VectorStore = Callable[[str, str], None]
"""Puts a vector to an address."""


def slot_tables(places: Mapping[str, Mapping[int, int]], lanes: Lanes) -> list[str]:
    """Constants that hold the slots of the entries of each output."""
    found = []
    for name, slots in places.items():
        # A tile that begins at the last entry reads beyond it, though nothing comes of that.
        listed = [slots[entry] for entry in range(len(slots))] + [0] * (lanes.width - 1)
        values = ", ".join(f"i32 {slot}" for slot in listed)
        found.append(f"@slots.{name} = private constant [{len(listed)} x i32] [{values}]")
    return found


def run_tables(
    zeros: Mapping[str, Collection[int]], sizes: Mapping[str, int], lanes: Lanes
) -> list[str]:
    """Constants that hold the later runs of tiles of each output that keeps zeros."""
    found = []
    for name, entries in zeros.items():
        _, later = _first_and_later(nonzero_runs(entries, sizes[name], lanes.width))
        if later:
            numbers = [x for run in later for x in (run.start, run.stop, run.lead, run.trail)]
            values = ", ".join(f"i64 {x}" for x in numbers)
            found.append(f"@runs.{name} = private constant [{len(numbers)} x i64] [{values}]")
    return found


def _first_and_later(runs: Sequence[TileRun]) -> tuple[TileRun | None, Sequence[TileRun]]:
    """The run with which a row begins, if one does, and the others."""
    if runs and not runs[0].start:
        return runs[0], runs[1:]
    return None, runs


class Epilogue:
    """Writes the stores of a block."""

    def __init__(
        self,
        block: SampleBlock,
        signature: Signature,
        arrays: KernelArguments,
        sums: int,
        zeros: Mapping[str, Collection[int]],
    ) -> None:
        """Args:
        block: Where the text goes.
        signature: The outputs.
        arrays: Where they go.
        sums: Slot of the sum of all results, which shows whether they are finite.
        zeros: Of outputs that keep zeros, entries that are zero for every state and were so before.
        """
        self.zeros = zeros
        self.block = block
        self.sums = sums
        self.w = block.w
        self.lanes = block.w.lanes
        self.sizes = signature.outputs
        self.streamed = streamed_outputs(signature)
        w, width = self.w, self.lanes.width
        full = w.compare("sle", w.add("%sample", width), "%last")
        whole = w.compare("eq", w(f"and i64 %sample, {width - 1}"), 0)
        aligned = w(f"and i1 {full}, {whole}")
        allowed = w.compare("ne", arrays.stores, STORE_ANYWHERE)
        self.is_aligned = w(f"and i1 {aligned}, {allowed}")
        self.is_streaming = w.compare("eq", arrays.stores, STORE_STREAMING)

    def store_output(self, name: str) -> None:
        """An output to where it belongs."""
        if name not in self.streamed:
            self._store_anywhere(name)
            return
        w = self.w

        def aligned() -> None:
            w.if_else(
                self.is_streaming,
                lambda: self._store_aligned(name, w.stream_vector),
                lambda: self._store_aligned(name, w.store_vector),
            )

        w.if_else(self.is_aligned, aligned, lambda: self._store_anywhere(name))

    def _store_anywhere(self, name: str) -> None:
        """To any place, perhaps some lanes twice: rows of lanes beyond the batch are its last."""
        width = self.lanes.width
        every = row_tiles(self.sizes[name], self.lanes)
        whole = sum(count == width for _, count in every)
        if whole:
            with self.w.loop(0, whole * width, width, stem="tile") as (i, _):
                self.block.scatter_entries(f"={name}", i, self._load_tile(name, i))
        for start, count in every[whole:]:
            self.block.scatter_entries(f"={name}", start, self._load_tile(name, start)[:count])

    def _store_aligned(self, name: str, store: VectorStore) -> None:
        """Whole vectors to aligned places.

        Args:
            name: The output.
            store: Puts a vector to an aligned address.
        """
        w, width, size = self.w, self.lanes.width, self.sizes[name]
        behind = lanes_behind(size, width)
        whole = size - size % width
        heads = w.transpose(self._load_tile(name, 0))
        if name in self.zeros:
            self._store_runs(name, heads, behind, store)
            last = w.transpose(self._load_tile(name, whole - width))
        else:
            last = self._store_first_run(name, heads, whole, behind, store)
        rest = w.transpose(self._load_tile(name, whole)) if size > whole else heads
        for lane, count in enumerate(behind):
            # What is left of this row, and the entries of the next one that fill the last vector.
            left = [(last[lane], k) for k in range(width - count, width)]
            left += [(rest[lane], k) for k in range(size - whole)]
            left += [(heads[lane + 1], k) for k in range(-len(left) % width)]
            row = self.block.rows[f"={name}"][lane]
            for k in range(0, len(left), width):
                store(self._collect(left[k : k + width]), w.gep(row, whole - count + k))

    def _store_first_run(
        self, name: str, heads: list[str], stop: int, behind: list[int], store: VectorStore
    ) -> list[str]:
        """The tiles from the first one on, a few in a round; the last of them, lane by lane."""
        w, step = self.w, POLICY.tiles_per_round * self.lanes.width
        for lane, back in enumerate(behind):
            if not back:
                store(heads[lane], self.block.rows[f"={name}"][lane])
        begin, last = self.lanes.width, heads
        while (stop - begin) % step:
            last = self._store_tiles(name, begin, 1, last, behind, store)
            begin += self.lanes.width
        if begin < stop:
            with w.loop(begin, stop, step, last, stem="tiles") as (i, carried):
                carried[:] = self._store_tiles(
                    name, i, POLICY.tiles_per_round, carried, behind, store
                )
            last = carried
        return last

    def _store_runs(
        self, name: str, heads: list[str], behind: list[int], store: VectorStore
    ) -> None:
        """Tiles that are not all zero, and at the ends of each run lines that are not."""
        w, width, size = self.w, self.lanes.width, self.sizes[name]
        whole = size - size % width
        first, later = _first_and_later(nonzero_runs(self.zeros[name], size, width))
        zero = [w.constant(0.0)] * width
        # Lanes by how far behind they are: those that write the first line of a run, by ``lead``,
        # and those that write one after its last tile, by ``trail``. What follows the last whole
        # tile is written with the end of the row.
        leading = {n: [k for k in range(width) if behind[k] < n] for n in range(1, width + 1)}
        trailing = {n: [k for k in range(width) if behind[k] > n] for n in range(width)}

        def put(lanes: Sequence[int], last: list[str], tile: list[str], i: int | str) -> None:
            for lane in lanes:
                self._store_line(name, lane, last[lane], tile[lane], i, behind[lane], store)

        if first is not None:
            last = self._store_first_run(name, heads, first.stop, behind, store)
            if first.stop < whole:
                put(trailing[first.trail], last, zero, first.stop)
        if not later:
            return
        with w.loop(0, 4 * len(later), 4, stem="run") as (at, _):
            start, stop, lead, trail = (
                w.load("i64", w.gep(f"@runs.{name}", w.add(at, k), "i64"), 8) for k in range(4)
            )
            tile = w.transpose(self._load_tile(name, start))
            for lanes in w.switch(lead, leading):
                put(lanes, zero, tile, start)
            begin = w.add(start, width)
            with w.loop(begin, stop, width, tile, maybe_empty=True, stem="tiles") as (i, carried):
                carried[:] = self._store_tiles(name, i, 1, carried, behind, store)
            with w.if_(w.compare("slt", stop, whole)):
                for lanes in w.switch(trail, trailing):
                    put(lanes, carried, zero, stop)

    def _store_tiles(
        self,
        name: str,
        i: int | str,
        count: int,
        last: list[str],
        behind: list[int],
        store: VectorStore,
    ) -> list[str]:
        """Some tiles, lane by lane, given the one before them; the last one of them."""
        w, width = self.w, self.lanes.width
        starts = [w.add(i, k * width) for k in range(count)]
        tiles = [last, *(w.transpose(self._load_tile(name, start)) for start in starts)]
        for lane, back in enumerate(behind):
            for k, start in enumerate(starts):
                self._store_line(name, lane, tiles[k][lane], tiles[k + 1][lane], start, back, store)
        return tiles[-1]

    def _store_line(
        self,
        name: str,
        lane: int,
        before: str,
        tile: str,
        start: int | str,
        back: int,
        store: VectorStore,
    ) -> None:
        """A lane's line of a tile, given the tile before it and how far its row is behind."""
        w, width = self.w, self.lanes.width
        value = tile
        if back:
            value = w.shuffle(before, tile, range(width - back, 2 * width - back))
        store(value, w.gep(self.block.rows[f"={name}"][lane], w(f"sub i64 {start}, {back}")))

    def _collect(self, entries: Sequence[tuple[str, int]]) -> str:
        """A vector of entries of others."""
        width = self.lanes.width
        first, *others = dict.fromkeys(vector for vector, _ in entries)
        found, places = first, [k for _, k in entries]
        for other in others or [first]:
            taken = zip(entries, places, strict=True)
            chosen = [width + k if v == other != first else p for (v, k), p in taken]
            found, places = self.w.shuffle(found, other, chosen), list(range(width))
        return found

    def _load_tile(self, name: str, i: int | str) -> list[str]:
        """As many entries as there are lanes, from the i-th on."""
        w, found = self.w, []
        for k in range(self.lanes.width):
            place = w.gep(f"@slots.{name}", w.add(i, k), "i32")
            found.append(w.load_slot(w(f"zext i32 {w.load('i32', place, 4)} to i64")))
        add_to_slot(w, self.sums, found)
        return found
