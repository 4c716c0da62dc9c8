# SPDX-License-Identifier: BSD-3-Clause
"""The record of a robot under a law: energies, Lyapunov function, error, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from phistar.arrays import Array
from phistar.control.law import Law

MAX_SETTLED_SPEED = 1e-2
"""Speed below which a robot that is at its goal stays there [rad/s, m/s]."""
MAX_REST_SPEED = 1e-3
"""Speed below which a robot elsewhere is at rest; it must not gain that within 0.1 s either."""
MIN_SIGHT = 1e-4
"""Fraction of the error that joint forces can act on, below which a pose is singular."""
MAX_RELATIVE_RISE = 1e-9
"""Rise of a Lyapunov function, relative to its first value, that counts as rounding."""

MAX_MOTIONS_PRINTED = 10
"""Largest number of motions of a batch that are printed."""

REACHED = "reached"
SINGULAR = "stalled at a singular pose"
LIMITED = "stalled at the limits of forces"
GRAVITY = "stalled by gravity, which is not compensated"
STALLED = "stalled"
MOVING = "moving"


@dataclass(frozen=True)
class Regulation:
    """A motion under a law; time is the first axis, batch axes follow, as in a ``Trajectory``.

    Attributes:
        law: The law.
        t: (N + 1,) times [s].
        q: (N + 1, ..., nq) configurations.
        v: (N + 1, ..., nv) velocities.
        tau: (N + 1, ..., nv) joint forces, within the limits.
        error: (N + 1, ...) size of the law's error.
        lyapunov: (N + 1, ...) the law's Lyapunov function.
        kinetic, potential: (N + 1, ...) energies [J].
        saturated: (N + 1, ..., nv) where the forces of the law exceed the limits.
        singular_value: (N + 1, ...) smallest singular value of the Jacobian that the law uses; NaN
            if it uses none.
        sight: (N + 1, ...) from 0 to 1, how well the joints can act on the error; 0 at a singular
            pose.
        outcome: (...) of words, how each motion ended: ``"reached"``, ``"stalled at a singular
            pose"``, ``"stalled at the limits of forces"``, ``"stalled by gravity, which is not
            compensated"``, ``"stalled"`` or ``"moving"``.
        tolerance: Size of the error that counts as reached.
    """

    law: Law = field(repr=False)
    t: Array
    q: Array
    v: Array
    tau: Array
    error: Array
    lyapunov: Array
    kinetic: Array
    potential: Array
    saturated: Array
    singular_value: Array
    sight: Array
    outcome: Array
    tolerance: float

    @property
    def reached(self) -> Array:
        """(...) whether the error ended within the tolerance, at rest."""
        return np.asarray(self.outcome == REACHED)

    @property
    def rise(self) -> Array:
        """(...) largest rise of the Lyapunov function above an earlier value, over its first."""
        least = np.minimum.accumulate(self.lyapunov, axis=0)
        scale = np.where(self.lyapunov[0] > 0, self.lyapunov[0], 1.0)
        return np.asarray((self.lyapunov - least).max(axis=0) / scale)

    @property
    def monotone(self) -> Array:
        """(...) whether the Lyapunov function never rose by more than rounding."""
        return np.asarray(self.rise <= MAX_RELATIVE_RISE)

    def __str__(self) -> str:
        lines = [f"{self.law.name} of robot '{self.law.robot.name}', {self.t[-1]:.4g} s:"]
        lines += [
            self.describe(*index)
            for index in islice(np.ndindex(self.outcome.shape), MAX_MOTIONS_PRINTED)
        ]
        if self.outcome.size > MAX_MOTIONS_PRINTED:
            lines.append(f"... and {self.outcome.size - MAX_MOTIONS_PRINTED} more")
        return "\n".join(lines) if len(lines) > 2 else " ".join(lines)

    __repr__ = __str__

    def describe(self, *index: int) -> str:
        """One motion of the batch in words."""
        at: tuple[slice | int, ...] = (slice(None), *index)
        error, V = self.error[at], self.lyapunov[at]
        name = f"[{', '.join(map(str, index))}] " if index else ""
        text = f"{name}{self.outcome[index]}; error {error[0]:.4g} to {error[-1]:.3g}"
        trend = (
            "never rising" if self.monotone[index] else f"rising by {self.rise[index]:.2g} of it"
        )
        text += f"; Lyapunov function {V[0]:.4g} to {V[-1]:.3g}, {trend}"
        if self.outcome[index] == SINGULAR:
            text += (
                f"; no joint force acts on the error (smallest singular value "
                f"{self.singular_value[at][-1]:.2g})"
            )
        if self.saturated[at].any():
            share = self.saturated[at].any(axis=-1).mean()
            text += f"; limits of forces met {100 * share:.3g} % of the time"
        return text


def record(law: Law, t: Array, q: Array, v: Array, tolerance: float) -> Regulation:
    """The record of a motion, computed for all knots at once."""
    saturated = law.saturated(law.demand(q, v))
    tau = law.forces(q, v)
    error = np.linalg.norm(law.error(q, v), axis=-1)
    sight = law.sight(q, v)
    vdot = law.robot.forward_dynamics(q[-1], v[-1], tau[-1])
    speed = np.abs(v[-1]).max(axis=-1, initial=0.0)
    soon_speed = np.maximum(speed, 0.1 * np.abs(vdot).max(axis=-1, initial=0.0))
    has_weight = np.abs(law.robot.gravity_force(q[-1])).max(axis=-1, initial=0.0) > 0
    outcome = np.select(
        [
            (error[-1] <= tolerance) & (speed < MAX_SETTLED_SPEED),
            soon_speed >= MAX_REST_SPEED,
            sight[-1] < MIN_SIGHT,
            saturated[-1].any(axis=-1),
            has_weight & (not law.gravity),
        ],
        [REACHED, MOVING, SINGULAR, LIMITED, GRAVITY],
        STALLED,
    )
    return Regulation(
        law=law,
        t=t,
        q=q,
        v=v,
        tau=tau,
        error=error,
        lyapunov=law.lyapunov(q, v),
        kinetic=law.robot.kinetic_energy(q, v),
        potential=law.robot.potential_energy(q),
        saturated=saturated,
        singular_value=law.singular_value(q),
        sight=sight,
        outcome=outcome,
        tolerance=tolerance,
    )
