# SPDX-License-Identifier: BSD-3-Clause
"""Conserved quantities: energy and momentum along a motion, and their drift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from phistar import energies
from phistar.arrays import Array
from phistar.joint_physics.passive_forces import spring_energy
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.model.numpy_kinematics import body_poses
from phistar.sim.divergence import map_finite_samples
from phistar.thresholds import POLICY


@dataclass(frozen=True)
class ConservedQuantities:
    """Quantities that a motion conserves.

    Attributes:
        energy: Whether no force but gravity does work.
        momentum: (6, 6) projection of the momentum [angular; linear] onto its conserved part.
        names: Conserved part of angular and of linear momentum, in words; empty if none.
    """

    energy: bool
    momentum: Array
    names: tuple[str, str]


@dataclass(frozen=True)
class Drift:
    """Deviation of energy and momentum from their first values.

    Attributes:
        t: (N + 1,) times [s].
        energy: (N + 1, ...) total energy less its first value [J].
        momentum: (N + 1, ..., 6) momentum less its first value [angular; linear].
        energy_scale: (...) largest magnitude of the energy [J].
        momentum_scale: (..., 2) largest magnitudes of angular and linear momentum; the angular one
            is at least that of the linear one at the first state's radius of gyration, so that
            rounding is small beside it when a robot falls without turning.
        kept: What the motion should conserve.
    """

    t: Array
    energy: Array
    momentum: Array
    energy_scale: Array
    momentum_scale: Array
    kept: ConservedQuantities

    @property
    def relative_energy(self) -> float:
        """Largest drift of energy relative to the largest energy; worst of the batch.

        Samples that diverged do not count.
        """
        worst = np.abs(self.energy).max(axis=0)
        return _worst(worst / np.maximum(self.energy_scale, np.finfo(float).tiny))

    @property
    def relative_momentum(self) -> tuple[float, float]:
        """The same for angular and linear momentum, whether or not they are conserved."""
        return self._relative(self.momentum)

    def _relative(self, momentum: Array) -> tuple[float, float]:
        parts = np.stack([momentum[..., :3], momentum[..., 3:]], axis=-2)
        worst = np.linalg.norm(parts, axis=-1).max(axis=0)
        ratio = worst / np.maximum(self.momentum_scale, np.finfo(float).tiny)
        return _worst(ratio[..., 0]), _worst(ratio[..., 1])

    @property
    def relative(self) -> dict[str, float]:
        """Drifts of the conserved quantities by name, relative to the largest values.

        With gravity a floating robot conserves its momentum across gravity and its angular momentum
        about gravity's direction; a robot with a fixed base conserves no momentum.
        """
        drifts = {"energy": self.relative_energy} if self.kept.energy else {}
        parts = self._relative(self.momentum @ self.kept.momentum)
        drifts |= {name: value for name, value in zip(self.kept.names, parts, strict=True) if name}
        return drifts

    def __str__(self) -> str:
        lost = np.isnan(self.energy[-1])
        listed = ", ".join(f"{name} {part:.2e}" for name, part in self.relative.items())
        worst = "relative, worst" if lost.ndim else "relative"
        text = (
            f"{listed} ({worst})" if listed else "nothing that this motion would have to conserve"
        )
        if lost.any():
            text += f"; {lost.sum()} of {lost.size} diverged, left out"
        return f"drift over {self.t[-1] - self.t[0]:.6g} s: {text}"

    __repr__ = __str__


def _worst(ratio: Array) -> float:
    """The largest, without diverged samples; zero if none remain."""
    return float(np.max(ratio, where=~np.isnan(ratio), initial=0.0))


def conserved_quantities(
    model: Model, tau: Array, external: bool, worked: bool = False
) -> ConservedQuantities:
    """What a motion conserves under joint forces (..., nv).

    Args:
        model: The robot.
        tau: Joint forces, NaN where there is no sample.
        external: Whether wrenches act on frames.
        worked: Whether springs, damping, friction or limits of the joints did.
    """
    is_driven = np.nan_to_num(np.abs(tau)).reshape(-1, model.nv).max(axis=0, initial=0.0) > 0
    kept = not (external or worked or is_driven.any())
    nothing = ConservedQuantities(kept, np.zeros((6, 6)), ("", ""))
    roots = [body for body in model.bodies if body.parent == GROUND]
    free = all(body.joint_kind.nv == 6 and not any(body.armature) for body in roots)
    if external or not roots or not free or any(is_driven[body.v_slice].any() for body in roots):
        return nothing
    size = np.linalg.norm(model.gravity)
    if size == 0.0:
        return ConservedQuantities(
            nothing.energy, np.eye(6), ("angular momentum", "linear momentum")
        )
    down = np.outer(model.gravity, model.gravity) / size**2
    conserved = np.block([[down, np.zeros((3, 3))], [np.zeros((3, 3)), np.eye(3) - down]])
    names = ("angular momentum about gravity", "linear momentum across gravity")
    return ConservedQuantities(nothing.energy, conserved, names)


def energy(model: Model, q: Array, v: Array, springs: bool = False) -> Array:
    """Kinetic and potential energy (N + 1, ...) [J] along a motion, with that of springs or not."""

    def total(some_q: Array, some_v: Array) -> Array:
        found = energies.kinetic_energy(model, some_q, some_v)
        found = found + energies.potential_energy(model, some_q)
        return found + spring_energy(model, some_q) if springs else found

    return map_knots(model, total, q, v)


def momentum(model: Model, q: Array, v: Array) -> Array:
    """Spatial momentum (N + 1, ..., 6) about the world's origin along a motion."""
    return map_knots(model, partial(energies.momentum, model), q, v)


def map_knots(model: Model, function: Callable[[Array, Array], Array], q: Array, v: Array) -> Array:
    """A function of states along a motion, in groups of knots so that memory stays bounded.

    NaN where there is no state.
    """
    knots = max(1, POLICY.monitor_numbers_per_chunk // max(1, v[0].size))
    starts = range(0, len(q), knots)
    parts = ((q[k : k + knots], v[k : k + knots]) for k in starts)
    return np.concatenate([map_finite_samples(model, function, *part) for part in parts])


def drift(
    t: Array, energies: Array, momenta: Array, kept: ConservedQuantities, radius: Array
) -> Drift:
    """The drift of energies (N + 1, ...) and momenta (N + 1, ..., 6).

    Args:
        t: (N + 1,) [s].
        energies, momenta: Along the motion.
        kept: What is conserved.
        radius: (...) of gyration [m].
    """
    parts = np.stack([momenta[..., :3], momenta[..., 3:]], axis=-2)
    largest = np.linalg.norm(parts, axis=-1).max(axis=0)
    angular = np.maximum(largest[..., 0], radius * largest[..., 1])
    return Drift(
        t,
        energies - energies[0],
        momenta - momenta[0],
        np.abs(energies).max(axis=0),
        np.stack([angular, largest[..., 1]], axis=-1),
        kept,
    )


def radius_of_gyration(model: Model, q: Array) -> Array:
    """(...) [m] of all centres of mass about the world's origin."""
    inertias = np.asarray(model.inertias)
    masses = inertias[:, 0]
    centres = inertias[:, 1:4] / np.where(masses > 0.0, masses, 1.0)[:, None]
    poses = body_poses(model, q)
    at = (poses[..., :3, :3] @ centres[:, :, None])[..., 0] + poses[..., :3, 3]
    total = max(float(masses.sum()), np.finfo(float).tiny)
    return np.asarray(np.sqrt((masses * (at**2).sum(axis=-1)).sum(axis=-1) / total))
