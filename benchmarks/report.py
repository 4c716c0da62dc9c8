# SPDX-License-Identifier: BSD-3-Clause
"""Tables of a run for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.cases import BATCHES, MAIN, QUANTITIES, ROBOTS, Cell
from benchmarks.inverse_kinematics import InverseKinematicsRow
from benchmarks.laws import LawRow
from benchmarks.loops import LoopRow
from benchmarks.results import Results, Rival, Row
from benchmarks.roofline import Dot
from benchmarks.stepping import Stepping
from benchmarks.timing import duration

FLOOR_TITLES = (
    *("robot", "kernel", "batch", "time", "Pinocchio"),
    *("bytes", "flops", "floor", "limit", "ratio"),
)

NOTES = f"""\
Times are for one sample, of the public methods, output allocated; median of the rounds, best in
brackets. Ratios are medians over rounds, quartiles in brackets; above 1 phistar is faster.
pool: Pinocchio's own loop, on one thread; loop: one call from Python for each sample, by its local
convention where it says so. Of several ways the fastest is shown. A peer runs up to {MAIN} samples,
and its results are not collected. MuJoCo (contacts and limits off) computes more than is asked for.
ops: additions, subtractions and multiplications; code: one straight line, or loops over links."""


def show(results: Results, console: Console) -> None:
    """Print everything."""
    console.print()
    console.print(head(results))
    for table in tables(results):
        console.print()
        console.print(table)
    console.print()
    console.print(NOTES, style="dim")
    if results.sweep:
        found = results.sweep
        console.print(
            f"Loops compiled for {found.robots} of {found.of} reference robots, most joints first: "
            f"median {found.median:.2f} s of the processor, longest {found.longest:.2f} s "
            f"({found.worst})"
        )
    else:
        console.print("No reference robots in ../shared: loops compiled for bundled robots only.")
    for fault in results.faults:
        console.print(Text(f"FAULT: {fault}", style="red"))


def tables(results: Results) -> Iterator[Table]:
    """All tables, the goals last."""
    yield compared(results, MAIN, f"Batch of {MAIN}, one thread, float64")
    if any(row.cell.batch == 1 for row in results.rows):
        yield compared(results, 1, "One sample a call, float64")
    yield batches(results)
    if results.roofline:
        yield floors(results)
    yield decisions(results)
    if results.stepping:
        yield stepping(results.stepping)
    if results.loops:
        yield loops(results.loops)
    if results.loop_stepping:
        yield stepping(results.loop_stepping)
    if results.contacts:
        yield stepping(results.contacts, "semi_implicit on four feet")
    if results.joint_physics:
        yield stepping(results.joint_physics, "implicit, limits and damping")
    if results.laws:
        yield laws(results.laws)
    if results.inverse_kinematics:
        yield inverse_kinematics(results.inverse_kinematics)
    if results.parallel:
        yield parallel(results)
    if results.growth:
        yield growth(results)
    if results.starts:
        yield starts(results)
    yield goals(results)


def head(results: Results) -> str:
    """Where it ran."""
    at = results.machine
    versions = ", ".join(f"{k} {v or 'not installed'}" for k, v in at["versions"].items())
    load = "" if at["load"] is None else f", load {at['load']:.1f}"
    return (
        f"{results.command}: {at['processor']}, {at['processors']} processors{load}\n"
        f"Python {at['python']}, {versions}; {results.seconds:.0f} s"
    )


def compared(results: Results, batch: int, title: str) -> Table:
    """Ours next to the peers, all quantities on all robots."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in ("robot", "quantity", "ops", "code", "phistar"):
        right = name in ("ops", "phistar")
        table.add_column(name, justify="right" if right else "left", no_wrap=name == "quantity")
    for name in ("Pinocchio", "by", "ratio", "MuJoCo", "ratio"):
        table.add_column(name, justify="left" if name == "by" else "right")
    for robot in ROBOTS:
        for quantity in QUANTITIES:
            row = next((r for r in results.rows if r.cell == Cell(robot, quantity, batch)), None)
            if row is not None:
                table.add_row(*_compared(results, row), end_section=quantity == [*QUANTITIES][-1])
    return table


def _compared(results: Results, row: Row) -> list[str]:
    count = results.count(row.cell.robot, row.cell.quantity)
    ops = "" if count is None or count.operations is None else str(count.operations)
    cells = [row.cell.robot, row.cell.quantity, ops, count.shape if count else ""]
    if row.ours is None:
        return [*cells, row.why, *([""] * 5)]
    pin, mujoco = row.rival("pinocchio"), row.rival("mujoco")
    pins = _rival(pin, row.missing.get("pinocchio", ""))
    mujocos = _rival(mujoco, row.missing.get("mujoco", ""), best=False)
    ours = f"{duration(row.ours.median)} ({duration(row.ours.best)})"
    return [*cells, ours, pins[0], pin.how if pin else "", pins[1], *mujocos]


def _rival(rival: Rival | None, missing: str, best: bool = True) -> tuple[str, str]:
    if rival is None:
        return short(missing), ""
    ratio = rival.ratio
    spread = f"{times(ratio.median)} ({times(ratio.low)}–{times(ratio.high)})"
    least = f" ({duration(rival.timing.best)})" if best else ""
    return duration(rival.timing.median) + least, spread


def batches(results: Results) -> Table:
    """Ours over batches, threads and precisions."""
    table = Table(title="phistar, medians", title_justify="left", title_style="bold")
    for name in ("robot", "quantity", "real", "threads"):
        table.add_column(name)
    for batch in BATCHES:
        table.add_column(f"{batch:,}".replace(",", " "), justify="right")
    known = {row.cell: row for row in results.rows}
    for robot in ROBOTS:
        for quantity in QUANTITIES:
            for real in ("float64", "float32"):
                for threads in (1, 2):
                    cells = [Cell(robot, quantity, b, threads, real) for b in BATCHES]
                    rows = [known.get(cell) for cell in cells]
                    if any(row is not None and row.ours for row in rows):
                        table.add_row(
                            robot, quantity, real, str(threads), *(_time(row) for row in rows)
                        )
    return table


def floors(results: Results) -> Table:
    """Matrices next to what the machine can do."""
    title = "Matrices and their floors: stores at the machine's rate, arithmetic at its peak"
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in FLOOR_TITLES:
        table.add_column(name)
    for row in floor_rows(results.roofline):
        table.add_row(*row)
    return table


def floor_rows(dots: Sequence[Dot]) -> list[tuple[str, ...]]:
    """What ``FLOOR_TITLES`` says, for each kernel."""
    return [
        (
            dot.robot,
            dot.kernel.replace("_", " "),
            str(dot.batch),
            duration(dot.seconds),
            "" if math.isnan(dot.peer_seconds) else times(dot.peer_seconds / dot.seconds),
            str(dot.bytes),
            str(dot.operations),
            duration(dot.floor),
            dot.limit,
            f"{dot.distance:.2f}",
        )
        for dot in dots
    ]


def decisions(results: Results) -> Table:
    """How the cells of the comparison are computed, and why so."""
    title = f"Decisions, batch of {MAIN}, one thread, float64"
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in ("robot", "quantity", "decision"):
        table.add_column(name, no_wrap=name != "decision")
    for row in results.rows:
        if row.decision and row.cell == Cell(row.cell.robot, row.cell.quantity):
            table.add_row(row.cell.robot, row.cell.quantity, row.decision)
    return table


def _time(row: Row | None) -> str:
    if row is None:
        return ""
    if row.ours is None:
        return short(row.why)
    alone = row.rival("one thread")
    gain = f" ({times(alone.ratio.median)})" if alone else ""
    return duration(row.ours.median) + gain


def stepping(found: Stepping, scheme: str = "rk4") -> Table:
    """Steps a second of a simulation."""
    title = (
        f"Simulation: {found.batch} x {found.robot}, {found.steps} steps of {scheme}, one thread"
    )
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in ("phistar", "steps/s", "MuJoCo rollout", "steps/s", "ratio", "difference"):
        table.add_column(name, justify="right")
    cells = [duration(found.ours.median), f"{1.0 / found.ours.median:,.0f}"]
    if found.theirs is None or found.ratio is None:
        cells += [found.missing, "", "", ""]
    else:
        ratio = f"{times(found.ratio.median)} ({times(found.ratio.low)}–{times(found.ratio.high)})"
        cells += [duration(found.theirs.median), f"{1.0 / found.theirs.median:,.0f}", ratio]
        cells.append(f"{found.error:.0e}")
    table.add_row(*cells)
    return table


def laws(rows: Sequence[LawRow]) -> Table:
    """Rollouts under laws next to ``simulate``, and to calls of the law."""
    title = f"Rollouts under laws: {rows[0].batch} samples, {rows[0].steps} steps, one thread"
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in ("robot", "law", "rollout", "simulate", "over simulate", "called", "difference"):
        table.add_column(name, justify="left" if name in ("robot", "law") else "right")
    for row in rows:
        over = f"{row.over.median:.2f}x ({row.over.low:.2f}–{row.over.high:.2f})"
        spent = [duration(t.median) for t in (row.ours, row.simulated)]
        called = duration(row.called.median)
        table.add_row(row.robot, row.law, *spent, over, called, f"{row.error:.0e}")
    return table


def inverse_kinematics(found: InverseKinematicsRow) -> Table:
    """Goals a second of inverse kinematics, from one start and with restarts."""
    title = f"Inverse kinematics: {found.batch} poses of {found.robot}, one thread"
    table = Table(title=title, title_justify="left", title_style="bold")
    names = ("one start", "steps", "reached", "Pinocchio loop", "ratio", "same place")
    for name in (*names, "with restarts", "reached"):
        table.add_column(name, justify="right")
    cells = [duration(found.ours.median), f"{found.iterations:.1f}", f"{found.success:.1%}"]
    if found.theirs is None or found.ratio is None:
        cells += [found.missing, "", ""]
    else:
        ratio = f"{times(found.ratio.median)} ({times(found.ratio.low)}–{times(found.ratio.high)})"
        cells += [duration(found.theirs.median), ratio, f"{found.agreement:.0%}"]
    table.add_row(*cells, duration(found.restarts.median), f"{found.with_restarts:.2%}")
    return table


def loops(rows: Sequence[LoopRow]) -> Table:
    """Closed loops next to Pinocchio's constraint dynamics, and to the tree without loops."""
    title = "Closed loops, one thread, float64"
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in ("robot", "quantity", "rows", "batch", "ops", "of tree", "time/tree", "phistar"):
        table.add_column(name, justify="left" if name in ("robot", "quantity") else "right")
    for name in ("Pinocchio", "ratio", "difference"):
        table.add_column(name, justify="right")
    for row in rows:
        ops = ["", "", ""]
        if row.operations and row.tree_operations and row.over_tree:
            more = row.operations / row.tree_operations
            ops = [str(row.operations), f"{row.tree_operations} ({times(more)})"]
            ops.append(times(row.over_tree))
        theirs = [row.missing, "", ""]
        if row.theirs and row.ratio:
            ratio = f"{times(row.ratio.median)} ({times(row.ratio.low)}–{times(row.ratio.high)})"
            theirs = [duration(row.theirs.median), ratio, f"{row.error:.0e}"]
        names = [f"{row.robot}, {row.nv}", row.quantity, str(row.rows), str(row.batch)]
        table.add_row(*names, *ops, duration(row.ours.median), *theirs)
    return table


def parallel(results: Results) -> Table:
    """Parallel schedules beside sequential ones, and the sparse system of all links."""
    title = "Forward dynamics in rounds, one sample, NumPy"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("robot")
    for name in ("in rounds", "first result", "link after link", "first result", "ratio", "error"):
        table.add_column(name, justify="right")
    for row in results.parallel:
        times = [
            *(duration(row.ours.median), duration(row.compiled[0])),
            *(duration(row.sequential.median), duration(row.compiled[1])),
        ]
        table.add_row(row.robot, *times, f"{row.ratio.median:.1f}", f"{row.error:.1e}")
    if results.system:
        found = results.system
        pairs = zip(found.lengths, found.seconds, strict=True)
        spent = ", ".join(f"{links} links {duration(seconds)}" for links, seconds in pairs)
        growth = f"exponent {found.exponent:.3f}; errors of the last {found.error:.1e}, of the "
        growth += f"solver {found.solver_error:.1e}"
        table.caption = f"sparse system of all links: {spent}; {growth}"
    return table


def growth(results: Results) -> Table:
    """Cost over chains; the exponent of operations is exact, and known where loops alone run."""
    table = Table(title="Growth over chains", title_justify="left", title_style="bold")
    table.add_column("quantity")
    table.add_column("code")
    for length in results.growth[0].lengths:
        table.add_column(f"{length} links", justify="right")
    table.add_column("exponent", justify="right")
    table.add_column("of operations", justify="right")
    for each in results.growth:
        counted = each.exponent_of_operations
        slopes = (f"{each.exponent:.3f}", "" if counted is None else f"{counted:.3f}")
        table.add_row(each.quantity, each.code, *map(duration, each.seconds), *slopes)
    return table


def starts(results: Results) -> Table:
    """First results in new processes."""
    table = Table(title="First result in a new process", title_justify="left", title_style="bold")
    for name in ("robot", "quantity", "cache"):
        table.add_column(name)
    for name in ("import phistar", "import engine", "load robot", "first call", "after import"):
        table.add_column(name, justify="right")
    for s in results.starts:
        parts = (s.imports, s.engine, s.load, s.call, s.after_import)
        mode = {"cold": "empty", "rolled": "empty, loops only", "cached": "full"}[s.mode]
        table.add_row(s.robot, s.quantity, mode, *(f"{1e3 * x:.0f} ms" for x in parts))
    return table


def goals(results: Results) -> Table:
    """What was to be reached."""
    table = Table(title="Goals", title_justify="left", title_style="bold")
    for name in ("goal", "bound", "found", ""):
        table.add_column(name, justify="right" if name in ("bound", "found") else "left")
    words = {True: "[green]met", False: "[red]missed", None: "[dim]not measured"}
    for each in results.verdicts:
        table.add_row(each.what, each.goal, each.found, words[each.met])
    met = sum(each.met is True for each in results.verdicts)
    missed = sum(each.met is False for each in results.verdicts)
    table.caption = (
        f"{met} met, {missed} missed, {len(results.verdicts) - met - missed} not measured"
    )
    return table


def times(ratio: float) -> str:
    """A factor, with as many digits as mean something."""
    digits = 0 if ratio >= 9.95 else 1 if ratio >= 0.95 else 2
    return f"{ratio:.{digits}f}x"


def short(why: str) -> str:
    """A reason in a table cell."""
    return "–" if why in ("", "does not offer it") else why.split(":")[0]


__all__ = ["NOTES", "compared", "duration", "goals", "head", "show", "tables", "times"]
