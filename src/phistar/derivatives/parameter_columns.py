# SPDX-License-Identifier: BSD-3-Clause
"""What joint forces are linear in: ten numbers of each body, a few of each joint, by name.

    τ = Y(q, v, v̇) π + A v̇ + B v + K e(q) + b + F sign(v)

with rotor inertia A, damping B, springs K whose stretch is e, an offset b (of a sensor or a motor)
and dry friction F. Names are ``m.link``, ``Ixx.link``, ``rotor.joint``, ``viscous.joint``,
``spring.joint``, ``offset.joint``, ``coulomb.joint``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from phistar.arrays import Array
from phistar.derivatives.parameters import parameters, regressor
from phistar.errors import UnknownNameError
from phistar.joint_physics.passive_forces import stretch
from phistar.model.joint_physics import passive_numbers
from phistar.model.model import Model
from phistar.spatial import PARAMETER_NAMES

Signal = Callable[[Model, Array, Array, Array, float], Array]

INERTIA = "inertia"
"""The group of all parameters of bodies."""

SIGNALS: Mapping[str, Signal] = {
    "rotor": lambda model, q, v, a, h: a,
    "viscous": lambda model, q, v, a, h: v + h * a,
    "spring": lambda model, q, v, a, h: stretch(model, q) + h * (v + h * a),
    "offset": lambda model, q, v, a, h: np.ones_like(v),
    "coulomb": lambda model, q, v, a, h: np.zeros_like(v),
}
"""What numbers of joints are multiplied by: of model, q, v, v̇ and how far ahead springs and
dampers look [s], as they do in implicit steps. Dry friction is no function of a state: it is held
during a step, and ``sim.friction_tangents`` has what it does."""


class ParameterColumns:
    """Some parameters of a robot.

    Attributes:
        model: The robot.
        names: Those of the parameters.
    """

    def __init__(self, model: Model, wanted: Sequence[str] | str = ()) -> None:
        self.model = model
        known = self._known
        names: list[str] = []
        for name in (wanted,) if isinstance(wanted, str) else wanted:
            group = [each for each, (kind, _) in known.items() if kind == name]
            if not group and name not in known:
                raise UnknownNameError("parameter", name, [INERTIA, *SIGNALS, *known], model.name)
            names += group or [name]
        self.names = tuple(dict.fromkeys(names))

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def _known(self) -> dict[str, tuple[str, int]]:
        """Group and column of every parameter."""
        model = self.model
        bodies = [f"{name}.{body.link}" for body in model.bodies for name in PARAMETER_NAMES]
        found = {name: (INERTIA, column) for column, name in enumerate(bodies)}
        single = {
            name: joint.v_slice.start
            for name, joint in model.joints.items()
            if joint.joint_kind.nv == 1
        }
        for kind in SIGNALS:
            found |= {f"{kind}.{name}": (kind, entry) for name, entry in single.items()}
        return found

    def entries(self, kind: str) -> list[tuple[int, int]]:
        """Places of the parameters of a kind, each with its column, or its entry of v."""
        known = (self._known[name] for name in self.names)
        return [(place, entry) for place, (own, entry) in enumerate(known) if own == kind]

    @property
    def values(self) -> Array:
        """(parameters,) the robot's own."""
        model, numbers = self.model, passive_numbers(self.model)
        own = {
            INERTIA: parameters(model),
            "rotor": _rotor_inertia(model),
            "viscous": numbers.damping,
            "spring": numbers.stiffness,
            "offset": np.zeros(model.nv),
            "coulomb": numbers.friction,
        }
        places = (self._known[name] for name in self.names)
        return np.array([own[kind][column] for kind, column in places])

    def at(self, q: Array, v: Array, vdot: Array, ahead: float = 0.0) -> Array:
        """C (..., nv, parameters): joint forces per unit of each parameter.

        Args:
            q, v, vdot: (..., n).
            ahead: How far ahead springs and dampers look [s].
        """
        model = self.model
        found = np.zeros((*v.shape, len(self)))
        groups = [self._known[name] for name in self.names]
        bodies = [(place, column) for place, (kind, column) in enumerate(groups) if kind == INERTIA]
        if bodies:
            places, wanted = zip(*bodies, strict=True)
            found[..., list(places)] = regressor(model, q, v, vdot)[..., list(wanted)]
        signals = {
            kind: SIGNALS[kind](model, q, v, vdot, ahead)
            for kind in {kind for kind, _ in groups} - {INERTIA}
        }
        for place, (kind, entry) in enumerate(groups):
            if kind != INERTIA:
                found[..., entry, place] = signals[kind][..., entry]
        return found


def _rotor_inertia(model: Model) -> Array:
    """(nv,) as the joints feel it; that of followers with their leaders."""
    found = np.zeros(model.nv)
    for body in model.bodies:
        if body.joint_kind.nv == 1 and body.armature:
            found[body.v_slice] += body.scale**2 * body.armature[0]
    return found
