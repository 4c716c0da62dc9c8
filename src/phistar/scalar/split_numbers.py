# SPDX-License-Identifier: BSD-3-Clause
"""What single links hold of the matrices of ``sweeps.split``, as scalars."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from phistar.model.model import Model
from phistar.scalar.emit import Factor, pressed
from phistar.scalar.inertia import Inertia
from phistar.scalar.links import Link
from phistar.scalar.lower import robot_setting
from phistar.scalar.straight import Robot, Trace
from phistar.scalar.tracer import Unit
from phistar.scalar.vectors import Matrix, Vector, minus, times, transposed
from phistar.sweeps.ir import Direction
from phistar.sweeps.split import Split
from phistar.sweeps.support import dependents


@dataclass
class Column:
    """What belongs to one joint coordinate, by matrix."""

    load: dict[str, Vector]
    drift: dict[str, Vector]
    spin: dict[str, Vector]
    own: dict[str, Vector]


class SplitNumbers:
    """What single links hold, as scalars.

    Attributes:
        columns: Of each joint coordinate.
        gain, factor, compliance, carried, slip: Of each link.
        rows: U of each link, its rows.
        corner: 𝓜⁻¹ of each joint.
        felt: E - U*O of each joint coordinate, by matrix.
    """

    def __init__(self, split: Split, model: Model, absent: Set[str], robot: Robot) -> None:
        """Trace everything; arguments as for ``branches.Branches``."""
        self.split = split
        self.robot = robot
        self.links: Sequence[Link] = robot.links
        self.names = tuple(split.matrices)
        self._trace(model, absent)
        self._press()

    def _trace(self, model: Model, absent: Set[str]) -> None:
        """The values of all streams, each column at its own link."""
        program = self.split.schedule.program
        setting = robot_setting(program, model, absent)
        own = dependents(program, self.split.argument)
        shared: list[dict[int, object]] = [{} for _ in self.links]
        once = Trace(self.robot, setting)
        for tracer, known in zip(once.links, shared, strict=True):
            tracer.share(known, own)
        for each in self.split.schedule.passes:
            outward = each.direction is Direction.OUTWARD
            for tracer in once.links if outward else reversed(once.links):
                for stream in each.streams:
                    if stream not in own:
                        tracer.value(stream)
        self.columns: list[Column] = []
        for link in self.links:
            for e in range(link.size):
                trace = Trace(
                    self.robot, replace(setting, unit=Unit(self.split.argument, link.v + e))
                )
                for tracer, known in zip(trace.links, shared, strict=True):
                    tracer.share(known, own)
                self.columns.append(self._column(trace, link.index))
        self.gain: list[Matrix] = self._all(once, "gain")
        self.factor: list[Factor] = self._all(once, "factor")
        self.compliance: list[Inertia] = self._all(once, "compliance")
        self.carried: list[Inertia] = self._all(once, "carried")
        self.slip: list[Matrix] = self._all(once, "slip")

    def _all(self, trace: Trace, part: str) -> list[Any]:
        stream = self.split.schedule.program.outputs[part]
        return [link.value(stream) for link in trace.links]

    def _column(self, trace: Trace, k: int) -> Column:
        parts: dict[str, dict[str, Vector]] = {}
        for part in ("load", "drift", "spin", "own"):
            streams = {n: self.split.stream(part, n) for n in self.names}
            parts[part] = {n: trace.links[k].value(s) for n, s in streams.items() if s is not None}
        return Column(**parts)

    def _press(self) -> None:
        """𝓜⁻¹ and W on the diagonal, and what links beyond a joint read there."""
        self.rows: list[Matrix] = []
        self.corner: list[Matrix] = []
        self.felt: list[dict[str, Vector]] = []
        for k, link in enumerate(self.links):
            place = self.robot.places[k]
            corner, rows = pressed(place, self.carried[k], self.gain[k], self.factor[k])
            self.rows.append(rows)
            self.corner.append(corner)
            for column in self.columns[link.v : link.v + link.size]:
                felt = dict(column.drift)
                for name, own in column.own.items():
                    felt[name] = minus(felt[name], times(transposed(rows), own))
                self.felt.append(felt)
