# SPDX-License-Identifier: BSD-3-Clause
"""Layout of explanations: titled sections, columns, truncated lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from unicodedata import combining

MAX_LINES_LISTED = 60
"""Largest number of links in a list."""


def section(title: str, lines: Iterable[str]) -> list[str]:
    """An empty line, a title, and indented lines."""
    return ["", title, *(f"  {line}" for line in lines)]


def align_columns(rows: Sequence[Sequence[str]], align: str = "") -> Iterator[str]:
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
    """Display width of a text: the dot of v̇ has none."""
    return sum(not combining(letter) for letter in cell)


def truncate_lines(lines: Sequence[str], max_lines: int = MAX_LINES_LISTED) -> Iterator[str]:
    """The first lines, and how many more there are."""
    yield from lines[:max_lines]
    if len(lines) > max_lines:
        yield f"... and {len(lines) - max_lines} more"


def plural(count: int, singular: str, plural_form: str = "") -> str:
    """``1 link``, ``2 links``."""
    return f"{count} {singular if count == 1 else plural_form or singular + 's'}"


def format_number(value: float) -> str:
    """A number of a robot in four digits; rounding errors become zero."""
    return f"{0.0 if abs(value) < 1e-9 else value:.4g}"


def format_vector(values: Iterable[float]) -> str:
    """Numbers in parentheses."""
    return f"({', '.join(format_number(float(x)) for x in values)})"
