# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are traced for a robot directly, as machine code in both precisions."""

from collections.abc import Callable

import numpy as np
import pytest

from phistar.backends import OPTIONAL_INPUTS
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.backends.llvm.run.machine_kernel import emit_module
from phistar.compile import TRACED, cheapest_equivalent, kernel
from phistar.model import Model
from phistar.model import configuration as witness
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.scalar.interpret import run
from phistar.scalar.lower import to_unrolled
from phistar.scalar.program import Unrolled
from phistar.scalar.trace.configuration_programs import difference, integrate
from phistar.scalar.trace.determinant_programs import log_determinant
from phistar.scalar.trace.rate_programs import frame_acceleration, jacobian_rate
from phistar.scalar.trace.regressor_programs import regressor
from phistar.scalar.trace.unilateral_rows import Ball, ContactRow, HalfSpace, JointRow, StepRows
from phistar.sim.schemes import SCHEMES
from phistar.sim.step_program import step_program

REALS = {"double": (np.float64, 1e-11), "float": (np.float32, 2e-4)}


@pytest.fixture(scope="module")
def model() -> Model:
    """A floating base that carries a planar, a spherical and a revolute joint."""
    kinds = ["planar", "spherical", "revolute"]
    return random_model(np.random.default_rng(2), 4, kinds=kinds, floating_base=True)


def machine_code(program: Unrolled, real: str = "double") -> KernelCaller:
    """A program, compiled for four lanes."""
    lanes = Lanes(4, real)
    text, room = emit_module(program, lanes)
    return KernelCaller(jit.load(text), program.signature, lanes, room)


def _step(model: Model) -> Unrolled:
    scheduled = kernel(cheapest_equivalent("forward_dynamics"), model).schedule
    rates = to_unrolled(scheduled, model, frozenset(OPTIONAL_INPUTS))
    return step_program(model, SCHEMES["midpoint"], rates)


def _unilateral_step(model: Model) -> Unrolled:
    last = len(model.bodies) - 1
    contact = ContactRow(Ball(last, (0.1, 0.2, 0.3), 0.1), HalfSpace(), 0.5, 0.5)
    moving = next(j for j in model.joints.values() if j.nv == 1)
    joint = JointRow(moving.v_slice.start, moving.q_slice.start, -0.1, 0.1, 0.2, damping=1.0)
    return TRACED["unilateral_step"].trace(model, StepRows((joint,), (contact,), sweeps=5))


PROGRAMS: dict[str, Callable[[Model], Unrolled]] = {
    "integrate": integrate,
    "difference": difference,
    "frame_acceleration": lambda m: frame_acceleration(m, m.frame_names[-1], "world_aligned"),
    "jacobian_rate": lambda m: jacobian_rate(m, m.frame_names[-1], "local"),
    "log_determinant": lambda m: log_determinant(m, kernel("hinge_inertias").schedule),
    "regressor": regressor,
    "step": _step,
    "unilateral_step": _unilateral_step,
}


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_interpreter_agrees(model: Model, name: str, real: str) -> None:
    """All programs give the interpreter's numbers, float32 within its own roundings."""
    dtype, bound = REALS[real]
    program, rng = PROGRAMS[name](model), np.random.default_rng(3)
    given = {}
    for each, size in program.signature.inputs.items():
        configuration = each in program.signature.configurations
        x = random_configuration(model, rng, (6,)) if configuration else rng.normal(size=(6, size))
        given[each] = np.full((6, 1), 1e-3) if each == "dt" else x.astype(dtype).astype(float)
    outputs = {n: np.empty((6, m), dtype) for n, m in program.signature.outputs.items()}
    call = machine_code(program, real)
    assert call([x.astype(dtype) for x in given.values()], list(outputs.values()))
    for each, expected in run(program, given).items():
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(outputs[each], expected, rtol=0, atol=bound * scale)


def test_both_configurations_are_looked_at(model: Model) -> None:
    """Quaternions of either that drifted are made unit, and those far from unit are refused."""
    call, rng = machine_code(difference(model)), np.random.default_rng(4)
    q0, q1 = (random_configuration(model, rng, (3,)) for _ in range(2))
    (start, *_) = (start for _, start in witness.quaternion_starts(model))
    known, found = witness.difference(model, q0, q1), np.empty((3, model.nv))
    for which in (0, 1):
        pair = [q0.copy(), q1.copy()]
        pair[which][1, start : start + 4] *= 1.0 + 3e-7
        assert call(pair, [found])
        np.testing.assert_allclose(found, known, rtol=0, atol=1e-12 * np.abs(known).max())
        pair[which][1, start : start + 4] *= 1.1
        assert not call(pair, [found])


@pytest.mark.parametrize("real", REALS)
def test_steps_of_no_length(model: Model, real: str) -> None:
    """A step of zero and no difference are finite in both precisions."""
    dtype, _ = REALS[real]
    q = random_configuration(model, np.random.default_rng(5), (4,)).astype(dtype)
    again, nothing = np.empty_like(q), np.empty((4, model.nv), dtype)
    assert machine_code(integrate(model), real)([q, np.zeros((4, model.nv), dtype)], [again])
    np.testing.assert_allclose(again, q, rtol=0, atol=4 * np.finfo(dtype).eps)
    assert machine_code(difference(model), real)([q, q], [nothing])
    np.testing.assert_allclose(nothing, np.zeros_like(nothing), rtol=0, atol=2e-6)
