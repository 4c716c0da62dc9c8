# SPDX-License-Identifier: BSD-3-Clause
"""Which law each row of a step follows, as linear equations, and where another is near.

E_σ δσ + E_λ δλ + (slopes of the bounds) = 0
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.joint_physics.passive_forces import IMAGINARY_STEP
from phistar.scalar import interpret
from phistar.scalar.trace.row_solver import row_bounds
from phistar.sim.batch_state import BatchState
from phistar.sim.contact_points import ContactPoints
from phistar.thresholds import POLICY


@dataclass(frozen=True)
class RowSets:
    """Laws of the rows of a batch.

    Attributes:
        sets, kinks: (batch, joints + pairs), see ``StepLinearization``.
        by_rate: E_σ (batch, rows, rows).
        by_multiplier: E_λ (batch, rows, rows).
        place_slopes, rate_slopes: (batch, joints + pairs) how the first row of each follows its
            coordinate or gap, and the rate of that before the step.
    """

    sets: Array
    kinks: Array
    by_rate: Array
    by_multiplier: Array
    place_slopes: Array
    rate_slopes: Array


def row_sets(
    points: ContactPoints,
    dt: float,
    state: BatchState,
    ahead: BatchState,
    L: Array,
    inverse: Array,
) -> RowSets:
    """The laws that a step found.

    Args:
        points: Pairs and joints with rows.
        dt: Length of the step [s].
        state, ahead: Before and after it.
        L: (batch, rows, nv).
        inverse: (batch, nv, nv) 𝓜ₕ⁻¹.
    """
    return _Finder(points, dt, state, ahead, L, inverse).found()


class _Finder:
    def __init__(
        self,
        points: ContactPoints,
        dt: float,
        state: BatchState,
        ahead: BatchState,
        L: Array,
        inverse: Array,
    ) -> None:
        self.points, self.rows, self.dt = points, points.rows, dt
        count = self.rows.count
        self.batch = len(L)
        self.impulses = ahead.impulses[:, :count]
        self.rates = (L @ ahead.v[..., None])[..., 0]
        delta = L @ inverse @ np.swapaxes(L, 1, 2)
        self.mobility = np.diagonal(delta, axis1=1, axis2=2)
        self.free = self.rates - (delta @ self.impulses[..., None])[..., 0]
        self.places, self.speeds = points.states(state.q, state.v)
        # Velocities below this are none: a fraction of a step of free fall, or of what there is.
        fall = float(np.linalg.norm(points.model.gravity)) * dt
        size = np.abs(self.free).max(axis=-1, initial=0.0, keepdims=True)
        self.little = POLICY.row_set_margin * (size + fall)
        groups = self.places.shape[1]
        self.sets = np.full((self.batch, groups), "", dtype="<U5")
        self.kinks = np.full((self.batch, groups), "", dtype="<U5")
        self.by_rate = np.zeros((self.batch, count, count))
        self.by_multiplier = np.zeros((self.batch, count, count))
        self.slopes = np.zeros((2, self.batch, groups))

    def found(self) -> RowSets:
        """All of it."""
        values, slopes, bent = self._bounds()
        for i in range(len(self.rows.bounded)):
            self._joint(i, values, slopes)
        for k in range(len(self.rows.contacts)):
            self._contact(k, values["approach"][:, k], slopes["approach"][..., k])
        active = (self.sets != "open") & (self.sets != "free") & (self.sets != "rubs")
        self.kinks[active & bent & (self.kinks == "")] = "gap"
        return RowSets(
            self.sets, self.kinks, self.by_rate, self.by_multiplier, self.slopes[0], self.slopes[1]
        )

    def _bounds(self) -> tuple[dict[str, Array], dict[str, Array], Array]:
        """Bounds of rows, their slopes along places and rates (2, ...), and which have a kink.

        Slopes are those on the inner side of a kink: of penetrations.
        """
        if not self.rows.count:
            return {}, {}, np.zeros((self.batch, 0), dtype=bool)
        program = row_bounds(self.points.model, self.rows)
        near = self.little * self.dt

        def slopes(places: Array) -> dict[str, Array]:
            found = []
            for k in range(2):
                step = 1j * IMAGINARY_STEP * np.array([k == 0, k == 1])
                given = {"places": places + step[0], "rates": self.speeds + step[1]}
                given |= {"free": self.free + 0j, "dt": np.full((self.batch, 1), self.dt + 0j)}
                found.append(interpret.run(program, given))
            return {
                name: np.stack([x[name].imag for x in found]) / IMAGINARY_STEP for name in found[0]
            }

        given = {"places": self.places, "rates": self.speeds, "free": self.free}
        values = interpret.run(program, {**given, "dt": np.full((self.batch, 1), self.dt)})
        outer, inner = slopes(self.places + near), slopes(self.places - near)
        joints = [(outer[x] != inner[x]).any(axis=0) for x in ("lower", "upper")]
        bent = [joints[0] | joints[1], (outer["approach"] != inner["approach"]).any(axis=0)]
        # Upper stops are inside beyond their place, lower ones and gaps below it.
        return values, {**inner, "upper": outer["upper"]}, np.concatenate(bent, axis=-1)

    def _say(self, group: int, where: Array, name: str) -> None:
        self.sets[where, group] = name

    def _kink(self, group: int, where: Array, name: str) -> None:
        self.kinks[where, group] = name

    def _joint(self, i: int, values: dict[str, Array], slopes: dict[str, Array]) -> None:
        """A joint's row: held by friction, at a stop, rubbing or free."""
        row, little = self.rows.bounded[i], self.little[:, 0]
        impulse, rate = self.impulses[:, i], self.rates[:, i]
        largest = row.friction * self.dt
        has_bound = np.where(impulse > 0.0, np.isfinite(row.lower), np.isfinite(row.upper))
        slack = POLICY.row_set_margin * largest
        beyond = np.abs(impulse) > largest + slack
        stop = beyond & has_bound
        held = ~stop & (np.abs(impulse) < largest - slack)
        free = ~stop & ~held
        self._say(i, free, "rubs" if row.friction else "free")
        self._say(i, held, "held")
        self._say(i, stop, "stop")
        self.by_rate[stop | held, i, i] = 1.0
        self.by_multiplier[free, i, i] = 1.0
        lower = stop & (impulse > 0.0)
        for which, name in ((lower, "lower"), (stop & ~lower, "upper")):
            self.slopes[:, which, i] = -slopes[name][:, which, i]
        weak = (np.abs(impulse) - largest) * self.mobility[:, i] <= little
        self._kink(i, stop & weak, "force")
        for side, name, sign in ((row.lower, "lower", 1.0), (row.upper, "upper", -1.0)):
            if np.isfinite(side):
                near = sign * (rate - values[name][:, i]) <= little
                self._kink(i, ~stop & near, "force")
        if row.friction:
            near_cone = (largest - np.abs(impulse)) * self.mobility[:, i] <= little
            self._kink(i, held & near_cone, "slip")
            self._kink(i, free & (np.abs(rate) <= little), "slip")

    def _contact(self, k: int, approach: Array, slopes: Array) -> None:
        """A pair: open, sticking or sliding."""
        first = len(self.rows.bounded)
        group, n, mu = first + k, first + 3 * k, self.rows.contacts[k].friction
        little = self.little[:, 0]
        pushed, tangents = self.impulses[:, n], self.impulses[:, n + 1 : n + 3]
        touching = pushed > 0.0
        size, bound = np.linalg.norm(tangents, axis=-1), mu * pushed
        stick = touching & (size < bound * (1.0 - POLICY.row_set_margin))
        slide = touching & ~stick
        self._say(group, ~touching, "open")
        self._say(group, stick, "stick")
        self._say(group, slide, "slide")
        self.by_rate[touching, n, n] = 1.0
        self.slopes[:, touching, group] = slopes[:, touching]
        self.by_multiplier[~touching, n, n] = 1.0
        for t in (n + 1, n + 2):
            self.by_rate[stick, t, t] = 1.0
            self.by_multiplier[~stick, t, t] = 1.0
        slip = self.rates[:, n + 1 : n + 3]
        speed = np.linalg.norm(slip, axis=-1)
        if mu > 0.0:
            along = slip / np.where(speed > 0.0, speed, 1.0)[:, None]
            across = np.eye(2) - along[:, :, None] * along[:, None, :]
            stiff = (bound / np.where(speed > 0.0, speed, 1.0))[:, None, None] * across
            self.by_multiplier[slide, n + 1 : n + 3, n] = mu * along[slide]
            self.by_rate[slide, n + 1 : n + 3, n + 1 : n + 3] = stiff[slide]
            self._kink(group, slide & (speed <= little), "slip")
            sideways = self.mobility[:, n + 1 : n + 3].max(axis=-1)
            can_slip = sideways > POLICY.row_set_margin * self.mobility[:, n]
            near_cone = (bound - size) * sideways <= little
            self._kink(group, stick & can_slip & near_cone, "slip")
        self._kink(group, touching & (pushed * self.mobility[:, n] <= little), "force")
        closing = self.rates[:, n] + approach
        self._kink(group, ~touching & (closing <= little), "force")
