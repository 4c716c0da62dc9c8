# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the README's table of speed and of the table of floors, both by ``make bench``."""

import re
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

README = Path(__file__).resolve().parent.parent / "README.md"
SECTION = re.compile(r"<!-- speed: .*?-->(.*?)<!-- end of speed -->", re.DOTALL)
CELL = re.compile(r"([\d.]+) (ns|µs|ms|s)(?: \(([\d.]+)×\))?")
SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
FLOORS = Path(__file__).resolve().parent / "performance.md"
FLOOR_SECTION = re.compile(r"<!-- floors: .*?-->(.*?)<!-- end of floors -->", re.DOTALL)
PEAK = re.compile(r"Peak (\d+) GFLOP/s")
RATE = re.compile(r"(\d+) GB/s at ([\d.]+) MB")
PICTURES = {
    "speed_batch.png": "4096 samples a call, one thread",
    "speed_single.png": "one sample a call, from Python",
}
"""Files and titles, in the order of the tables."""


@dataclass(frozen=True)
class Measured:
    """A cell: seconds a sample, and how many times Pinocchio's seconds are ours (or None)."""

    seconds: float
    ratio: float | None


Table = dict[str, dict[str, Measured]]
"""Robots, and of each what was measured by name."""


def tables(text: str) -> list[Table]:
    """The tables of the section, in order.

    Raises:
        ValueError: The marks are not there, or a cell cannot be read.
    """
    section = SECTION.search(text)
    if section is None:
        raise ValueError("README.md has no table of speed between its two marks; see make bench")
    found: list[Table] = []
    titles: list[str] = []
    for line in section.group(1).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line[:1] == "|" else []
        if cells and not cells[0] and set("".join(cells)) - {"-"}:
            titles = cells[1:]
            found.append({})
        elif cells and cells[0].strip("-"):
            row = zip(titles, cells[1:], strict=True)
            found[-1][cells[0]] = {what: _cell(cell) for what, cell in row if _is_time(cell)}
    return found


def _is_time(cell: str) -> bool:
    return cell != "–" and not re.fullmatch(r"[\d.]+×", cell)


def _cell(cell: str) -> Measured:
    match = CELL.fullmatch(cell)
    if match is None:
        raise ValueError(f"a cell of the README's table of speed is {cell!r}, expected 1.2 µs (3×)")
    number, unit, ratio = match.groups()
    return Measured(float(number) * SECONDS[unit], float(ratio) if ratio else None)


def draw(folder: Path) -> None:
    """Draw the pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    measured = tables(README.read_text(encoding="utf-8"))
    for (name, title), table in zip(PICTURES.items(), measured, strict=False):
        _figure(table, title).savefig(folder / name, dpi=110)
    roofline(FLOORS.read_text(encoding="utf-8")).savefig(folder / "roofline.png", dpi=110)


def floors(text: str) -> tuple[float, list[float], list[dict[str, str]]]:
    """Peak [operations/s], rates of stores [bytes/s], and the rows of the table of floors.

    Raises:
        ValueError: The marks or the rates are not there.
    """
    section = FLOOR_SECTION.search(text)
    peak = PEAK.search(section.group(1)) if section else None
    if section is None or peak is None:
        raise ValueError("docs/performance.md has no table of floors between its marks; make bench")
    lines = [line for line in section.group(1).splitlines() if line[:1] == "|"]
    titles, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    rates = [1e9 * float(rate) for rate, _ in RATE.findall(section.group(1))]
    found = [dict(zip(titles, row, strict=True)) for row in rows]
    return 1e9 * float(peak.group(1)), rates, found


def roofline(text: str) -> Figure:
    """Operations a second over operations for each byte stored; each kernel a dot."""
    peak, rates, rows = floors(text)
    figure = Figure(figsize=(9.5, 5.0), layout="constrained")
    ax = figure.subplots()
    across = [0.1, 1.0, 10.0, 100.0]
    for rate, style, where in ((max(rates), "-", "most"), (min(rates), "--", "least")):
        roof = [min(peak, rate * x) for x in (across[0], peak / rate, across[-1])]
        label = f"stores {rate / 1e9:.0f} GB/s, the {where}"
        ax.plot((across[0], peak / rate, across[-1]), roof, f"k{style}", lw=1.0, label=label)
    for kernel in dict.fromkeys(row["kernel"] for row in rows):
        chosen = [row for row in rows if row["kernel"] == kernel]
        operations = [float(row["flops"]) for row in chosen]
        seconds = [_cell(row["time"]).seconds for row in chosen]
        places = [n / float(row["bytes"]) for n, row in zip(operations, chosen, strict=True)]
        heights = [n / s for n, s in zip(operations, seconds, strict=True)]
        ax.plot(places, heights, "o", ms=5, label=kernel)
        for row, x, y in zip(chosen, places, heights, strict=True):
            ax.annotate(f"{row['robot'][0]} {row['batch']}", (x, y), fontsize=6)
    ax.set(xscale="log", yscale="log", xlabel="operations for each byte stored")
    ax.set(ylabel="operations a second", title="q: quadruped, h: humanoid; after it, the batch")
    ax.grid(alpha=0.3)
    figure.legend(loc="outside right center", fontsize=8)
    return figure


def _figure(table: Table, title: str) -> Figure:
    """Times on the left, how many times faster on the right; a group of bars for each robot."""
    figure = Figure(figsize=(9.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    quantities = list(dict.fromkeys(what for row in table.values() for what in row))
    width = 0.8 / len(quantities)
    for i, what in enumerate(quantities):
        for ax, value in ((left, "seconds"), (right, "ratio")):
            heights = [getattr(row.get(what), value, None) for row in table.values()]
            shown = [(k, h) for k, h in enumerate(heights) if h is not None]
            places = [k + (i - (len(quantities) - 1) / 2) * width for k, _ in shown]
            ax.bar(places, [h for _, h in shown], width, label=what)
    left.set(ylabel="seconds a sample", title=title)
    right.set(ylabel="times faster than Pinocchio")
    right.axhline(1.0, color="black", lw=0.8)
    for ax in (left, right):
        ax.set_yscale("log")
        ax.set_xticks(range(len(table)), [name.replace(", ", "\n") for name in table])
        ax.grid(axis="y", alpha=0.3)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
