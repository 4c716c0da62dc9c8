# SPDX-License-Identifier: BSD-3-Clause
"""Dynamics with loops and projection onto them as rows of traced quantities.

Their programs put the tree's derived sweeps and the rows of the loops together, see
``scalar.trace.loop_dynamics``. Off the loops, and where these lose rank, guarded results are not
numbers; what answers instead says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from phistar.algebra.symbols import D
from phistar.algorithms import diagonal_dynamics
from phistar.algorithms.equations_of_motion import in_motion
from phistar.algorithms.inverse_dynamics import bias_force
from phistar.backends import OPTIONAL_INPUTS, Tuning
from phistar.backends.policy import BundleWork, LoopWork
from phistar.compile import (
    TRACED,
    BuildTarget,
    Kernel,
    Traced,
    add_traced,
    compile_outputs,
    embedded_request,
    joint_map,
    kernel,
    lowered_bundle,
)
from phistar.loops.assembly import on_loops_inputs, usual_mobility, usual_rank
from phistar.loops.early_rows import early_rows
from phistar.loops.program_size import link_rows
from phistar.loops.system import loop_system
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.model.singular import singular_hinges
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.scalar.program import Unrolled
    from phistar.scalar.trace.loop_linearization import TreePrograms
    from phistar.scalar.trace.loop_tracer import LoopTracer

OPEN_TOLERANCE = 1e-6
"""Errors without units from which a loop counts as open."""
RATE_TOLERANCE = 1e-6
"""Fraction of √rows ‖v‖, without units, from which a velocity opens a loop; rows without units
have lengths of about one."""
REST = 1e-12
"""Rates of rows without units below this [1/s] are none."""
ROUNDINGS = 1e3
"""The same in roundings of the precision of a state, if that is more."""

SMALLEST_PIVOT = 1e-10
"""Fraction of a row's usual Δ below which its pivot may be rounding, so that there is no result."""
PROJECTION_ITERATIONS = 6
"""Newton steps after a step of time, at most; they converge quadratically."""
PROJECTIONS_IN_STEP = 2
"""Newton steps in the program of a step."""
GAP_AFTER_WHICH_CLOSED = 1e-8
"""Error without units before a Newton step that leaves nothing but rounding."""
LARGEST_GAP_TO_CLOSE = 1e-5
"""Error without units before the last Newton step beyond which a state is lost."""

Shapes = Mapping[str, tuple[int, ...]]

ANYWHERE = "anywhere"
PRECISIONS = {"float64": "double", "float32": "float"}
"""Of states on the loops, by dtype; ``ANYWHERE``: not looked at."""
_EPSILONS = {
    "double": float(np.finfo(np.float64).eps),
    "float": float(np.finfo(np.float32).eps),
    ANYWHERE: 0.0,
}
_LEAST_EARLY_PIVOTS = {
    "double": POLICY.least_early_pivot,
    "float": POLICY.least_early_pivot_single / 2.0**29,  # limits are for double precision
    ANYWHERE: POLICY.least_early_pivot,
}


DynamicsKey = tuple[str, str, tuple[str, ...], bool]


def dynamics_key(precision: str, held: Iterable[str] = ()) -> DynamicsKey:
    """Key of forward dynamics: for states of a precision, some loops holding frames anywhere.

    Rows are solved early where that is possible, unless nothing does samples again that have no
    result then: the stages of steps, whose states may be anywhere.
    """
    return "loop_dynamics", precision, tuple(sorted(held)), precision != ANYWHERE


def multipliers_key(precision: str, held: Iterable[str] = ()) -> DynamicsKey:
    """Key of forward dynamics with multipliers."""
    return "loop_multipliers", precision, tuple(sorted(held)), precision != ANYWHERE


def step_rates_key(precision: str, held: Iterable[str] = ()) -> tuple[str, str, tuple[str, ...]]:
    """Key of the rates of a step that keeps the loops, with derivatives."""
    return "loop_step_rates", precision, tuple(sorted(held))


def linearization_key(precision: str, held: Iterable[str] = ()) -> tuple[str, str, tuple[str, ...]]:
    """Key of its linearization."""
    return "loop_linearization", precision, tuple(sorted(held))


def slack(tolerance: float, epsilon: float) -> float:
    """A tolerance for states of a precision."""
    return max(tolerance, ROUNDINGS * epsilon)


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


def loop_bias(turning_rotors: bool) -> Kernel:
    """The tree's sweeps of 𝒞."""
    assert not turning_rotors
    outputs = {"bias": in_motion(bias_force)}
    return compile_outputs("loop_bias", tuple(outputs.items()), regroup_inertia=True)


def loop_tracer(
    model: Model,
    precision: str,
    held: tuple[str, ...] = (),
    regular: bool = False,
    added: Mapping[int, int] | None = None,
) -> LoopTracer:
    """Args:
    model, precision, held: The robot, and what counts as on the loops.
    regular: Whether rows may be solved early (``early_rows``), with no results on straight legs.
    added: Joints with more inertia, which programs read, see ``TracedLinks``.
    """
    from phistar.scalar.lower import LoweringOptions, to_unrolled
    from phistar.scalar.trace.loop_programs import loop_closure
    from phistar.scalar.trace.loop_tracer import EarlyRows, LoopTracer, RowScales

    system, epsilon = loop_system(model), _EPSILONS[precision]
    absent = frozenset(OPTIONAL_INPUTS)
    factors = partial(
        to_unrolled,
        loop_factors(model.turning_rotors).schedule,
        model,
        absent,
        options=LoweringOptions(regroup=True),
        added=added,
    )
    scales = RowScales(
        system.row_scale,
        system.column_scale,
        slack(OPEN_TOLERANCE, epsilon),
        slack(RATE_TOLERANCE, epsilon),
        REST,
        usual_mobility(model),
        SMALLEST_PIVOT,
        frozenset(
            row
            for loop, own in zip(system.loops, system.slices, strict=True)
            if loop.name in held
            for row in range(own.start, own.stop)
        ),
    )
    bias = loop_bias(model.turning_rotors).schedule.classical
    early = early_rows(model) if regular else ()
    least = _LEAST_EARLY_PIVOTS[precision]
    return LoopTracer(
        model,
        factors,
        bias,
        absent,
        loop_closure(model),
        usual_rank(model),
        scales,
        EarlyRows(
            {each.row: each.link for each in early},
            {each.row: least * each.mobility for each in early},
        ),
        added,
    )


def _dynamics(
    model: Model, precision: str, held: tuple[str, ...], regular: bool = False
) -> Unrolled:
    from phistar.scalar.trace.loop_dynamics import loop_dynamics

    tracer = loop_tracer(model, precision, held, regular)
    return loop_dynamics(tracer, guarded=precision != ANYWHERE)


def _multipliers(
    model: Model, precision: str, held: tuple[str, ...], regular: bool = False
) -> Unrolled:
    from phistar.scalar.trace.loop_dynamics import loop_dynamics

    tracer = loop_tracer(model, precision, held, regular)
    return loop_dynamics(tracer, guarded=True, with_multipliers=True)


def _on_straight_legs(
    model: Model, precision: str, held: tuple[str, ...], regular: bool
) -> tuple[object, ...] | None:
    """What has results where rows are not solved early; None: they never are."""
    return (precision, held, False) if regular and early_rows(model) else None


def _linearization(model: Model, precision: str, held: tuple[str, ...]) -> Unrolled:
    from phistar.scalar.trace.loop_linearization import loop_linearization

    return loop_linearization(loop_tracer(model, precision, held), _tree_programs(model))


def _step_rates(model: Model, precision: str, held: tuple[str, ...]) -> Unrolled:
    from phistar.scalar.trace.loop_linearization import loop_step_rates

    return loop_step_rates(loop_tracer(model, precision, held), _tree_programs(model))


def _discretization(model: Model) -> Unrolled:
    from phistar.scalar.trace.discretization_programs import discretization

    return discretization(model, "semi_implicit", "change_", loop_system(model).count)


def _tree_programs(model: Model) -> TreePrograms:
    """What a linearization on the loops is made of."""
    from phistar.scalar.lower import LoweringOptions, to_unrolled
    from phistar.scalar.lower_fused import to_fused
    from phistar.scalar.trace.loop_linearization import TreePrograms
    from phistar.scalar.trace.loop_programs import loop_tangents

    tree, absent = loop_system(model).tree, frozenset(OPTIONAL_INPUTS)
    # Walks along branches are loops over rows, which cannot be part of a line.
    derivatives = replace(lowered_bundle("linearize_inverse"), split=None)
    bias = loop_bias(model.turning_rotors).schedule
    options = LoweringOptions(regroup=True)
    return TreePrograms(
        _inverse_mass_matrix(tree),
        to_unrolled(bias, tree, absent, options=options),
        to_fused(derivatives, tree, absent, options),
        loop_tangents(model),
    )


def _inverse_mass_matrix(tree: Model) -> Unrolled:
    """q -> 𝓜⁻¹; over nodes of links, in the robot's own coordinates, where joints mimic others."""
    if not joint_map(tree).one_to_one:
        return TRACED[embedded_request("mass_matrix_inverse", tree)].trace(tree)
    found = kernel("mass_matrix_inverse").on(
        tree, BuildTarget("llvm", tuning=Tuning(regroup_inertia=True))
    )
    assert found is not None
    return found.unrolled(frozenset(OPTIONAL_INPUTS))


def anywhere_dynamics(model: Model, heavier: tuple[str, ...] = ()) -> Unrolled:
    """Dynamics that does not look whether states are on the loops.

    ``heavier``: springs and dampers at the end of a step, whose joint inertia the program reads.
    """
    from phistar.scalar.trace.implicit_programs import added_entries
    from phistar.scalar.trace.loop_dynamics import loop_dynamics

    added = added_entries(model, heavier) if heavier else None
    return loop_dynamics(loop_tracer(model, ANYWHERE, added=added), guarded=False)


def _projection(model: Model) -> Unrolled:
    from phistar.scalar.trace.loop_dynamics import loop_projection

    return loop_projection(loop_tracer(model, ANYWHERE))


@cached_on_model
def live_rows(model: Model) -> tuple[int, ...]:
    """Numbers of the rows that are not zero in every configuration."""
    from phistar.scalar.trace.loop_programs import loop_rows

    nv = model.nv
    return tuple(
        sorted(
            {
                store.index // nv
                for store in loop_rows(model).block.stores
                if store.space == "rows" and store.value != 0.0
            }
        )
    )


def loop_work(
    model: Model, precision: str = ANYWHERE, held: tuple[str, ...] = (), regular: bool = False
) -> LoopWork | None:
    """None: no loops, joints without inertia of their own, rotors that turn."""
    rows = loop_system(model).count
    if not rows or model.turning_rotors or singular_hinges(model):
        return None
    return LoopWork(rows, link_rows(model))


def _multipliers_work(
    model: Model, precision: str, held: tuple[str, ...], regular: bool
) -> LoopWork | None:
    """Besides: None where rows depend on each other: multipliers are the shortest of many."""
    found = loop_work(model)
    return None if found is None or usual_rank(model) < len(live_rows(model)) else found


def _linearization_work(model: Model, precision: str, held: tuple[str, ...]) -> BundleWork | None:
    """None as of dynamics, and where so many rows depend on each other that choosing among them
    takes longer than all else."""
    rows, rank = len(live_rows(model)), usual_rank(model)
    if loop_work(model) is None:
        return None
    if rank < rows and rank * rows**2 > POLICY.max_dependent_steps_linearized:
        return None
    return BundleWork(model.nv + loop_system(model).count)


def _step_rate_shapes(model: Model, *_: object) -> Shapes:
    nv, rows = model.nv, loop_system(model).count
    changes = dict.fromkeys(("change_q", "change_v", "change_tau"), (nv + rows, nv))
    return {"vdot": (nv,), "multipliers": (rows,), **changes}


def _linearization_shapes(model: Model, precision: str, held: tuple[str, ...]) -> Shapes:
    """Where rows depend on each other, derivatives along the loops besides."""
    found = _step_rate_shapes(model)
    if usual_rank(model) == len(live_rows(model)):
        return found
    return {**found, "along_q": found["change_q"]}


def _discretization_shapes(model: Model) -> Shapes:
    nq, nv = model.nq, model.nv
    return {"q_next": (nq,), "v_next": (nv,), "A": (2 * nv, 2 * nv), "B": (2 * nv, nv)}


def _discretization_work(model: Model) -> BundleWork | None:
    return _linearization_work(model, ANYWHERE, ())


def _vdot(model: Model, *_: object) -> Shapes:
    return {"vdot": (model.nv,)}


def _vdot_and_multipliers(model: Model, *_: object) -> Shapes:
    return {"vdot": (model.nv,), "multipliers": (loop_system(model).count,)}


_CHOICES = {"precision": "double", "held": ()}
_CHOICES_OF_DYNAMICS = {**_CHOICES, "regular": True}
_STATE = ("q", "v", "tau")
for _name, _inputs, _shapes, _trace, _work, _choices, _defined in (
    (
        "loop_dynamics",
        _STATE,
        _vdot,
        _dynamics,
        loop_work,
        _CHOICES_OF_DYNAMICS,
        "v̇ = N⁻*D⁻¹(ε + Zλ), Δλ = -L̇v - Z*D⁻¹ε, Δ = Z*D⁻¹Z, Z = N⁻¹L*",
    ),
    (
        "loop_multipliers",
        _STATE,
        _vdot_and_multipliers,
        _multipliers,
        _multipliers_work,
        _CHOICES_OF_DYNAMICS,
        "𝓜v̇ + 𝒞 = τ + L*λ, Lv̇ = -L̇v",
    ),
    (
        "loop_linearization",
        _STATE,
        _linearization_shapes,
        _linearization,
        _linearization_work,
        _CHOICES,
        "∂(v̇, λ) = -G ∂(ID - L*λ, Lv̇ + L̇v), G = [𝓜⁻¹ - W*A* W*; -W Δ⁻¹], W* = AΔ⁻¹",
    ),
    (
        "loop_step_rates",
        (*_STATE, "dt"),
        _step_rate_shapes,
        _step_rates,
        _linearization_work,
        _CHOICES,
        "x = (v' - v)/dt with 𝓜x + 𝒞 = τ + L*λ, Lv' = 0; ∂(x, λ) = -G ∂(ID - L*λ, Lv'/dt)",
    ),
):
    add_traced(
        Traced(
            _name,
            _inputs,
            _shapes,
            _trace,
            _work,
            choices=_choices,
            admit=on_loops_inputs,
            defined=_defined,
            otherwise=_on_straight_legs if "regular" in _choices else None,
        )
    )
add_traced(
    Traced(
        "loop_discretization",
        ("q", "v", "dt", "vdot", "change_q", "change_v", "change_tau"),
        _discretization_shapes,
        _discretization,
        _discretization_work,
        defined="a step of time that keeps the loops and its derivatives, from its rates",
    )
)
add_traced(
    Traced(
        "loop_projection",
        ("q", "v"),
        lambda model: {"q_next": (model.nq,), "v_next": (model.nv,), "gap": (1,)},
        _projection,
        loop_work,
        admit=on_loops_inputs,
        defined="q ⊖ 𝓜⁻¹L*Δ⁻¹e, v - 𝓜⁻¹L*Δ⁻¹Lv",
    )
)
