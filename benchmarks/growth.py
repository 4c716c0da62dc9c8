# SPDX-License-Identifier: BSD-3-Clause
"""How the cost of vectors and matrices grows with the number of links of a chain."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from benchmarks import cases
from benchmarks.timing import Act, best_of, exponent
from phistar import Robot, backends
from phistar.backends.to_llvm import MachineCode, VectorMachineCode
from phistar.compile import cheapest_equivalent, kernel, matrix_executable
from phistar.model.model import Model

LENGTHS = (10, 30, 100, 300, 1000)
NUMBERS = 2**18
"""Of each array: longer chains get smaller batches, so that the work of a call is the same."""

DERIVATIVES = ("jvp", "vjp", "linearize_inverse", "linearize")
"""Of dynamics: products with vectors (of forward dynamics), and matrices."""
SAMPLES = 8
"""In a call for these; of loops alone more on short chains, as it would be Python's time else."""
ENTRIES = 2**21
"""Of each matrix, for loops alone, if there are that many."""

PARTS = {
    "jvp": (("forward_dynamics_jvp",), ()),
    "vjp": (("forward_dynamics_vjp",), ()),
    "linearize_inverse": (
        ("inverse_dynamics",),
        ("inverse_dynamics_q", "inverse_dynamics_v", "mass_matrix"),
    ),
    "linearize": (
        ("forward_dynamics",),
        ("forward_dynamics_q", "forward_dynamics_v", "mass_matrix_inverse"),
    ),
}
"""Programs and matrices of which these consist where there are loops alone."""

ROUNDS = 5
"""Walks over all lengths; the best time of each counts."""


@dataclass(frozen=True)
class Growth:
    """Cost against length.

    Attributes:
        quantity: What is computed.
        code: ``"final"`` (what runs: short chains are one straight line) or ``"rolled"`` (loops).
        lengths: Links of the chains.
        seconds: Best time for a sample on each of them.
        exponent: Slope in the double-logarithmic diagram; 1 is linear.
        operations: Additions, subtractions and multiplications on a sample, where loops alone run:
            they are exact, and of one algorithm.
    """

    quantity: str
    code: str
    lengths: tuple[int, ...]
    seconds: tuple[float, ...]
    exponent: float
    operations: tuple[int, ...] = ()

    @property
    def exponent_of_operations(self) -> float | None:
        """The slope of the operations, if they were counted."""
        return exponent(self.lengths, self.operations) if self.operations else None


def measure(
    quantity: str, code: str, lengths: tuple[int, ...] = LENGTHS, rounds: int = ROUNDS
) -> Growth:
    """Time a vector on chains, on one thread."""
    batches = [NUMBERS // n for n in lengths]
    pairs = zip(lengths, batches, strict=True)
    cells = [cases.Cell(f"chain{n}", quantity, batch) for n, batch in pairs]
    if code == "rolled":
        codes = [_loops(cell) for cell in cells]
        acts = [_run(each, cell) for each, cell in zip(codes, cells, strict=True)]
        operations = tuple(each.tiers().kernel.operations for each in codes)
    else:
        acts, operations = [_method(cell) for cell in cells], ()
    best = _best(acts, rounds)
    seconds = tuple(t / batch for t, batch in zip(best, batches, strict=True))
    return Growth(quantity, code, lengths, seconds, exponent(lengths, seconds), operations)


def measure_derivatives(
    quantity: str, code: str = "final", lengths: tuple[int, ...] = LENGTHS, rounds: int = 2
) -> Growth:
    """Time derivatives on chains, on one thread.

    What runs is called with the same few samples on each. Loops are of one algorithm at all
    lengths: matrices of forward dynamics come column by column.
    """
    if code == "final":
        acts = [_derivative(cases.robot(f"chain{n}"), n, quantity, SAMPLES) for n in lengths]
        best = [t / SAMPLES for t in _best(acts, rounds)]
        return Growth(quantity, code, lengths, tuple(best), exponent(lengths, best))
    square = quantity.startswith("linearize")
    batches = [max(SAMPLES, ENTRIES // n**2 if square else NUMBERS // n) for n in lengths]
    with _loops_alone():
        robots = [_renamed(cases.robot(f"chain{n}")) for n in lengths]
        method = {"method": "columns"} if quantity == "linearize" else {}
        rows = zip(robots, lengths, batches, strict=True)
        acts = [_derivative(robot, n, quantity, batch, **method) for robot, n, batch in rows]
        best = [t / batch for t, batch in zip(_best(acts, rounds), batches, strict=True)]
        operations = tuple(_operations(quantity, robot.model) for robot in robots)
    return Growth(quantity, code, lengths, tuple(best), exponent(lengths, best), operations)


def _best(acts: list[Act], rounds: int) -> list[float]:
    walks = [[best_of(act) for act in acts] for _ in range(rounds)]
    return [min(times) for times in zip(*walks, strict=True)]


@contextmanager
def _loops_alone() -> Iterator[None]:
    before = os.environ.get("PHISTAR_TIER")
    os.environ["PHISTAR_TIER"] = "rolled"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PHISTAR_TIER"]
        else:
            os.environ["PHISTAR_TIER"] = before


def _renamed(robot: Robot) -> Robot:
    """A robot that is not taken for one that has other code already."""
    return Robot(replace(robot.model, name=f"{robot.name}, loops"))


def _operations(quantity: str, model: Model) -> int:
    """Of the loops that a quantity consists of."""
    programs, matrices = PARTS[quantity]
    found: list[object] = [kernel(cheapest_equivalent(name)).executable(model) for name in programs]
    found += [matrix_executable(name, model) for name in matrices]
    total = 0
    for code in found:
        assert isinstance(code, MachineCode)
        total += code.tiers().kernel.operations
    return total


def _derivative(robot: Robot, length: int, quantity: str, samples: int, **choice: str) -> Act:
    q, v, tau = cases.arguments(cases.Cell(f"chain{length}", "linearize", samples))
    if quantity == "jvp":
        return lambda: robot.jvp("forward_dynamics", q, v, tau, dq=v, dv=tau)
    if quantity == "vjp":
        return lambda: robot.vjp("forward_dynamics", q, v, tau, v)
    method = getattr(robot, quantity)
    return lambda: method(q, v, tau, **choice)


def _method(cell: cases.Cell) -> Act:
    method = getattr(cases.robot(cell.robot), cell.quantity)
    arrays = cases.arguments(cell)
    return lambda: method(*arrays)


def _loops(cell: cases.Cell) -> VectorMachineCode:
    """The same by loops over links, whatever the length."""
    model = cases.robot(cell.robot).model
    tuning = backends.Tuning(regroup_inertia=True, shape="rolled")
    schedule = kernel(cheapest_equivalent(cell.quantity)).schedule
    code = backends.get("llvm").build(backends.VectorProgram(schedule, model, tuning=tuning))
    assert isinstance(code, VectorMachineCode)
    return code


def _run(code: VectorMachineCode, cell: cases.Cell) -> Act:
    q, *others = cases.arguments(cell)
    inputs = dict(zip(cases.QUANTITIES[cell.quantity][1:], others, strict=True))
    return lambda: code(q, inputs)
