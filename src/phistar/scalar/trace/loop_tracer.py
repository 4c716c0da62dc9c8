# SPDX-License-Identifier: BSD-3-Clause
"""The tree's programs and the rows of closed loops, put together in one graph for one robot.

The tree's sweeps are derived (``loops.traced_rows.loop_factors``); what does not depend on the
vectors they are given is shared between all places that use them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from phistar.arrays import Array
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.scalar.linear.symmetric_factor import is_zero
from phistar.scalar.linear.vectors import Matrix, Vector, scaled, zeros
from phistar.scalar.program import Unrolled
from phistar.scalar.trace.inline import inline
from phistar.scalar.trace.traced_bias import traced_bias
from phistar.scalar.trace.traced_links import TracedLinks
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
class LineRows:
    """Rows of loops that are not zero for the robot as such, and their numbers."""

    numbers: Sequence[int]
    L: Matrix
    rate: Vector
    bias: Vector
    error: Vector


class LoopTracer:
    """The tree's factors and the loops' rows in one graph.

    Args:
        model: A robot whose joints all have coordinates of their own.
        factors: q, v, tau, zeta -> ``bias`` 𝒞, ``kappa`` N⁻¹τ, ``scaled`` D⁻¹N⁻¹τ, ``v`` N⁻*ζ,
            joint vectors in body order.
        bias: The sweeps of 𝒞 alone.
        absent: Inputs that none of them are given.
        closure: q, v -> rows, rate, bias, error; in the robot's own coordinates.
        rank: Number of independent rows.
        scales: See there.
    """

    def __init__(
        self,
        model: Model,
        factors: Unrolled,
        bias: Schedule,
        absent: Set[str],
        closure: Unrolled,
        rank: int,
        scales: RowScales,
    ) -> None:
        joints = joint_map(model)
        assert joints.one_to_one
        assert (joints.scales == 1.0).all()
        self.model = model
        self.rank = rank
        self.scales = scales
        self._order = [int(i) for i in joints.v_indices]
        self._factors = factors
        self._bias = bias
        self._absent = absent
        self._closure = closure

    def sweeps(self, q: Vector, v: Vector, tau: Vector, zeta: Vector) -> Mapping[str, Vector]:
        """The tree's sweeps, joint vectors in the robot's own coordinates."""
        given = {"tau": tau, "zeta": zeta, "v": v}
        inputs = {name: self.in_body_order(x) for name, x in given.items()}
        found = inline(self._factors, {"q": q, **inputs})
        return {name: self.own(x) for name, x in found.items()}

    def traced_bias(self, robot: TracedLinks) -> Vector:
        """𝒞 of the inputs q and v, in the graph and the axes of some links."""
        return self.own(traced_bias(self.model, self._bias, self._absent, robot))

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

    @cached_property
    def least_pivots(self) -> list[float]:
        """Of the rows that are not always zero: pivots below these may be rounding."""
        scales = self.scales
        sizes = scales.smallest_pivot * scales.mobility
        return [float(sizes[i]) for i in self._live]

    def in_body_order(self, x: Vector) -> Vector:
        """A joint vector as the tree's programs have it."""
        return [x[i] for i in self._order]

    def own_matrix(self, entries: Vector) -> Matrix:
        """A matrix over the joints of the tree's programs, rows one after the other."""
        size = self.model.nv
        result: Matrix = [zeros(size) for _ in range(size)]
        for k, i in enumerate(self._order):
            result[i] = self.own(entries[k * size : (k + 1) * size])
        return result

    def own(self, x: Vector) -> Vector:
        """A joint vector of the tree's programs in the robot's own coordinates."""
        result = zeros(len(x))
        for i, value in zip(self._order, x, strict=True):
            result[i] = value
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
        return LineRows(kept, L, rate, bias, error)
