# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/performance.md, made of a run and written between marks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.cases import QUANTITIES, ROBOTS, SHOWN_BATCHES, Cell
from benchmarks.report import FLOOR_TITLES, floor_rows
from benchmarks.results import Results, Row
from benchmarks.roofline import Dot
from benchmarks.timing import duration

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
MARKS = {
    name: (f"<!-- {name}: written by `make bench` -->", f"<!-- end of {name} -->")
    for name in ("floors", "batches")
}
RATES_SHOWN = 5


def section(dots: Sequence[Dot]) -> str:
    """The text between the marks."""
    rates = sorted({(dot.batch * dot.bytes, dot.rate) for dot in dots})
    chosen = rates[:: max(1, len(rates) // RATES_SHOWN)]
    stored = ", ".join(f"{rate / 1e9:.0f} GB/s at {size / 1e6:.1f} MB" for size, rate in chosen)
    lines = [
        f"Peak {dots[0].peak / 1e9:.0f} GFLOP/s of one core; stores {stored}.",
        "",
        f"| {' | '.join(FLOOR_TITLES)} |",
        "|---" * len(FLOOR_TITLES) + "|",
        *(f"| {' | '.join(row)} |" for row in floor_rows(dots)),
    ]
    return "\n".join(lines)


def batch_section(rows: Sequence[Row]) -> str:
    """Times of a sample by the number of them in a call, one thread, float64."""
    known = {row.cell: row.ours for row in rows if row.ours is not None}
    titles = [f"{batch:,}".replace(",", " ") for batch in SHOWN_BATCHES]
    lines = [f"| robot | quantity | {' | '.join(titles)} |", "|---" * (len(titles) + 2) + "|"]
    for name in ROBOTS:
        for quantity in QUANTITIES:
            found = [known.get(Cell(name, quantity, batch)) for batch in SHOWN_BATCHES]
            if any(found):
                shown = ["" if x is None else duration(x.median) for x in found]
                words = quantity.replace("_", " ")
                lines.append(f"| {name} | {words} | {' | '.join(shown)} |")
    return "\n".join(lines)


def write(results: Results, page: Path = PAGE) -> None:
    """Write both tables."""
    _write(page, MARKS["floors"], section(results.roofline))
    _write(page, MARKS["batches"], batch_section(results.rows))


def _write(page: Path, marks: tuple[str, str], text: str) -> None:
    begin, end = marks
    before, rest = page.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(end)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
