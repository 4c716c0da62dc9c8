# SPDX-License-Identifier: BSD-3-Clause
"""Steps with dry friction and limits of joints, one by one: forces of rows, then a smooth step."""

from __future__ import annotations

from typing import Self

import numpy as np

from phistar.arrays import Array
from phistar.model.model import Model
from phistar.sim.joint_rows import JointRows
from phistar.sim.numpy_stepper import NumpyStepper
from phistar.sim.stepper import SteppingOptions
from phistar.sim.variables import Variable


class RowStepper(NumpyStepper):
    """Steps of a scheme under forces that friction and limits hold during each."""

    def __init__(
        self,
        model: Model,
        variable: Variable,
        options: SteppingOptions,
        rows: JointRows,
    ) -> None:
        """Args:
        model, variable, options: As of ``NumpyStepper``.
        rows: Friction and limits.
        """
        super().__init__(model, variable, options)
        self.rows = rows
        self.cost_ns = 1e5

    def of_samples(self, chosen: Array) -> Self:
        """See ``NumpyStepper``."""
        part = super().of_samples(chosen)
        part.rows = self.rows.of_samples(chosen)
        return part

    def step(self, q: Array, x: Array, tau: Array, dt: float, t: float) -> tuple[Array, Array]:
        """One step; samples that diverge in it are NaN after it."""
        variable, take = self.variable, super().step

        def smooth(q: Array, x: Array, tau: Array, h: Array) -> tuple[Array, Array]:
            return variable.settle(*take(q, x, tau, dt, t), t + dt)

        rows = np.broadcast_to(np.float64(dt), (len(q), 1))
        return self.rows.advanced(q, x, tau, rows, smooth, variable.velocity, t)
