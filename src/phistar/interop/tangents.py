# SPDX-License-Identifier: BSD-3-Clause
"""Configurations as numbers that change: tangent steps of such changes, and steps, for any package.

Adapters differentiate with respect to the nq numbers of q. A quantity is a function on the
configurations, whose quaternions are unit; on all numbers it is taken as f(q with quaternions made
unit). Its derivative along dq is then the tangent derivative along ``velocity_of(q, dq)``, and what
dq has along a quaternion itself does not count. Everything here is arithmetic of the package, so
that it can be differentiated as often as one likes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from phistar.interop.array_values import ArrayModule, N, NumberFunctions, V
from phistar.interop.tangent_maps import adds_steps, matrix_entries
from phistar.model.joints import JointKind
from phistar.model.model import Model

_SERIES_BELOW = 0.25
"""Squares of angles [rad²] below which functions of them are power series, good to 1e-17."""
_TERMS = 9


class ArrayNamespace(Generic[V]):
    """What formulas of joints call, on arrays of a package.

    Attributes:
        xp: The package's module with ``cos``, ``sin``, ``sqrt``, ``where``, ``stack``.
        concatenate: Joins arrays along their last axis.
    """

    def __init__(self, xp: ArrayModule[V], concatenate: Callable[[Sequence[V]], V]) -> None:
        self.xp = xp
        self.concatenate = concatenate

    def cos_sin(self, angle: V) -> tuple[V, V]:
        """Cosine and sine."""
        return self.xp.cos(angle), self.xp.sin(angle)

    def sqrt(self, x: V) -> V:
        """Square root."""
        return self.xp.sqrt(x)

    def arc(self, square: V) -> SeriesArc[V]:
        """Functions of the angle with this square."""
        return SeriesArc(self.xp, square)


class SeriesArc(Generic[N]):
    """``ArcFunctions`` that can be differentiated at zero, in arithmetic of a package."""

    def __init__(self, xp: NumberFunctions[N], square: N) -> None:
        self._xp = xp
        self._square = square
        self._small = xp.less(square, _SERIES_BELOW)
        one = square * 0.0 + 1.0
        self._safe = xp.where(self._small, one, square)
        self._angle = xp.sqrt(self._safe)

    def _either(self, closed: N, first: float, ratio: Callable[[int], float]) -> N:
        """A closed form, or near zero the series whose terms have these ratios."""
        coefficients = [first]
        for k in range(_TERMS):
            coefficients.append(coefficients[-1] * ratio(k))
        series = self._square * 0.0 + coefficients[-1]
        for coefficient in reversed(coefficients[:-1]):
            series = series * self._square + coefficient
        return self._xp.where(self._small, series, closed)

    @property
    def half_cosine(self) -> N:
        """cos(θ/2)."""
        closed = self._xp.cos(0.5 * self._angle)
        return self._either(closed, 1.0, lambda k: -0.25 / ((2 * k + 1) * (2 * k + 2)))

    @property
    def half_sine_ratio(self) -> N:
        """sin(θ/2) / θ."""
        closed = self._xp.sin(0.5 * self._angle) / self._angle
        return self._either(closed, 0.5, lambda k: -0.25 / ((2 * k + 2) * (2 * k + 3)))

    @property
    def sine_ratio(self) -> N:
        """sin θ / θ."""
        closed = self._xp.sin(self._angle) / self._angle
        return self._either(closed, 1.0, lambda k: -1.0 / ((2 * k + 2) * (2 * k + 3)))

    @property
    def versine_ratio(self) -> N:
        """(1 - cos θ) / θ²."""
        half = self._xp.sin(0.5 * self._angle) / self._angle
        return self._either(2.0 * half * half, 0.5, lambda k: -1.0 / ((2 * k + 3) * (2 * k + 4)))

    @property
    def sine_defect(self) -> N:
        """(θ - sin θ) / θ³."""
        closed = (1.0 - self._xp.sin(self._angle) / self._angle) / self._safe
        return self._either(closed, 1.0 / 6.0, lambda k: -1.0 / ((2 * k + 4) * (2 * k + 5)))


class ConfigurationSpace(Generic[V]):
    """The configurations of a robot, on arrays of a package.

    Attributes:
        is_euclidean: Whether the numbers of q change as v does, in the same order.
    """

    def __init__(self, model: Model, xp: ArrayNamespace[V]) -> None:
        self._model, self._xp = model, xp
        self._runs = _runs(model)
        self.is_euclidean = adds_steps(model)

    def velocity_of(self, q: V, rates: V) -> V:
        """Tangents (..., nv) along which q (..., nq) changes by rates (..., nq)."""
        if self.is_euclidean:
            return rates
        xp, parts = self._xp, []
        for kind, own, _ in self._runs:
            if kind is None:
                parts.append(rates[..., own])
            else:
                parts.append(_joined(kind.velocity(_split(q, own), _split(rates, own), xp), xp))
        return parts[0] if len(parts) == 1 else xp.concatenate(parts)

    def gradient_of(self, q: V, gradient: V) -> V:
        """Gradients (..., nq) with respect to the numbers of q, of those (..., nv) along tangents.

        The adjoint of ``velocity_of``.
        """
        if self.is_euclidean:
            return gradient
        columns = [q[..., i] for i in range(self._model.nq)]
        totals: list[V] = [q[..., 0] * 0.0] * self._model.nq
        for (i, j), entry in matrix_entries(self._model, columns, self._xp, rates=False).items():
            if not (isinstance(entry, float) and entry == 0.0):
                totals[j] = totals[j] + entry * gradient[..., i]
        return self._xp.xp.stack(totals, -1)

    def integrated(self, q: V, dv: V) -> V:
        """q ⊕ dv (..., nq)."""
        if self.is_euclidean:
            return q + dv
        xp = self._xp
        parts: list[tuple[int, V]] = []
        for kind, own, step in self._runs:
            if kind is None:
                parts.append((own.start, q[..., own] + dv[..., step]))
            else:
                ahead = kind.step(_split(q, own), _split(dv, step), xp)
                parts.append((own.start, _joined(ahead, xp)))
        parts.sort(key=lambda part: part[0])
        return parts[0][1] if len(parts) == 1 else xp.concatenate([part for _, part in parts])


def _runs(model: Model) -> list[tuple[JointKind | None, slice, slice]]:
    """Joints in the order of v: kind, entries of q and of v; None for neighbours that are sums."""
    found: list[tuple[JointKind | None, slice, slice]] = []
    joints = [model.joints[name] for name in model.joint_names]
    for joint in sorted(joints, key=lambda each: each.v_slice.start):
        kind, q, v = joint.joint_kind, joint.q_slice, joint.v_slice
        last = found[-1] if found else None
        if not kind.is_euclidean:
            found.append((kind, q, v))
        elif last is not None and last[0] is None and last[1].stop == q.start:
            found[-1] = (None, slice(last[1].start, q.stop), slice(last[2].start, v.stop))
        else:
            found.append((None, q, v))
    return found


def _split(x: V, own: slice) -> list[V]:
    return [x[..., i] for i in range(own.start, own.stop)]


def _joined(entries: Sequence[V], xp: ArrayNamespace[V]) -> V:
    some = next(each for each in entries if not isinstance(each, float))
    zero = some * 0.0
    return xp.xp.stack([zero + each for each in entries], -1)
