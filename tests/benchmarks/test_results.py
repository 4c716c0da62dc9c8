# SPDX-License-Identifier: BSD-3-Clause
"""What a run leaves: JSON, tables, goals, the README."""

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks import cases, counts, laws, loops, readme, report, results, starts, targets, timing
from benchmarks.casadi_gym import AdapterRow
from benchmarks.cases import ARMS, QUANTITIES, VECTORS, Cell
from benchmarks.counts import Count, Figure
from benchmarks.growth import DERIVATIVES, Growth
from benchmarks.interop import InteropRow
from benchmarks.inverse_kinematics import InverseKinematicsRow
from benchmarks.laws import LawRow
from benchmarks.loops import LoopRow
from benchmarks.parallel import LENGTHS, ParallelRow, SystemGrowth
from benchmarks.results import Results, Rival, Row
from benchmarks.starts import Start, Sweep
from benchmarks.stepping import Stepping
from benchmarks.timing import Ratio, Timing
from tests.helpers import ROOT


def _results(ratio: float = 30.0, growth: float = 1.0) -> Results:
    """A run that never was: 100 ns everywhere."""
    ours, found = Timing(9e-8, 1e-7, 5), Results("make bench")
    for robot in (*ARMS, "chain100"):
        for quantity in QUANTITIES:
            for batch in (1, 4096):
                spread = Ratio(ratio, ratio - 1, ratio + 1, ratio)
                times = Timing(9e-8 * ratio, 1e-7 * ratio, 5)
                rivals = [Rival("pinocchio", "pool", batch, times, spread)]
                if quantity in VECTORS:
                    rivals.append(Rival("mujoco", "loop", batch, times, spread))
                cell = Cell(robot, quantity, batch)
                found.rows.append(Row(cell, ours, tuple(rivals), decision=f"looped {batch}"))
    found.rows.append(Row(Cell("chain1000", "mass_matrix"), why="32.8 GB of arrays"))
    two = Rival("one thread", "", 65_536, ours, Ratio(1.75, 1.5, 1.9, 1.8))
    found.rows.append(Row(Cell("panda", "inverse_dynamics", 65_536, 2), ours, (two,)))
    found.counts = [Count("panda", "inverse_dynamics", 632, "straight")]
    found.figures = [Figure("anymal", "mass_matrix", 220, 210, 210)]
    for code in ("final", "rolled"):
        counted = (50, 5000) if code == "rolled" else ()
        found.growth += [Growth(x, code, (10, 100), (1e-7, 1e-6), growth) for x in VECTORS]
        for x in DERIVATIVES:
            power = growth + x.startswith("linearize")
            found.growth.append(Growth(x, code, (10, 100), (1e-7, 1e-6), power, counted))
    for mode in ("cold", "rolled", "cached"):
        found.starts += [Start(r, VECTORS[0], mode, 0.3, 0.1, 0.05, 0.09) for r in ARMS]
    for name in loops.ROBOTS:
        for quantity in loops.QUANTITIES:
            row = LoopRow(name, quantity, 39, 12, 4096, ours, 1.5, 150, 100, times, spread, 1e-15)
            found.loops.append(row)
    many = Ratio(2 * ratio, ratio, 3 * ratio, ratio)
    found.loop_stepping = Stepping("four_bar", 4096, 200, ours, times, many, 1e-8)
    links = f"chain{LENGTHS[-1]}"
    found.parallel = [ParallelRow(links, (1.0, 2.0), ours, times, spread, 1e-12)]
    found.system = SystemGrowth((10, 100), (1e-3, 1e-2), growth, 1e-14, 1e-16)
    found.contacts = Stepping("quadruped", 4096, 50, ours, times, many, 1e-3)
    found.joint_physics = Stepping("panda", 4096, 50, ours, times, many, 1e-15)
    found.inverse_kinematics = InverseKinematicsRow(
        "panda", 4096, 0.85, 14.0, 0.999, ours, ours, times, many
    )
    over = Ratio(1.5 * growth + 0.3, growth, growth + 1, growth)
    found.laws = [LawRow(*each, 4096, 50, ours, ours, over, times, 1e-15) for each in laws.LAWS]
    found.interop = [
        InteropRow("JAX, ffi: a call", 1e-4, "direct call", 1e-4, "<= 1.3 x direct", True),
        InteropRow("PyTorch: backward", 2e-4, "forward", 1e-4, "<= 3 x forward", True),
    ]
    found.sweep = Sweep(272, 272, 0.05, 0.25, "large.xml, forward_dynamics")
    found.verdicts = targets.verdicts(found)
    return found


def _shown(found: Results) -> str:
    console = Console(file=io.StringIO(), width=200)
    report.show(found, console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_json_has_the_layout_it_says(tmp_path: Path) -> None:
    """The file reads back as the run, with the number of its layout, and is plain JSON."""
    found = _results()
    data = json.loads(results.write(found, tmp_path).read_text(encoding="utf-8"))
    assert data["schema"] == results.SCHEMA
    assert set(data) == {"schema", *(field.name for field in dataclasses.fields(Results))}
    row: dict[str, Any] = data["rows"][0]
    assert row["cell"] == dataclasses.asdict(Cell("panda", "inverse_dynamics", 1))
    assert row["ours"] == {"best": 9e-8, "median": 1e-7, "rounds": 5}
    assert set(row["rivals"][0]["ratio"]) == {"median", "low", "high", "best"}
    assert set(data["machine"]["versions"]) == set(results.PACKAGES)


def test_full_and_quick_runs_have_names_of_their_own(tmp_path: Path) -> None:
    """A quick run cannot be taken for a full one."""
    found = _results()
    full = results.write(found, tmp_path)
    found.command = "make bench-quick"
    assert full.name.endswith("-full.json")
    assert results.write(found, tmp_path).name.endswith("-quick.json")


def test_tables_show_times_ratios_and_reasons() -> None:
    """Each figure and each reason stands in the tables."""
    text = _shown(_results())
    for part in (
        "100 ns (90.0 ns)",
        "30x (29x–31x)",
        "632",
        "straight",
        "32.8 GB",
        "100 ns (1.8x)",
        "looped 4096",
        "100 (1.5x)",
        "4096 x four_bar",
        "1.80x (1.00–2.00)",
    ):
        assert part in text
    assert "looped 1 " not in text
    for title in (
        "Batch of 4096",
        "One sample a call",
        "Growth over chains",
        "First result",
        "Forward dynamics in rounds",
        "Rollouts under laws",
        "Decisions",
        "Goals",
    ):
        assert title in text


def test_a_missing_peer_is_named() -> None:
    """The column says why there is no number."""
    found = _results()
    found.rows[1] = Row(
        Cell("panda", "inverse_dynamics"), Timing(1e-7, 1e-7, 5), (), {"pinocchio": "not installed"}
    )
    assert "not installed" in _shown(found)


def test_faults_are_shown() -> None:
    """A peer that disagrees is not passed over."""
    found = _results()
    found.faults = ["panda, mass_matrix: pinocchio disagrees by 1.0e-03"]
    assert "FAULT: panda, mass_matrix" in _shown(found)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.234e-8, "12.3 ns"),
        (9.999e-7, "1000 ns"),
        (1.5e-6, "1.50 µs"),
        (0.0256, "25.6 ms"),
        (2, "2.00 s"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    """Three digits and a unit."""
    assert timing.duration(seconds) == text


def test_goals_all_met() -> None:
    """A run that reaches everything is told so."""
    assert {verdict.met for verdict in _results().verdicts} == {True}


def test_goals_missed_and_not_measured() -> None:
    """Slower than asked for is missed; what was not measured is not met."""
    slow = _results(ratio=0.5, growth=1.2)
    by_name = {verdict.what: verdict for verdict in slow.verdicts}
    slower = ("Pinocchio", "growth", "rollout, against simulate")
    assert not any(v.met for what, v in by_name.items() if any(x in what for x in slower))
    nothing = targets.verdicts(Results("make bench"))
    assert {verdict.met for verdict in nothing} == {None}
    assert len(nothing) == len(slow.verdicts) - len(slow.figures)


def test_goals_cover_the_robots_they_name() -> None:
    """A bound for each bundled robot and quantity."""
    assert set(targets.RATIOS) == set(QUANTITIES)
    assert {len(bounds) for bounds in targets.RATIOS.values()} == {len(ARMS)}


def test_plan_starts_with_the_comparison() -> None:
    """Every goal's cell is among the first, and no cell comes twice."""
    for quick in (False, True):
        first, rest = cases.plan(quick)
        assert len({*first, *rest}) == len(first) + len(rest)
        assert {Cell("panda", x, b) for x in VECTORS for b in (1, 4096)} <= set(first)
        assert {Cell(r, x) for x in QUANTITIES for r in cases.robots_for(x)} <= {*first, *rest}
    first, rest = cases.plan()
    everything = {*first, *rest}
    # Those of the table by batch size, so that a run out of time has them, too.
    shown = {
        Cell(r, x, b) for x in QUANTITIES for r in cases.robots_for(x) for b in cases.SHOWN_BATCHES
    }
    assert shown <= set(first)
    assert [c.batch for c in rest] == sorted(c.batch for c in rest)
    assert {c.batch for c in everything} == set(cases.BATCHES)
    assert {(c.threads, c.real) for c in everything} == {
        (threads, real) for threads in (1, 2) for real in ("float64", "float32")
    }


@pytest.mark.parametrize("real", ["float64", "float32"])
def test_arguments(real: str) -> None:
    """Rows, dtype and memory order; beyond 4096 rows they come again in memory of their own."""
    q, v, vdot = cases.arguments(Cell("quadruped", "inverse_dynamics", 5000, 1, real))
    assert (q.shape, v.shape, vdot.shape) == ((5000, 19), (5000, 18), (5000, 18))
    assert {x.dtype.name for x in (q, v, vdot)} == {real}
    assert all(x.flags.c_contiguous for x in (q, v, vdot))
    assert (q[4096:] == q[: 5000 - 4096]).all()
    assert not (v == vdot).any()


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_operations_are_counted(quantity: str) -> None:
    """Of the code that runs; a straight line on a small robot."""
    found = counts.count("panda", quantity)
    assert found.shape in ("straight", "rolled", "numpy")
    assert found.operations is None or 100 < found.operations < 10_000


def test_processor() -> None:
    """Named by lscpu with its widest vectors, and named at all without it."""
    listing = ["Model name:   A 1", "Flags:   sse avx avx2 fma"]
    assert results.processor(listing) == "A 1, AVX2"
    assert results.processor(["Model name: A 1", "Flags: sse"]) == "A 1"
    assert results.processor([])


def test_sweep_is_summed_up() -> None:
    """Median over all, and the worst by name."""
    found = starts._summary(
        [("a/x.urdf", "f", 0.1), ("a/x.urdf", "g", 0.3), ("b.xml", "f", 0.2)], 9
    )
    assert found == Sweep(2, 9, 0.2, 0.3, "x.urdf, g")


def test_first_call_in_a_new_process(tmp_path: Path) -> None:
    """The four parts of the time come back from the process."""
    found = starts._first("double_pendulum", "inverse_dynamics", "cold", str(tmp_path), "auto")
    assert min(found.imports, found.engine, found.load, found.call) > 0
    assert found.after_import == found.engine + found.load + found.call


def test_readme_has_the_marks() -> None:
    """The table can be written, and writing it twice changes nothing."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    inside = readme.section(_results())
    once = readme.replaced(text, inside)
    assert readme.replaced(once, inside) == once
    assert text.partition(readme.BEGIN)[0] == once.partition(readme.BEGIN)[0]
    assert text.partition(readme.END)[2] == once.partition(readme.END)[2]


PROCESSORS = [
    "",
    "A 1",
    "AMD EPYC",
    "Intel(R) Xeon(R) Platinum 8481C @ 2.70GHz",
    "X " * 60,
]


@pytest.mark.parametrize("processor", PROCESSORS)
def test_readme_table(processor: str) -> None:
    """Times with ratios, machine and command; a row for each robot shown, whatever it ran on."""
    found = _results()
    found.machine["processor"] = processor
    lines = readme.section(found).splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| |")]
    closed = [row for row in rows if row.startswith(tuple(f"| {name}" for name in loops.ROBOTS))]
    assert closed == [
        f"| {name}, 39 | 100 ns (30×) | 100 ns (30×) | 1.5× |" for name in loops.ROBOTS
    ]
    rows = [row for row in rows if row not in closed]
    assert len(rows) == 2 * len(readme.SHOWN)
    assert rows[0] == "| panda, 7 |" + len(QUANTITIES) * " 100 ns (30×) |"
    assert {line.count("|") for line in rows} == {len(QUANTITIES) + 2}
    text = " ".join(" ".join(lines).split())
    assert "`make bench`" in text
    assert "4096 four-bars take 100 ns for a step of each, 60× faster than MuJoCo's" in text
    assert " ".join(processor.split()) in text
    assert max(map(len, lines[-4:])) <= 100


@pytest.mark.parametrize("processor", PROCESSORS)
def test_readme_without_a_peer(processor: str) -> None:
    """Where Pinocchio is missing the text says so and shows times alone, whatever it ran on."""
    found = _results()
    found.machine["processor"] = processor
    found.machine["versions"]["pin"] = ""
    found.rows = [dataclasses.replace(row, rivals=()) for row in found.rows]
    found.loops = [dataclasses.replace(r, ratio=None, over_tree=None) for r in found.loops]
    found.loop_stepping = None
    text = readme.section(found)
    assert "\nThrough the methods of `Robot`" in text
    assert "Pinocchio was not installed" in " ".join(text.split())
    assert "×" not in text


@pytest.mark.parametrize("text", ["", readme.BEGIN, f"{readme.END} {readme.BEGIN}"])
def test_readme_without_marks(text: str) -> None:
    """Nothing is written where it does not belong."""
    with pytest.raises(ValueError, match="must have"):
        readme.replaced(text, "table")


def test_writing_to_the_readme(tmp_path: Path) -> None:
    """The file keeps what stands around the table."""
    path = tmp_path / "README.md"
    path.write_text(f"before\n{readme.BEGIN}\nold\n{readme.END}\nafter\n", encoding="utf-8")
    readme.write(_results(), path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{readme.BEGIN}\nTime for one sample")
    assert text.endswith(f"{readme.END}\nafter\n")
    assert "old" not in text


def test_goals_of_adapters() -> None:
    """Measured ones by their bounds; where a package is missing they are not measured, not met."""
    calls = _results().interop
    rows = [dataclasses.replace(calls[0], seconds=2e-4, met=False), calls[1]]
    reach = [
        AdapterRow("Panda reach", "phistar, C", "0.3 s"),
        AdapterRow("Panda reach", "pinocchio.casadi", "left out", None, 5.0),
        AdapterRow("cart-poles", "MuJoCo", "1 s", 20.0, 10.0),
    ]
    found = targets._adapters(Results("make bench", interop=rows, adapters=reach))
    assert [each.met for each in found] == [False, True, None, True]
    assert found[0].found == "2 of it"
    missing = targets._adapters(Results("make bench"))
    assert [(each.what, each.met) for each in missing] == [
        ("inside JAX", None), ("inside PyTorch", None),
    ]  # fmt: skip
