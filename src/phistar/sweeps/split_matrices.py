# SPDX-License-Identifier: BSD-3-Clause
"""Matrices over joints that come from single walks along branches, and the streams behind them.

    X = W Y + K*ψ*E₀ + B*φ*T + 𝓜⁻¹O,      W = 𝓜⁻¹Hφ = [I - HψK]*D⁻¹Hψ

with Y, E₀, T and O block diagonal and B = K̂ - Ĵ*K. Linearized forward dynamics has this form, and
so has 𝓜⁻¹ itself. On a chain W is Uψ - K*ψ*Υ, so that only sums of one kind are left; on a tree,
blocks of links on different branches are products of what each has where they meet. Here
everything that a single link holds is lowered; ``scalar.trace.branch_rows`` does the walks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from phistar.algebra.ir import Expr
from phistar.algebra.spaces import JOINT
from phistar.sweeps.lower import ARGUMENTS, Lowering
from phistar.sweeps.schedule import Schedule, schedule
from phistar.sweeps.verify import verified


@dataclass(frozen=True)
class SplitTerms:
    """The parts of a matrix.

    Attributes:
        load: Y, forces on links per joint coordinate.
        drift: E = E₀ - ΥY, motions of links per joint coordinate.
        spin: T, likewise; only angular parts are read.
        own: O, a matrix for each joint; None if it is zero.
    """

    load: Expr
    drift: Expr
    spin: Expr
    own: Expr | None = None


@dataclass(frozen=True, eq=False)
class SplitMatrices:
    """Streams of all parts.

    Attributes:
        schedule: The program.
        inverse: Name of the matrix 𝓜⁻¹.
        matrices: Names of the others; their streams are outputs ``"load name"`` and so on.
    """

    schedule: Schedule
    inverse: str
    matrices: Mapping[str, SplitTerms]

    @property
    def argument(self) -> str:
        """Name of the leaf that holds unit columns."""
        return ARGUMENTS[JOINT].name

    def only(self, names: Collection[str]) -> SplitMatrices:
        """Some of the matrices, and 𝓜⁻¹."""
        kept = {name: terms for name, terms in self.matrices.items() if name in names}
        return self if len(kept) == len(self.matrices) else lower_split(self.inverse, kept)

    def stream(self, part: str, name: str = "") -> int | None:
        """The stream of a part: of a matrix, or of the links themselves."""
        return self.schedule.program.outputs.get(f"{part} {name}" if name else part)


def lower_split(inverse: str, matrices: Mapping[str, SplitTerms]) -> SplitMatrices:
    """Lower the parts of matrices.

    Args:
        inverse: What the matrix 𝓜⁻¹ is called.
        matrices: The others by name.
    """
    lowering = Lowering()
    outputs = lowering.program.outputs
    x = ARGUMENTS[JOINT]
    for name, terms in matrices.items():
        parts = {"load": terms.load, "drift": terms.drift, "spin": terms.spin, "own": terms.own}
        for part, expr in parts.items():
            if expr is not None:
                outputs[f"{part} {name}"] = lowering.vector(expr @ x)
    outputs["gain"] = lowering.G()
    outputs["factor"] = lowering.D()
    outputs["compliance"] = lowering.compliance()
    outputs["carried"] = lowering.parent_compliance()
    outputs["bias_gain"] = lowering.bias_gain()
    return SplitMatrices(verified(schedule(lowering.program)), inverse, dict(matrices))
