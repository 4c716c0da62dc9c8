# SPDX-License-Identifier: BSD-3-Clause
"""Outputs of a block from the workspace, a vector an entry, to rows, a row a sample.

A table says where each entry is kept. Squares of as many entries as there are lanes are turned in a
loop. Outputs that are larger than the caches need not be read into them before they are written:
where the caller says so and samples follow each other without gaps, whole vectors go past the
caches to aligned places, which are not where the rows of most lanes begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from phistar.backends.llvm.frame import Arrays, Block, large_outputs, pieces
from phistar.backends.llvm.writer import Lanes
from phistar.scalar.program import Signature

TOGETHER = 2
"""Squares that go past the caches in a round: so lines of the memory are soon complete."""


def tables(places: Mapping[str, Mapping[int, int]], lanes: Lanes) -> list[str]:
    """Constants that hold the slots of the entries of each output."""
    found = []
    for name, slots in places.items():
        # A square that begins at the last entry reads beyond it, though nothing comes of that.
        listed = [slots[entry] for entry in range(len(slots))] + [0] * (lanes.width - 1)
        values = ", ".join(f"i32 {slot}" for slot in listed)
        found.append(f"@slots.{name} = private constant [{len(listed)} x i32] [{values}]")
    return found


class Moves:
    """Writes the moves of a block."""

    def __init__(self, block: Block, signature: Signature, arrays: Arrays) -> None:
        self.block = block
        self.w = block.w
        self.lanes = block.w.lanes
        self.sizes = signature.outputs
        self.large = large_outputs(signature)
        w, width = self.w, self.lanes.width
        wanted = w(f"icmp ne i64 {arrays.past}, 0")
        full = w(f"icmp sle i64 {w(f'add i64 %sample, {width}')}, %last")
        aligned = w(f"icmp eq i64 {w(f'and i64 %sample, {width - 1}')}, 0")
        self.past = w(f"and i1 {w(f'and i1 {wanted}, {full}')}, {aligned}")

    def move(self, name: str) -> None:
        """An output to where it belongs."""
        if name not in self.large:
            self._near(name)
            return
        w = self.w
        far, near, after = (w.label(stem) for stem in ("far", "near", "moved"))
        w.do(f"br i1 {self.past}, label %{far}, label %{near}")
        for label, way in ((far, self._far), (near, self._near)):
            w.block(label)
            self.block.move(label)
            way(name)
            w.do(f"br label %{after}")
        w.block(after)
        self.block.move(after)

    def _near(self, name: str) -> None:
        """By way of the caches."""
        width = self.lanes.width
        every = pieces(self.sizes[name], self.lanes)
        whole = sum(count == width for _, count in every)
        if whole:
            with self._loop(0, whole * width, width) as (i, _):
                self.block.scatter_some(f"={name}", i, self._square(name, i))
        for start, count in every[whole:]:
            self.block.scatter_some(f"={name}", start, self._square(name, start)[:count])

    def _far(self, name: str) -> None:
        """Past the caches; where a row begins or ends inside a vector, entry by entry."""
        w, width, size = self.w, self.lanes.width, self.sizes[name]
        rows = self.block.rows[f"={name}"]
        # By so many entries a lane's row begins behind an aligned place.
        behind = [lane * size % width for lane in range(width)]
        whole = size - size % width
        last = w.transposed(self._square(name, 0))
        for lane, count in enumerate(behind):
            if count:
                self._entries(last[lane], range(width - count), rows[lane], 0)
            else:
                self._store(last[lane], rows[lane])
        begin = width
        while (whole - begin) % (TOGETHER * width):
            last = self._round(name, begin, 1, last, behind)
            begin += width
        carried = [f"%before{lane}.{name}" for lane in range(width)]
        with self._loop(begin, whole, TOGETHER * width) as (i, labels):
            place = len(w.lines)
            now = self._round(name, i, TOGETHER, carried, behind)
            w.lines[place:place] = [
                f"  {x} = phi {self.lanes.type} [{a}, %{labels[0]}], [{b}, %{labels[1]}]"
                for x, a, b in zip(carried, last, now, strict=True)
            ]
        for lane, count in enumerate(behind):
            self._entries(now[lane], range(width - count, width), rows[lane], whole - count)
        for entry in range(whole, size):
            self.block.scatter(f"={name}", entry, self._square(name, entry)[0])

    def _round(
        self, name: str, i: int | str, count: int, last: list[str], behind: list[int]
    ) -> list[str]:
        """Some squares, lane by lane, given the one before them; the last one of them."""
        w, width, t = self.w, self.lanes.width, self.lanes.type
        starts = [w(f"add i64 {i}, {k * width}") for k in range(count)]
        squares = [last, *(w.transposed(self._square(name, start)) for start in starts)]
        for lane, (row, back) in enumerate(zip(self.block.rows[f"={name}"], behind, strict=True)):
            mask = ", ".join(f"i32 {width - back + k}" for k in range(width))
            for k, start in enumerate(starts):
                value = squares[k + 1][lane]
                if back:
                    both = f"{t} {squares[k][lane]}, {t} {value}"
                    value = w(f"shufflevector {both}, <{width} x i32> <{mask}>")
                self._store(value, w.at(row, w(f"sub i64 {start}, {back}")))
        return squares[-1]

    def _square(self, name: str, i: int | str) -> list[str]:
        """As many entries as there are lanes, from the i-th on."""
        w, lanes, found = self.w, self.lanes, []
        for k in range(lanes.width):
            place = w.at(f"@slots.{name}", w(f"add i64 {i}, {k}"), "i32")
            slot = w(f"zext i32 {w.load('i32', place, 4)} to i64")
            found.append(w.load(lanes.type, w.at("%work", slot, lanes.type), lanes.bytes))
        return found

    def _store(self, value: str, place: str) -> None:
        lanes = self.lanes
        self.w.do(f"store {lanes.type} {value}, ptr {place}, align {lanes.bytes}, !nontemporal !0")

    def _entries(self, value: str, chosen: range, row: str, start: int) -> None:
        """Some numbers of a vector to the entries of a row from a certain one on."""
        w, lanes = self.w, self.lanes
        for k, i in enumerate(chosen):
            one = w(f"extractelement {lanes.type} {value}, i32 {i}")
            w.store(lanes.real, one, w.at(row, start + k), lanes.bits // 8)

    @contextmanager
    def _loop(self, begin: int, stop: int, step: int) -> Iterator[tuple[str, tuple[str, str]]]:
        """A loop of at least one round: its counter, and the labels that lead to its begin."""
        w, before = self.w, self.block.label
        head, after = w.label("each"), w.label("eachend")
        w.do(f"br label %{head}")
        w.block(head)
        i, more = f"%i.{head}", f"%n.{head}"
        w.do(f"{i} = phi i64 [{begin}, %{before}], [{more}, %{head}]")
        yield i, (before, head)
        w.do(f"{more} = add i64 {i}, {step}")
        again = w(f"icmp slt i64 {more}, {stop}")
        w.do(f"br i1 {again}, label %{head}, label %{after}")
        w.block(after)
        self.block.move(after)
