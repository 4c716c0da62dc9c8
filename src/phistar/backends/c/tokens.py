# SPDX-License-Identifier: BSD-3-Clause
"""Words of C: identifiers that are legal and different, comments that stay closed, exact numbers.

In: any text a robot's file may hold, and floats. Out: pieces of C99.
"""

from __future__ import annotations

import math
import re
import struct
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from phistar.errors import ArgumentError

MAX_LINE_CHARACTERS = 96
MAX_IDENTIFIER_CHARACTERS = 60
"""Characters of an identifier made from a name, so that it can be a file's name too."""

_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while asm fortran bool true false class new delete this "
    "template namespace private public protected operator friend virtual try catch throw using "
    "typename export and or not xor compl bitand bitor"
)
_LIBRARY = (
    "sin cos sqrt sinf cosf sqrtf NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL main NULL "
    "MATH_ERRNO MATH_ERREXCEPT math_errhandling linux unix"
)
RESERVED_WORDS = frozenset(f"{_KEYWORDS} {_LIBRARY}".split())
"""Words that name something else in C, in C++ or in math.h."""


def identifier(name: str, otherwise: str = "x") -> str:
    """A C identifier that reads like ``name``: ASCII letters, digits and single underscores.

    Args:
        name: Any text.
        otherwise: What to call it where nothing of the name is left.
    """
    letters = unicodedata.normalize("NFKD", name)
    plain = "".join(c for c in letters if not unicodedata.combining(c))
    word = re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_")[:MAX_IDENTIFIER_CHARACTERS].rstrip("_")
    if not word:
        return otherwise
    return f"{otherwise}_{word}" if word[0].isdigit() else word


class IdentifierScope:
    """Identifiers of one scope, no two alike."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*RESERVED_WORDS, *taken}

    def unique_name(self, wanted: str) -> str:
        """``wanted``, or with a number behind it where that is taken."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name


def comment_safe(text: str) -> str:
    """A text as it may stand in a comment: one line, nothing that ends or nests one."""
    shown = "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text)
    for two in ("*/", "/*", "??", "\\"):
        # Comment marks, trigraphs, and a backslash that could join lines.
        while two in shown:
            shown = shown.replace(two, " ".join(two) if len(two) > 1 else "/")
    return shown


def comment(lines: Iterable[str]) -> str:
    """A block of comment; the lines are ``comment_safe`` already, long ones are folded."""
    rows = []
    for line in lines:
        indent = len(line) - len(line.lstrip()) + 4
        folded = textwrap.wrap(
            line, MAX_LINE_CHARACTERS - 3, subsequent_indent=" " * indent, break_on_hyphens=False
        )
        rows += [f" * {row}".rstrip() for row in folded or [""]]
    return "\n".join(["/*", *rows, " */"])


@dataclass(frozen=True)
class CPrecision:
    """A precision: its type, and what follows its literals and functions."""

    type: str
    suffix: str
    bytes: int

    def literal(self, x: float) -> str:
        """The number, in the fewest digits that read back as the same one.

        Raises:
            ArgumentError: It is infinite, not a number, or too large for the precision.
        """
        x = _to_float32(x) if self.bytes == 4 else float(x)
        if not math.isfinite(x):
            raise ArgumentError(
                f"a constant of the program is {x} as {self.type}; C has no literal for it. "
                "Check the robot's masses, inertias and lengths"
            )
        return f"{_shortest_float32(x) if self.bytes == 4 else repr(x)}{self.suffix}"

    def function(self, name: str) -> str:
        """A function of math.h in this precision."""
        return f"{name}{self.suffix}"


DOUBLE = CPrecision("double", "", 8)
FLOAT = CPrecision("float", "f", 4)
PRECISIONS = {real.type: real for real in (DOUBLE, FLOAT)}


def c_precision(name: str) -> CPrecision:
    """The precision called ``name``.

    Raises:
        ArgumentError: There is none.
    """
    if name not in PRECISIONS:
        raise ArgumentError(f"precision is {name!r}; C code is written in 'double' or 'float'")
    return PRECISIONS[name]


def _to_float32(x: float) -> float:
    """The nearest number of single precision."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


def _shortest_float32(x: float) -> str:
    """Few digits that single precision reads back as ``x``, which has it."""
    for digits in range(6, 10):
        text = f"{x:.{digits}g}"
        if _to_float32(float(text)) == x:
            break
    return text if any(mark in text for mark in ".e") else f"{text}.0"


def index_type(values: Sequence[int]) -> str:
    """The smallest unsigned type that holds some numbers."""
    most = max(values)
    if most >= 65536:
        return "unsigned long"
    return "unsigned short" if most >= 256 else "unsigned char"


def array_definition(declaration: str, items: Sequence[str], indent: str = "") -> str:
    """An array with its values, several to a line."""
    rows = textwrap.wrap(
        ", ".join(items),
        MAX_LINE_CHARACTERS - len(indent) - 4,
        break_long_words=False,
        break_on_hyphens=False,
    )
    inner = "\n".join(f"{indent}    {row}" for row in rows)
    return f"{indent}{declaration} = {{\n{inner}\n{indent}}};"
