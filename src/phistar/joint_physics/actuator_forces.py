# SPDX-License-Identifier: BSD-3-Clause
"""Actuators of a robot: joint forces out of control signals, for a user's arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phistar.arguments import checked_state
from phistar.arrays import Array
from phistar.errors import ShapeError
from phistar.model.actuators import Actuator
from phistar.model.configuration import Coordinates, as_numbers, require_finite
from phistar.model.joint_physics import joint_limits, passive_numbers
from phistar.model.model import Model


class Actuators:
    """The actuators of a robot: joint forces out of control signals.

    Attributes:
        names: Of the actuators, in the file's order.
        joint: Of each the name of its joint; several, of a tendon, with ``+`` between them.
        kind: ``"motor"``, ``"position"``, ``"velocity"`` or ``"general"``.
        gear: (nu,) length per unit of the (first) joint's coordinate.
        gain, bias: (nu, 3) coefficients of 1, length and its rate.
        ctrlrange, forcerange: (nu, 2) least and largest; infinite where there is no limit.
        moment: (nu, nv) length per unit of every coordinate: joint forces are its adjoint times f.
        effort: (nv,) the largest joint force; infinite where there is no limit.
    """

    def __init__(self, model: Model) -> None:
        rows = _actuators_of(model)
        self._model = model
        self.names = tuple(row.name for row in rows)
        self.joint = tuple("+".join(row.joints) for row in rows)
        self.kind = tuple(row.kind for row in rows)
        self.gear = _table([row.gear[0] for row in rows], (len(rows),))
        self.gain = _table([row.gain for row in rows], (len(rows), 3))
        self.bias = _table([row.bias for row in rows], (len(rows), 3))
        self.ctrlrange = _table([row.ctrlrange for row in rows], (len(rows), 2))
        self.forcerange = _table([row.forcerange for row in rows], (len(rows), 2))
        moment, offset = np.zeros((len(rows), model.nv)), np.zeros(len(rows))
        for i, row in enumerate(rows):
            for name, gear in zip(row.joints, row.gear, strict=True):
                joint = model.joints[name]
                body = model.bodies[joint.bodies[0]]
                moment[i, joint.v_slice.start] += gear * body.scale
                offset[i] += gear * (body.offset + joint.reference)
        self.moment = _table(moment, moment.shape)
        self._offset = offset
        self._coordinates = np.maximum(passive_numbers(model).coordinates, 0)
        self.effort = joint_limits(model).effort

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<{len(self)} actuators of robot '{self._model.name}': {', '.join(self.names)}>"

    def force(self, ctrl: ArrayLike, q: Coordinates, v: Coordinates) -> Array:
        """Joint forces (..., nv) of control signals ctrl (..., nu) at a state.

        Signals and forces are clamped to the ranges of the actuators, the sum at each joint to the
        joint's effort limit.
        """
        q, v = checked_state(self._model, q=q, v=v)
        forces = self._forces(self._signals(ctrl), q, v)
        return np.asarray(np.clip(forces @ self.moment, -self.effort, self.effort))

    def actuator_force(self, ctrl: ArrayLike, q: Coordinates, v: Coordinates) -> Array:
        """The actuators' own forces (..., nu), clamped to ``forcerange``."""
        q, v = checked_state(self._model, q=q, v=v)
        return self._forces(self._signals(ctrl), q, v)

    def _signals(self, ctrl: ArrayLike) -> Array:
        signals = as_numbers(ctrl, "ctrl")
        if signals.shape[-1:] != (len(self),):
            owner = f"robot '{self._model.name}'"
            raise ShapeError("ctrl", signals.shape, f"(..., {len(self)})", owner)
        require_finite("ctrl", signals)
        return signals

    def _forces(self, ctrl: Array, q: Array, v: Array) -> Array:
        length = q[..., self._coordinates] @ self.moment.T + self._offset
        rate = v @ self.moment.T
        ctrl = np.clip(ctrl, *self.ctrlrange.T)
        gain, bias = (x[:, 0] + x[:, 1] * length + x[:, 2] * rate for x in (self.gain, self.bias))
        return np.asarray(np.clip(gain * ctrl + bias, *self.forcerange.T))


def _actuators_of(model: Model) -> tuple[Actuator, ...]:
    """Those of a model; of one that only says which joints have motors, a motor for each."""
    if model.actuators:
        return model.actuators
    single = [name for name in model.actuated if model.joints[name].joint_kind.nv == 1]
    return tuple(Actuator(name, "motor", (name,), (1.0,)) for name in single)


def _table(values: ArrayLike, shape: tuple[int, ...]) -> Array:
    result = np.array(values, dtype=float).reshape(shape)
    result.flags.writeable = False
    return result
