# SPDX-License-Identifier: BSD-3-Clause
"""Every internal name of phistar that ``tools.replay`` uses, behind functions that stay the same.

A refactoring that renames or moves one of these names changes this file and nothing else of the
replay: what the functions take and return is independent of the names. Programs are for given
joint vectors, without external forces unless said otherwise, in the robot's own gravity.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from phistar import Robot
from phistar.backends.llvm.emit.emitted_steps import stepper_module
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.run import machine_kernel
from phistar.backends.llvm.run import tiers as compilation
from phistar.c_export import source_c
from phistar.compile import (
    Diag,
    Full,
    cheapest_equivalent,
    kernel,
    lowered_bundle,
    matrix_plan,
    matrix_request,
    with_closed_inverses,
)
from phistar.compile.traced import TRACED
from phistar.derivatives.first import fastest_method
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.scalar.lower import LoweringOptions, to_looped, to_unrolled, uniform_link_numbers
from phistar.scalar.lower_fused import to_fused
from phistar.scalar.lower_matrix import cheapest_form, to_looped_matrix, to_unrolled_matrix
from phistar.scalar.program import ScalarProgram, count_arithmetic
from phistar.scalar.trace.state_update import joint_offsets, to_state_update
from phistar.sim import compiled_stepper as simulation
from phistar.sim.schemes import SCHEMES, UpdateStage
from phistar.sim.stepper import SteppingOptions
from phistar.sim.variables import Velocity
from phistar.sweeps.matrix_requests import MatrixForm, matrix_forms

Program = ScalarProgram
"""A program of scalar operations for one robot."""

NO_FORCES = frozenset({"f_ext", "gravity"})
WITH_FORCES = frozenset({"gravity"})
DOUBLE, SINGLE = Lanes(4), Lanes(8, "float")
OPTIONS = LoweringOptions(regroup=True)
"""As for all programs about the motion of the whole robot."""


# -- robots


def random_robot(seed: int, bodies: int, **options: Any) -> Model:
    """A random robot with joints of all kinds."""
    return random_model(np.random.default_rng(seed), bodies, **options)


def body_count(model: Model) -> int:
    """Moving bodies of a robot."""
    return len(model.bodies)


# -- programs of a robot


def looped(name: str, model: Model, forces: bool = False) -> Program:
    """A program of the catalogue as loops over the links."""
    return to_looped(*_arguments(name, model, forces))


def unrolled(name: str, model: Model, forces: bool = False) -> Program:
    """A program of the catalogue as one sequence of operations."""
    return to_unrolled(*_arguments(name, model, forces))


def hybrid(model: Model, prescribed: Collection[int]) -> Program:
    """Forward dynamics, as loops, with the motion of some bodies' joints given."""
    schedule = kernel("hybrid_dynamics", model).schedule
    return to_looped(schedule, model, NO_FORCES, frozenset(prescribed))


def _arguments(name: str, model: Model, forces: bool) -> Any:
    found = kernel(cheapest_equivalent(name), model)
    absent = WITH_FORCES if forces else NO_FORCES
    return (
        found.schedule,
        model,
        absent,
        frozenset[int](),
        LoweringOptions(regroup=found.regroup_inertia),
    )


def looped_matrix(name: str, model: Model) -> Program:
    """A matrix of the catalogue as loops over links and columns."""
    return to_looped_matrix(_forms(name, model), model, (), NO_FORCES, OPTIONS)


def unrolled_matrix(name: str, model: Model) -> Program:
    """A matrix of the catalogue as one sequence of operations."""
    return to_unrolled_matrix(_forms(name, model), model, (), NO_FORCES, OPTIONS)


def fused(name: str, model: Model) -> Program:
    """Vectors and matrices of a linearization in one program."""
    return to_fused(lowered_bundle(name, model.turning_rotors), model, NO_FORCES, OPTIONS)


def traced(model: Model, name: str, *choices: Any) -> Program:
    """Kinematics or energy: name of the method and its arguments after q and v."""
    return TRACED[name].trace(model, *choices)


def updates(model: Model) -> Iterator[tuple[str, Callable[[], Program]]]:
    """The state updates of all time-stepping schemes, by scheme and number of the update."""
    joints = joint_offsets(model)
    for scheme in SCHEMES.values():
        steps = [part for part in scheme.instructions if isinstance(part, UpdateStage)]
        for number, part in enumerate(steps):
            yield f"{scheme.name} {number}", partial(to_state_update, joints, part.update)


def _forms(name: str, model: Model) -> Sequence[MatrixForm]:
    return matrix_forms(with_closed_inverses(matrix_request(name, model).operator), Full())


# -- text


def llvm_text(program: Program, single: bool = False) -> str:
    """The LLVM module of a program, 4 lanes of float64 or 8 of float32."""
    return machine_kernel.llvm_text(program, SINGLE if single else DOUBLE)


def step_loop_text() -> str:
    """The LLVM module that calls kernels in a loop over time steps."""
    return stepper_module()


def operations(program: Program) -> dict[str, int]:
    """Counts of scalar operations by kind, and their sum under ``"arithmetic"``."""
    found = program.count()
    return {**dict(sorted(found.items())), "arithmetic": count_arithmetic(found)}


def c_text(model: Model, name: str, shape: str) -> str:
    """A program of the catalogue as C; the shape is ``"auto"``, ``"unrolled"`` or ``"looped"``."""
    names = {"unrolled": "straight", "looped": "rolled"}
    return source_c(model, name, shape=names.get(shape, shape))


# -- decisions


class Requested(BaseException):
    """A compilation was requested; raised in its place, not to be caught by the package."""


@contextmanager
def instead_of_compiling() -> Iterator[None]:
    """Raise ``Requested``, which says what and when, wherever machine code would be compiled."""

    def now(name: str, *_: object) -> None:
        shape = name.rpartition(" ")[2]
        raise Requested({"straight": "unrolled", "rolled": "looped"}[shape] + ", now")

    def later(*_: object) -> None:
        raise Requested("unrolled, in a thread")

    with (
        patch.object(compilation, "load_cached", lambda *_: None),
        patch.object(compilation, "compile_kernel", now),
        patch.object(compilation, "start_compilation", later),
    ):
        yield


def strategies(model: Model) -> Mapping[str, Callable[[], str]]:
    """Decisions that no single compilation shows, by name; each takes up to some 10 ms."""

    def matrix_form(name: str) -> str:
        links = uniform_link_numbers(model, frozenset(), OPTIONS)
        return _shown(cheapest_form(_forms(name, model), links))

    def numpy_form(name: str, request: Full | Diag) -> str:
        return _shown(matrix_plan(matrix_request(name, model).operator, request, model).form)

    def is_fused(name: str) -> str:
        return "no" if kernel(name, model).build(model) is None else "yes"

    def steps() -> str:
        with patch.object(simulation, "CompiledStepper", lambda *_: True):
            found = simulation.make_compiled_stepper(
                model, Velocity(model), SteppingOptions(SCHEMES["rk4"])
            )
        return "NumPy" if found is None else "machine code"

    named: dict[str, Callable[[], str]] = {"simulate": steps}
    for name in ("linearize", "linearize_inverse"):
        named[f"{name}, fused"] = partial(is_fused, name)
    for samples in (1, 4):
        named[f"linearize, {samples} samples"] = partial(fastest_method, model, samples)
    for name in ("mass_matrix", "mass_matrix_inverse", "coriolis_matrix", "inverse_dynamics_q"):
        named[f"{name}, looped form"] = partial(matrix_form, name)
    for name in ("mass_matrix", "mass_matrix_inverse"):
        named[f"{name}, NumPy form"] = partial(numpy_form, name, Full())
        named[f"{name}, NumPy form of the diagonal"] = partial(numpy_form, name, Diag())
    for name in ("inverse_dynamics", "forward_dynamics"):
        named[f"{name}, link classes"] = partial(_classes, name, model)
    return named


def linearize_form(model: Model) -> str:
    """Whether fused linearizations are products of matrices or walks; seconds on large robots."""
    found = to_fused(lowered_bundle("linearize", model.turning_rotors), model, NO_FORCES, OPTIONS)
    return "walks" if found.row_loops else "product"


def _classes(name: str, model: Model) -> str:
    found = to_looped(*_arguments(name, model, forces=False))
    return " ".join(map(str, found.links.class_of))


def _shown(form: MatrixForm) -> str:
    # Files that were saved before the names changed say "walks".
    name = "walks" if form.name == "propagation" else form.name
    return name + (", transposed" if form.transposed else "")


def without_loops(robot: Robot) -> Robot:
    """The robot without loop-closing joints."""
    return robot.tree
