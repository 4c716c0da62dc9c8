# SPDX-License-Identifier: BSD-3-Clause
"""The README's table of speed, made of a run and written between two marks."""

from __future__ import annotations

import textwrap
from pathlib import Path

from benchmarks.cases import ARMS, MAIN, QUANTITIES, Cell, robot
from benchmarks.laws import MAIN as LAW
from benchmarks.loops import QUANTITIES as LOOP_QUANTITIES
from benchmarks.loops import ROBOTS as LOOP_ROBOTS
from benchmarks.report import times
from benchmarks.results import Results
from benchmarks.timing import Ratio, Timing, duration

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN = "<!-- speed: written by `make bench` -->"
END = "<!-- end of speed -->"

SHOWN = (*ARMS, "chain100")


def section(results: Results) -> str:
    """The text between the marks."""
    at = results.machine
    versions = at["versions"]
    known = bool(versions["pin"])
    against = f"; in brackets, how many times faster than Pinocchio {versions['pin']}"
    machine = (
        f"`{results.command}` on {at['processor']}; Python {at['python']}, NumPy "
        f"{versions['numpy']}, llvmlite {versions['llvmlite']}."
    )
    how = "Through the methods of `Robot`, results allocated; medians of interleaved rounds. "
    how += (
        "Pinocchio is the faster of its own loop on one thread and calls from Python."
        if known
        else "Pinocchio was not installed."
    )
    lines = [
        _wrapped(
            f"Time for one sample of a batch of {MAIN}, one thread, float64"
            f"{against if known else ''}. After the names, degrees of freedom:"
        ),
        *_table(results, MAIN),
        "One sample a call, from Python:",
        *_table(results, 1),
        *_loops(results),
        *_laws(results),
        # On lines of its own: the rest does not move with the length of a processor's name.
        _wrapped(machine),
        _wrapped(how),
    ]
    return "\n".join(lines)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _table(results: Results, batch: int) -> list[str]:
    names = [name.replace("_", " ") for name in QUANTITIES]
    lines = [f"| | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for name in SHOWN:
        cells = [_cell(results, Cell(name, quantity, batch)) for quantity in QUANTITIES]
        lines.append(f"| {name}, {robot(name).nv} | {' | '.join(cells)} |")
    return ["", *lines, ""]


def _loops(results: Results) -> list[str]:
    """A table of robots with closed loops; nothing if none was timed."""
    if not results.loops:
        return []
    titles = [f"{name.replace('_', ' ')} on the loops" for name in LOOP_QUANTITIES]
    lines = [f"| | {' | '.join(titles)} | time over the tree |", "|---" * (len(titles) + 2) + "|"]
    for name in LOOP_ROBOTS:
        rows = [results.loop_row(name, quantity) for quantity in LOOP_QUANTITIES]
        first = rows[0]
        if first is None:
            continue
        cells = [_loop_cell(row.ours, row.ratio) if row else "–" for row in rows]
        over = f"{times(first.over_tree)}".replace("x", "×") if first.over_tree else "–"
        lines.append(f"| {name}, {first.nv} | {' | '.join(cells)} | {over} |")
    text = "With closed loops, in brackets how many times faster than `pin.constraintDynamics`"
    found = results.loop_stepping
    if found and found.ratio:
        text += (
            f"; {found.batch} four-bars take {duration(found.ours.median)} for a step of each, "
            f"{times(found.ratio.median).replace('x', '×')} faster than MuJoCo's `rollout`"
        )
    return [_wrapped(f"{text}:"), "", *lines, ""]


def _laws(results: Results) -> list[str]:
    """A sentence on rollouts; nothing if none was timed."""
    row = results.law_row(*LAW)
    if row is None:
        return []
    name, law = LAW
    text = (
        f"A step of one of {row.batch} samples of {name} under {law} takes "
        f"{duration(row.ours.median)} in `control.rollout`, {row.over.median:.1f} times as long as "
        "in `simulate`."
    )
    return [_wrapped(text), ""]


def _loop_cell(ours: Timing, ratio: Ratio | None) -> str:
    return duration(ours.median) + (f" ({times(ratio.median).replace('x', '×')})" if ratio else "")


def _cell(results: Results, cell: Cell) -> str:
    row = results.row(cell)
    if row is None or row.ours is None:
        return "–"
    rival = row.rival("pinocchio")
    ratio = f" ({times(rival.ratio.median).replace('x', '×')})" if rival else ""
    return duration(row.ours.median) + ratio


def replaced(text: str, inside: str) -> str:
    """The README with another text between the marks.

    Raises:
        ValueError: The marks are not there, once and in order.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in after or END in before:
        raise ValueError(f"README.md must have {BEGIN!r} and then {END!r}, once each")
    return f"{before}{begin}\n{inside}\n{end}{after}"


def write(results: Results, path: Path = README) -> None:
    """Put the table of a run into the README."""
    text = path.read_text(encoding="utf-8")
    path.write_text(replaced(text, section(results)), encoding="utf-8")
