# SPDX-License-Identifier: BSD-3-Clause
"""Output of the commands: safe text, numbers with units, consoles."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from phistar.errors import Problem, close_matches

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

FALLBACK_WIDTH = 80
"""Columns if the output is no terminal and COLUMNS is not set."""

SEVERITY_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
AXIS_LETTERS = {(1, 0, 0): "x", (0, 1, 0): "y", (0, 0, 1): "z"}


def clean(text: object) -> str:
    """``text`` on one line, with control characters escaped."""
    return "".join(c if c.isprintable() else _escaped(c) for c in str(text))


def printable(text: str) -> str:
    """``text`` with each line ``clean``."""
    return "\n".join(clean(line) for line in text.split("\n"))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Close matches, or all names."""
    close = close_matches(name, known)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"have: {', '.join(known)}"


def number(value: float) -> str:
    """Four significant digits, no exponent for usual sizes; a dash where there is no limit."""
    if math.isinf(value):
        return "-"
    return "0" if value == 0 else f"{value:.4g}"


def vector(values: Iterable[float]) -> str:
    """Numbers in parentheses."""
    return f"({', '.join(number(value) for value in values)})"


def axis_text(axis: Sequence[float]) -> str:
    """``z`` or ``-y`` for the axes of the frame, numbers for others."""
    rounded = tuple(round(value) for value in axis)
    if max(abs(a - b) for a, b in zip(axis, rounded, strict=True)) < 1e-12:
        for sign in (1, -1):
            letter = AXIS_LETTERS.get((sign * rounded[0], sign * rounded[1], sign * rounded[2]))
            if letter:
                return letter if sign > 0 else f"-{letter}"
    return " ".join(f"{value:.3g}" for value in axis)


def make_console() -> Console:
    """A console on standard output: colours and width of a terminal, plain text elsewhere."""
    from rich.console import Console

    class QuietPipe(Console):
        """Leaves a closed pipe to ``main``."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    fixed = not sys.stdout.isatty() and not os.environ.get("COLUMNS")
    return QuietPipe(
        highlight=False, markup=False, emoji=False, width=FALLBACK_WIDTH if fixed else None
    )


def text_width() -> int:
    """Columns for text that is not printed by a console: a terminal's, or COLUMNS, or 80."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return FALLBACK_WIDTH
    return shutil.get_terminal_size((FALLBACK_WIDTH, 24)).columns


def heading(console: Console, title: str) -> None:
    """An empty line, and a title."""
    from rich.text import Text

    console.print()
    console.print(Text(title, style="bold"))


def make_table(*columns: str, right: Sequence[str] = ()) -> Table:
    """An empty table without a frame; the columns named in ``right`` are aligned there."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim underline")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def problem_text(problem: Problem, source: str) -> Text:
    """``where: severity: what cure [code]``, on one line."""
    from rich.text import Text

    line = Text(f"{clean(problem.where or source)}: ")
    line.append(f"{problem.severity}: ", style=SEVERITY_STYLES[problem.severity])
    cure = f" {problem.cure}" if problem.cure else ""
    line.append(clean(f"{problem.what}{cure}"))
    line.append(f" [{problem.code}]", style="dim")
    return line


def print_line(console: Console, line: Text) -> None:
    """Print a line without wrapping, so that other programs can read it."""
    console.print(line, soft_wrap=True)
