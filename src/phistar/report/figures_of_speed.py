# SPDX-License-Identifier: BSD-3-Clause
"""How much work the programs of a robot are: operations, beside printed ones, and times here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from phistar.arrays import Array
from phistar.errors import PhistarError
from phistar.model.kinematic_loops import active_loops
from phistar.reprs import html_table
from phistar.robot import Robot

UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3}
"""Units of times [s]."""
REVOLUTE = ("revolute", "continuous")
"""Joints of the robots that papers count."""
BATCH = 4096
"""Samples of a timed batch."""
TIMED_SECONDS = 0.2
"""Time spent on a figure."""
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "inverse_dynamics": ("q", "v", "vdot"),
    "forward_dynamics": ("q", "v", "tau"),
    "mass_matrix": ("q",),
    "linearize_inverse": ("q", "v", "vdot"),
    "linearize": ("q", "v", "tau"),
}
"""Quantities of the table and what they take."""
PRINTED: Mapping[str, Callable[[int], float]] = {
    "linearize_inverse": lambda n: 21 * n**2 + 333 * n - 132 + 23.5 * n**2 + 302.5 * n - 145,
    "linearize": lambda n: 36 * n**2 + 781 * n - 225 + 33 * n**2 + 773 * n - 255,
}
"""Multiplications and additions that Jain & Rodriguez (1993) print for a serial robot with n
revolute joints: Algorithms 2 and 6."""


def operations_table(robot: Robot) -> str:
    """Multiplications and additions of a sample, exact, beside those that papers print."""
    bodies = robot.model.bodies
    in_a_row = all(body.parent == body.index - 1 for body in bodies)
    in_a_row = in_a_row and all(body.joint_kind.name in REVOLUTE for body in bodies)
    rows = []
    for name in ARGUMENTS:
        try:
            cost = robot.compile(name).cost
        except PhistarError as error:
            rows.append([name, str(error), ""])
        else:
            rows.append([name, f"{cost.multiplications}", f"{cost.additions}"])
        if in_a_row:
            rows[-1].append(f"{PRINTED[name](robot.nv):.0f}" if name in PRINTED else "")
    head = ["program", "multiplications", "additions"]
    note = "Of one sample, counted in the program that runs."
    paper = "Jain &amp; Rodriguez 1993, Algorithms 2 and 6"
    if in_a_row:
        head.append("both, in print")
        note += f" In print: {paper}, whose counts could not be derived from the algorithms."
    else:
        note += f" Papers ({paper}) print counts for revolute joints in a row only."
    return html_table(head, rows) + f"<p>{note}{_about_loops(robot)}</p>"


def _about_loops(robot: Robot) -> str:
    if not active_loops(robot.model.loops):
        return ""
    return " Forward dynamics and linearize keep the loops closed, the others are the tree's."


def times_table(robot: Robot) -> str:
    """Times of a call on this machine: one sample, and one of a batch, on one thread."""
    rng = np.random.default_rng(0)
    rows = []
    for name, arguments in ARGUMENTS.items():
        arrays = [_argument(robot, argument, rng) for argument in arguments]
        call = getattr(robot, name)
        try:
            alone = _seconds(partial(call, *(x[0] for x in arrays)))
            batch = _seconds(partial(call, *arrays)) / BATCH
        except PhistarError as error:
            rows.append((name, str(error), ""))
            continue
        rows.append((name, duration_text(alone), duration_text(batch)))
    table = html_table(("program", "one call", f"per sample of {BATCH}"), rows)
    return f"{table}<p>{text}</p>" if (text := _about_loops(robot)) else table


def duration_text(seconds: float) -> str:
    """A time in ns, µs or ms, with three digits."""
    unit = next((name for name, size in UNITS.items() if seconds < 999.5 * size), "ms")
    return f"{float(f'{seconds / UNITS[unit]:.3g}'):g} {unit}"


def _argument(robot: Robot, name: str, rng: np.random.Generator) -> Array:
    if active_loops(robot.model.loops) and name in ("q", "v"):
        one = robot.assemble(robot.home) if name == "q" else np.zeros(robot.nv)
        return np.tile(one, (BATCH, 1))
    if name == "q":
        return np.stack([robot.random_configuration(rng) for _ in range(BATCH)])
    return rng.normal(size=(BATCH, robot.nv))


def _seconds(call: Callable[[], object]) -> float:
    """Least time of a call after the first, which compiles."""
    call()
    best, end = float("inf"), time.perf_counter() + TIMED_SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best
