# SPDX-License-Identifier: BSD-3-Clause
"""Quantities whose scalar program is traced for a robot directly: one row each.

A row says what a quantity reads and gives, how much work it is, and how its program is traced. The
tracers are in ``scalar.trace``; they are imported when a program is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from phistar.algorithms.operational_space import compliance
from phistar.backends.policy import BundleWork, MatrixWork, TracedWork, VectorWork
from phistar.backends.robot_programs import OPTIONAL_INPUTS
from phistar.compile.node_rows import NODE_ROWS
from phistar.compile.part_rows import PART_ROWS
from phistar.compile.requests import RESULT_OUTPUT, Shape, Traced
from phistar.model.components import LoopJoint
from phistar.model.configuration import random_configuration
from phistar.model.joint_map import joint_map
from phistar.model.joint_physics import FORCE_PARTS
from phistar.model.kinematic_loops import active_loops, loop_ends
from phistar.model.model import Model
from phistar.model.node_tree import NodeTree
from phistar.model.numpy_kinematics import ground_mass_point, jacobian
from phistar.spatial import PARAMETER_NAMES
from phistar.sweeps.matrix_plans import evaluate
from phistar.sweeps.matrix_requests import Full
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.scalar.program import Unrolled
    from phistar.sweeps.schedule import Schedule

PARAMETERS_PER_BODY = len(PARAMETER_NAMES)
_IN_REFERENCE = {"frame": None, "reference": "world_aligned"}
"""What is chosen of a quantity of a frame in some axes; None: it has to be named."""


def _tracer(module: str, function: str) -> Callable[..., Unrolled]:
    """A function of a module of ``scalar.trace``, which is imported when it is called."""

    def trace(model: Model, *choices: object) -> Unrolled:
        program: Unrolled = getattr(import_module(f"phistar.scalar.trace.{module}"), function)(
            model, *choices
        )
        return program

    return trace


def _derived(name: str) -> Callable[[Model], Unrolled]:
    """The program of the catalogue with this name."""

    def trace(model: Model) -> Unrolled:
        from phistar.compile.pipeline import kernel
        from phistar.scalar.lower import LoweringOptions, to_unrolled

        compiled = kernel(name, model)
        program = to_unrolled(
            compiled.schedule,
            model,
            frozenset(OPTIONAL_INPUTS),
            options=LoweringOptions(regroup=compiled.regroup_inertia),
            own_coordinates=True,
        )
        return with_result_name(program)

    return trace


def with_result_name(program: Unrolled) -> Unrolled:
    """The same program, its only output called as tracers do."""
    (size,) = program.signature.outputs.values()
    signature = replace(program.signature, outputs={RESULT_OUTPUT: size})
    stores = [replace(store, space=RESULT_OUTPUT) for store in program.block.stores]
    return replace(program, signature=signature, block=replace(program.block, stores=stores))


def _along_path(model: Model, frame: str, *_: object) -> TracedWork:
    return TracedWork(len(model.ancestors(model.frame(frame).body)), 1)


def _all_links(model: Model, *_: object) -> TracedWork:
    return TracedWork(len(model.bodies), 1)


def _all_poses(model: Model) -> TracedWork:
    return TracedWork(len(model.bodies), len(model.link_names))


def _some_mass(model: Model, *_: object) -> TracedWork | None:
    return _all_links(model) if model.inertias[:, 0].sum() else None


def _one_to_one(model: Model) -> bool:
    """Whether every joint has coordinates of its own."""
    return joint_map(model).one_to_one


def _center_jacobian(function: str) -> Callable[..., Unrolled]:
    """The Jacobian of the centre of mass, or its rate."""

    def trace(model: Model, fixed: bool) -> Unrolled:
        mass = float(model.inertias[:, 0].sum())
        mass += float(ground_mass_point(model)[3]) if fixed else 0.0
        return _tracer("momentum_programs", function)(model, mass)

    return trace


def _momentum_work(model: Model, *_: object) -> TracedWork | None:
    """Every column is a momentum in the world."""
    moving = model.inertias[:, 0].sum() > 0.0
    return TracedWork(len(model.bodies), model.nv) if moving else None


def _regressor_work(model: Model) -> MatrixWork:
    """Each body hands its ten columns to the joints between it and the ground."""
    steps = sum(len(model.ancestors(body.index)) for body in model.bodies)
    entries = model.nv * PARAMETERS_PER_BODY * len(model.bodies)
    operations = steps * POLICY.operations_per_regressor_joint
    return MatrixWork(PARAMETERS_PER_BODY * len(model.bodies), entries, operations)


def _log_determinant(model: Model) -> Unrolled:
    return _tracer("determinant_programs", "log_determinant")(model, _pivots(model))


def _log_determinant_work(model: Model) -> VectorWork | None:
    streams = sum(1 for _ in _pivots(model).program.live())
    return VectorWork(streams) if _one_to_one(model) else None


def _pivots(model: Model) -> Schedule:
    """A program in which D occurs."""
    from phistar.compile.pipeline import kernel

    return kernel("hinge_inertias", model).schedule


def _operational_inertia(
    model: Model, frames: tuple[str, ...], reference: str, roundings: float, damped: bool = False
) -> Unrolled:
    mobility = _mobility(model, frames)
    return _tracer("operational_programs", "operational_inertia")(
        model, frames, reference, mobility, roundings, damped
    )


def _mobility(model: Model, frames: tuple[str, ...]) -> Unrolled:
    """The compliance of frames; over nodes where mimic joints are reduced."""
    from phistar.compile.pipeline import matrix_plan
    from phistar.scalar.lower_matrix import to_unrolled_matrix

    if not _one_to_one(model):
        jacobians = [_jacobian(model, frame, "local") for frame in frames]
        return _tracer("node_programs", "compliance")(model, jacobians)
    form = matrix_plan(compliance, Full(), model, frames).form
    return to_unrolled_matrix([form], model, frames)


def _damped_operational_inertia(model: Model, frames: tuple[str, ...], reference: str) -> Unrolled:
    return _operational_inertia(model, frames, reference, 0.0, damped=True)


def _operational_work(model: Model, frames: tuple[str, ...], *_: object) -> MatrixWork:
    """The compliance, and its inverse by L D L*."""
    from phistar.compile.pipeline import matrix_plan

    rows = 6 * len(frames)
    if not _one_to_one(model):
        columns = rows * len(model.bodies) * POLICY.extra_operations_per_link_column
        return MatrixWork(rows, rows * rows, columns + rows**3)
    operations = matrix_plan(compliance, Full(), model, frames).cost.total + rows**3
    return MatrixWork(rows, rows * rows, operations)


def _undamped_operational_work(
    model: Model, frames: tuple[str, ...], reference: str, roundings: float
) -> MatrixWork | None:
    """None also for frames that cannot move in every direction whatever the configuration."""
    if _is_singular_everywhere(model, frames, roundings):
        return None
    return _operational_work(model, frames)


def _is_singular_everywhere(model: Model, frames: tuple[str, ...], roundings: float) -> bool:
    """Whether the compliance of frames has no inverse in some configuration at random."""
    from phistar.compile.pipeline import matrix_plan

    q = random_configuration(model, np.random.default_rng(0))
    if _one_to_one(model):
        mobility = evaluate(matrix_plan(compliance, Full(), model, frames), q, {})
    else:
        J = np.concatenate([jacobian(model, q, frame, "local") for frame in frames])
        mobility = J @ NodeTree.of_mimics(model, q).solve(J).T
    scale = np.sqrt(np.diagonal(mobility))
    if not (scale > 0.0).all():
        return True
    least = np.linalg.eigvalsh(mobility / np.outer(scale, scale))[0]
    return bool(least <= roundings * np.finfo(float).eps)


def _discretization_shapes(model: Model, scheme: str) -> Mapping[str, Shape]:
    nq, nv = model.nq, model.nv
    return {"q_next": (nq,), "v_next": (nv,), "A": (2 * nv, 2 * nv), "B": (2 * nv, nv)}


def _discretization_work(model: Model, scheme: str) -> BundleWork:
    """As long as the linearization that it reads is one program."""
    return BundleWork(model.nv)


def _link_poses(model: Model) -> Unrolled:
    from phistar.scalar.lower_frames import frame_poses

    return frame_poses(model, model.link_names)


def _frame_pose(model: Model, frame: str) -> Unrolled:
    from phistar.scalar.lower_frames import frame_poses

    return frame_poses(model, (frame,))


def _frame_velocity(model: Model, frame: str, reference: str) -> Unrolled:
    from phistar.scalar.lower_frames import frame_velocity

    if reference == "local":
        return frame_velocity(model, frame)
    walked = _tracer("kinematics_programs", "velocity")(model, frame, reference)
    if reference == "world":
        return walked
    return _cheapest(frame_velocity(model, frame, reference), walked)


def _jacobian(model: Model, frame: str, reference: str) -> Unrolled:
    from phistar.scalar.lower_frames import frame_jacobian

    walked = _tracer("kinematics_programs", "jacobian")(model, frame, reference)
    derived = frame_jacobian(model, frame) if reference == "local" else None
    return walked if derived is None else _cheapest(with_result_name(derived), walked)


def _closed_loops(model: Model) -> TracedWork | None:
    """Steps along the chains of all active loops; None without loops."""
    found = active_loops(model.loops)
    ends = [end for x in found if isinstance(x, LoopJoint) for end in loop_ends(model, x)]
    steps = sum(len(model.ancestors(end.body)) for end in ends)
    return TracedWork(steps + 1, len(found)) if found else None


def _row_shapes(model: Model) -> dict[str, Shape]:
    from phistar.scalar.trace.loop_programs import row_counts

    joints = sum(isinstance(x, LoopJoint) for x in active_loops(model.loops))
    return {"poses": (joints, 3, 4), "rows": (sum(row_counts(model)), model.nv)}


def _motion_shapes(model: Model) -> dict[str, Shape]:
    shapes = _row_shapes(model)
    rows = shapes["rows"][:1]
    return {**shapes, "rate": rows, "bias": rows}


def _tangent_shapes(model: Model) -> dict[str, Shape]:
    rows = _row_shapes(model)["rows"]
    names = ("rate_q", "acceleration_q", "acceleration_v")
    return {**dict.fromkeys(names, rows), "force_q": (model.nv, model.nv)}


def _cheapest(*programs: Unrolled) -> Unrolled:
    """The first of those with the fewest operations."""
    from phistar.scalar.program import count_arithmetic

    return min(programs, key=lambda program: count_arithmetic(program.count()))


def _center_of_mass(model: Model, fixed: bool) -> Unrolled:
    return _derived("center_of_mass" if fixed else "moving_center_of_mass")(model)


_ROWS = (
    Traced(
        "frame_pose",
        ("q",),
        lambda model, frame: (4, 4),
        _frame_pose,
        _along_path,
        choices={"frame": None},
        defined="T = T(parent) T_J from the world to the frame",
        program="link_poses",
    ),
    Traced(
        "link_poses",
        ("q",),
        lambda model: (len(model.link_names), 4, 4),
        _link_poses,
        _all_poses,
        defined="T(k) = T(parent of k) T_J(k), outward",
        program="link_poses",
    ),
    Traced(
        "jacobian",
        ("q",),
        lambda model, frame, reference: (6, model.nv),
        _jacobian,
        _along_path,
        choices=_IN_REFERENCE,
        defined="J = X B* φ* H*, X from the frame's axes to those of the reference",
    ),
    Traced(
        "frame_velocity",
        ("q", "v"),
        lambda model, frame, reference: (6,),
        _frame_velocity,
        _along_path,
        choices=_IN_REFERENCE,
        defined="X B* φ* H* v, X from the frame's axes to those of the reference",
        program="world_velocities",
    ),
    Traced(
        "center_of_mass",
        ("q",),
        lambda model, fixed: (3,),
        _center_of_mass,
        _some_mass,
        choices={"fixed": True},
        defined="Σ m(k) c(k) / Σ m(k), first moments collected inward",
        program="center_of_mass",
    ),
    Traced(
        "center_of_mass_jacobian",
        ("q",),
        lambda model, fixed: (3, model.nv),
        _center_jacobian("center_of_mass_jacobian"),
        _momentum_work,
        choices={"fixed": True},
        defined="linear momentum E₀ φ M φ* H* of unit velocities by the mass",
    ),
    Traced(
        "center_of_mass_jacobian_rate",
        ("q", "v"),
        lambda model, fixed: (3, model.nv),
        _center_jacobian("center_of_mass_jacobian_rate"),
        _momentum_work,
        choices={"fixed": True},
        defined="d/dt of the Jacobian of the centre of mass",
    ),
    Traced(
        "centroidal_momentum_matrix",
        ("q",),
        lambda model: (6, model.nv),
        _tracer("momentum_programs", "centroidal_momentum_matrix"),
        _momentum_work,
        defined="A = X E₀ φ M φ* H*, X from the world's origin to the centre of mass",
    ),
    Traced(
        "centroidal_momentum_matrix_rate",
        ("q", "v"),
        lambda model: (6, model.nv),
        _tracer("momentum_programs", "centroidal_momentum_matrix_rate"),
        _momentum_work,
        defined="d/dt of X E₀ φ M φ* H*",
    ),
    Traced(
        "momentum",
        ("q", "v"),
        lambda model: (6,),
        _derived("momentum"),
        _all_links,
        defined="Σ X(k) M(k) V(k) about the world's origin, V = φ* H* v",
        program="momentum",
    ),
    Traced(
        "kinetic_energy",
        ("q", "v"),
        lambda model: (),
        _derived("kinetic_energy"),
        _all_links,
        defined="½ V* M V + ½ v* A v, V = φ* H* v",
        program="kinetic_energy",
    ),
    Traced(
        "potential_energy",
        ("q",),
        lambda model: (),
        _derived("potential_energy"),
        _all_links,
        defined="-g · Σ m(k) c(k), first moments collected inward",
        program="potential_energy",
    ),
    Traced(
        "integrate",
        ("q", "dv"),
        lambda model: (model.nq,),
        _tracer("configuration_programs", "integrate"),
        _all_links,
        defined="q ⊕ dv, joint by joint: X_J(q) exp(H* dv)",
    ),
    Traced(
        "difference",
        ("q0", "q1"),
        lambda model: (model.nv,),
        _tracer("configuration_programs", "difference"),
        _all_links,
        defined="the step dv with q1 = q0 ⊕ dv, joint by joint",
    ),
    Traced(
        "passive_force",
        ("q", "v"),
        lambda model, parts: (model.nv,),
        _tracer("passive_programs", "passive_force"),
        _all_links,
        choices={"parts": FORCE_PARTS},
        defined="-K e(q) - B v - F sign(v), e the way from where springs rest, joint by joint",
    ),
    Traced(
        "jacobian_rate",
        ("q", "v"),
        lambda model, frame, reference: (6, model.nv),
        _tracer("rate_programs", "jacobian_rate"),
        _along_path,
        choices=_IN_REFERENCE,
        defined="d/dt of X B* φ* H*",
    ),
    Traced(
        "frame_acceleration",
        ("q", "v", "vdot"),
        lambda model, frame, reference: (6,),
        _tracer("rate_programs", "frame_acceleration"),
        _along_path,
        choices=_IN_REFERENCE,
        defined="d/dt of X B* φ* H* v",
    ),
    Traced(
        "frame_bias_acceleration",
        ("q", "v"),
        lambda model, frame, reference: (6,),
        _tracer("rate_programs", "frame_bias_acceleration"),
        _along_path,
        choices=_IN_REFERENCE,
        defined="(d/dt of X B* φ* H*) v: the acceleration without joint accelerations",
    ),
    Traced(
        "regressor",
        ("q", "v", "vdot"),
        lambda model: (model.nv, PARAMETERS_PER_BODY * len(model.bodies)),
        _tracer("regressor_programs", "regressor"),
        _regressor_work,
        defined="Y = H φ (N[α] + V ×* N[V]), N[x] π = M(π) x",
    ),
    Traced(
        "log_determinant",
        ("q",),
        lambda model: (),
        _log_determinant,
        _log_determinant_work,
        defined="Σ log det D(k), 𝓜 = (I + HφK) D (I + HφK)*",
    ),
    Traced(
        "operational_inertia",
        ("q",),
        lambda model, frames, *_: (6 * len(frames), 6 * len(frames)),
        _operational_inertia,
        _undamped_operational_work,
        choices={"frames": None, "reference": "local", "roundings": 4096.0},
        defined="(X B* ψ* H* D⁻¹ H ψ B X*)⁻¹",
    ),
    Traced(
        "damped_operational_inertia",
        ("q", "damping"),
        lambda model, frames, *_: (6 * len(frames), 6 * len(frames)),
        _damped_operational_inertia,
        _operational_work,
        choices={"frames": None, "reference": "local"},
        defined="(X B* ψ* H* D⁻¹ H ψ B X* + damping I)⁻¹",
    ),
    Traced(
        "discretization",
        ("q", "v", "dt", "vdot", "vdot_q", "vdot_v", "vdot_tau"),
        _discretization_shapes,
        _tracer("discretization_programs", "discretization"),
        _discretization_work,
        choices={"scheme": "semi_implicit"},
        defined="a step of time and its derivatives, from those of forward dynamics",
    ),
    Traced(
        "loop_rows",
        ("q",),
        _row_shapes,
        _tracer("loop_programs", "loop_rows"),
        _closed_loops,
        defined="L = Γ*φ*H* + C of the active loops, and the poses of successors in predecessors",
    ),
    Traced(
        "loop_motion",
        ("q", "v"),
        _motion_shapes,
        _tracer("loop_programs", "loop_motion"),
        _closed_loops,
        defined="L, Lv and L̇v of the active loops",
    ),
    Traced(
        "loop_tangents",
        ("q", "v", "vdot", "multipliers"),
        _tangent_shapes,
        _tracer("loop_programs", "loop_tangents"),
        _closed_loops,
        defined="derivatives of Lv, Lv̇ + L̇v and L*λ with respect to q and v",
    ),
)

TRACED: dict[str, Traced] = {row.name: row for row in (*_ROWS, *NODE_ROWS, *PART_ROWS)}
"""Traced quantities by name; units above the compiler may ``add_traced`` rows of their own."""


def add_traced(row: Traced) -> Traced:
    """One more row, of a unit that the compiler does not know."""
    assert row.name not in TRACED, f"{row.name} is a row already"
    TRACED[row.name] = row
    return row


def trace_quantity(model: Model, name: str, *choices: object) -> Unrolled:
    """The unrolled program of a quantity on a robot."""
    return TRACED[name].trace(model, *choices)
