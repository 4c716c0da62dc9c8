# SPDX-License-Identifier: BSD-3-Clause
"""What can stand for the velocity in a state (q, x), and the dynamics of it.

v       x = v                  ẋ = forward dynamics
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from phistar import dynamics
from phistar.compile import preferred
from phistar.dynamics import Forces
from phistar.errors import UnknownNameError
from phistar.model.model import Model

Array = NDArray[Any]


@dataclass(frozen=True)
class Program:
    """A compiled program that gives the rates of a state.

    Attributes:
        name: Of the catalogue.
        inputs: What it calls the configuration, x and the joint forces: ``q``, ``x``, ``tau``.
        outputs: What it calls the velocity and the rate of x: ``v``, ``a``; a velocity that is
            missing is x itself.
    """

    name: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


class Variable(Protocol):
    """A variable that stands for the velocity."""

    @property
    def program(self) -> Program | None:
        """The rates as a compiled program, or None if there is none."""
        ...

    def start(self, q: Array, v: Array) -> Array:
        """x (..., nv) of a velocity."""
        ...

    def velocity(self, q: Array, x: Array) -> Array:
        """v (..., nv)."""
        ...

    def rate(self, q: Array, x: Array, tau: Array) -> tuple[Array, Array]:
        """v and ẋ, each (..., nv)."""
        ...


@dataclass(frozen=True)
class Velocity:
    """x = v."""

    model: Model
    forces: Forces | None = None
    reference: str = "world_aligned"

    @property
    def program(self) -> Program | None:
        """Forward dynamics; forces on frames change with q and are no part of it."""
        if self.forces:
            return None
        names = {"q": "q", "v": "x", "tau": "tau"}
        return Program(preferred("forward_dynamics"), names, {"vdot": "a"})

    def start(self, q: Array, v: Array) -> Array:
        """v."""
        return v

    def velocity(self, q: Array, x: Array) -> Array:
        """x."""
        return x

    def rate(self, q: Array, x: Array, tau: Array) -> tuple[Array, Array]:
        """v and forward dynamics."""
        return x, dynamics.forward_dynamics(self.model, q, x, tau, self.forces, self.reference)


VARIABLES = {"v": Velocity}
"""Variables by name."""


def variable(
    name: str, model: Model, forces: Forces | None = None, reference: str = "world_aligned"
) -> Variable:
    """A variable of a robot by name.

    Raises:
        UnknownNameError: There is none.
    """
    if name not in VARIABLES:
        raise UnknownNameError("variables", name, VARIABLES)
    return VARIABLES[name](model, forces, reference)
