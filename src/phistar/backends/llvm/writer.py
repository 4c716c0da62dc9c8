# SPDX-License-Identifier: BSD-3-Clause
"""Writes LLVM text: instructions on vectors of lanes, one sample of the batch in each lane."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

CONTRACT = "contract nsz"
"""Products and sums may become one instruction; signs of zeros do not matter."""


@dataclass(frozen=True)
class Lanes:
    """How many samples run side by side, in which precision."""

    width: int
    real: str = "double"

    @property
    def type(self) -> str:
        """A vector of reals."""
        return f"<{self.width} x {self.real}>"

    @property
    def suffix(self) -> str:
        """Of intrinsics on such vectors."""
        return f"v{self.width}f{self.bits}"

    @property
    def bits(self) -> int:
        """Of one real."""
        return 64 if self.real == "double" else 32

    @property
    def bytes(self) -> int:
        """Of a vector."""
        return self.width * self.bits // 8


def literal(x: float, real: str) -> str:
    """A number, exactly; single precision is written as the double that equals it."""
    if real == "float":
        x = struct.unpack("<f", struct.pack("<f", x))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


class Writer:
    """The text of one function."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.lines: list[str] = []
        self._count = 0
        self._labels = 0

    def __call__(self, instruction: str) -> str:
        """An instruction that has a result; its name."""
        self._count += 1
        name = f"%x{self._count}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {instruction}")

    def label(self, stem: str) -> str:
        """A new name for a block."""
        self._labels += 1
        return f"{stem}{self._labels}"

    def block(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")

    # -- reals

    def constant(self, x: float) -> str:
        """The same number in all lanes."""
        one = f"{self.lanes.real} {literal(x, self.lanes.real)}"
        return "<" + ", ".join([one] * self.lanes.width) + ">"

    def real(self, op: str, a: str, b: str) -> str:
        """Arithmetic on two vectors."""
        return self(f"{op} {CONTRACT} {self.lanes.type} {a}, {b}")

    def negative(self, a: str) -> str:
        """A change of sign."""
        return self(f"fneg {CONTRACT} {self.lanes.type} {a}")

    def call(self, intrinsic: str, *operands: str) -> str:
        """An intrinsic on vectors."""
        t = self.lanes.type
        listed = ", ".join(f"{t} {x}" for x in operands)
        return self(f"call {t} @llvm.{intrinsic}.{self.lanes.suffix}({listed})")

    def spread(self, scalar: str) -> str:
        """A scalar in all lanes."""
        lanes = self.lanes
        one = self(f"insertelement {lanes.type} poison, {lanes.real} {scalar}, i32 0")
        mask = f"<{lanes.width} x i32> zeroinitializer"
        return self(f"shufflevector {lanes.type} {one}, {lanes.type} poison, {mask}")

    def part(self, vector: str, start: int, count: int) -> str:
        """Some lanes of a vector."""
        if count == self.lanes.width:
            return vector
        mask = ", ".join(f"i32 {i}" for i in range(start, start + count))
        t = self.lanes.type
        return self(f"shufflevector {t} {vector}, {t} poison, <{count} x i32> <{mask}>")

    def joined(self, parts: Sequence[str], size: int) -> str:
        """Vectors of so many reals side by side in one; their number is a power of two."""
        parts = list(parts)
        while len(parts) > 1:
            t, mask = (
                f"<{size} x {self.lanes.real}>",
                ", ".join(f"i32 {i}" for i in range(2 * size)),
            )
            parts = [
                self(f"shufflevector {t} {a}, {t} {b}, <{2 * size} x i32> <{mask}>")
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
            size *= 2
        return parts[0]

    # -- memory

    def at(self, pointer: str, index: str | int, of: str | None = None) -> str:
        """The address of an element."""
        kind = self.lanes.real if of is None else of
        return self(f"getelementptr inbounds {kind}, ptr {pointer}, i64 {index}")

    def load(self, kind: str, pointer: str, align: int) -> str:
        """What stands at an address."""
        return self(f"load {kind}, ptr {pointer}, align {align}")

    def store(self, kind: str, value: str, pointer: str, align: int) -> None:
        """Put something at an address."""
        self.do(f"store {kind} {value}, ptr {pointer}, align {align}")

    def transposed(self, rows: Sequence[str]) -> list[str]:
        """Squares of lanes side by side, rows and columns of each swapped by pairwise exchange."""
        width, t = self.lanes.width, self.lanes.type
        rows = list(rows)
        step = 1
        while step < len(rows):
            for i in range(len(rows)):
                if i & step:
                    continue
                a, b = rows[i], rows[i + step]
                low = [j if not j & step else width + j - step for j in range(width)]
                high = [j + step if not j & step else width + j for j in range(width)]
                for k, mask in ((i, low), (i + step, high)):
                    listed = ", ".join(f"i32 {j}" for j in mask)
                    rows[k] = self(f"shufflevector {t} {a}, {t} {b}, <{width} x i32> <{listed}>")
            step *= 2
        return list(rows)
