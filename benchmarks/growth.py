# SPDX-License-Identifier: BSD-3-Clause
"""How the cost of vectors grows with the number of links of a chain."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import cases
from benchmarks.timing import Act, best_of, exponent
from phistar import backends
from phistar.compile import kernel, preferred

LENGTHS = (10, 30, 100, 300, 1000)
NUMBERS = 2**18
"""Of each array: longer chains get smaller batches, so that the work of a call is the same."""

DERIVATIVES = ("jvp", "vjp", "linearize_inverse", "linearize")
"""Of dynamics: products with vectors (of forward dynamics), and matrices; one sample at a time."""
SAMPLES = 8
"""In a call for these."""

ROUNDS = 8
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
    """

    quantity: str
    code: str
    lengths: tuple[int, ...]
    seconds: tuple[float, ...]
    exponent: float


def measure(
    quantity: str, code: str, lengths: tuple[int, ...] = LENGTHS, rounds: int = ROUNDS
) -> Growth:
    """Time a vector on chains, on one thread."""
    batches = [NUMBERS // n for n in lengths]
    pairs = zip(lengths, batches, strict=True)
    make = _loops if code == "rolled" else _method
    acts = [make(cases.Cell(f"chain{n}", quantity, batch)) for n, batch in pairs]
    walks = [[best_of(act) for act in acts] for _ in range(rounds)]
    best = [min(times) for times in zip(*walks, strict=True)]
    seconds = tuple(t / batch for t, batch in zip(best, batches, strict=True))
    return Growth(quantity, code, lengths, seconds, exponent(lengths, seconds))


def measure_derivatives(
    quantity: str, lengths: tuple[int, ...] = LENGTHS, rounds: int = 2
) -> Growth:
    """Time derivatives on chains; each call takes the same few samples."""
    acts = [_derivative(f"chain{n}", quantity) for n in lengths]
    walks = [[best_of(act) for act in acts] for _ in range(rounds)]
    best = [min(times) / SAMPLES for times in zip(*walks, strict=True)]
    return Growth(quantity, "final", lengths, tuple(best), exponent(lengths, best))


def _derivative(name: str, quantity: str) -> Act:
    robot = cases.robot(name)
    q, v, tau = cases.arguments(cases.Cell(name, "linearize", SAMPLES))
    if quantity == "jvp":
        return lambda: robot.jvp("forward_dynamics", q, v, tau, dq=v, dv=tau)
    if quantity == "vjp":
        return lambda: robot.vjp("forward_dynamics", q, v, tau, v)
    method = getattr(robot, quantity)
    return lambda: method(q, v, tau)


def _method(cell: cases.Cell) -> Act:
    method = getattr(cases.robot(cell.robot), cell.quantity)
    arrays = cases.arguments(cell)
    return lambda: method(*arrays)


def _loops(cell: cases.Cell) -> Act:
    """The same by loops over links, whatever the length."""
    model = cases.robot(cell.robot).model
    tuning = backends.Tuning(whole=True, shape="rolled")
    schedule = kernel(preferred(cell.quantity)).schedule
    code = backends.get("llvm").build(schedule, model, tuning=tuning)
    q, *others = cases.arguments(cell)
    inputs = dict(zip(cases.QUANTITIES[cell.quantity][1:], others, strict=True))
    return lambda: code(q, inputs)
