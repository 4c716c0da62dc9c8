# SPDX-License-Identifier: BSD-3-Clause
"""What sensors of a simulator's robots read; a part of ``Simulator``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from phistar.arrays import Array
from phistar.errors import UnknownNameError
from phistar.joint_physics.passive_forces import spring_energy
from phistar.model.model import Model
from phistar.scalar.trace.unilateral_rows import JointRow
from phistar.sim.batch_state import BatchState
from phistar.sim.contact_report import Contacts


class HasSensors(ABC):
    """Sensors at the state of a batch."""

    dt: float
    _robot: Any
    _model: Model
    _state: BatchState
    _bounded: tuple[JointRow, ...]
    _smooth: tuple[str, ...]
    _before: Array
    _elapsed: float

    @property
    @abstractmethod
    def contacts(self) -> Contacts:
        """Forces, gaps and slip; see ``Simulator``."""

    def contact_force(self, name: str) -> Array:
        """(batch, 3) the sum of contact forces [N] on a shape, frame, link or surface, in the
        world, whether it is what touches or what is touched."""
        return self.contacts.on(name)

    def joint_force(self, joint: str) -> Array:
        """(batch,) what friction and stops of a joint do [N m, N], mean of the last step.

        Raises:
            UnknownNameError: No such joint rubs or stops.
        """
        known = {self._joint_name(row.v): i for i, row in enumerate(self._bounded)}
        if joint not in known:
            raise UnknownNameError("joint that rubs or stops", joint, known)
        return np.asarray(self._state.impulses[:, known[joint]] / self.dt)

    def _joint_name(self, v: int) -> str:
        joints = (self._model.joints[name] for name in self._model.joint_names)
        return next(j.name for j in joints if j.v_slice.start <= v < j.v_slice.stop)

    def frame_pose(self, frame: str) -> Array:
        """(batch, 4, 4) pose of a frame in the world."""
        return np.asarray(self._robot.frame_pose(self._state.q, frame))

    def frame_velocity(self, frame: str, reference: str = "world_aligned") -> Array:
        """(batch, 6) velocity of a frame, angular then linear."""
        return np.asarray(
            self._robot.frame_velocity(self._state.q, self._state.v, frame, reference)
        )

    def accelerometer(self, frame: str) -> Array:
        """(batch, 3) what an accelerometer at a frame reads [m/s²], in the frame's axes.

        Its acceleration less gravity, with the mean joint acceleration of the last ``step``.
        """
        q, v = self._state.q, self._state.v
        vdot = (v - self._before) / self._elapsed
        found = self._robot.frame_acceleration(q, v, vdot, frame, "world_aligned")
        R = self.frame_pose(frame)[:, :3, :3]
        return np.asarray(np.einsum("bij,bi->bj", R, found[:, 3:] - self._model.gravity))

    def energy(self) -> Array:
        """(batch,) kinetic energy, that of the rotors included, potential energy in gravity, and
        that of the springs which act (``passive=``) [J].
        """
        q, v = self._state.q, self._state.v
        total = self._robot.kinetic_energy(q, v) + self._robot.potential_energy(q)
        if "springs" in self._smooth:
            total = total + spring_energy(self._model, q)
        return np.asarray(total)
