# SPDX-License-Identifier: BSD-3-Clause
"""Writes LLVM text: instructions on vectors of lanes, one sample of the batch in each lane.

Control flow is structured: ``with`` and ``for`` statements of Python write loops, branches and
switches of LLVM, and the builder joins the values that reach a block from several others.

    with w.loop(0, size, carry=[zero]) as (i, carried):
        carried[0] = w.binary("fadd", carried[0], w.load_slot(i))
    total = carried[0]
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from phistar.arrays import Array
from phistar.backends.llvm.emit.slot_bases import choose_bases, has_short_distances, nearest_base

FAST_MATH_FLAGS = "contract nsz"
"""Products and sums may become one instruction; signs of zeros do not matter."""
UNFUSED_FLAGS = "nsz"
"""They may not: where the builder decides (``multiply_add``), whatever the number of lanes."""


Operand = str | int
"""Name of a value, or an integer."""
Case = TypeVar("Case")
Loop = AbstractContextManager[tuple[str, list[str]]]
"""A loop to be written: gives the number of the round, and what the round before has left."""


@dataclass(frozen=True)
class Lanes:
    """How many samples run side by side, in which precision.

    Attributes:
        width: Samples.
        real: ``"double"`` or ``"float"``.
        row_width: Where one sample runs alone, numbers of a row of its matrices side by side.
    """

    width: int
    real: str = "double"
    row_width: int = 1

    @cached_property
    def type(self) -> str:
        """A vector of reals; with one lane, a real."""
        return self.type_of(self.real)

    def type_of(self, kind: str) -> str:
        """A number of some kind in each lane."""
        return kind if self.width == 1 else f"<{self.width} x {kind}>"

    def repeated(self, kind: str, value: str | int) -> str:
        """A constant of some kind, the same in each lane."""
        if self.width == 1:
            return str(value)
        return f"splat ({kind} {value})"

    @cached_property
    def suffix(self) -> str:
        """Of intrinsics on such vectors."""
        return f"f{self.bits}" if self.width == 1 else f"v{self.width}f{self.bits}"

    @property
    def bits(self) -> int:
        """Of one real."""
        return 64 if self.real == "double" else 32

    @property
    def bytes(self) -> int:
        """Of a vector."""
        return self.width * self.bits // 8


def is_constant(value: str) -> bool:
    """Whether a vector is a constant rather than the name of a value."""
    return not value.startswith("%")


def in_one_lane(constant: str) -> str:
    """Type and number of a constant vector in each of its lanes."""
    return constant.removeprefix("splat (").removesuffix(")")


def literal(x: float, real: str) -> str:
    """A number, exactly; single precision is written as the double that equals it."""
    if real == "float":
        x = struct.unpack("<f", struct.pack("<f", x))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


def literal_list(values: Sequence[float], real: str) -> str:
    """``literal`` of many numbers, each with its type, as arrays list them."""
    exact = np.array(values, dtype=np.float64)
    if real == "float":
        exact = exact.astype(np.float32).astype(np.float64)
    digits = exact.astype(">f8").tobytes().hex().upper().encode()
    before = f", {real} 0x".encode()
    text = np.empty((len(values), len(before) + 16), dtype=np.uint8)
    text[:, : len(before)] = np.frombuffer(before, dtype=np.uint8)
    text[:, len(before) :] = np.frombuffer(digits, dtype=np.uint8).reshape(-1, 16)
    return text.tobytes().decode().removeprefix(", ")


def byte_array(values: Array) -> str:
    """Numbers as the bytes that they are in memory: LLVM reads these far faster than numbers."""
    digits = np.frombuffer(values.tobytes().hex().encode(), dtype=np.uint8)
    text = np.full((values.nbytes, 3), ord("\\"), dtype=np.uint8)
    text[:, 1:] = digits.reshape(-1, 2)
    return f'[{values.nbytes} x i8] c"{text.tobytes().decode()}", align {values.itemsize}'


@dataclass
class EmittedBlock:
    """A basic block: instructions that run one after the other.

    Attributes:
        label: Its name; the first block of a function may have none.
        sources: Labels of the blocks that lead to it.
        phis: Name, type and, by source, value of what depends on where control came from.
        lines: Instructions.
    """

    label: str
    sources: list[str] = field(default_factory=list)
    phis: list[tuple[str, str, list[Operand]]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def text(self) -> list[str]:
        """Its lines."""
        head = [f"{self.label}:"] if self.label else []
        for name, kind, values in self.phis:
            pairs = zip(values, self.sources, strict=True)
            listed = ", ".join(f"[{value}, %{label}]" for value, label in pairs)
            head.append(f"  {name} = phi {kind} {listed}")
        return head + self.lines


class SlotUse(NamedTuple):
    """The instruction that makes the address of a slot.

    Attributes:
        lines: Of its block.
        at: Its place in them.
        name: What the address is called.
        slot: The slot.
    """

    lines: list[str]
    at: int
    name: str
    slot: int


class FunctionBuilder:
    """The text of one function."""

    def __init__(self, lanes: Lanes, entry: str = "entry") -> None:
        self.lanes = lanes
        self._count = 0
        self._labels = 0
        self._blocks: list[EmittedBlock] = []
        self._slot_uses: list[SlotUse] = []
        self._open(EmittedBlock(entry))

    def __call__(self, instruction: str) -> str:
        """An instruction that has a result; its name."""
        self._count += 1
        name = f"%x{self._count}"
        self._lines.append(f"  {name} = {instruction}")
        return name

    def emit(self, instruction: str) -> None:
        """An instruction without a result."""
        self._lines.append(f"  {instruction}")

    def function_text(self, head: str) -> str:
        """The definition of the function whose type, name and arguments are given."""
        if has_short_distances(self.lanes.bytes):
            self._shorten_slot_addresses()
        lines = [line for block in self._blocks for line in block.text()]
        return "\n".join([f"define {head} {{", *lines, "}"])

    # -- control flow

    def start_block(self, stem: str = "next") -> None:
        """End the block that is being written and go on in a new one."""
        block = self._new_block(stem)
        self._jump(block)
        self._open(block)

    @contextmanager
    def repeat(
        self,
        start: Operand,
        step: Callable[[str], tuple[str, str]],
        carry: Sequence[str] = (),
        kind: str = "",
        some: str = "",
        stem: str = "loop",
    ) -> Iterator[tuple[str, list[str]]]:
        """A loop: the number of the round, and what the round before has left.

        The body replaces what is carried by the values for the next round; after the loop, these
        are the values that the last round left.

        Args:
            start: The first number.
            step: Writes the next number, and whether there is one.
            carry: Values for the first round.
            kind: Their type; vectors of lanes if not given.
            some: Whether there is a first round; there is if not given.
            stem: Of labels.
        """
        head, done = self._new_block(stem), self._new_block(f"{stem}.done")
        self._jump(head, some, done)
        self._open(head)
        index, carried = self.merge(start, kind="i64"), [self.merge(x, kind=kind) for x in carry]
        yield index, carried
        following, again = step(index)
        self._jump(head, again, done)
        for (_, _, values), value in zip(head.phis, (following, *carried), strict=True):
            values.append(value)
        self._open(done)
        if some:
            both = zip(carry, carried, strict=True)
            carried[:] = [self.merge(first, last, kind=kind) for first, last in both]

    def loop(
        self,
        start: Operand,
        stop: Operand,
        step: int = 1,
        carry: Sequence[str] = (),
        kind: str = "",
        maybe_empty: bool = False,
        stem: str = "loop",
    ) -> Loop:
        """``repeat`` for a range of numbers; if it may be empty, that is tested first."""

        def following(i: str) -> tuple[str, str]:
            after = self.add(i, step)
            return after, self.compare("slt", after, stop)

        some = self.compare("slt", start, stop) if maybe_empty else ""
        return self.repeat(start, following, carry, kind, some, stem)

    def count(self, first: Operand, last: Operand, step: int = 1, stem: str = "loop") -> Loop:
        """``repeat`` for numbers up or down to the last one, of which there is at least one."""

        def following(i: str) -> tuple[str, str]:
            after = self.add(i, step)
            return after, self.compare("sle" if step > 0 else "sge", after, last)

        return self.repeat(first, following, stem=stem)

    @contextmanager
    def while_less(
        self, start: Operand, stop: Operand, stem: str = "loop"
    ) -> Iterator[tuple[str, list[Operand]]]:
        """A loop that is tested before each round: its number, and the step, which may be set."""
        head, body, done = (self._new_block(f"{stem}{part}") for part in ("", ".body", ".done"))
        self._jump(head)
        self._open(head)
        index, step = self.merge(start, kind="i64"), list[Operand]([1])
        self._jump(body, self.compare("slt", index, stop), done)
        self._open(body)
        yield index, step
        head.phis[0][2].append(self.add(index, step[0]))
        self._jump(head)
        self._open(done)

    @contextmanager
    def if_(self, condition: str, negated: bool = False, stem: str = "if") -> Iterator[None]:
        """Code for when a condition holds, or for when it does not."""
        then, done = self._new_block(stem), self._new_block(f"{stem}.done")
        self._jump(*((done, condition, then) if negated else (then, condition, done)))
        self._open(then)
        yield
        self._jump(done)
        self._open(done)

    def if_else(
        self, condition: str, then: Callable[[], None], otherwise: Callable[[], None]
    ) -> None:
        """Write two pieces of code, of which a condition chooses one."""
        first, second, done = (self._new_block(stem) for stem in ("then", "else", "either"))
        self._jump(first, condition, second)
        for block, write in ((first, then), (second, otherwise)):
            self._open(block)
            write()
            self._jump(done)
        self._open(done)

    @contextmanager
    def region(self) -> Iterator[EmittedBlock]:
        """Code that may be left early, see ``leave_unless``; its end counts as the first source."""
        done = self._new_block("done")
        yield done
        self._jump(done)
        done.sources.insert(0, done.sources.pop())
        self._open(done)

    def leave_unless(self, condition: str, done: EmittedBlock) -> None:
        """Leave a region unless a condition holds."""
        further = self._new_block("further")
        self._jump(further, condition, done)
        self._open(further)

    def switch(self, number: str, cases: Mapping[int, Case]) -> Iterator[Case]:
        """Each case in turn, to be written before the next one; other numbers skip all cases.

        Numbers that share a case share its code.
        """
        different = {id(case): case for case in cases.values()}
        blocks = {key: self._new_block("case") for key in different}
        done = self._new_block("switch.done")
        listed = " ".join(f"i64 {n}, label %{blocks[id(case)].label}" for n, case in cases.items())
        self.emit(f"switch i64 {number}, label %{done.label} [{listed}]")
        for key, case in different.items():
            self._open(blocks[key])
            yield case
            self._jump(done)
        self._open(done)

    def merge(self, *values: Operand, kind: str = "") -> str:
        """At the begin of a block, a value that depends on where control came from.

        Args:
            values: By source, in the order in which the jumps were written; the last one is also
                that of all further sources.
            kind: Their type; vectors of lanes if not given.
        """
        self._count += 1
        name, more = f"%x{self._count}", len(self._block.sources) - len(values)
        listed = [*values, *[values[-1]] * more]
        self._block.phis.append((name, kind or self.lanes.type, listed))
        return name

    def _new_block(self, stem: str) -> EmittedBlock:
        self._labels += 1
        return EmittedBlock(f"{stem}{self._labels}")

    def _open(self, block: EmittedBlock) -> None:
        self._blocks.append(block)
        self._block, self._lines = block, block.lines

    def _jump(
        self, to: EmittedBlock, condition: str = "", otherwise: EmittedBlock | None = None
    ) -> None:
        """End a block: go on in a block, or in another one if a condition does not hold."""
        to.sources.append(self._block.label)
        if not condition or otherwise is None:
            self.emit(f"br label %{to.label}")
            return
        otherwise.sources.append(self._block.label)
        self.emit(f"br i1 {condition}, label %{to.label}, label %{otherwise.label}")

    # -- integers

    def add(self, a: Operand, b: Operand) -> str:
        """A sum."""
        return self(f"add i64 {a}, {b}")

    def mul(self, a: Operand, b: Operand) -> str:
        """A product."""
        return self(f"mul i64 {a}, {b}")

    def compare(self, predicate: str, a: Operand, b: Operand) -> str:
        """Whether two integers compare as said."""
        return self(f"icmp {predicate} i64 {a}, {b}")

    def select(self, condition: str, a: Operand, b: Operand, kind: str = "i64") -> str:
        """One of two values."""
        return self(f"select i1 {condition}, {kind} {a}, {kind} {b}")

    # -- reals

    def constant(self, x: float) -> str:
        """The same number in all lanes."""
        real = self.lanes.real
        return self.lanes.repeated(real, literal(x, real))

    def binary(self, op: str, a: str, b: str, flags: str = FAST_MATH_FLAGS) -> str:
        """Arithmetic on two vectors."""
        return self(f"{op} {flags} {self.lanes.type} {a}, {b}")

    def multiply_add(self, a: str, b: str, c: str) -> str:
        """a b + c, in one instruction where the processor has it."""
        t, suffix = self.lanes.type, self.lanes.suffix
        return self(f"call nsz {t} @llvm.fmuladd.{suffix}({t} {a}, {t} {b}, {t} {c})")

    def negate(self, a: str) -> str:
        """A change of sign."""
        return self(f"fneg {FAST_MATH_FLAGS} {self.lanes.type} {a}")

    def intrinsic(self, intrinsic: str, *operands: str) -> str:
        """An intrinsic on vectors."""
        t = self.lanes.type
        listed = ", ".join(f"{t} {x}" for x in operands)
        return self(f"call {t} @llvm.{intrinsic}.{self.lanes.suffix}({listed})")

    def splat(self, scalar: str) -> str:
        """A scalar in all lanes."""
        lanes = self.lanes
        if lanes.width == 1:
            return scalar
        one = self(f"insertelement {lanes.type} poison, {lanes.real} {scalar}, i32 0")
        mask = f"<{lanes.width} x i32> zeroinitializer"
        return self(f"shufflevector {lanes.type} {one}, {lanes.type} poison, {mask}")

    def insert_lane(self, vector: str, scalar: str, i: int) -> str:
        """A vector with another number in one lane."""
        lanes = self.lanes
        if lanes.width == 1:
            return scalar
        return self(f"insertelement {lanes.type} {vector}, {lanes.real} {scalar}, i32 {i}")

    def extract_lane(self, vector: str, i: int) -> str:
        """The number in one lane."""
        if self.lanes.width == 1:
            return vector
        return self(f"extractelement {self.lanes.type} {vector}, i32 {i}")

    def shuffle(self, a: str, b: str, chosen: Sequence[int], size: int = 0) -> str:
        """Chosen elements of two vectors of so many reals, one per lane if not given."""
        t = f"<{size or self.lanes.width} x {self.lanes.real}>"
        mask = ", ".join(f"i32 {i}" for i in chosen)
        return self(f"shufflevector {t} {a}, {t} {b}, <{len(chosen)} x i32> <{mask}>")

    def extract_lanes(self, vector: str, start: int, count: int) -> str:
        """Some lanes of a vector."""
        if count == self.lanes.width:
            return vector
        return self.shuffle(vector, "poison", range(start, start + count))

    def concat(self, parts: Sequence[str], size: int) -> str:
        """Vectors of so many reals side by side in one; their number is a power of two."""
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.shuffle(a, b, range(2 * size), size) for a, b in pairs]
            size *= 2
        return parts[0]

    def transpose(self, rows: Sequence[str]) -> list[str]:
        """Squares of lanes side by side, rows and columns of each swapped by pairwise exchange."""
        width, rows, step = self.lanes.width, list(rows), 1
        while step < len(rows):
            low = [j if not j & step else width + j - step for j in range(width)]
            high = [j + step if not j & step else width + j for j in range(width)]
            for i in range(len(rows)):
                if not i & step:
                    pair = rows[i], rows[i + step]
                    rows[i], rows[i + step] = self.shuffle(*pair, low), self.shuffle(*pair, high)
            step *= 2
        return rows

    def compare_lanes(self, predicate: str, a: str, b: str) -> str:
        """In which lanes two vectors compare as said."""
        return self(f"fcmp {predicate} {self.lanes.type} {a}, {b}")

    def select_lanes(self, mask: str, a: str, b: str) -> str:
        """Of two vectors the first where the mask is set, the second elsewhere."""
        t = self.lanes.type
        return self(f"select {self.lanes.type_of('i1')} {mask}, {t} {a}, {t} {b}")

    def all_lanes(self, mask: str) -> str:
        """Whether a mask is set in all lanes."""
        width = self.lanes.width
        if width == 1:
            return mask
        return self(f"call i1 @llvm.vector.reduce.and.v{width}i1(<{width} x i1> {mask})")

    # -- memory

    def gep(self, pointer: str, index: Operand, of: str | None = None) -> str:
        """The address of an element."""
        kind = self.lanes.real if of is None else of
        return self(f"getelementptr inbounds {kind}, ptr {pointer}, i64 {index}")

    def load(self, kind: str, pointer: str, align: int) -> str:
        """What stands at an address."""
        return self(f"load {kind}, ptr {pointer}, align {align}")

    def store(self, kind: str, value: str, pointer: str, align: int) -> None:
        """Put something at an address."""
        self.emit(f"store {kind} {value}, ptr {pointer}, align {align}")

    def slot_address(self, slot: Operand) -> str:
        """Of a vector of the workspace."""
        name = self.gep("%work", slot, self.lanes.type)
        if isinstance(slot, int):
            self._slot_uses.append(SlotUse(self._lines, len(self._lines) - 1, name, slot))
        return name

    def _shorten_slot_addresses(self) -> None:
        """Let addresses of slots begin at bases that are near."""
        bases = choose_bases(use.slot for use in self._slot_uses)
        held: list[str] = []
        for base in bases:
            far = f"getelementptr inbounds {self.lanes.type}, ptr %work, i64 {base}"
            held.append(f"  %slot{base} = {far}")
            held.append(f'  %near{base} = call ptr asm "", "=r,0"(ptr %slot{base})')
        for use in self._slot_uses:
            near = nearest_base(use.slot, bases)
            if near is not None:
                address = f"{self.lanes.type}, ptr %near{near}, i64 {use.slot - near}"
                use.lines[use.at] = f"  {use.name} = getelementptr inbounds {address}"
        self._blocks[0].lines[:0] = held

    def load_slot(self, slot: Operand) -> str:
        """A vector of the workspace."""
        return self.load_vector(self.slot_address(slot))

    def store_slot(self, slot: Operand, value: str) -> None:
        """Put a vector into the workspace."""
        self.store_vector(value, self.slot_address(slot))

    def load_vector(self, pointer: str) -> str:
        """The vector of lanes at an address."""
        return self.load(self.lanes.type, pointer, self.lanes.bytes)

    def store_vector(self, value: str, pointer: str) -> None:
        """Put a vector of lanes at an address."""
        self.store(self.lanes.type, value, pointer, self.lanes.bytes)

    def stream_vector(self, value: str, pointer: str) -> None:
        """Put a vector of lanes at an address, past the caches; needs ``!0 = !{i32 1}``."""
        kind, align = self.lanes.type, self.lanes.bytes
        self.emit(f"store {kind} {value}, ptr {pointer}, align {align}, !nontemporal !0")
