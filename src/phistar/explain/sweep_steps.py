# SPDX-License-Identifier: BSD-3-Clause
"""A program at work: every statement at every link in the order of its sweeps, with its value."""

from __future__ import annotations

from dataclasses import dataclass

from phistar.arrays import Array
from phistar.compile import kernel
from phistar.errors import ArgumentError
from phistar.model.configuration import Coordinates, configuration, tangent
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.sweeps.interpret import Interpreter
from phistar.sweeps.ir import Direction, Type
from phistar.sweeps.printing import statements, to_text


@dataclass(frozen=True, eq=False)
class SweepStep:
    """A statement at a link.

    Attributes:
        line: Its line in the text of the program.
        body: The link, as an index of ``Model.bodies``.
        name: What the statement computes.
        type: Type of that.
        value: Its value, in link axes.
    """

    line: int
    body: int
    name: str
    type: Type
    value: Array


@dataclass(frozen=True, eq=False)
class SweepSteps:
    """A program at work at one state.

    Attributes:
        lines: The printed program.
        steps: What happens, in order.
    """

    lines: tuple[str, ...]
    steps: tuple[SweepStep, ...]


def sweep_steps(name: str, model: Model, q: Coordinates, **inputs: Coordinates) -> SweepSteps:
    """What the sweeps of a program do at one state.

    Args:
        name: A program of vectors, e.g. ``"forward_dynamics"``.
        model: The robot.
        q: (nq,).
        inputs: Joint vectors (nv,) that the program reads, by name.

    Raises:
        ArgumentError: The robot has reduced mimic joints.
    """
    joints = joint_map(model)
    if not joints.one_to_one:
        raise ArgumentError(
            f"robot '{model.name}' has reduced mimic joints, and links that move together are "
            "no steps of a sweep; load it with mimic='independent'"
        )
    schedule = kernel(name, model).schedule
    given = {key: joints.spread(tangent(model, value)) for key, value in inputs.items()}
    machine = Interpreter(schedule, model, configuration(model, q), given)
    links = range(len(model.bodies))
    steps: list[SweepStep] = []
    line = 0
    for (direction, rows), sweep in zip(statements(schedule), schedule.sweeps, strict=True):
        for k in links if direction is Direction.OUTWARD else reversed(links):
            for stream in sweep.streams:
                machine.execute(stream, k)
            for offset, row in enumerate(rows, start=1):
                stream = row.streams[0]
                kind = machine.program.nodes[stream].type
                steps.append(SweepStep(line + offset, k, row.name, kind, machine.value(stream, k)))
        line += 1 + len(rows)
    return SweepSteps(tuple(to_text(schedule).splitlines()), tuple(steps))
