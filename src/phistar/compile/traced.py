# SPDX-License-Identifier: BSD-3-Clause
"""Quantities that are computed by one straight line in the robot's own coordinates: one row each.

A row says what a quantity reads and gives, how much work it is, and how its program is made: from a
program of the catalogue, or by a tracer in ``scalar.trace``, which is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from phistar import backends
from phistar.arrays import Array
from phistar.backends.policy import NUMPY, TracedWork, decide
from phistar.compile import kernel
from phistar.model.model import Model
from phistar.model.model_cache import cached_for_equal_models, entries

if TYPE_CHECKING:
    from phistar.backends.llvm.run.traced import TracedCode
    from phistar.scalar.program import Unrolled

Shape = tuple[int, ...]
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
        trace: Robot and choices -> the program.
        work: Robot and choices -> what decides whether and when it is compiled; None: there is no
            such program on this robot.
    """

    name: str
    inputs: tuple[str, ...]
    shape: Callable[..., Shape | Mapping[str, Shape]]
    trace: Callable[..., Unrolled]
    work: Callable[..., TracedWork | None]


def _tracer(module: str, function: str) -> Callable[..., Unrolled]:
    """A function of a module of ``scalar.trace``, which is imported when it is called."""

    def trace(model: Model, *choices: Any) -> Unrolled:
        program: Unrolled = getattr(import_module(f"phistar.scalar.trace.{module}"), function)(
            model, *choices
        )
        return program

    return trace


def _derived(name: str) -> Callable[[Model], Unrolled]:
    """The program of the catalogue with this name."""

    def trace(model: Model) -> Unrolled:
        from phistar.scalar.lower import LoweringOptions, to_unrolled

        compiled = kernel(name, model)
        return to_unrolled(
            compiled.schedule,
            model,
            frozenset(backends.OPTIONAL_INPUTS),
            options=LoweringOptions(regroup=compiled.regroup_inertia),
            own_coordinates=True,
        )

    return trace


def _along_path(model: Model, frame: str, *_: Any) -> TracedWork:
    return TracedWork(len(model.ancestors(model.frame(frame).body)), 1)


def _all_links(model: Model, *_: Any) -> TracedWork:
    return TracedWork(len(model.bodies), 1)


def _all_poses(model: Model) -> TracedWork:
    return TracedWork(len(model.bodies), len(model.link_names))


def _some_mass(model: Model, *_: Any) -> TracedWork | None:
    return _all_links(model) if model.inertias[:, 0].sum() else None


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
    return walked if derived is None else _cheapest(derived, walked)


def _cheapest(*programs: Unrolled) -> Unrolled:
    """The first of those with the fewest operations."""
    from phistar.scalar.program import count_arithmetic

    return min(programs, key=lambda program: count_arithmetic(program.count()))


def _center_of_mass(model: Model, fixed: bool) -> Unrolled:
    return _derived("center_of_mass" if fixed else "moving_center_of_mass")(model)


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
        _jacobian,
        _along_path,
    ),
    TracedRequest(
        "frame_velocity",
        ("q", "v"),
        lambda model, frame, reference: (6,),
        _frame_velocity,
        _along_path,
    ),
    TracedRequest(
        "center_of_mass",
        ("q",),
        lambda model, fixed: (3,),
        _center_of_mass,
        _some_mass,
    ),
    TracedRequest(
        "momentum",
        ("q", "v"),
        lambda model: (6,),
        _derived("momentum"),
        _all_links,
    ),
    TracedRequest(
        "kinetic_energy",
        ("q", "v"),
        lambda model: (),
        _derived("kinetic_energy"),
        _all_links,
    ),
    TracedRequest(
        "potential_energy",
        ("q",),
        lambda model: (),
        _derived("potential_energy"),
        _all_links,
    ),
)

TRACED: Mapping[str, TracedRequest] = {row.name: row for row in _ROWS}
"""Traced quantities by name."""


def trace_quantity(model: Model, name: str, *choices: Any) -> Unrolled:
    """The straight line of a quantity on a robot; it has one output."""
    return TRACED[name].trace(model, *choices)


def run_traced(model: Model, key: RequestKey, *arrays: Array) -> Array | None:
    """The result (..., size) of a traced quantity by machine code, if that is at hand.

    Args:
        model: The robot.
        key: What is asked.
        arrays: Checked inputs in the order of the row; their batches broadcast.
    """
    if backends.default() != "llvm":
        return None
    program = traced_code(model, key)
    if program is None:
        return None
    result = program(arrays)
    table = entries(model)
    if result is not None and key not in table:
        found = program.entry(TRACED[key[0]].shape(model, *key[1:]))
        if found is not None:
            table[key] = found
    return result


def run_loops(model: Model, key: RequestKey, program: str, q: Array) -> dict[str, Array] | None:
    """The outputs of a program that reads q alone by loops, on robots too long for a straight line.

    Args:
        model: The robot.
        key: The straight line that is asked.
        program: A program of the catalogue that says the same.
        q: Checked.

    Returns:
        None if there may be a straight line, on other backends and if a result is not finite.
    """
    if backends.default() != "llvm" or not model.bodies or traced_code(model, key) is not None:
        return None
    name, *choices = key
    if TRACED[name].work(model, *choices) is None:
        return None
    found, finite = kernel(program).executable(model).run(q, {})
    return found if finite else None


@cached_for_equal_models(1024)
def traced_code(model: Model, key: RequestKey) -> TracedCode | None:
    """What runs, or None where an unrolled program is no good."""
    name, *choices = key
    row = TRACED[name]
    work = row.work(model, *choices)
    decision = None if work is None else decide(work, len(model.bodies))
    if decision is None or decision.shape == NUMPY:
        return None
    from phistar.backends.llvm.run.key import traced_program_key
    from phistar.backends.llvm.run.traced import TracedCode

    title = f"{model.name}: {' '.join(map(str, key))}"
    return TracedCode(
        traced_program_key(model, *key), title, decision.eager, lambda: row.trace(model, *choices)
    )
