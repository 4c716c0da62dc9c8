# SPDX-License-Identifier: BSD-3-Clause
"""Variables x for the velocity in a state (q, x), and their dynamics.

v       x = v           v̇ = forward dynamics
zeta    x = ζ = L*v     ζ̇ = D⁻¹(κ - C_ζ - κ_g): total joint rates, no matrix root
eta     x = η = R*L*v   η̇ = ε - C - ε_g: half the sum of η² is the kinetic energy
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from phistar import dynamics
from phistar.arrays import Array
from phistar.compile import cheapest_equivalent, embedded_request, is_embedded
from phistar.diagonal.forward import diagonal_forward_dynamics
from phistar.diagonal.state import diagonalize
from phistar.errors import UnknownNameError
from phistar.joint_physics.implicit import implicit_acceleration
from phistar.joint_physics.passive_forces import passive_force_unchecked
from phistar.loops.held import NOT_HELD, Held
from phistar.model.model import Model
from phistar.model.wrenches import Wrenches


@dataclass(frozen=True)
class RatePrograms:
    """Compiled programs that give the rates of a state.

    Attributes:
        rates: Name of the program that gives ẋ, and v unless that is x itself.
        velocity: Name of the program that gives v alone; None if v is x.
        names: Catalogue names of ``q``, ``x``, the joint forces ``tau``, ``v`` and ẋ, here ``a``.
        wrenches: On frames, the same at all times in the axes of their reference.
        smooth: Springs and dampers that push as they do at each stage.
        choices: Of the program that gives ẋ, if it is a traced one.
    """

    rates: str
    velocity: str | None
    names: Mapping[str, str]
    wrenches: Wrenches | None = None
    smooth: tuple[str, ...] = ()
    choices: tuple[object, ...] | None = None

    @property
    def is_traced(self) -> bool:
        """Whether there is one unrolled program of the rates, in the robot's own coordinates."""
        return self.choices is not None or is_embedded(self.rates)


@dataclass(frozen=True)
class Variable(ABC):
    """A variable x for the velocity of a robot under forces on its frames.

    Attributes:
        model: The robot.
        wrenches: On its frames.
        smooth: Springs and dampers of its joints that push.
    """

    model: Model
    wrenches: Wrenches | None = None
    smooth: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether what acts belongs to samples of the batch, so that none can be left out."""
        return self.wrenches is not None and self.wrenches.differ

    def held_at(self, t: float) -> Held:
        """Motion that is told at a time [s]: here none."""
        return NOT_HELD

    def of_samples(self, chosen: Array) -> Self:
        """The same for some samples of a batch, by number."""
        wrenches = self.wrenches
        if wrenches is None or not wrenches.differ:
            return self
        return replace(self, wrenches=wrenches.of_samples(chosen))

    def total_force(self, q: Array, v: Array, tau: Array) -> Array:
        """Joint forces with those of springs and dampers."""
        return tau + passive_force_unchecked(self.model, q, v, self.smooth) if self.smooth else tau

    @property
    def program(self) -> RatePrograms | None:
        """The rates as compiled programs, or None."""
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

    def rate_at(self, q: Array, x: Array, tau: Array, t: float) -> tuple[Array, Array]:
        """``rate`` at a time [s]: here always the same."""
        return self.rate(q, x, tau)

    @property
    def settles(self) -> bool:
        """Whether steps have to be settled."""
        return False

    def settle(self, q: Array, x: Array, t: float | Array) -> tuple[Array, Array]:
        """The state that a step to q and x leaves, NaN where there is none: here the same.

        Args:
            q: (..., nq).
            x: (..., nv).
            t: [s]; or (n,), for states (n, ..., nq).
        """
        return q, x


class Velocity(Variable):
    """x = v."""

    @property
    def program(self) -> RatePrograms | None:
        """Forward dynamics; over nodes, without wrenches, where mimic joints are reduced."""
        names = {"q": "q", "v": "x", "tau": "tau", "vdot": "a"}
        on_nodes = embedded_request("forward_dynamics", self.model)
        if is_embedded(on_nodes):
            found = RatePrograms(on_nodes, None, names, smooth=self.smooth)
            return found if self.wrenches is None else None
        name = cheapest_equivalent("forward_dynamics")
        return RatePrograms(name, None, names, self.wrenches, self.smooth)

    def start(self, q: Array, v: Array) -> Array:
        """v."""
        return v

    def velocity(self, q: Array, x: Array) -> Array:
        """x."""
        return x

    def rate(self, q: Array, x: Array, tau: Array) -> tuple[Array, Array]:
        """v and forward dynamics."""
        total = self.total_force(q, x, tau)
        return x, dynamics.forward_dynamics(self.model, q, x, total, self.wrenches)


@dataclass(frozen=True)
class ImplicitVelocity(Velocity):
    """x = v, its rate the change over a step with springs and dampers at its end.

    Attributes:
        dt: Length of the step [s], or (..., 1), one for each sample.
    """

    dt: float | Array = 0.0

    @property
    def program(self) -> RatePrograms | None:
        """Forward dynamics with heavier joints; none with forces on frames."""
        if self.wrenches is not None:
            return None
        names = {"q": "q", "v": "x", "tau": "tau", "dt": "h", "vdot": "a"}
        return RatePrograms("implicit_dynamics", None, names, choices=(self.smooth,))

    def rate(self, q: Array, x: Array, tau: Array) -> tuple[Array, Array]:
        """v and the mean acceleration of the step."""
        parts = self.smooth
        return x, implicit_acceleration(self.model, q, x, tau, self.dt, parts, self.wrenches)


class TotalRate(Variable):
    """x = ζ."""

    @property
    def program(self) -> RatePrograms | None:
        """Forward dynamics in (q, ζ), and the velocity of ζ; none with other forces."""
        if self.wrenches is not None or self.smooth:
            return None
        names = {"q": "q", "zeta": "x", "tau": "tau", "v": "v", "zeta_dot": "a"}
        return RatePrograms("diagonal_dynamics", "old_rates", names)

    def start(self, q: Array, v: Array) -> Array:
        """L*v."""
        return diagonalize(self.model, q).to_zeta(v)

    def velocity(self, q: Array, x: Array) -> Array:
        """L⁻*ζ."""
        return diagonalize(self.model, q).from_zeta(x)

    def rate(self, q: Array, x: Array, tau: Array) -> tuple[Array, Array]:
        """v and ζ̇."""
        if self.smooth:
            tau = self.total_force(q, self.velocity(q, x), tau)
        result = diagonal_forward_dynamics(self.model, q, x, tau, self.wrenches)
        return result.v, result.zeta_dot


class NormalisedRate(Variable):
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
        state = diagonalize(self.model, q)
        v = state.from_eta(x)
        state = state.with_velocity(v)
        gravity_force = dynamics.gravity_force(self.model, q)
        net_force = self.total_force(q, v, tau) - gravity_force
        if self.wrenches is not None:
            net_force = net_force + dynamics.generalised_force(self.model, q, self.wrenches)
        return v, state.to_epsilon(net_force), state.coriolis, gravity_force


VARIABLES: dict[str, type[Variable]] = {"v": Velocity, "zeta": TotalRate, "eta": NormalisedRate}
"""Variables by name."""


def variable(
    name: str, model: Model, wrenches: Wrenches | None = None, smooth: tuple[str, ...] = ()
) -> Variable:
    """A variable of a robot by name.

    Raises:
        UnknownNameError: There is no such variable.
    """
    if name not in VARIABLES:
        raise UnknownNameError("variables", name, VARIABLES)
    return VARIABLES[name](model, wrenches, smooth)
