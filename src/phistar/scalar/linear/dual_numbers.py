# SPDX-License-Identifier: BSD-3-Clause
"""Numbers with a change: formulas over ``spatial.entries`` give their derivative along."""

from __future__ import annotations

from dataclasses import dataclass

from phistar.scalar.graph import Scalar, sqrt


@dataclass(frozen=True)
class Dual:
    """A number and how it changes."""

    value: Scalar
    change: Scalar = 0.0

    def __add__(self, other: Dual | Scalar) -> Dual:
        x = as_dual(other)
        return Dual(self.value + x.value, self.change + x.change)

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.change)

    def __sub__(self, other: Dual | Scalar) -> Dual:
        return self + -as_dual(other)

    def __rsub__(self, other: Dual | Scalar) -> Dual:
        return as_dual(other) + -self

    def __mul__(self, other: Dual | Scalar) -> Dual:
        x = as_dual(other)
        return Dual(self.value * x.value, self.value * x.change + self.change * x.value)

    __rmul__ = __mul__

    def __rtruediv__(self, other: Dual | Scalar) -> Dual:
        x = as_dual(other)
        quotient = x.value / self.value
        return Dual(quotient, (x.change - quotient * self.change) / self.value)


def as_dual(x: Dual | Scalar) -> Dual:
    """A number that may be constant."""
    return x if isinstance(x, Dual) else Dual(x)


class DualOps:
    """What formulas call besides arithmetic."""

    def sqrt(self, x: Dual | Scalar) -> Dual:
        """Square root."""
        dual = as_dual(x)
        root = sqrt(dual.value)
        return Dual(root, 0.5 * dual.change / root)


DUAL_OPS = DualOps()
