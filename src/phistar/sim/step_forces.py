# SPDX-License-Identifier: BSD-3-Clause
"""Joint forces of a simulator's step: given ones, those of laws, actuators and wrenches."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from phistar import dynamics
from phistar.arguments import require_real
from phistar.arrays import Array
from phistar.errors import ShapeError
from phistar.joint_physics.actuator_forces import Actuators
from phistar.model.configuration import Coordinates, read_coordinates, require_finite
from phistar.model.model import Model
from phistar.model.wrenches import check_wrenches
from phistar.sim.batch_state import BatchState
from phistar.sim.law_calls import Controller
from phistar.sim.simulator_laws import SimulatorLaw
from phistar.sim.simulator_options import SimulatorOptions


class StepForces:
    """What pushes a batch of one robot; a part of ``Simulator``."""

    batch: int
    dt: float
    _model: Model
    _options: SimulatorOptions
    _state: BatchState
    _time: Array
    _law: SimulatorLaw | None

    @property
    def _owner(self) -> str:
        return f"a simulator of {self.batch} x '{self._model.name}'"

    def _law_forces(self, controller: Controller) -> Array:
        """Joint forces (batch, nv) of a controller in the state."""
        if self._law is None or self._law.controller is not controller:
            self._law = SimulatorLaw(controller, self._model, self.batch, self._options.threads)
        steps = np.rint(self._time / self.dt).astype(int)
        return self._law.forces(steps, self._state.q, self._state.v)

    @property
    def law_engine(self) -> str:
        """What evaluates the law of the last step; empty without one."""
        return "" if self._law is None else self._law.engine

    def _actuated(self, ctrl: ArrayLike) -> Array:
        """Joint forces (batch, nv) of the actuators; none of samples that are not finite."""
        state = self._state
        good = np.isfinite(state.q).all(axis=-1) & np.isfinite(state.v).all(axis=-1)
        signals = np.asarray(ctrl)
        if signals.ndim == 2 and signals.shape[0] == self.batch:
            signals = signals[good]
        result = np.zeros((self.batch, self._model.nv))
        result[good] = self._actuators.force(signals, state.q[good], state.v[good])
        return result

    @cached_property
    def _actuators(self) -> Actuators:
        return Actuators(self._model)

    def _forces(
        self, tau: Coordinates | None, forces: Mapping[str, ArrayLike] | None, reference: str
    ) -> Array:
        model, shape = self._model, (self.batch, self._model.nv)
        if tau is None:
            total = np.zeros(shape)
        else:
            given = read_coordinates(model, tau, "v", "tau")
            require_real(tau=given)
            if given.shape not in (shape, shape[1:]):
                raise ShapeError("tau", given.shape, f"{shape[1:]} or {shape}", self._owner)
            if self._options.on_error == "raise":
                require_finite("tau", given)
            total = np.array(np.broadcast_to(given, shape), float)
        wrenches = check_wrenches(model, self._state.q, forces, reference)
        if wrenches is not None:
            total = total + dynamics.generalised_force(model, self._state.q, wrenches)
        return np.ascontiguousarray(total)
