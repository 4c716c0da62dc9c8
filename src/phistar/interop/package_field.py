# SPDX-License-Identifier: BSD-3-Clause
"""Quantities of one robot on arrays of a package, and the package's arithmetic, for rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from phistar.interop.array_values import ArrayModule, Choice, Choices, V
from phistar.interop.quantities import Calculation, calculation
from phistar.interop.tangents import ArrayNamespace, ConfigurationSpace
from phistar.model.kinematic_loops import active_loops
from phistar.robot import Robot


class Calculated(Protocol):
    """A quantity as a package knows it; ``made`` is what it is."""

    @property
    def made(self) -> Calculation:
        """What it is."""


C = TypeVar("C", bound=Calculated, covariant=True)


class PackageField(ABC, Generic[V, C]):
    """A ``derivative_rules.Field`` of a package.

    Attributes:
        robot: Whose quantities are called.
        nv: Size of joint vectors.
        on_loops: Whether the robot has active loops.
        space: Its configurations.
    """

    def __init__(
        self, robot: Robot, xp: ArrayModule[V], concatenate: Callable[[Sequence[V]], V]
    ) -> None:
        self.robot = robot
        self.nv = robot.nv
        self.on_loops = bool(active_loops(robot.model.loops))
        self.space = ConfigurationSpace(robot.model, ArrayNamespace(xp, concatenate))
        self._xp = xp
        self._known: dict[tuple[object, ...], C] = {}

    @abstractmethod
    def call(self, name: str, *arrays: V, **choices: Choice) -> Sequence[V]:
        """See ``Field``."""

    @abstractmethod
    def eye(self, size: int, like: V) -> V:
        """See ``Field``."""

    @abstractmethod
    def _adapted(self, made: Calculation) -> C:
        """A quantity as the package knows it."""

    def calculation(self, name: str, choices: Choices) -> C:
        """A quantity; the same object for the same choices.

        Raises:
            UnknownNameError: No such quantity, choice or frame.
            ArgumentError: A choice is missing, or there is no such quantity on this robot.
        """
        named = ((k, tuple(x) if isinstance(x, list) else x) for k, x in choices.items())
        key = (name, *sorted(named))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._adapted(calculation(self.robot, name, **choices))
        return found

    def names(self, name: str, **choices: Choice) -> tuple[Sequence[str], Sequence[str]]:
        """See ``Field``."""
        made = self.calculation(name, choices).made
        return made.results, made.arguments

    def einsum(self, text: str, *arrays: V) -> V:
        """See ``Field``."""
        return self._xp.einsum(text, *arrays)

    def moveaxis(self, x: V, source: int, target: int) -> V:
        """See ``Field``."""
        return self._xp.moveaxis(x, source, target)

    def zeros_like(self, x: V) -> V:
        """See ``Field``."""
        return self._xp.zeros_like(x)

    def stack(self, entries: Sequence[V]) -> V:
        """See ``Field``."""
        return self._xp.stack(list(entries), -1)
