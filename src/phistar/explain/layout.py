# SPDX-License-Identifier: BSD-3-Clause
"""How explanations are laid out: titled sections, columns, lists that stop somewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from unicodedata import combining

MOST_LINES = 60
"""Links of a robot that a level lists."""


def section(title: str, lines: Iterable[str]) -> list[str]:
    """An empty line, a title, and indented lines."""
    return ["", title, *(f"  {line}" for line in lines)]


def columns(rows: Sequence[Sequence[str]], align: str = "") -> Iterator[str]:
    """Rows as text, each column as wide as its longest entry.

    Args:
        rows: Entries of each row, equally many.
        align: ``<`` or ``>`` for each column; default left.
    """
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    sides = align or "<" * len(widths)
    for row in rows:
        cells = []
        for cell, side, width in zip(row, sides, widths, strict=True):
            space = " " * (width - _width(cell))
            cells.append(cell + space if side == "<" else space + cell)
        yield "  ".join(cells).rstrip()


def _width(cell: str) -> int:
    """Places that a text takes: the dot of v̇ takes none."""
    return sum(not combining(letter) for letter in cell)


def capped(lines: Sequence[str], most: int = MOST_LINES) -> Iterator[str]:
    """The first lines, and how many more there are."""
    yield from lines[:most]
    if len(lines) > most:
        yield f"... and {len(lines) - most} more"


def plural(count: int, one: str, many: str = "") -> str:
    """``1 link``, ``2 links``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def number(value: float) -> str:
    """A number of a robot in four digits; what rounding left of zero is zero."""
    return f"{0.0 if abs(value) < 1e-9 else value:.4g}"


def triple(values: Iterable[float]) -> str:
    """Numbers in parentheses."""
    return f"({', '.join(number(float(x)) for x in values)})"
