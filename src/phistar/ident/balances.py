# SPDX-License-Identifier: BSD-3-Clause
"""Equations without accelerations: balances of momentum and of energy over windows of a log.

Over a window from t₁ to t₂ the joint momentum p = 𝓜v and the energy E = T + U obey

    p(t₂) - p(t₁) = ∫ (τ - friction + ∂T/∂q - ∂U/∂q) dt,      E(t₂) - E(t₁) = ∫ vᵀ(τ - friction) dt,

both linear in the same parameters as τ. All of them come from the compiled regressor Y(q, v, v̇):
𝓜v is Y(q, 0, v) - Y(q, 0, 0), ∂U/∂q is Y(q, 0, 0), T is half of vᵀ𝓜v; and as forces of velocity
are a quadratic form Γ(v, v) with ∂T/∂q_i = v·Γ(e_i, v), three values of it give ∂T/∂q_i exactly.
Integrals are by the trapezoidal rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.ident.base_parameters import BaseParameters
from phistar.ident.columns import PER_BODY, Columns
from phistar.ident.row_blocks import RowBlock
from phistar.model.numpy_kinematics import body_poses
from phistar.robot import Robot


@dataclass(frozen=True, eq=False)
class _Windows:
    """Windows of a log, one after the other, each with its last sample the next one's first.

    Attributes:
        base: The base parameters.
        q, v, tau: (N, nq), (N, nv), (N, nv).
        dt: Time between samples [s].
        window: Steps of a window.
    """

    base: BaseParameters
    q: Array
    v: Array
    tau: Array
    dt: float
    window: int

    def __post_init__(self) -> None:
        require_single_axes(self.base.columns.robot)
        if self.window < 1 or self.window >= len(self.q):
            raise ArgumentError(
                f"window is {self.window} steps, expected 1 to {len(self.q) - 1} of this log"
            )

    @property
    def samples(self) -> int:
        """Windows."""
        return (len(self.q) - 1) // self.window

    @cached_property
    def _full(self) -> Columns:
        """Every column of the robot, to know what is not identified."""
        robot = self.base.columns.robot
        return Columns.of(robot, friction=True, rotors=True, springs=True)

    @cached_property
    def _wanted(self) -> Array:
        """Where the columns of the base parameters are among all."""
        place = {name: i for i, name in enumerate(self._full.names)}
        return np.array([place[self.base.columns.names[i]] for i in self.base.kept], dtype=int)

    @cached_property
    def _fixed(self) -> Array:
        """(columns,) the robot's own values of all that is not identified, zero elsewhere."""
        chosen = set(self.base.columns.names)
        known = [name not in chosen for name in self._full.names]
        return np.where(known, self._full.values, 0.0)

    def _cut(self, first: int, last: int) -> tuple[Array, Array, Array]:
        """States and forces of windows."""
        own = slice(first * self.window, last * self.window + 1)
        return self.q[own], self.v[own], self.tau[own]

    def _integral(self, values: Array) -> Array:
        """(windows, ...) integrals of samples (windows * window + 1, ...)."""
        steps = 0.5 * self.dt * (values[1:] + values[:-1])
        return np.asarray(steps.reshape(-1, self.window, *steps.shape[1:]).sum(axis=1))

    def _ends(self, values: Array) -> Array:
        """(windows, ...) differences from end to begin."""
        return np.diff(values[:: self.window], axis=0)


class MomentumEquations(_Windows):
    """A row per window and joint, from the balance of momentum."""

    @property
    def signal(self) -> str:
        """Changes of joint momentum less what is known."""
        return "momentum"

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the joints."""
        return self.base.columns.robot.joint_names

    @property
    def support(self) -> tuple[Array, ...]:
        """Base parameters of each row."""
        return self.base.support

    def rows(self, first: int, last: int) -> tuple[list[RowBlock], Array]:
        """Rows [Δp - ∫(∂T/∂q - ∂U/∂q - friction) | ∫τ] of each joint."""
        q, v, tau = self._cut(first, last)
        columns, zero = self._full, np.zeros_like(v)
        resisting = columns.at(q, zero, zero).dense()
        resisting[:, :, columns.inertial :] = force_columns(columns, q, v)[:, :, columns.inertial :]
        moved = self._ends(momentum_columns(columns, q, v))
        whole = moved + self._integral(resisting - velocity_columns(columns, q, v))
        wanted = self._integral(tau) - whole @ self._fixed
        found = [
            RowBlock.of(np.column_stack([whole[:, entry, self._wanted[own]], wanted[:, entry]]))
            for entry, own in enumerate(self.support)
        ]
        return found, np.ones(wanted.shape, dtype=bool)


class EnergyEquations(_Windows):
    """A row per window, from the balance of energy: no force of a single joint is needed."""

    @property
    def signal(self) -> str:
        """Changes of energy less what is known."""
        return "energy"

    @property
    def groups(self) -> tuple[str, ...]:
        """One."""
        return ("energy",)

    @property
    def support(self) -> tuple[Array, ...]:
        """All base parameters; those that do no work have a column of zeros."""
        return (np.arange(len(self.base)),)

    def rows(self, first: int, last: int) -> tuple[list[RowBlock], Array]:
        """Rows [ΔE + ∫ vᵀ friction | ∫ vᵀτ]."""
        q, v, tau = self._cut(first, last)
        columns = self._full
        lost = np.einsum("nj,njp->np", v, force_columns(columns, q, v))
        whole = self._ends(energy_columns(columns, q, v)) + self._integral(lost)
        wanted = self._integral(np.sum(v * tau, axis=-1)) - whole @ self._fixed
        rows = np.column_stack([whole[:, self._wanted], wanted])
        return [RowBlock.of(rows)], np.ones((len(rows), 1), dtype=bool)


def momentum_columns(columns: Columns, q: Array, v: Array) -> Array:
    """(N, nv, columns) joint momentum 𝓜v per unit of each parameter; friction has none."""
    zero = np.zeros_like(v)
    found = columns.at(q, zero, v).dense() - columns.at(q, zero, zero).dense()
    return _without_friction(columns, found)


def energy_columns(columns: Columns, q: Array, v: Array) -> Array:
    """(N, columns) kinetic and potential energy per unit of each parameter; springs not."""
    kinetic: Array = 0.5 * np.einsum("nj,njp->np", v, momentum_columns(columns, q, v))
    gravity = columns.robot.model.gravity
    poses = body_poses(columns.robot.model, q)
    for place, k in enumerate(columns.bodies):
        start = PER_BODY * place
        kinetic[:, start] -= poses[:, k, :3, 3] @ gravity
        kinetic[:, start + 1 : start + 4] -= np.einsum("nij,i->nj", poses[:, k, :3, :3], gravity)
    return kinetic


def velocity_columns(columns: Columns, q: Array, v: Array) -> Array:
    """(N, nv, columns) ∂T/∂q per unit of each inertial parameter, by v·Γ(e_i, v)."""
    zero = np.zeros_like(v)
    rest = columns.at(q, zero, zero).bodies

    def form(w: Array) -> Array:
        """Γ(w, w) (N, nv, 10 bodies)."""
        return np.asarray(columns.robot.regressor(q, w, zero) - rest)

    own = form(v)
    result = np.zeros((len(q), columns.robot.nv, len(columns)))
    for i, unit in enumerate(np.eye(columns.robot.nv)):
        both = 0.5 * (form(v + unit) - own - form(np.broadcast_to(unit, v.shape)))
        result[:, i, : columns.inertial] = np.einsum(
            "nj,njp->np", v, both[:, :, columns.inertial_entries]
        )
    return result


def force_columns(columns: Columns, q: Array, v: Array) -> Array:
    """(N, nv, columns) those that are forces at a state: damping, friction, offset, spring."""
    found = columns.at(q, v, np.zeros_like(v)).dense()
    found[:, :, : columns.inertial] = 0.0
    return found


def _without_friction(columns: Columns, found: Array) -> Array:
    """Columns of inertia and rotors."""
    for k, kind in enumerate(columns.kinds):
        if kind != "rotor":
            start = columns.inertial + k * len(columns.joints)
            found[..., start : start + len(columns.joints)] = 0.0
    return found


def require_single_axes(robot: Robot) -> None:
    """Raise unless all joints turn or slide along one axis."""
    model = robot.model
    several = [n for n in model.joint_names if model.joints[n].joint_kind.nv != 1]
    if several or robot.nq != robot.nv:
        raise ArgumentError(
            f"balances of '{robot.name}': joint '{several[0]}' has several axes, and momentum in "
            "its coordinates is not that of its velocities; identify by torques, with accelerations"
        )


BALANCES: Mapping[str, type[MomentumEquations] | type[EnergyEquations]] = {
    "momentum": MomentumEquations,
    "energy": EnergyEquations,
}
"""Equations without accelerations by name."""
