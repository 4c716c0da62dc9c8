# SPDX-License-Identifier: BSD-3-Clause
"""What single links hold of the matrices of ``sweeps.split_matrices``, as scalars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import cast

from phistar.model.model import Model
from phistar.scalar.linear.vectors import Matrix, Vector, minus, times, transposed
from phistar.scalar.lower import trace_context
from phistar.scalar.robot.link_numbers import LinkNumbers
from phistar.scalar.trace.link_operations import (
    LdlFactor,
    LinkValue,
    as_inertia,
    as_matrix,
    as_vector,
    inverse_mass_terms,
)
from phistar.scalar.trace.link_tracer import LinkForce, TraceContext, UnitVector
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.unrolled import UnrolledTrace
from phistar.sweeps.column_support import dependents
from phistar.sweeps.ir import Direction
from phistar.sweeps.split_matrices import SplitMatrices


@dataclass
class ColumnScalars:
    """What belongs to one joint coordinate, by matrix."""

    load: dict[str, Vector]
    drift: dict[str, Vector]
    spin: dict[str, Vector]
    own: dict[str, Vector]


class BranchScalars:
    """What single links hold, as scalars.

    Attributes:
        columns: Of each joint coordinate.
        gain, factor, compliance, carried, bias_gain: Of each link.
        rows: U of each link, its rows.
        corner: 𝓜⁻¹ of each joint.
        residual: E - U*O of each joint coordinate, by matrix.
    """

    def __init__(
        self,
        split: SplitMatrices,
        model: Model,
        absent: Set[str],
        robot: TracedLinks,
        link_force: LinkForce | None = None,
    ) -> None:
        """Trace everything; arguments as for ``branch_rows.BranchRows``."""
        self.split = split
        self.traced_links = robot
        self.links: Sequence[LinkNumbers] = robot.links
        self.names = tuple(split.matrices)
        self._trace(
            replace(trace_context(split.schedule.program, model, absent), link_force=link_force)
        )
        self._invert_diagonal()

    def _trace(self, setting: TraceContext) -> None:
        """The values of all streams, each column at its own link."""
        program = self.split.schedule.program
        own = dependents(program, self.split.argument)
        shared: list[dict[int, LinkValue]] = [{} for _ in self.links]
        once = UnrolledTrace(self.traced_links, setting)
        for tracer, known in zip(once.tracers, shared, strict=True):
            tracer.share_values(known, own)
        for each in self.split.schedule.sweeps:
            outward = each.direction is Direction.OUTWARD
            for tracer in once.tracers if outward else reversed(once.tracers):
                for stream in each.streams:
                    if stream not in own:
                        tracer.value(stream)
        self.columns = list(self._columns(setting, shared, own))
        self.gain = [as_matrix(x) for x in self._all(once, "gain")]
        self.factor = [cast(LdlFactor, x) for x in self._all(once, "factor")]
        self.compliance = [as_inertia(x) for x in self._all(once, "compliance")]
        self.carried = [as_inertia(x) for x in self._all(once, "carried")]
        self.bias_gain = [as_matrix(x) for x in self._all(once, "bias_gain")]

    def _columns(
        self, setting: TraceContext, shared: Sequence[dict[int, LinkValue]], own: Set[int]
    ) -> Iterator[ColumnScalars]:
        """Those of each joint coordinate; what does not depend on the column is shared."""
        for link in self.links:
            for e in range(link.size):
                unit = UnitVector(self.split.argument, link.v + e)
                trace = UnrolledTrace(self.traced_links, replace(setting, unit_vector=unit))
                for tracer, known in zip(trace.tracers, shared, strict=True):
                    tracer.share_values(known, own)
                yield self._column(trace, link.index)

    def _all(self, trace: UnrolledTrace, part: str) -> list[LinkValue]:
        stream = self.split.schedule.program.outputs[part]
        return [link.value(stream) for link in trace.tracers]

    def _column(self, trace: UnrolledTrace, k: int) -> ColumnScalars:
        parts: dict[str, dict[str, Vector]] = {}
        for part in ("load", "drift", "spin", "own"):
            streams = {n: self.split.stream(part, n) for n in self.names}
            parts[part] = {
                n: as_vector(trace.tracers[k].value(s)) for n, s in streams.items() if s is not None
            }
        return ColumnScalars(**parts)

    def _invert_diagonal(self) -> None:
        """𝓜⁻¹ and W on the diagonal, and what links beyond a joint read there."""
        self.rows: list[Matrix] = []
        self.inverse_diagonal: list[Matrix] = []
        self.residual: list[dict[str, Vector]] = []
        for k, link in enumerate(self.links):
            place = self.traced_links.placed_links[k]
            corner, rows = inverse_mass_terms(place, self.carried[k], self.gain[k], self.factor[k])
            self.rows.append(rows)
            self.inverse_diagonal.append(corner)
            for column in self.columns[link.v : link.v + link.size]:
                felt = dict(column.drift)
                for name, own in column.own.items():
                    felt[name] = minus(felt[name], times(transposed(rows), own))
                self.residual.append(felt)
