# SPDX-License-Identifier: BSD-3-Clause
"""Quantities whose scalar program is traced for a robot directly: one row each.

A row says what a quantity reads and gives, how much work it is, and how its program is traced. The
tracers are in ``scalar.trace``; they are imported when a program is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from phistar import backends
from phistar.algorithms.operational_space import compliance
from phistar.arrays import Array
from phistar.backends.policy import (
    UNROLLED,
    BundleWork,
    MatrixWork,
    TracedWork,
    VectorWork,
    Work,
    decide,
)
from phistar.compile import Full, fused_executable, joint_map, kernel, matrix_plan
from phistar.model.model import Model
from phistar.model.model_cache import Entry, cached_for_equal_models, entries
from phistar.spatial import PARAMETER_NAMES
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.backends.llvm.run.traced import TracedCode
    from phistar.scalar.program import Unrolled

Shape = tuple[int, ...]
PARAMETERS_PER_BODY = len(PARAMETER_NAMES)
RESULT_OUTPUT = "result"
"""What tracers call their result if there is one."""
RequestKey = tuple[Any, ...]
"""Name of a row and the choices that a user made: ``("jacobian", "hand", "local")``. Entries of a
robot have the same keys."""


@dataclass(frozen=True)
class TracedRequest:
    """A quantity that is traced directly.

    Attributes:
        name: As the method of ``Robot``.
        inputs: Names of what it reads, in the order of the entry's arguments.
        shape: Robot and choices -> the shape of the result for one sample; of several results by
            name.
        trace: Robot and choices -> the program. It may ask the compiler for other programs.
        work: Robot and choices -> what decides whether and when it is compiled; None: there is no
            such program on this robot.
    """

    name: str
    inputs: tuple[str, ...]
    shape: Callable[..., Shape | Mapping[str, Shape]]
    trace: Callable[..., Unrolled]
    work: Callable[..., Work | None]

    def shapes(self, model: Model, *choices: Any) -> Mapping[str, Shape]:
        """Of all results for one sample, by name; a single one has the name of ``scalar.trace``."""
        found = self.shape(model, *choices)
        return found if isinstance(found, Mapping) else {RESULT_OUTPUT: found}


def _tracer(module: str, function: str) -> Callable[..., Unrolled]:
    """A function of a module of ``scalar.trace``, which is imported when it is called."""

    def trace(model: Model, *choices: Any) -> Unrolled:
        program: Unrolled = getattr(import_module(f"phistar.scalar.trace.{module}"), function)(
            model, *choices
        )
        return program

    return trace


def _along_path(model: Model, frame: str, *_: Any) -> TracedWork:
    return TracedWork(len(model.ancestors(model.frame(frame).body)), 1)


def _all_links(model: Model, *_: Any) -> TracedWork:
    return TracedWork(len(model.bodies), 1)


def _all_poses(model: Model) -> TracedWork:
    return TracedWork(len(model.bodies), len(model.link_names))


def _some_mass(model: Model, *_: Any) -> TracedWork | None:
    return _all_links(model) if model.inertias[:, 0].sum() else None


def _one_to_one(model: Model) -> bool:
    """Whether every joint has coordinates of its own."""
    return joint_map(model).one_to_one


def _regressor_work(model: Model) -> MatrixWork:
    """Each body hands its ten columns to the joints between it and the ground."""
    steps = sum(len(model.ancestors(body.index)) for body in model.bodies)
    entries = model.nv * PARAMETERS_PER_BODY * len(model.bodies)
    operations = steps * POLICY.operations_per_regressor_joint
    return MatrixWork(PARAMETERS_PER_BODY * len(model.bodies), entries, operations)


def _log_determinant(model: Model) -> Unrolled:
    schedule = kernel(_PIVOT_PROGRAM, model).schedule
    return _tracer("determinant_programs", "log_determinant")(model, schedule)


def _log_determinant_work(model: Model) -> VectorWork | None:
    streams = sum(1 for _ in kernel(_PIVOT_PROGRAM, model).schedule.program.live())
    return VectorWork(streams) if _one_to_one(model) else None


_PIVOT_PROGRAM = "hinge_inertias"
"""A program in which D occurs."""


def _operational_inertia(
    model: Model, frames: tuple[str, ...], reference: str, roundings: float, damped: bool = False
) -> Unrolled:
    from phistar.scalar.lower_matrix import to_unrolled_matrix

    form = matrix_plan(compliance, Full(), model, frames).form
    mobility = to_unrolled_matrix([form], model, frames)
    return _tracer("operational_programs", "operational_inertia")(
        model, frames, reference, mobility, roundings, damped
    )


def _damped_operational_inertia(model: Model, frames: tuple[str, ...], reference: str) -> Unrolled:
    return _operational_inertia(model, frames, reference, 0.0, damped=True)


def _operational_work(model: Model, frames: tuple[str, ...], *_: Any) -> MatrixWork | None:
    """The compliance, and its inverse by L D L*."""
    if not _one_to_one(model):
        return None
    rows = 6 * len(frames)
    operations = matrix_plan(compliance, Full(), model, frames).cost.total + rows**3
    return MatrixWork(rows, rows * rows, operations)


def _discretization_shapes(model: Model, scheme: str) -> Mapping[str, Shape]:
    nq, nv = model.nq, model.nv
    return {"q_next": (nq,), "v_next": (nv,), "A": (2 * nv, 2 * nv), "B": (2 * nv, nv)}


def _discretization_work(model: Model, scheme: str) -> BundleWork | None:
    """As long as the linearization that it reads is one program."""
    return BundleWork(model.nv) if _one_to_one(model) else None


def _link_poses(model: Model) -> Unrolled:
    return _tracer("kinematics_programs", "poses")(model, model.link_names)


def _frame_pose(model: Model, frame: str) -> Unrolled:
    return _tracer("kinematics_programs", "poses")(model, (frame,))


_ROWS = (
    TracedRequest("frame_pose", ("q",), lambda model, frame: (4, 4), _frame_pose, _along_path),
    TracedRequest(
        "link_poses",
        ("q",),
        lambda model: (len(model.link_names), 4, 4),
        _link_poses,
        _all_poses,
    ),
    TracedRequest(
        "jacobian",
        ("q",),
        lambda model, frame, reference: (6, model.nv),
        _tracer("kinematics_programs", "jacobian"),
        _along_path,
    ),
    TracedRequest(
        "frame_velocity",
        ("q", "v"),
        lambda model, frame, reference: (6,),
        _tracer("kinematics_programs", "velocity"),
        _along_path,
    ),
    TracedRequest(
        "center_of_mass",
        ("q",),
        lambda model, fixed: (3,),
        _tracer("kinematics_programs", "center_of_mass"),
        _some_mass,
    ),
    TracedRequest(
        "momentum",
        ("q", "v"),
        lambda model: (6,),
        _tracer("energy_programs", "momentum"),
        _all_links,
    ),
    TracedRequest(
        "kinetic_energy",
        ("q", "v"),
        lambda model: (),
        _tracer("energy_programs", "kinetic_energy"),
        _all_links,
    ),
    TracedRequest(
        "potential_energy",
        ("q",),
        lambda model: (),
        _tracer("energy_programs", "potential_energy"),
        _all_links,
    ),
    TracedRequest(
        "integrate",
        ("q", "dv"),
        lambda model: (model.nq,),
        _tracer("configuration_programs", "integrate"),
        _all_links,
    ),
    TracedRequest(
        "difference",
        ("q0", "q1"),
        lambda model: (model.nv,),
        _tracer("configuration_programs", "difference"),
        _all_links,
    ),
    TracedRequest(
        "jacobian_rate",
        ("q", "v"),
        lambda model, frame, reference: (6, model.nv),
        _tracer("rate_programs", "jacobian_rate"),
        _along_path,
    ),
    TracedRequest(
        "frame_acceleration",
        ("q", "v", "vdot"),
        lambda model, frame, reference: (6,),
        _tracer("rate_programs", "frame_acceleration"),
        _along_path,
    ),
    TracedRequest(
        "regressor",
        ("q", "v", "vdot"),
        lambda model: (model.nv, PARAMETERS_PER_BODY * len(model.bodies)),
        _tracer("regressor_programs", "regressor"),
        _regressor_work,
    ),
    TracedRequest(
        "log_determinant",
        ("q",),
        lambda model: (),
        _log_determinant,
        _log_determinant_work,
    ),
    TracedRequest(
        "operational_inertia",
        ("q",),
        lambda model, frames, *_: (6 * len(frames), 6 * len(frames)),
        _operational_inertia,
        _operational_work,
    ),
    TracedRequest(
        "damped_operational_inertia",
        ("q", "damping"),
        lambda model, frames, *_: (6 * len(frames), 6 * len(frames)),
        _damped_operational_inertia,
        _operational_work,
    ),
    TracedRequest(
        "discretization",
        ("q", "v", "dt", "vdot", "vdot_q", "vdot_v", "vdot_tau"),
        _discretization_shapes,
        _tracer("discretization_programs", "discretization"),
        _discretization_work,
    ),
)

TRACED: dict[str, TracedRequest] = {row.name: row for row in _ROWS}
"""Traced quantities by name; units above the compiler may ``add_traced`` rows of their own."""


def add_traced(row: TracedRequest) -> TracedRequest:
    """One more row, of a unit that the compiler does not know."""
    assert row.name not in TRACED, f"{row.name} is a row already"
    TRACED[row.name] = row
    return row


def run_traced(model: Model, key: RequestKey, *arrays: Array) -> Array | None:
    """The result (..., *shape) of a traced quantity by machine code, if that is at hand.

    Args:
        model: The robot.
        key: What is asked.
        arrays: Inputs (..., size) of checked shapes in the order of the row; batches broadcast.
    """
    found = run_traced_results(model, key, *arrays)
    return None if found is None else found[RESULT_OUTPUT]


def run_traced_results(model: Model, key: RequestKey, *arrays: Array) -> dict[str, Array] | None:
    """The same for a quantity with several results, by name."""
    if backends.default() != "llvm":
        return None
    code = traced_code(model, key)
    if code is None:
        return None
    name, *choices = key
    row = TRACED[name]
    shapes = row.shapes(model, *choices)
    found = code(dict(zip(row.inputs, arrays, strict=True)), shapes)
    table = entries(model)
    if found is not None and key not in table and _is_double(found):
        entry = code.entry(row.inputs, shapes)
        if entry is not None:
            table[key] = entry
    return found


def _is_double(found: Mapping[str, Array]) -> bool:
    """Whether results are those of the kernel that entries call."""
    return all(x.dtype == np.float64 for x in found.values())


def chained_entry(
    model: Model,
    bundle: str,
    key: RequestKey,
    order: Sequence[str],
    keys: Mapping[str, str],
) -> Entry | None:
    """The entry to two programs, of which the second reads what the first one gives.

    Args:
        model: A robot whose coordinates are in the order of its bodies.
        bundle: Vectors and matrices, see ``fused_executable``.
        key: A traced quantity.
        order: What both read from outside, in the order of the entry's arguments.
        keys: Names of the second one's outputs in the result, where they differ.

    Returns:
        None unless both are compiled.
    """
    if backends.default() != "llvm":
        return None
    from phistar.backends.llvm.run.entry import make_chained_entry
    from phistar.backends.llvm.run.fused import FusedCode

    first, second = fused_executable(bundle, model), traced_code(model, key)
    if not isinstance(first, FusedCode) or second is None or first.kernel("double") is None:
        return None
    last = second.tiers_if_ready()
    if last is None:
        return None
    shapes = TRACED[key[0]].shapes(model, *key[1:])
    return make_chained_entry(first.tiers(), last, order, shapes, keys)


@cached_for_equal_models(1024)
def traced_code(model: Model, key: RequestKey) -> TracedCode | None:
    """What runs, or None where an unrolled program is no good."""
    name, *choices = key
    row = TRACED[name]
    work = row.work(model, *choices)
    decision = None if work is None else decide(work, len(model.bodies))
    if decision is None or decision.shape != UNROLLED:
        return None
    from phistar.backends.llvm.run.key import traced_program_key
    from phistar.backends.llvm.run.traced import TracedCode

    title = f"{model.name}: {' '.join(map(str, key))}"
    return TracedCode(
        traced_program_key(model, *key), title, decision.eager, lambda: row.trace(model, *choices)
    )
