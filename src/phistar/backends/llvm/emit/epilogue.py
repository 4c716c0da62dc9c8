# SPDX-License-Identifier: BSD-3-Clause
"""Outputs of a block from the workspace, one vector per entry, to rows, one row per sample.

A table says which slot holds each entry. Tiles of as many entries as there are lanes are transposed
in a loop. Where the output begins with a line of the caches and samples follow each other without
gaps, whole vectors are written to aligned places, which are not where the rows of most lanes begin:
a vector that would cross a line costs twice as much. A vector in which one row ends and the next
begins is put together of both. Outputs that are larger than the caches need not be read into them
before they are written: the same vectors then go past them, with streaming stores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from phistar.backends.llvm.emit.ir_builder import Lanes
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


class Epilogue:
    """Writes the stores of a block."""

    def __init__(
        self, block: SampleBlock, signature: Signature, arrays: KernelArguments, sums: int
    ) -> None:
        """Args:
        block: Where the text goes.
        signature: The outputs.
        arrays: Where they go.
        sums: Slot of the sum of all results, which shows whether they are finite.
        """
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
        rows = self.block.rows[f"={name}"]
        # By so many entries a lane's row begins behind an aligned place.
        behind = [lane * size % width for lane in range(width)]
        whole = size - size % width
        heads = w.transpose(self._load_tile(name, 0))
        for lane, count in enumerate(behind):
            if not count:
                store(heads[lane], rows[lane])
        begin, last = width, heads
        while (whole - begin) % (POLICY.tiles_per_round * width):
            last = self._store_tiles(name, begin, 1, last, behind, store)
            begin += width
        step = POLICY.tiles_per_round * width
        with w.loop(begin, whole, step, last, stem="tiles") as (i, carried):
            carried[:] = self._store_tiles(name, i, POLICY.tiles_per_round, carried, behind, store)
        rest = w.transpose(self._load_tile(name, whole)) if size > whole else heads
        for lane, count in enumerate(behind):
            # What is left of this row, and the entries of the next one that fill the last vector.
            left = [(carried[lane], k) for k in range(width - count, width)]
            left += [(rest[lane], k) for k in range(size - whole)]
            left += [(heads[lane + 1], k) for k in range(-len(left) % width)]
            for k in range(0, len(left), width):
                store(self._collect(left[k : k + width]), w.gep(rows[lane], whole - count + k))

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
        for lane, (row, back) in enumerate(zip(self.block.rows[f"={name}"], behind, strict=True)):
            for k, start in enumerate(starts):
                value = tiles[k + 1][lane]
                if back:
                    chosen = range(width - back, 2 * width - back)
                    value = w.shuffle(tiles[k][lane], value, chosen)
                store(value, w.gep(row, w(f"sub i64 {start}, {back}")))
        return tiles[-1]

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
