# SPDX-License-Identifier: BSD-3-Clause
"""The tree's programs and the rows of closed loops, put together in one graph for one robot.

The tree's sweeps are derived (``loops.traced_rows.loop_factors``); what does not depend on the
vectors they are given is shared between all places that use them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from phistar.arrays import Array
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.scalar.linear.symmetric_factor import is_zero
from phistar.scalar.linear.vectors import Matrix, Vector, plus, scaled, zeros
from phistar.scalar.lower import trace_context
from phistar.scalar.program import Unrolled
from phistar.scalar.trace.inline import inline
from phistar.scalar.trace.link_operations import as_vector
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.unrolled import UnrolledTrace
from phistar.sweeps.ir import StreamProgram
from phistar.sweeps.schedule import Schedule


@dataclass(frozen=True)
class RowScales:
    """What makes rows and coordinates dimensionless, and what counts as on the loops.

    Attributes:
        rows: (rows,).
        columns: (nv,).
        open_error: Length of an error without units from which loops count as open.
        rate: Fraction of √rows ‖v‖ from which a velocity opens them.
        rest: Rates below this are none.
        mobility: (rows,) a usual size of each row's number in Δ.
        smallest_pivot: Fraction of that below which its pivot may be rounding, so that there is no
            result.
        held: Numbers of rows of loops that hold frames wherever they are: never open.
    """

    rows: Array
    columns: Array
    open_error: float
    rate: float
    rest: float
    mobility: Array
    smallest_pivot: float
    held: Set[int] = frozenset()


@dataclass(frozen=True)
class LinkForce:
    """A force on a link, in its axes, per unit multiplier of a row."""

    link: int
    force: Vector


@dataclass(frozen=True)
class LineRows:
    """Rows of loops that are not zero for the robot as such, and their numbers.

    Attributes:
        numbers: Among all rows of the robot.
        L, rate, bias, error: L, Lv, L̇v and e.
        units: What rows have been multiplied by; by ``RowScales.rows`` they have no units.
        forces: Rows that are forces on links, by place; these are zero in L.
    """

    numbers: Sequence[int]
    L: Matrix
    rate: Vector
    bias: Vector
    error: Vector
    units: Sequence[float]
    forces: Mapping[int, LinkForce] = field(default_factory=dict)


@dataclass(frozen=True)
class EarlyRows:
    """Rows of loops with the ground that are solved further out, see ``loop_join``.

    Attributes:
        links: By number of the row, the link at which it is solved.
        least: Pivots of rows in their own units below these are too small to divide by.
    """

    links: Mapping[int, int]
    least: Mapping[int, float]


NO_EARLY_ROWS = EarlyRows({}, {})


class LoopTracer:
    """The tree's factors and the loops' rows in one graph.

    Args:
        model: A robot.
        factors: Gives the program q, v, tau, zeta -> ``bias`` 𝒞, ``kappa`` N⁻¹τ, ``scaled``
            D⁻¹N⁻¹τ, ``v`` N⁻*ζ, joint vectors in body order, of a robot whose joints all have
            coordinates of their own.
        bias: The sweeps of 𝒞 alone.
        absent: Inputs that none of them are given.
        closure: q, v -> rows, rate, bias, error; in the robot's own coordinates.
        rank: Number of independent rows.
        scales: See there.
        early: See there.
        added: Joints with more inertia, which programs read, see ``TracedLinks``; ``factors`` read
            it, too.
    """

    def __init__(
        self,
        model: Model,
        factors: Callable[[], Unrolled],
        bias: Schedule,
        absent: Set[str],
        closure: Unrolled,
        rank: int,
        scales: RowScales,
        early: EarlyRows = NO_EARLY_ROWS,
        added: Mapping[int, int] | None = None,
    ) -> None:
        joints = joint_map(model)
        self.model = model
        self.has_mimics = not joints.one_to_one
        self.rank = rank
        self.scales = scales
        self.early = early
        self.added = added
        self._places = list(zip(joints.v_indices.tolist(), joints.scales.tolist(), strict=True))
        self._trace_factors = factors
        self._bias = bias
        self._absent = absent
        self._closure = closure

    @cached_property
    def _factors(self) -> Unrolled:
        return self._trace_factors()

    def sweeps(
        self, q: Vector, v: Vector, tau: Vector, zeta: Vector, added: Mapping[str, Vector]
    ) -> Mapping[str, Vector]:
        """The tree's sweeps, joint vectors in the robot's own coordinates.

        ``added``: the input of more joint inertia, if programs read it.
        """
        assert not self.has_mimics
        given = {"tau": tau, "zeta": zeta, "v": v}
        inputs = {name: self.in_body_order(x) for name, x in given.items()}
        found = inline(self._factors, {"q": q, **inputs, **added})
        return {name: self.own(x) for name, x in found.items()}

    def traced_motion(self, robot: TracedLinks) -> tuple[UnrolledTrace, StreamProgram]:
        """The trace of 𝒞 of the inputs q and v, in the graph and the axes of some links."""
        context = trace_context(self._bias.program, self.model, self._absent)
        trace = UnrolledTrace(robot, replace(context, joint_places=tuple(self._places)))
        trace.run(self._bias)
        return trace, self._bias.program

    def bias_of(self, trace: UnrolledTrace) -> Vector:
        """𝒞 of such a trace."""
        (stream,) = self._bias.program.outputs.values()
        found = zeros(len(self._places))
        for link in trace.tracers:
            values = as_vector(link.value(stream))
            found[link.v : link.v + len(values)] = values
        return self.own(found)

    @cached_property
    def independent(self) -> bool:
        """Whether no row depends on others, but for rows that are always zero."""
        return self.rank >= len(self._live)

    @cached_property
    def _live(self) -> list[int]:
        """Numbers of the rows that are not always zero."""
        nv = self.model.nv
        rows = (s for s in self._closure.block.stores if s.space == "rows")
        return sorted({s.index // nv for s in rows if not is_zero(s.value)})

    def least_pivots(self, rows: LineRows) -> list[float]:
        """Pivots below these may be rounding."""
        scales = self.scales
        sizes = scales.smallest_pivot * scales.mobility / scales.rows**2
        return [float(sizes[i]) * u * u for i, u in zip(rows.numbers, rows.units, strict=True)]

    def in_body_order(self, x: Vector) -> Vector:
        """Velocities of all joints as the tree's programs have them; those of mimics scaled."""
        return [scale * x[i] for i, scale in self._places]

    def own_matrix(self, entries: Vector) -> Matrix:
        """A matrix over the joints of the tree's programs, rows one after the other."""
        size = len(self._places)
        result: Matrix = [zeros(self.model.nv) for _ in range(self.model.nv)]
        for k, (i, scale) in enumerate(self._places):
            row = self.own(entries[k * size : (k + 1) * size])
            result[i] = plus(result[i], scaled(scale, row))
        return result

    def own(self, x: Vector) -> Vector:
        """Joint forces of the tree's programs on the robot's own coordinates."""
        result = zeros(self.model.nv)
        for (i, scale), value in zip(self._places, x, strict=True):
            result[i] = result[i] + scale * value
        return result

    def rows(self, q: Vector, v: Vector) -> LineRows:
        """L, Lv, L̇v and e, without units, rows that are always zero left out."""
        found = inline(self._closure, {"q": q, "v": v})
        nv = self.model.nv
        L, rate, bias, error = [], [], [], []
        kept = []
        for i, scale in enumerate(self.scales.rows.tolist()):
            row = found["rows"][i * nv : (i + 1) * nv]
            if all(is_zero(x) for x in row):
                continue
            kept.append(i)
            L.append(scaled(scale, row))
            rate.append(scale * found["rate"][i])
            bias.append(scale * found["bias"][i])
            error.append(0.0 if i in self.scales.held else scale * found["error"][i])
        units = [float(self.scales.rows[i]) for i in kept]
        return LineRows(kept, L, rate, bias, error, units)
