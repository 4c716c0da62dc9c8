# SPDX-License-Identifier: BSD-3-Clause
"""How much work the programs of a robot are: operations, beside printed ones, and times here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from phistar.arrays import Array
from phistar.errors import PhistarError
from phistar.reprs import html_table
from phistar.robot import Robot

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
    serial = all(body.parent == body.index - 1 for body in robot.model.bodies)
    serial = serial and all(body.joint_kind.nv == 1 for body in robot.model.bodies)
    rows = []
    for name in ARGUMENTS:
        try:
            cost = robot.tree.compile(name).cost
        except PhistarError as error:
            rows.append((name, "", "", str(error)))
            continue
        printed = f"{PRINTED[name](robot.nv):.0f}" if serial and name in PRINTED else ""
        rows.append((name, f"{cost.multiplications}", f"{cost.additions}", printed))
    head = ("program", "multiplications", "additions", "both, as printed in the literature")
    note = (
        "<p>Of one sample, counted in the program that runs. Printed: Jain &amp; Rodriguez 1993, "
        "Algorithms 2 and 6, for n revolute joints in a row; these figures could not be reproduced "
        "from the algorithms.</p>"
    )
    return html_table(head, rows) + note


def times_table(robot: Robot) -> str:
    """Times of a call on this machine: one sample, and one of a batch, on one thread."""
    rng = np.random.default_rng(0)
    rows = []
    for name, arguments in ARGUMENTS.items():
        arrays = [_argument(robot, argument, rng) for argument in arguments]
        call = getattr(robot.tree, name)
        try:
            alone = _seconds(partial(call, *(x[0] for x in arrays)))
            batch = _seconds(partial(call, *arrays)) / BATCH
        except PhistarError as error:
            rows.append((name, str(error), ""))
            continue
        rows.append((name, f"{1e6 * alone:.3g} µs", f"{1e9 * batch:.4g} ns"))
    return html_table(("program", "one call", f"per sample of {BATCH}"), rows)


def _argument(robot: Robot, name: str, rng: np.random.Generator) -> Array:
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
