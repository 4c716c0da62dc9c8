# SPDX-License-Identifier: BSD-3-Clause
"""A robot's state in diagonal rates, and transforms to and from them.

    𝓜 = L D L*          ζ = L* v       κ = L⁻¹ τ       D ζ̇ + C_ζ + κ_g = κ
    D = R R*            η = R* ζ       ε = R⁻¹ κ       η̇ + C + ε_g = ε

R is a root of the small blocks of D, one per joint. Everything is O(n): the transforms are sweeps
over the links, the roots one small matrix per joint.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from phistar.algorithms.diagonal_dynamics import hinge_rate
from phistar.arguments import checked_state, refuse_mimic, refuse_singular
from phistar.arrays import Array
from phistar.compile import Diag, joint_map, kernel, matrix
from phistar.diagonal.blocks import BlockDiagonal
from phistar.diagonal.roots import ROOTS
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.singular import require_pivots
from phistar.reprs import one_line_repr


def diagonalize(
    model: Model, q: Coordinates, v: Coordinates | None = None, root: str = "cholesky"
) -> Diagonal:
    """A state in diagonal rates."""
    if root not in ROOTS:
        raise UnknownNameError("root", root, ROOTS)
    refuse_mimic(model)
    refuse_singular(model)
    if v is None:
        (q,) = checked_state(model, q=q)
        return Diagonal(model, q, None, root)
    q, v = checked_state(model, q=q, v=v)
    return Diagonal(model, q, v, root)


@one_line_repr
@dataclass(frozen=True, eq=False)
class Diagonal:
    """A robot at a configuration, and at a velocity if one was given, in diagonal rates.

    Made by ``robot.diagonalize(q, v)``; computed on first use and cached.

    Attributes:
        model: The robot.
        q: (..., nq).
        v: (..., nv), or None.
        root: Name of the root R of D: ``"cholesky"`` or ``"symmetric"``.
    """

    model: Model = field(repr=False)
    q: Array
    v: Array | None
    root: str

    # -- rates and forces

    @cached_property
    def zeta(self) -> Array:
        """Total joint rates ζ = L*v (..., nv) [rad/s, m/s].

        A joint's own rate plus the effect of its parent's motion through the free joints beyond,
        ζ(k) = v(k) + G*V⁺; the joint's rate if the parent is at rest.
        """
        return self._bias["zeta"]

    @cached_property
    def eta(self) -> Array:
        """Normalised rates η = R*ζ (..., nv) [√J]; the kinetic energy is half the sum of η²."""
        return self._R.T @ self.zeta

    @cached_property
    def coriolis_zeta(self) -> Array:
        """C_ζ (..., nv) in Dζ̇ + C_ζ + κ_g = κ; the forces at constant ζ."""
        return self._bias["coriolis"]

    @cached_property
    def coriolis(self) -> Array:
        """C (..., nv) in η̇ + C + ε_g = ε; it does no work, η*C = 0."""
        return self._R.solve(self.coriolis_zeta) - self._R_rate.T @ self.zeta

    @cached_property
    def gravity_kappa(self) -> Array:
        """The κ (..., nv) that holds the robot at rest against gravity."""
        return self._run_program("new_forces", tau=self._gravity)["kappa"]

    @cached_property
    def gravity_epsilon(self) -> Array:
        """The ε (..., nv) that holds the robot at rest against gravity."""
        return self._R.solve(self.gravity_kappa)

    @property
    def kinetic_energy(self) -> Array:
        """Half the sum of η², (...) [J], that of the rotors included."""
        return np.asarray((self.eta * self.eta).sum(axis=-1) / 2)

    # -- inertia

    @property
    def D(self) -> Array:
        """Block diagonal (..., nv, nv), the inertia at each joint, those beyond it free."""
        return self._D.dense()

    @property
    def D_rate(self) -> Array:
        """Block diagonal (..., nv, nv), dD/dt at the velocity v."""
        return self._D_rate.dense()

    @property
    def R(self) -> Array:
        """Block diagonal (..., nv, nv), the root of D, R R* = D."""
        return self._R.dense()

    @property
    def R_rate(self) -> Array:
        """Block diagonal (..., nv, nv), dR/dt at the velocity v."""
        return self._R_rate.dense()

    # -- other vectors at this configuration

    def to_zeta(self, v: Coordinates) -> Array:
        """ζ = L*v of joint velocities (..., nv)."""
        return self._run_program("new_rates", v=v)["zeta"]

    def from_zeta(self, zeta: Coordinates) -> Array:
        """v = L⁻*ζ, joint velocities (..., nv)."""
        return self._run_program("old_rates", zeta=zeta)["v"]

    def to_eta(self, v: Coordinates) -> Array:
        """η = R*L*v of joint velocities (..., nv)."""
        return self._R.T @ self.to_zeta(v)

    def from_eta(self, eta: Coordinates) -> Array:
        """v = L⁻*R⁻*η, joint velocities (..., nv)."""
        return self.from_zeta(self._R.T.solve(self._read(eta=eta)))

    def to_kappa(self, tau: Coordinates) -> Array:
        """κ = L⁻¹τ of joint forces (..., nv): the forces that remain after those of joints beyond.

        κ(k) = τ(k) - Hz, where z is the force on the link of the joints beyond.
        """
        return self._run_program("new_forces", tau=tau)["kappa"]

    def from_kappa(self, kappa: Coordinates) -> Array:
        """τ = Lκ, joint forces (..., nv)."""
        return self._run_program("old_forces", kappa=kappa)["tau"]

    def to_epsilon(self, tau: Coordinates) -> Array:
        """ε = R⁻¹L⁻¹τ of joint forces (..., nv): η*ε is their power."""
        return self._R.solve(self.to_kappa(tau))

    def from_epsilon(self, epsilon: Coordinates) -> Array:
        """τ = LRε, joint forces (..., nv)."""
        return self.from_kappa(self._R @ self._read(epsilon=epsilon))

    def with_velocity(self, v: Coordinates) -> Diagonal:
        """The same configuration at a velocity (..., nv); cached D and its root are shared."""
        moving = Diagonal(self.model, self.q, self._read(v=v), self.root)
        cached = ("_D", "_R")
        vars(moving).update((name, vars(self)[name]) for name in cached if name in vars(self))
        return moving

    # -- inside

    def _read(self, **vector: Coordinates) -> Array:
        """A vector, checked against the robot and the batch of the configuration."""
        return checked_state(self.model, q=self.q, **vector)[1]

    def _run_program(self, program: str, **vector: Coordinates) -> dict[str, Array]:
        """The outputs of a program at this configuration, over the robot's coordinates."""
        joints, q = joint_map(self.model), self.q
        ((name, _),) = vector.items()
        results = kernel(program, self.model)(
            self.model, q, {name: joints.spread(self._read(**vector))}
        )
        return {output: joints.gather(value) for output, value in results.items()}

    @cached_property
    def _bias(self) -> dict[str, Array]:
        return self._run_program("diagonal_bias", v=self._velocity)

    @property
    def _velocity(self) -> Array:
        if self.v is None:
            raise ArgumentError("rates and Coriolis forces depend on v; ask for diagonalize(q, v)")
        return self.v

    @property
    def _gravity(self) -> Array:
        joints = joint_map(self.model)
        return joints.gather(kernel("gravity_force")(self.model, self.q, {})["tau"])

    @cached_property
    def _D(self) -> BlockDiagonal:
        blocks = matrix("hinge_inertia", Diag(), self.model, self.q)
        require_pivots(self.model, self.q, blocks)
        return BlockDiagonal.of(self.model, blocks, self.q.dtype)

    @cached_property
    def _D_rate(self) -> BlockDiagonal:
        inputs = {"v": joint_map(self.model).spread(self._velocity)}
        blocks = matrix(hinge_rate, Diag(), self.model, self.q, inputs)
        return BlockDiagonal.of(self.model, blocks, np.result_type(self.q, self._velocity))

    @cached_property
    def _R(self) -> BlockDiagonal:
        return self._D.map(ROOTS[self.root].of)

    @cached_property
    def _R_rate(self) -> BlockDiagonal:
        return self._R.map(ROOTS[self.root].rate, self._D_rate)
