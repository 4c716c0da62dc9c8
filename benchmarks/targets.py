# SPDX-License-Identifier: BSD-3-Clause
"""What was set as a goal, and whether a run reached it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks import cases, growth, interop, inverse_kinematics, laws, loops, parallel
from benchmarks.cases import ARMS, Cell
from phistar.backends.policy import this_machine

if TYPE_CHECKING:
    from benchmarks.results import Results

RATIOS = {
    "inverse_dynamics": (25.0, 22.0, 16.0),
    "forward_dynamics": (28.0, 20.0, 14.0),
    "mass_matrix": (10.0, 8.0, 5.0),
    "mass_matrix_inverse": (10.0, 5.0, 4.0),
    "linearize_inverse": (8.0, 8.0, 8.0),
    "linearize": (8.0, 8.0, 10.0),
}
"""Times Pinocchio, batch 4096, one thread, on each of ``ARMS``."""

CHAIN = 10.0
"""The same on chain100, for vectors."""

SINGLE = 1.0
"""Times Pinocchio on one sample of the first of ``ARMS``, for vectors."""

PRIMAL = 4.0
"""How many times longer the derivatives of inverse dynamics may take than inverse dynamics."""

MATRICES: dict[tuple[str, str], dict[int, float]] = {
    ("humanoid", "mass_matrix"): {256: 9.0, 4096: 8.0},
    ("humanoid", "mass_matrix_inverse"): {256: 8.5, 4096: 8.0},
    ("humanoid", "linearize_inverse"): {256: 8.5, 4096: 8.0},
    ("humanoid", "linearize"): {256: 14.0, 4096: 12.0},
    ("humanoid", "mass_matrix packed"): {256: 20.0, 4096: 18.0},
    ("quadruped", "mass_matrix"): {256: 12.0, 4096: 9.0},
    ("quadruped", "mass_matrix_inverse"): {256: 14.0, 4096: 10.0},
    ("quadruped", "linearize_inverse"): {256: 11.0, 4096: 11.0},
    ("quadruped", "linearize"): {256: 12.0, 4096: 13.0},
}
"""Times Pinocchio with registers of eight numbers, by batch; see ``roofline``."""
AVX512_LANES = 8
AVX2_SHARE = 0.75
PART_OF_LINEARIZE = 2.0
LOOPS = {"forward_dynamics": 20.0, "linearize": 8.0}
"""Times Pinocchio's constraint dynamics, on robots with closed loops."""
OVER_TREE = 2.0
"""How many times longer forward dynamics may take with loops than without."""
FOUR_BARS = 50.0
"""Times MuJoCo's rollout."""
CONTACTS = 10.0
"""The same of quadrupeds on four feet."""
JOINT_PHYSICS = 20.0
"""The same of Pandas with limits and damping."""

LAW = 2.0
"""How many times longer a rollout under a law may take than ``simulate`` of the same steps."""

INVERSE_KINEMATICS = 30.0
"""Times a loop over Pinocchio that takes the same steps."""
ROUNDS = 10.0
"""Times NumPy's recursion, one sample of a chain of 10 000 links."""
SYSTEM = 1.1
"""The growth exponent of the sparse system of all links."""
SYSTEM_ERROR = 1e-10
"""Of its accelerations with the most links, relative to the largest."""

EXPONENT = 1.05
SQUARE = 2.05
"""The growth exponent of matrices."""
ROLLED = 0.3
FIRST = 0.3
CACHED = 0.1


@dataclass(frozen=True)
class Verdict:
    """A goal and what became of it.

    Attributes:
        what: The goal.
        goal: The bound, with its sense.
        found: What was measured; empty if nothing was.
        met: Whether it was reached; None if nothing was measured.
    """

    what: str
    goal: str
    found: str
    met: bool | None


def at_least(what: str, goal: float, found: float | None, spread: str = "") -> Verdict:
    """A ratio that should be large."""
    text = "" if found is None else f"{found:.1f}x{spread}"
    return Verdict(what, f">= {goal:g}x", text, None if found is None else found >= goal)


def at_most(what: str, goal: float, found: float | None, unit: str, form: str = ".2f") -> Verdict:
    """A cost that should be small."""
    text = "" if found is None else f"{found:{form}}{unit}"
    return Verdict(what, f"<= {goal:g}{unit}", text, None if found is None else found <= goal)


def _matrices(results: Results) -> list[Verdict]:
    """Matrices of robots with free bases beside Pinocchio's, by batch."""
    share = 1.0 if this_machine().lanes >= AVX512_LANES else AVX2_SHARE
    dots = {(dot.robot, dot.kernel, dot.batch): dot for dot in results.roofline}
    found = []
    for (robot, kernel), goals in MATRICES.items():
        for batch, goal in goals.items():
            dot = dots.get((robot, kernel, batch))
            if dot is not None and not math.isnan(dot.peer_seconds):
                what = f"{robot} {kernel.replace('_', ' ')}, batch {batch}, times Pinocchio"
                found.append(at_least(what, share * goal, dot.peer_seconds / dot.seconds))
    for robot in dict.fromkeys(dot.robot for dot in results.roofline):
        for batch in dict.fromkeys(dot.batch for dot in results.roofline):
            whole, part = (dots.get((robot, x, batch)) for x in ("linearize", "linearize by v"))
            if whole is not None and part is not None:
                what = f"{robot} linearize by v, batch {batch}, times the whole"
                found.append(at_least(what, PART_OF_LINEARIZE, whole.seconds / part.seconds))
    return found


def verdicts(results: Results) -> list[Verdict]:
    """All goals against a run."""
    return [
        *_ratios(results),
        *_matrices(results),
        *_primals(results),
        *_loops(results),
        *_contacts(results),
        *_laws(results),
        *_inverse_kinematics(results),
        *_parallel(results),
        *_adapters(results),
        *_growth(results),
        *_starts(results),
        *_counts(results),
    ]


def _ratios(results: Results) -> list[Verdict]:
    wanted = [
        (Cell(robot, quantity), goal)
        for quantity, goals in RATIOS.items()
        for robot, goal in zip(ARMS, goals, strict=True)
    ]
    wanted += [(Cell("chain100", quantity), CHAIN) for quantity in cases.VECTORS]
    wanted += [(Cell(ARMS[0], quantity, 1), SINGLE) for quantity in cases.VECTORS]
    found = []
    for cell, goal in wanted:
        row = results.row(cell)
        rival = row.rival("pinocchio") if row else None
        batch = "one sample" if cell.batch == 1 else f"batch {cell.batch}"
        what = f"{cell.robot}, {cell.quantity}, {batch}, against Pinocchio"
        ratio = rival.ratio if rival else None
        spread = f" ({ratio.low:.1f} to {ratio.high:.1f})" if ratio else ""
        found.append(at_least(what, goal, ratio.median if ratio else None, spread))
    return found


def _primals(results: Results) -> list[Verdict]:
    found = []
    for robot in ARMS:
        rows = [results.row(Cell(robot, x)) for x in ("linearize_inverse", "inverse_dynamics")]
        times = [row.ours.median for row in rows if row and row.ours]
        ratio = times[0] / times[1] if len(times) == 2 else None
        what = f"{robot}, derivatives of inverse dynamics, against itself"
        found.append(at_most(what, PRIMAL, ratio, "x", ".1f"))
    return found


def _loops(results: Results) -> list[Verdict]:
    found = []
    for robot in loops.ROBOTS:
        for quantity, goal in LOOPS.items():
            row = results.loop_row(robot, quantity)
            ratio = row.ratio if row else None
            spread = f" ({ratio.low:.1f} to {ratio.high:.1f})" if ratio else ""
            what = f"{robot}, {quantity}, against Pinocchio"
            found.append(at_least(what, goal, ratio.median if ratio else None, spread))
        row = results.loop_row(robot, "forward_dynamics")
        what = f"{robot}, forward_dynamics, against the tree's"
        found.append(at_most(what, OVER_TREE, row.over_tree if row else None, "x"))
    many = results.loop_stepping.ratio if results.loop_stepping else None
    what = f"{loops.MAIN} four-bars, simulate, against MuJoCo"
    found.append(at_least(what, FOUR_BARS, many.median if many else None))
    return found


def _contacts(results: Results) -> list[Verdict]:
    ratio = results.contacts.ratio if results.contacts else None
    what = "quadruped on four feet, simulator, against MuJoCo"
    rubbed = results.joint_physics.ratio if results.joint_physics else None
    damped = "panda with limits and damping, simulate, against MuJoCo"
    return [
        at_least(what, CONTACTS, ratio.median if ratio else None),
        at_least(damped, JOINT_PHYSICS, rubbed.median if rubbed else None),
    ]


def _laws(results: Results) -> list[Verdict]:
    row = results.law_row(*laws.MAIN)
    what = f"{', '.join(laws.MAIN)}, rollout, against simulate"
    return [at_most(what, LAW, row.over.median if row else None, "x")]


def _inverse_kinematics(results: Results) -> list[Verdict]:
    row = results.inverse_kinematics
    ratio = row.ratio if row else None
    spread = f" ({ratio.low:.1f} to {ratio.high:.1f})" if ratio else ""
    what = f"{inverse_kinematics.BATCH} poses, inverse kinematics, against Pinocchio"
    return [at_least(what, INVERSE_KINEMATICS, ratio.median if ratio else None, spread)]


def _parallel(results: Results) -> list[Verdict]:
    row = next((r for r in results.parallel if r.robot == f"chain{parallel.LENGTHS[-1]}"), None)
    ratio = row.ratio if row else None
    spread = f" ({ratio.low:.1f} to {ratio.high:.1f})" if ratio else ""
    what = f"chain{parallel.LENGTHS[-1]}, forward_dynamics, NumPy in rounds against its recursion"
    slope = results.system.exponent if results.system else None
    error = results.system.error if results.system else None
    return [
        at_least(what, ROUNDS, ratio.median if ratio else None, spread),
        at_most("sparse system of all links, growth exponent", SYSTEM, slope, "", ".3f"),
        at_most("sparse system of all links, error", SYSTEM_ERROR, error, "", ".1e"),
    ]


def _adapters(results: Results) -> list[Verdict]:
    """What other packages add to a call, and beside what they have themselves."""
    found = [
        Verdict(
            f"{row.what}; {row.beside}",
            row.goal,
            f"{row.seconds / row.other_seconds:.3g} of it",
            row.met,
        )
        for row in results.interop
    ]
    timed = {row.what.partition(":")[0].partition(",")[0] for row in results.interop}
    found += [
        Verdict(f"inside {name}", goal, "", None)
        for name, goal in interop.GOALS.items()
        if name not in timed
    ]
    for row in results.adapters:
        if row.goal is not None:
            found.append(at_least(f"{row.task}, times {row.who}", row.goal, row.ratio))
    return found


def _growth(results: Results) -> list[Verdict]:
    known = {(growth.quantity, growth.code): growth.exponent for growth in results.growth}
    codes = {"final": "growth exponent over chains", "rolled": "the same, loops alone"}
    found = [
        at_most(f"{x}, {what}", EXPONENT, known.get((x, code)), "", ".3f")
        for x in cases.VECTORS
        for code, what in codes.items()
    ]
    for x in growth.DERIVATIVES:
        goal = SQUARE if x.startswith("linearize") else EXPONENT
        found += [
            at_most(f"{x}, {what}", goal, known.get((x, code)), "", ".3f")
            for code, what in codes.items()
        ]
    return found


def _starts(results: Results) -> list[Verdict]:
    def worst(mode: str, robots: tuple[str, ...], part: str) -> float | None:
        times = [
            float(getattr(start, part))
            for start in results.starts
            if start.mode == mode and start.robot in robots
        ]
        return max(times, default=None)

    first = worst("cold", ARMS[-1:], "after_import")
    cached = worst("cached", ARMS, "call")
    longest = results.sweep.longest if results.sweep else worst("rolled", ARMS, "call")
    robots = f"{results.sweep.robots} reference robots" if results.sweep else "bundled robots"
    return [
        at_most(f"loops compiled, worst of {robots}", ROLLED, longest, " s"),
        at_most(f"{ARMS[-1]}, first result after the import", FIRST, first, " s"),
        at_most(
            "new process, first call from the cache, beyond imports", CACHED, cached, " s", ".3f"
        ),
    ]


def _counts(results: Results) -> list[Verdict]:
    return [
        Verdict(
            f"{f.robot}, {f.quantity}, operations",
            f"<= {f.known}",
            f"{f.snapped} ({f.operations} unsnapped)",
            f.snapped <= f.known,
        )
        for f in results.figures
    ]
