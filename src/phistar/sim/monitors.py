# SPDX-License-Identifier: BSD-3-Clause
"""What a free motion keeps: energy and momentum along it, and how far they drift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar import energies
from phistar.model.model import Model

Array = NDArray[Any]

AT_ONCE = 1 << 20
"""Numbers of v that are looked at together: energies of links take ten times the memory."""


@dataclass(frozen=True)
class Drift:
    """How far energy and momentum move away from their first values.

    Attributes:
        t: (N + 1,) times [s].
        energy: (N + 1, ...) total energy less its first value [J].
        momentum: (N + 1, ..., 6) momentum less its first value [angular; linear].
        energy_scale: (...) largest energy that was seen, in size [J].
        momentum_scale: (..., 2) largest angular and linear momentum that was seen.
    """

    t: Array
    energy: Array
    momentum: Array
    energy_scale: Array
    momentum_scale: Array

    @property
    def relative_energy(self) -> float:
        """The largest drift of energy, as a part of the largest energy; worst of the batch."""
        worst = np.abs(self.energy).max(axis=0)
        return float(np.max(worst / np.maximum(self.energy_scale, np.finfo(float).tiny)))

    @property
    def relative_momentum(self) -> tuple[float, float]:
        """The same for angular and linear momentum; of use where no outside force acts."""
        parts = np.stack([self.momentum[..., :3], self.momentum[..., 3:]], axis=-2)
        worst = np.linalg.norm(parts, axis=-1).max(axis=0)
        ratio = worst / np.maximum(self.momentum_scale, np.finfo(float).tiny)
        return float(np.max(ratio[..., 0])), float(np.max(ratio[..., 1]))

    def __str__(self) -> str:
        angular, linear = self.relative_momentum
        return (
            f"drift over {self.t[-1] - self.t[0]:.6g} s: energy {self.relative_energy:.2e}, "
            f"angular momentum {angular:.2e}, linear momentum {linear:.2e} (relative, worst)"
        )


def energy(model: Model, q: Array, v: Array) -> Array:
    """Kinetic and potential energy (N + 1, ...) [J] along a motion."""

    def total(some_q: Array, some_v: Array) -> Array:
        kinetic = energies.kinetic_energy(model, some_q, some_v)
        return kinetic + energies.potential_energy(model, some_q)

    return along(total, q, v)


def momentum(model: Model, q: Array, v: Array) -> Array:
    """Spatial momentum (N + 1, ..., 6) about the world's origin along a motion."""
    return along(lambda some_q, some_v: energies.momentum(model, some_q, some_v), q, v)


def along(function: Callable[[Array, Array], Array], q: Array, v: Array) -> Array:
    """A function of states along a motion, so many knots at a time that memory does not grow."""
    knots = max(1, AT_ONCE // max(1, v[0].size))
    starts = range(0, len(q), knots)
    return np.concatenate([function(q[k : k + knots], v[k : k + knots]) for k in starts])


def drift(t: Array, energies: Array, momenta: Array) -> Drift:
    """The drift of energies (N + 1, ...) and momenta (N + 1, ..., 6)."""
    parts = np.stack([momenta[..., :3], momenta[..., 3:]], axis=-2)
    return Drift(
        t,
        energies - energies[0],
        momenta - momenta[0],
        np.abs(energies).max(axis=0),
        np.linalg.norm(parts, axis=-1).max(axis=0),
    )
