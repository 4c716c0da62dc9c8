# SPDX-License-Identifier: BSD-3-Clause
"""Components and coordinates of a robot; a mixin of ``Robot``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TypeVar

import numpy as np

from phistar.arrays import Array
from phistar.errors import UnknownNameError
from phistar.model import configuration as space
from phistar.model.bad_samples import nan_where_bad
from phistar.model.components import Frame, Joint, Link, Loop
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.singular import SingularHinge, singular_hinges

T = TypeVar("T")


class Described:
    """Names and components of a robot, and its configuration space."""

    model: Model

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.model.name

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return self.model.nv

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The independent moving joints in the order of their coordinates."""
        return self.model.joint_names

    @property
    def link_names(self) -> tuple[str, ...]:
        """Every link of the file in file order, those merged by fixed joints included."""
        return self.model.link_names

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Every frame that can be named: links first, then extra frames."""
        return self.model.frame_names

    @property
    def joints(self) -> Mapping[str, Joint]:
        """Every joint by name, fixed and mimic ones included, depth first."""
        return _Named("joint", self.model.joints, self.name)

    @property
    def links(self) -> Mapping[str, Link]:
        """Every link by name, in file order."""
        return _Named("link", self.model.link_table, self.name)

    @property
    def frames(self) -> Mapping[str, Frame]:
        """Every frame by name."""
        return _Named("frame", self.model.frames, self.name)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Loop joints and couplings; dynamics keeps the active ones closed, see also ``tree``."""
        return self.model.loops

    @property
    def actuated(self) -> tuple[str, ...]:
        """Joints that the file gives motors; none if it says nothing of motors."""
        return self.model.actuated

    @property
    def gravity(self) -> Array:
        """(3,) gravity in world axes [m/s^2]."""
        return self.model.gravity

    @property
    def total_mass(self) -> float:
        """Mass of all links [kg]."""
        return self.model.total_mass

    @property
    def configurations(self) -> Mapping[str, Array]:
        """Named configurations (nq,), e.g. a file's keyframes."""
        return _Named("configuration", self.model.configurations, self.name)

    @property
    def home(self) -> Array:
        """The file's reference configuration (nq,), or the neutral one."""
        named = self.model.configurations
        return np.array(named["home"]) if "home" in named else self.neutral()

    @property
    def lower_limits(self) -> Array:
        """(nq,) lower configuration limits [rad, m], -inf where there is none."""
        return space.limits(self.model)[0]

    @property
    def upper_limits(self) -> Array:
        """(nq,) upper configuration limits [rad, m], inf where there is none."""
        return space.limits(self.model)[1]

    @cached_property
    def singular_hinges(self) -> tuple[SingularHinge, ...]:
        """Joint directions that move no inertia; forward dynamics is not defined on them."""
        return singular_hinges(self.model)

    def neutral(self) -> Array:
        """Zero coordinates and identity quaternions, (nq,)."""
        return space.neutral(self.model)

    def random_configuration(
        self, rng: np.random.Generator | int | None = None, shape: int | tuple[int, ...] = ()
    ) -> Array:
        """Random configurations (*shape, nq) inside the limits.

        Args:
            rng: A generator or a seed.
            shape: Batch shape.
        """
        return space.random_configuration(self.model, space.random_generator(rng), shape)

    def normalize(self, q: Coordinates, *, on_error: str = "raise") -> Array:
        """q with its quaternions scaled to length one; any length but zero."""
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.normalize, {"q": q})
        return space.normalize(self.model, q)

    def configuration(self, q: Coordinates) -> Array:
        """q as an array (..., nq): arrays are checked, dicts filled up with neutral values.

        Quaternions whose length is one within 1e-6 (float32: 8e-6) are normalized, as in every
        other method; ``normalize`` takes any length but zero.

        Raises:
            NotFiniteError: A number is infinite or NaN.
            QuaternionError: A quaternion does not have length one.
        """
        return space.configuration(self.model, q)

    def tangent(self, v: Coordinates) -> Array:
        """v, vdot or tau as an array (..., nv): arrays are checked, dicts filled with zeros."""
        return space.tangent(self.model, v)

    def configuration_dict(self, q: Coordinates) -> dict[str, Array]:
        """q by joint name."""
        return space.to_mapping(self.model, q, "q")

    def tangent_dict(self, v: Coordinates) -> dict[str, Array]:
        """v, vdot or tau by joint name."""
        return space.to_mapping(self.model, v, "v")


class _Named(Mapping[str, T]):
    """A read-only mapping whose KeyError names the robot and close matches."""

    def __init__(self, kind: str, table: Mapping[str, T], owner: str) -> None:
        self._kind = kind
        self._table = table
        self._owner = owner

    def __getitem__(self, name: str) -> T:
        if name not in self._table:
            raise UnknownNameError(self._kind, name, self._table, f"'{self._owner}'")
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"<{len(self)} {self._kind}s: {', '.join(self._table)}>"
