# SPDX-License-Identifier: BSD-3-Clause
"""The result of a simulation: states at knots of time, in between, and what should be kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.errors import ArgumentError
from phistar.model.configuration import difference, integrate
from phistar.model.model import Model
from phistar.sim import monitors
from phistar.sim.manifold import coordinate_rate, velocity_of
from phistar.sim.monitors import Drift

Array = NDArray[Any]

Dense = Callable[[Array], tuple[Array, Array]]
"""q and v at times (n,) inside the simulated interval."""


@dataclass(frozen=True)
class Simulation:
    """A motion in time; time is the first axis, batch axes follow, as in a ``Trajectory``.

    Attributes:
        t: (N + 1,) times [s].
        q: (N + 1, ..., nq) configurations.
        v: (N + 1, ..., nv) velocities.
        tau: (N, ..., nv) joint forces, each held from its knot to the next.
        model: The robot.
        scheme: How it was found.
        variables: The variable that was stepped: ``"v"``, ``"zeta"`` or ``"eta"``.
        engine: What took the steps: ``"machine code"`` or ``"numpy loop"``.
        steps: How many steps were taken.
        rejected: How many steps were taken back, by schemes that choose their steps.
    """

    t: Array
    q: Array
    v: Array
    tau: Array
    model: Model = field(repr=False)
    scheme: str
    variables: str
    engine: str
    steps: int
    rejected: int = 0
    dense: Dense | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        batch = self.q.shape[1:-1]
        many = f", batch {batch}" if batch else ""
        return (
            f"<Simulation of '{self.model.name}': {self.t[-1] - self.t[0]:.6g} s in {self.steps} "
            f"steps of {self.scheme} in (q, {self.variables}), {len(self.t)} knots{many}, "
            f"{self.engine}>"
        )

    def __call__(self, t: ArrayLike) -> tuple[Array, Array]:
        """q (n, ..., nq) and v (n, ..., nv) at times (n,), or without that axis at one time [s].

        Schemes that choose their steps know the motion between them to the accuracy that they aim
        at. For others it is the cubic through the states and velocities of two knots, whose error
        is of the fourth order in the distance of knots for q, of the third for v.

        Raises:
            ArgumentError: A time lies outside the simulation.
        """
        times = np.asarray(t, dtype=float)
        flat = np.atleast_1d(times)
        first, last = self.t[0], self.t[-1]
        room = 1e-12 * max(abs(first), abs(last))
        if flat.ndim > 1 or not ((flat >= first - room) & (flat <= last + room)).all():
            raise ArgumentError(
                f"t is {np.array2string(flat, threshold=5)}, expected times (n,) from "
                f"{first:.6g} to {last:.6g} s"
            )
        flat = np.clip(flat, first, last)
        q, v = self._cubic(flat) if self.dense is None else self.dense(flat)
        return (q, v) if times.ndim else (q[0], v[0])

    def _cubic(self, times: Array) -> tuple[Array, Array]:
        left = np.clip(np.searchsorted(self.t, times, side="right") - 1, 0, len(self.t) - 2)
        spread = (-1, *(1,) * (self.q.ndim - 1))
        h = (self.t[left + 1] - self.t[left]).reshape(spread)
        s = (times - self.t[left]).reshape(spread) / h
        way = difference(self.model, self.q[left], self.q[left + 1])
        begin = h * self.v[left]
        end = h * coordinate_rate(self.model, way, self.v[left + 1])
        u = s * s * (3 - 2 * s) * way + s * (1 - s) * ((1 - s) * begin - s * end)
        rate = (6 * s * (1 - s) * way + (1 - s) * (1 - 3 * s) * begin - s * (2 - 3 * s) * end) / h
        return integrate(self.model, self.q[left], u), velocity_of(self.model, u, rate)

    def energy(self) -> Array:
        """Kinetic and potential energy (N + 1, ...) [J]."""
        return monitors.energy(self.model, self.q, self.v)

    def momentum(self) -> Array:
        """Spatial momentum (N + 1, ..., 6) [angular; linear] about the world's origin."""
        return monitors.momentum(self.model, self.q, self.v)

    def drift(self) -> Drift:
        """How far energy and momentum are from where they started."""
        return monitors.drift(self.t, self.energy(), self.momentum())
