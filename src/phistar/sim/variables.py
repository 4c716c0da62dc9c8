# SPDX-License-Identifier: BSD-3-Clause
"""What can stand for the velocity in a state (q, x), and the dynamics of it.

v       x = v           v̇ = forward dynamics
zeta    x = ζ = L*v     ζ̇ = D⁻¹(κ - C_ζ - κ_g): total joint rates, no matrix root
eta     x = η = R*L*v   η̇ = ε - C - ε_g: half the sum of η² is the kinetic energy
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar import dynamics
from phistar.compile import preferred
from phistar.diagonal.forward import diagonal_forward_dynamics
from phistar.diagonal.state import diagonalize
from phistar.dynamics import Forces
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.model import Model

Array = NDArray[Any]


@dataclass(frozen=True)
class Program:
    """Compiled programs that give the rates of a state.

    Attributes:
        rates: Name of the one that gives ẋ, and v unless that is x itself.
        velocity: Name of the one that gives v alone; None if v is x.
        names: What the catalogue calls the configuration, x, the joint forces, v and ẋ: ``q``,
            ``x``, ``tau``, ``v``, ``a``.
    """

    rates: str
    velocity: str | None
    names: Mapping[str, str]


@dataclass(frozen=True)
class Variable(ABC):
    """A variable x that stands for the velocity of a robot under forces on its frames."""

    model: Model
    forces: Forces | None = None
    reference: str = "world_aligned"

    @property
    def program(self) -> Program | None:
        """The rates as compiled programs, or None if there are none.

        Forces on frames change with q and are no part of them.
        """
        return None

    @abstractmethod
    def start(self, q: Array, v: Array) -> Array:
        """x (..., nv) of a velocity."""

    @abstractmethod
    def velocity(self, q: Array, x: Array) -> Array:
        """v (..., nv)."""

    @abstractmethod
    def rate(self, q: Array, x: Array, tau: Array) -> tuple[Array, Array]:
        """v and ẋ, each (..., nv)."""


class Velocity(Variable):
    """x = v."""

    @property
    def program(self) -> Program | None:
        """Forward dynamics."""
        if self.forces:
            return None
        names = {"q": "q", "v": "x", "tau": "tau", "vdot": "a"}
        return Program(preferred("forward_dynamics"), None, names)

    def start(self, q: Array, v: Array) -> Array:
        """v."""
        return v

    def velocity(self, q: Array, x: Array) -> Array:
        """x."""
        return x

    def rate(self, q: Array, x: Array, tau: Array) -> tuple[Array, Array]:
        """v and forward dynamics."""
        return x, dynamics.forward_dynamics(self.model, q, x, tau, self.forces, self.reference)


class Total(Variable):
    """x = ζ."""

    @property
    def program(self) -> Program | None:
        """Forward dynamics in (q, ζ), and the velocity of ζ."""
        if self.forces:
            return None
        names = {"q": "q", "zeta": "x", "tau": "tau", "v": "v", "zeta_dot": "a"}
        return Program("diagonal_dynamics", "old_rates", names)

    def start(self, q: Array, v: Array) -> Array:
        """L*v."""
        return diagonalize(self.model, q).to_zeta(v)

    def velocity(self, q: Array, x: Array) -> Array:
        """L⁻*ζ."""
        return diagonalize(self.model, q).from_zeta(x)

    def rate(self, q: Array, x: Array, tau: Array) -> tuple[Array, Array]:
        """v and ζ̇."""
        found = diagonal_forward_dynamics(self.model, q, x, tau, self.forces, self.reference)
        return found.v, found.zeta_dot


class Normalised(Variable):
    """x = η, by the Cholesky root of D, which NumPy takes between compiled sweeps."""

    def start(self, q: Array, v: Array) -> Array:
        """R*L*v."""
        return diagonalize(self.model, q).to_eta(v)

    def velocity(self, q: Array, x: Array) -> Array:
        """L⁻*R⁻*η."""
        return diagonalize(self.model, q).from_eta(x)

    def rate(self, q: Array, x: Array, tau: Array) -> tuple[Array, Array]:
        """v and η̇."""
        v, net, coriolis, _ = self.terms(q, x, tau)
        return v, net - coriolis

    def terms(self, q: Array, x: Array, tau: Array) -> tuple[Array, Array, Array, Array]:
        """v, ε - ε_g and C of η̇ = ε - ε_g - C, and the joint forces of gravity g."""
        here = diagonalize(self.model, q)
        v = here.from_eta(x)
        here = here.with_velocity(v)
        weight = dynamics.gravity_force(self.model, q)
        push = tau - weight
        if self.forces:
            push = push + dynamics.generalised_force(self.model, q, self.forces, self.reference)
        return v, here.to_epsilon(push), here.coriolis, weight


VARIABLES: dict[str, type[Variable]] = {"v": Velocity, "zeta": Total, "eta": Normalised}
"""Variables by name."""


def variable(
    name: str, model: Model, forces: Forces | None = None, reference: str = "world_aligned"
) -> Variable:
    """A variable of a robot by name.

    Raises:
        UnknownNameError: There is none.
        ArgumentError: Forces are not wrenches (6,): a batch of them has no place in a step.
    """
    if name not in VARIABLES:
        raise UnknownNameError("variables", name, VARIABLES)
    for frame, wrench in (forces or {}).items():
        if np.shape(wrench) != (6,):
            raise ArgumentError(
                f"forces[{frame!r}] has shape {np.shape(wrench)}, expected (6,): one wrench for "
                "all samples and steps"
            )
    return VARIABLES[name](model, forces, reference)
