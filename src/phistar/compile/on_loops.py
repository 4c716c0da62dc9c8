# SPDX-License-Identifier: BSD-3-Clause
"""Names of quantities on robots with active loops: which ones keep the loops, which have none."""

from __future__ import annotations

from phistar.errors import LoopError
from phistar.model.kinematic_loops import TREE_CURE, active_loops
from phistar.model.model import Model

ON_LOOPS = {
    "forward_dynamics": "loop_dynamics",
    "linearize": "loop_linearization",
    "step": "loop_step",
}
"""Quantities about motion, and their programs on the loops."""
_TREE_PREFIXES = (
    "forward_dynamics_", "linearize", "discretization", "hybrid_", "diagonal_",
    "operational_inertia", "damped_operational_inertia",
)  # fmt: skip
"""How names of those begin that have none; ``linearize_inverse`` is about forces."""


def quantity_on(model: Model, name: str, purpose: str, cure: str = TREE_CURE) -> str:
    """The quantity that a name means on a robot: with active loops the one that keeps them.

    Args:
        model: The robot.
        name: Of a quantity.
        purpose: What is asked for, for the message.
        cure: What to do instead.

    Raises:
        LoopError: The quantity is about motion and has no program on the loops.
    """
    loops = active_loops(model.loops)
    if not loops:
        return name
    if name in ON_LOOPS:
        return ON_LOOPS[name]
    if name.startswith(_TREE_PREFIXES) and name != "linearize_inverse":
        raise LoopError(model.name, purpose, loops, cure)
    return name
