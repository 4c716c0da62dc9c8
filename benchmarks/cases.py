# SPDX-License-Identifier: BSD-3-Clause
"""What is timed: robots, quantities, and the cells of batch, threads and precision."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import phistar
from phistar import Robot, robots
from phistar.arrays import Array

ARMS = ("panda", "quadruped", "humanoid")
"""The bundled robots; the last two have free bases."""

CHAINS = ("chain10", "chain100", "chain1000")
ROBOTS = ARMS + CHAINS

QUANTITIES = {
    "inverse_dynamics": ("q", "v", "vdot"),
    "forward_dynamics": ("q", "v", "tau"),
    "mass_matrix": ("q",),
    "mass_matrix_inverse": ("q",),
    "linearize_inverse": ("q", "v", "vdot"),
    "linearize": ("q", "v", "tau"),
}
"""Methods of a robot, and their arguments."""

VECTORS = ("inverse_dynamics", "forward_dynamics")
DERIVATIVES = ("linearize_inverse", "linearize")
"""Three matrices each; timed on ``ARMS`` alone."""
BATCHES = (1, 64, 256, 4096, 65_536, 1_000_000)
SHOWN_BATCHES = (1, 64, 256, 4096, 65_536)
"""Those of the table by batch size, which are timed before other cells."""
MAIN = 4096
"""The batch of the comparison."""

SINGLES = 256
"""Samples that are called for one by one where the batch is 1."""

MOST_BYTES = 1.5e9
"""Of the arrays of a cell."""


@dataclass(frozen=True)
class Cell:
    """One thing to time.

    Attributes:
        robot: Of ``ROBOTS``.
        quantity: Of ``QUANTITIES``.
        batch: Samples in a call; 1 is a sample without batch axis.
        threads: That we may use; peers always use one.
        real: ``"float64"`` or ``"float32"``.
    """

    robot: str
    quantity: str
    batch: int = MAIN
    threads: int = 1
    real: str = "float64"

    @property
    def alone(self) -> bool:
        """Whether no peer is run: they have one precision, and are compared on one thread."""
        return self.threads != 1 or self.real != "float64"

    def __str__(self) -> str:
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{self.robot}, {self.quantity}, batch {self.batch}, {threads}, {self.real}"


@lru_cache(maxsize=8)
def robot(name: str) -> Robot:
    """A robot of ``ROBOTS``.

    The joints of chains turn about x, y, z in turn: a planar chain would fold to a plane one.
    """
    if name.startswith("chain"):
        return robots.chain(int(name.removeprefix("chain")), axes="xyz")
    return phistar.load(name)


def floats(name: str) -> bool:
    """Whether a robot of ``ROBOTS`` has a free base."""
    return not name.startswith("chain") and robots.floats(name)


def numbers(cell: Cell) -> int:
    """Numbers in the arrays of a cell, for one sample."""
    one = robot(cell.robot)
    given = one.nq + (len(QUANTITIES[cell.quantity]) - 1) * one.nv
    matrices = 3 if cell.quantity in DERIVATIVES else int(cell.quantity not in VECTORS)
    return given + (matrices * one.nv**2 if matrices else one.nv)


def bytes_of(cell: Cell) -> int:
    """Bytes of the arrays of a cell."""
    return numbers(cell) * cell.batch * np.dtype(cell.real).itemsize


def arguments(cell: Cell) -> tuple[Array, ...]:
    """Arrays (batch, n) for a cell; beyond ``MAIN`` rows states come again, in memory of their own.

    Where the batch is 1, they have ``SINGLES`` rows.
    """
    one = robot(cell.robot)
    rng = np.random.default_rng(0)
    count = SINGLES if cell.batch == 1 else cell.batch
    distinct = min(count, MAIN)
    arrays = [one.random_configuration(rng, distinct)]
    for _ in QUANTITIES[cell.quantity][1:]:
        arrays.append(rng.normal(size=(distinct, one.nv)))
    kept = [np.ascontiguousarray(x, cell.real) for x in arrays]
    return tuple(np.resize(x, (count, x.shape[1])) if count > distinct else x for x in kept)


def robots_for(quantity: str) -> tuple[str, ...]:
    """The robots on which a quantity is timed."""
    return ARMS if quantity in DERIVATIVES else ROBOTS


def plan(quick: bool = False) -> tuple[list[Cell], list[Cell]]:
    """The cells that matter most, and the others, so that a run out of time is still of use."""
    main = [Cell(r, x) for x in QUANTITIES for r in robots_for(x)]
    singles = [Cell(r, x, 1) for x in QUANTITIES for r in robots_for(x)]
    if quick:
        return _quick(main, singles)
    shown = [Cell(r, x, b) for b in SHOWN_BATCHES for x in QUANTITIES for r in robots_for(x)]
    first = list(dict.fromkeys([*main, *singles, *shown]))
    return first, [cell for cell in _others() if cell not in first]


def _quick(main: list[Cell], singles: list[Cell]) -> tuple[list[Cell], list[Cell]]:
    wide = [Cell("panda", x, 65_536, t) for x in VECTORS for t in (1, 2)]
    short = [Cell("panda", x, real="float32") for x in VECTORS]
    cells = main + [cell for cell in singles if cell.robot in ARMS] + wide + short
    # Compiling these takes most of a minute if it was not done before.
    last = [c for c in cells if c.quantity not in VECTORS and c.robot not in ("panda", "quadruped")]
    return [cell for cell in cells if cell not in last], last


def _others() -> list[Cell]:
    """Other batches, precisions and threads, the largest last, whose calls take longest.

    On two threads small batches are the same calls.
    """
    return [
        Cell(r, x, b, threads, real)
        for b in BATCHES
        for real in ("float64", "float32")
        for threads in ((1, 2) if b >= MAIN else (1,))
        for x in QUANTITIES
        for r in (ROBOTS if x not in DERIVATIVES else ())
    ]
