# SPDX-License-Identifier: BSD-3-Clause
"""Outputs of a block from the workspace, one vector per entry, to rows, one row per sample.

A table says which slot holds each entry. Tiles of as many entries as there are lanes are transposed
in a loop. Outputs that are larger than the caches need not be read into them before they are
written: where the caller says so and samples follow each other without gaps, whole vectors are
written with streaming stores to aligned places, which are not where the rows of most lanes begin.
"""

from __future__ import annotations

from collections.abc import Mapping

from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.skeleton import (
    KernelArguments,
    SampleBlock,
    add_to_slot,
    row_tiles,
    streamed_outputs,
)
from phistar.scalar.program import Signature
from phistar.thresholds import POLICY


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
        wanted = w.compare("ne", arrays.streaming, 0)
        full = w.compare("sle", w.add("%sample", width), "%last")
        aligned = w.compare("eq", w(f"and i64 %sample, {width - 1}"), 0)
        self.streaming = w(f"and i1 {w(f'and i1 {wanted}, {full}')}, {aligned}")

    def store_output(self, name: str) -> None:
        """An output to where it belongs."""
        if name not in self.streamed:
            self._store_cached(name)
            return
        self.w.if_else(
            self.streaming, lambda: self._store_streaming(name), lambda: self._store_cached(name)
        )

    def _store_cached(self, name: str) -> None:
        """With ordinary stores."""
        width = self.lanes.width
        every = row_tiles(self.sizes[name], self.lanes)
        whole = sum(count == width for _, count in every)
        if whole:
            with self.w.loop(0, whole * width, width, stem="tile") as (i, _):
                self.block.scatter_entries(f"={name}", i, self._load_tile(name, i))
        for start, count in every[whole:]:
            self.block.scatter_entries(f"={name}", start, self._load_tile(name, start)[:count])

    def _store_streaming(self, name: str) -> None:
        """With streaming stores; where a row begins or ends inside a vector, entry by entry."""
        w, width, size = self.w, self.lanes.width, self.sizes[name]
        rows = self.block.rows[f"={name}"]
        # By so many entries a lane's row begins behind an aligned place.
        behind = [lane * size % width for lane in range(width)]
        whole = size - size % width
        last = w.transpose(self._load_tile(name, 0))
        for lane, count in enumerate(behind):
            if count:
                self._store_entries(last[lane], range(width - count), rows[lane], 0)
            else:
                w.stream_vector(last[lane], rows[lane])
        begin = width
        while (whole - begin) % (POLICY.tiles_per_round * width):
            last = self._store_tiles(name, begin, 1, last, behind)
            begin += width
        step = POLICY.tiles_per_round * width
        with w.loop(begin, whole, step, last, stem="tiles") as (i, carried):
            carried[:] = self._store_tiles(name, i, POLICY.tiles_per_round, carried, behind)
        for lane, count in enumerate(behind):
            self._store_entries(
                carried[lane], range(width - count, width), rows[lane], whole - count
            )
        for entry in range(whole, size):
            self.block.scatter(f"={name}", entry, self._load_tile(name, entry)[0])

    def _store_tiles(
        self, name: str, i: int | str, count: int, last: list[str], behind: list[int]
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
                w.stream_vector(value, w.gep(row, w(f"sub i64 {start}, {back}")))
        return tiles[-1]

    def _load_tile(self, name: str, i: int | str) -> list[str]:
        """As many entries as there are lanes, from the i-th on."""
        w, found = self.w, []
        for k in range(self.lanes.width):
            place = w.gep(f"@slots.{name}", w.add(i, k), "i32")
            found.append(w.load_slot(w(f"zext i32 {w.load('i32', place, 4)} to i64")))
        add_to_slot(w, self.sums, found)
        return found

    def _store_entries(self, value: str, chosen: range, row: str, start: int) -> None:
        """Some numbers of a vector to the entries of a row from a certain one on."""
        w, lanes = self.w, self.lanes
        for k, i in enumerate(chosen):
            one = w.extract_lane(value, i)
            w.store(lanes.real, one, w.gep(row, start + k), lanes.bits // 8)
