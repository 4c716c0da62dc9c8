# SPDX-License-Identifier: BSD-3-Clause
"""Straight lines and loops as machine code against their interpreter, in every width."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from phistar.algebra.random_examples import vector_names
from phistar.algorithms.programs import MATRICES, PROGRAMS, REGROUPABLE_PROGRAMS
from phistar.backends import base
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.looped_module import looped_workspace
from phistar.backends.llvm.emit.skeleton import row_tiles
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.backends.llvm.run.machine_kernel import llvm_text
from phistar.compile import Full, kernel, matrix
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.scalar.graph import Graph
from phistar.scalar.interpret import run
from phistar.scalar.lower import LoweringOptions, to_looped, to_unrolled
from phistar.scalar.program import BasicBlock, Looped, ScalarProgram, Signature, Store, Unrolled

SHAPES: dict[str, Callable[..., ScalarProgram]] = {"straight": to_unrolled, "rolled": to_looped}
GRAVITY = frozenset({"gravity"})
DTYPES = {"double": np.float64, "float": np.float32}


@pytest.fixture(scope="module")
def model() -> Model:
    """A few joints of different kinds, with rotors."""
    kinds = ["revolute", "prismatic", "spherical", "helical", "revolute"]
    return random_model(np.random.default_rng(31), 5, kinds=kinds, armature=0.5)


def machine_code(program: ScalarProgram, lanes: Lanes) -> KernelCaller:
    """A program, compiled."""
    room = looped_workspace(program) if isinstance(program, Looped) else 0
    return KernelCaller(jit.load(llvm_text(program, lanes)), program.signature, lanes, room)


def inputs_of(program: ScalarProgram, model: Model, batch: int) -> dict[str, np.ndarray]:
    """Random ones."""
    rng = np.random.default_rng(32)
    given = {name: rng.normal(size=(batch, n)) for name, n in program.signature.inputs.items()}
    return {**given, "q": random_configuration(model, rng, (batch,))}


def errors(program: ScalarProgram, lanes: Lanes, model: Model, batch: int) -> float:
    """The largest one, relative to the largest number of its output."""
    dtype = DTYPES[lanes.real]
    given = {name: x.astype(dtype) for name, x in inputs_of(program, model, batch).items()}
    expected = run(program, {name: x.astype(float) for name, x in given.items()})
    outputs = {n: np.full((batch, m), np.nan, dtype) for n, m in program.signature.outputs.items()}
    assert machine_code(program, lanes)(list(given.values()), list(outputs.values()))
    worst = 0.0
    for name, value in expected.items():
        error = np.abs(outputs[name] - value).max(initial=0.0)
        worst = max(worst, error / max(np.abs(value).max(initial=0.0), 1e-6))
    return float(worst)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program(name: str, shape: str, model: Model) -> None:
    """In this machine's width, a batch with a rest; relative 1e-12, single 2e-3.

    Single precision loses the condition of the mass matrix, some 1e3, where a program divides.
    """
    options = LoweringOptions(regroup=name in REGROUPABLE_PROGRAMS)
    program = SHAPES[shape](kernel(name).schedule, model, GRAVITY, options=options)
    for real, bound in (("double", 1e-12), ("float", 2e-3)):
        lanes = jit.lanes_for(jit.host_cpu(), real)
        assert errors(program, lanes, model, 2 * lanes.width + 1) <= bound


@pytest.mark.parametrize(
    ("width", "real"),
    [(1, "double"), (2, "double"), (8, "double"), (1, "float"), (4, "float"), (16, "float")],
)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_width(shape: str, width: int, real: str, model: Model) -> None:
    """Code wider or narrower than the machine's registers is right as well."""
    program = SHAPES[shape](kernel("inverse_dynamics").schedule, model, GRAVITY)
    bound = 1e-12 if real == "double" else 1e-4
    assert errors(program, Lanes(width, real), model, width + 1) <= bound


@pytest.mark.parametrize("shape", SHAPES)
def test_widths_agree_to_rounding(shape: str, model: Model) -> None:
    """A sample has the same result in one lane and in eight."""
    program = SHAPES[shape](kernel("forward_dynamics_3").schedule, model, GRAVITY)
    given = inputs_of(program, model, 9)
    results: list[Any] = []
    for width in (1, 8):
        out = np.empty((9, program.signature.outputs["vdot"]))
        machine_code(program, Lanes(width))(list(given.values()), [out])
        results.append(out)
    assert np.abs(results[0] - results[1]).max() <= 1e-12 * np.abs(results[0]).max()


@pytest.mark.parametrize("name", sorted(set(MATRICES) - {"hinge_inertia"}))
def test_matrices_beside_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of a robot by machine code, 1e-10 of what the backend ``numpy`` gives."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    rng = np.random.default_rng(33)
    read = vector_names([MATRICES[name]])
    for free in (False, True):
        model = random_model(rng, 3, floating_base=free)
        joints = sum(body.joint_kind.nv for body in model.bodies)
        for batch in (0, 1, 7):
            q = random_configuration(model, rng, (batch,))
            inputs = {n: rng.normal(size=(batch, joints)) for n in sorted(read - {"f_ext"})}
            results = []
            for backend in ("llvm", "numpy"):
                monkeypatch.setattr(base, "_default_name", backend)
                results.append(matrix(name, Full(), model, q, inputs, ("link1",)))
            ours, theirs = results
            assert ours.shape == theirs.shape
            assert ours.shape[:1] == (batch,)
            bound = 1e-10 * np.abs(theirs).max(initial=1.0)
            assert np.abs(ours - theirs).max(initial=0.0) <= bound


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_rows_of_every_size(width: int, real: str) -> None:
    """Entries go in and out in pieces of any size; rows far apart, nothing else is touched."""
    rng = np.random.default_rng(width)
    sizes = {1, 2, 3, width // 2, width - 1, width, width + 1, width * 3 // 2, 2 * width + 1}
    for size in sorted(sizes - {0}):
        lanes = Lanes(width, real)
        runs = [range(start, start + count) for start, count in row_tiles(size, lanes)]
        assert sorted({i for run in runs for i in run}) == list(range(size))
        graph = Graph()
        stores = [Store("y", i, "", -graph.load("x", size - 1 - i)) for i in range(size)]
        program = Unrolled(Signature({"x": size}, {"y": size}), BasicBlock(graph, stores))
        caller = machine_code(program, lanes)
        batch = 2 * width + 1
        x = rng.normal(size=(batch, size + 3)).astype(DTYPES[real])[:, :size]
        room = np.full((batch, size + 2), 7.0, DTYPES[real])
        assert caller([x], [room[:, 1:-1]])
        np.testing.assert_array_equal(room[:, 1:-1], -x[:, ::-1])
        assert (room[:, [0, -1]] == 7.0).all()
        x[width, size - 1] = np.inf
        assert not caller([x], [room[:, 1:-1]])
