# SPDX-License-Identifier: BSD-3-Clause
"""What takes steps of a scheme without friction and limits: machine code where there is some."""

from __future__ import annotations

from phistar.model.model import Model
from phistar.sim.compiled_stepper import make_compiled_stepper
from phistar.sim.loop_stepper import LoopVelocity, make_loop_stepper
from phistar.sim.numpy_stepper import NumpyStepper
from phistar.sim.stepper import Stepper, SteppingOptions
from phistar.sim.variables import Variable


def make_smooth_stepper(model: Model, variable: Variable, options: SteppingOptions) -> Stepper:
    """Args:
    model: The robot.
    variable: What represents its velocity.
    options: The scheme, and how its steps are to be taken.
    """
    if isinstance(variable, LoopVelocity):
        return make_loop_stepper(model, variable, options)
    compiled = make_compiled_stepper(model, variable, options)
    return compiled or NumpyStepper(model, variable, options)
