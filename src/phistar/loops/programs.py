# SPDX-License-Identifier: BSD-3-Clause
"""Dynamics with loops and projection onto them as rows of traced quantities.

Their programs put the tree's derived sweeps and the rows of the loops together, see
``scalar.trace.loop_dynamics``. Off the loops, and where these lose rank, guarded results are not
numbers; what answers instead says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from phistar.algebra.symbols import D
from phistar.algorithms import diagonal_dynamics
from phistar.algorithms.equations_of_motion import in_motion
from phistar.algorithms.inverse_dynamics import bias_force
from phistar.backends import OPTIONAL_INPUTS
from phistar.backends.policy import LoopWork
from phistar.compile import Kernel, Traced, add_traced, compile_outputs, joint_map
from phistar.loops.assembly import usual_rank
from phistar.loops.program_size import link_rows
from phistar.loops.system import loop_system
from phistar.model.model import Model
from phistar.model.singular import singular_hinges

if TYPE_CHECKING:
    from phistar.scalar.program import Unrolled
    from phistar.scalar.trace.loop_dynamics import LoopTracer

OPEN_TOLERANCE = 1e-6
"""Errors without units from which a loop counts as open."""
RATE_TOLERANCE = 1e-6
"""Fraction of ‖L‖‖v‖ from which a velocity opens a loop."""
REST = 1e-12
"""Rates of rows without units below this [1/s] are none."""
ROUNDINGS = 1e3
"""The same in roundings of the precision of a state, if that is more."""

SMALLEST_PIVOT = 1e-10
"""Fraction of a row's Δ below which its pivot may be rounding, so that there is no result."""
PROJECTION_ITERATIONS = 6
"""Newton steps after a step of time, at most; they converge quadratically."""
PROJECTIONS_IN_STEP = 2
"""Newton steps in the program of a step."""
GAP_AFTER_WHICH_CLOSED = 1e-8
"""Error without units before a Newton step that leaves nothing but rounding."""
LARGEST_GAP_TO_CLOSE = 1e-5
"""Error without units before the last Newton step beyond which a state is lost."""

ANYWHERE = "anywhere"
PRECISIONS = {"float64": "double", "float32": "float"}
"""Of states on the loops, by dtype; ``ANYWHERE``: not looked at."""
_EPSILONS = {
    "double": float(np.finfo(np.float64).eps),
    "float": float(np.finfo(np.float32).eps),
    ANYWHERE: 0.0,
}


def dynamics_key(precision: str, held: Iterable[str] = ()) -> tuple[str, str, tuple[str, ...]]:
    """Key of forward dynamics: for states of a precision, some loops holding frames anywhere."""
    return "loop_dynamics", precision, tuple(sorted(held))


def slack(tolerance: float, epsilon: float) -> float:
    """A tolerance for states of a precision."""
    return max(tolerance, ROUNDINGS * epsilon)


@cache
def loop_factors(turning_rotors: bool) -> Kernel:
    """The tree's sweeps: 𝒞, N⁻¹τ, D⁻¹N⁻¹τ and N⁻*ζ, with 𝓜 = N D N*."""
    assert not turning_rotors
    forces = diagonal_dynamics.new_forces
    outputs = {
        "bias": in_motion(bias_force),
        "kappa": forces,
        "scaled": D.inv @ forces,
        "v": diagonal_dynamics.old_rates,
    }
    return compile_outputs("loop_factors", tuple(outputs.items()), regroup_inertia=True)


def _tracer(model: Model, precision: str, held: tuple[str, ...] = ()) -> LoopTracer:
    from phistar.scalar.lower import LoweringOptions, to_unrolled
    from phistar.scalar.trace.loop_dynamics import LoopTracer, RowScales
    from phistar.scalar.trace.loop_programs import loop_closure

    system, epsilon = loop_system(model), _EPSILONS[precision]
    factors = to_unrolled(
        loop_factors(model.turning_rotors).schedule,
        model,
        frozenset(OPTIONAL_INPUTS),
        options=LoweringOptions(regroup=True),
    )
    scales = RowScales(
        system.row_scale,
        system.column_scale,
        slack(OPEN_TOLERANCE, epsilon),
        slack(RATE_TOLERANCE, epsilon),
        SMALLEST_PIVOT,
        frozenset(
            row
            for loop, own in zip(system.loops, system.slices, strict=True)
            if loop.name in held
            for row in range(own.start, own.stop)
        ),
    )
    return LoopTracer(model, factors, loop_closure(model), usual_rank(model), scales)


def _dynamics(model: Model, precision: str, held: tuple[str, ...]) -> Unrolled:
    from phistar.scalar.trace.loop_dynamics import loop_dynamics

    return loop_dynamics(_tracer(model, precision, held), guarded=precision != ANYWHERE)


def anywhere_programs(model: Model) -> tuple[Unrolled, Unrolled]:
    """Dynamics that does not look whether states are on the loops, and projection."""
    from phistar.scalar.trace.loop_dynamics import loop_dynamics, loop_projection

    tracer = _tracer(model, ANYWHERE)
    return loop_dynamics(tracer, guarded=False), loop_projection(tracer)


def _projection(model: Model) -> Unrolled:
    from phistar.scalar.trace.loop_dynamics import loop_projection

    return loop_projection(_tracer(model, ANYWHERE))


def loop_work(
    model: Model, precision: str = ANYWHERE, held: tuple[str, ...] = ()
) -> LoopWork | None:
    """None: no loops, joints without coordinates or inertia of their own, rotors that turn."""
    joints = joint_map(model)
    rows = loop_system(model).count
    if not rows or not joints.one_to_one or (joints.scales != 1.0).any():
        return None
    if model.turning_rotors or singular_hinges(model):
        return None
    return LoopWork(rows, link_rows(model))


add_traced(
    Traced(
        "loop_dynamics",
        ("q", "v", "tau"),
        lambda model, precision, held: {"vdot": (model.nv,)},
        _dynamics,
        loop_work,
        choices={"precision": "double", "held": ()},
        defined="v̇ = N⁻*D⁻¹(ε + Zλ), Δλ = -L̇v - Z*D⁻¹ε, Δ = Z*D⁻¹Z, Z = N⁻¹L*",
    )
)
add_traced(
    Traced(
        "loop_projection",
        ("q", "v"),
        lambda model: {"q_next": (model.nq,), "v_next": (model.nv,), "gap": (1,)},
        _projection,
        loop_work,
        defined="q ⊖ 𝓜⁻¹L*Δ⁻¹e, v - 𝓜⁻¹L*Δ⁻¹Lv",
    )
)
