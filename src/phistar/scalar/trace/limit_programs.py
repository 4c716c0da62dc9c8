# SPDX-License-Identifier: BSD-3-Clause
"""Small parts of steps with limits and friction, unrolled: what is held, how far a step may lead.

All are in the robot's own coordinates. Joints that began a step beyond a limit may go no farther.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from phistar.model.joint_physics import passive_numbers
from phistar.model.model import Model
from phistar.scalar.graph import Graph, Scalar, guard, select
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled


def _ends(model: Model, start: Vector) -> Iterator[tuple[int, Scalar | None, Scalar | None]]:
    """Entry of q, least and largest value at the end of a step, of joints that have limits."""
    numbers = passive_numbers(model)
    rows = zip(
        numbers.coordinates.tolist(), numbers.lower.tolist(), numbers.upper.tolist(), strict=True
    )
    for i, low, high in rows:
        least = select(low, start[i], start[i], low) if low > -math.inf else None
        largest = select(start[i], high, start[i], high) if high < math.inf else None
        if least is not None or largest is not None:
            yield i, least, largest


def count_outside(model: Model, start: Vector, end: Vector) -> Scalar:
    """How many coordinates a step takes beyond a limit."""
    count: Scalar = 0.0
    for i, least, largest in _ends(model, start):
        if largest is not None:
            count = count + select(end[i], largest, 1.0, 0.0)
        if least is not None:
            count = count + select(least, end[i], 1.0, 0.0)
    return count


def outside_limits(model: Model, start: Vector, end: Vector) -> Scalar:
    """Zero, or not a number where a step ends beyond a limit."""
    # A guard against zero is one that is switched off.
    slack = 1.0 - count_outside(model, start, end)
    return guard(slack, 0.5) - slack


def _clamped(model: Model, start: Vector, end: Vector) -> Vector:
    result = list(end)
    for i, least, largest in _ends(model, start):
        if largest is not None:
            result[i] = select(result[i], largest, largest, result[i])
        if least is not None:
            result[i] = select(least, result[i], least, result[i])
    return result


def kept(model: Model) -> Unrolled:
    """q -> q_kept."""
    return _program({"q": model.nq}, lambda q: {"q_kept": q})


def flagged(model: Model) -> Unrolled:
    """q_kept, q, flag -> flag_new: one after a step beyond a limit."""

    def make(start: Vector, end: Vector, flag: Vector) -> dict[str, Vector]:
        return {"flag_new": [select(count_outside(model, start, end), 0.5, 1.0, flag[0])]}

    return _program({"q_kept": model.nq, "q": model.nq, "flag": 1}, make)


def clamped(model: Model) -> Unrolled:
    """q_kept, q -> q_new: on the limits where it is beyond."""
    sizes = {"q_kept": model.nq, "q": model.nq}
    return _program(sizes, lambda start, end: {"q_new": _clamped(model, start, end)})


def chosen(model: Model, clamps: bool) -> Unrolled:
    """q_kept, q, x, q_stopped, x_stopped -> q_new, x_new: the smooth step if it is inside.

    Args:
        model: The robot.
        clamps: Whether the other one is put on the limits where it is beyond.
    """

    def make(
        start: Vector, q: Vector, x: Vector, q_stopped: Vector, x_stopped: Vector
    ) -> dict[str, Vector]:
        out = count_outside(model, start, q)
        stopped = _clamped(model, start, q_stopped) if clamps else q_stopped
        return {
            "q_new": [select(out, 0.5, b, a) for a, b in zip(q, stopped, strict=True)],
            "x_new": [select(out, 0.5, b, a) for a, b in zip(x, x_stopped, strict=True)],
        }

    nq, nv = model.nq, model.nv
    return _program({"q_kept": nq, "q": nq, "x": nv, "q_stopped": nq, "x_stopped": nv}, make)


def held(model: Model, rows: Sequence[int]) -> Unrolled:
    """q, tau, h, impulses -> q_kept, tau_held, impulses_kept: impulses as forces during the step.

    Args:
        model: The robot.
        rows: The entry of tau that each impulse acts on.
    """

    def make(q: Vector, tau: Vector, h: Vector, impulses: Vector) -> dict[str, Vector]:
        total, rate = list(tau), 1.0 / h[0]
        for i, x in zip(rows, impulses, strict=False):
            total[i] = total[i] + x * rate
        return {"q_kept": q, "tau_held": total, "impulses_kept": impulses}

    count = max(len(rows), 1)
    return _program({"q": model.nq, "tau": model.nv, "h": 1, "impulses": count}, make)


def _program(inputs: dict[str, int], make: Callable[..., dict[str, Vector]]) -> Unrolled:
    """What is made of the inputs."""
    graph = Graph()
    given = [[graph.load(name, i) for i in range(size)] for name, size in inputs.items()]
    results = make(*given)
    stores = [Store(name, i, "", x) for name, row in results.items() for i, x in enumerate(row)]
    outputs = {name: len(row) for name, row in results.items()}
    return Unrolled(Signature(inputs, outputs, ()), BasicBlock(graph, stores))
