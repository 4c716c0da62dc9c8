# SPDX-License-Identifier: BSD-3-Clause
"""Columns in the lanes of one sample: the bits of the kernel that has samples there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import phistar
from phistar.algebra.ir import Expr
from phistar.algebra.spaces import TASK_FORCE, TASK_MOTION
from phistar.algebra.symbols import E_phi, H, M, phi
from phistar.algorithms.link_kinematics import J
from phistar.algorithms.operational_space import compliance
from phistar.algorithms.programs import MATRICES
from phistar.backends.llvm.emit.entry_function import ENTRY_SYMBOL
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.machine_kernel import emit_module
from phistar.backends.llvm.run.native_entry import NativeEntry, load_native_entry
from phistar.backends.to_llvm import MachineCode
from phistar.compile import matrix_executable, with_closed_inverses
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.scalar.lower_matrix import MATRIX_OUTPUT, to_looped_matrix
from phistar.scalar.program import Looped
from phistar.sweeps.matrix_requests import Full, matrix_forms
from tests.helpers import patch_policy

ABSENT = frozenset({"f_ext", "gravity"})
MODELS: dict[str, Model] = {
    "tree": random_model(np.random.default_rng(20), 5, topology="tree", armature=0.5, frames=2),
    "forest": random_model(np.random.default_rng(21), 5, topology="forest", massless=0.2, frames=2),
    "free base": random_model(np.random.default_rng(22), 3, floating_base=True, frames=2),
    "chain": phistar.robots.chain(19).model,
}
OPERATORS: dict[str, Expr] = {
    **{name: MATRICES[name] for name in ("mass_matrix", "mass_matrix_inverse", "coriolis_matrix")},
    "inverse_dynamics_q": MATRICES["inverse_dynamics_q"],
    "compliance": compliance,
    "J": J,
    "φMφ*": phi @ M @ phi.T,
    "HφMEφ*H*": H @ phi @ M @ E_phi.T @ H.T,
}


def entry(program: Looped, lanes: Lanes, alone: bool) -> NativeEntry:
    """The native entry of a kernel."""
    text, _ = emit_module(program, lanes, alone)
    made = load_native_entry(jit.load(text, symbols=(ENTRY_SYMBOL,)))
    assert made is not None
    return made


def state(program: Looped, model: Model, real: str) -> list[np.ndarray]:
    """A sample of all inputs."""
    rng = np.random.default_rng(7)
    given: Mapping[str, np.ndarray] = {"q": random_configuration(model, rng)}
    rows = [given.get(name, rng.normal(size=n)) for name, n in program.signature.inputs.items()]
    return [np.array(row, np.float64 if real == "double" else np.float32) for row in rows]


def programs(robot: str, name: str) -> list[Looped]:
    """All programs of an operator in loops."""
    model, expr = MODELS[robot], OPERATORS[name]
    tasks = {TASK_MOTION, TASK_FORCE} & {expr.codomain, expr.domain}
    frames = [x.name for x in model.frames.values() if x.body >= 0][:3] if tasks else []
    found = []
    for form in matrix_forms(with_closed_inverses(expr), Full()):
        used = form.schedule.program
        if not {used.nodes[s].op for s in used.live()} & {
            "congruence_out",
            "compliance_update",
            "select",
        }:
            found.append(to_looped_matrix([form], model, frames, ABSENT))
    return found


@pytest.mark.parametrize(
    ("robot", "name"),
    [(r, n) for r in MODELS for n in OPERATORS if r == "chain" or not n.endswith("_q")],
)
def test_same_bits_as_in_a_batch(robot: str, name: str) -> None:
    """Every way to a matrix, and no entry beyond it is touched."""
    for program in programs(robot, name):
        (size,) = program.signature.outputs.values()
        rows = state(program, MODELS[robot], "double")
        lanes = jit.lanes_for(jit.host_cpu())
        expected, room = np.empty(size), np.full(size + 2 * lanes.width, 7.0)
        assert entry(program, lanes, False)(*rows, expected)
        assert entry(program, lanes, True)(*rows, room[lanes.width : -lanes.width])
        np.testing.assert_array_equal(room[lanes.width : -lanes.width], expected)
        assert (room[: lanes.width] == 7.0).all()
        assert (room[-lanes.width :] == 7.0).all()


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("width", [2, 4, 8])
def test_every_width(width: int, real: str) -> None:
    """Groups of columns that are not full, on any number of lanes and in both precisions."""
    for robot, name in (("chain", "mass_matrix_inverse"), ("forest", "mass_matrix")):
        for program in programs(robot, name)[:1]:
            (size,) = program.signature.outputs.values()
            rows = state(program, MODELS[robot], real)
            expected, found = (np.full(size, np.nan, rows[0].dtype) for _ in range(2))
            assert entry(program, Lanes(width, real), False)(*rows, expected)
            assert entry(program, Lanes(width, real), True)(*rows, found)
            np.testing.assert_array_equal(found, expected)


def test_entries_that_columns_add_to() -> None:
    """Loops in which all entries are sums that begin with zero give the same matrix."""
    for robot in ("tree", "free base"):
        (program, *_) = programs(robot, "mass_matrix")
        columns = program.column_loop
        assert columns is not None
        rows = state(program, MODELS[robot], "double")
        lanes = jit.lanes_for(jit.host_cpu())
        (size,) = program.signature.outputs.values()
        expected = np.empty(size)
        assert entry(program, lanes, False)(*rows, expected)
        for walk in columns.sweeps:
            for body in walk.blocks.values():
                body.stores[:] = [
                    replace(store, add=True) if store.space == MATRIX_OUTPUT else store
                    for store in body.stores
                ]
        sums = replace(program, column_loop=replace(columns, zero_fill=True))
        for alone in (False, True):
            found = np.full(size, np.nan)
            assert entry(sums, lanes, alone)(*rows, found)
            np.testing.assert_array_equal(found, expected)


def test_not_finite() -> None:
    """It is told, and so are two samples, for which there is no room."""
    (program, *_) = programs("chain", "mass_matrix")
    (size,) = program.signature.outputs.values()
    alone = entry(program, jit.lanes_for(jit.host_cpu()), True)
    (q,) = state(program, MODELS["chain"], "double")
    out = np.empty(size)
    assert alone(q, out)
    q[3] = np.inf
    assert not alone(q, out)
    assert not alone(np.zeros((2, len(q))), np.empty((2, size)))


def test_single_samples_of_large_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Robots whose matrices stay loops have such a kernel; single samples and batches agree."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    patch_policy(monkeypatch, max_link_columns_unrolled=10)
    robot = phistar.robots.chain(11).with_gravity((0.0, 0.0, -2.75))
    code = matrix_executable("mass_matrix_inverse", robot.model)
    assert isinstance(code, MachineCode)
    kernel = code.tiers().kernel
    assert kernel.shape == "rolled"
    assert kernel.single_entry is not None
    assert kernel.single_entry is not kernel.native_entry
    assert "columns in the lanes" in str(robot.compile("mass_matrix_inverse").decision)
    q = robot.random_configuration(np.random.default_rng(0), 3)
    batch = robot.mass_matrix_inverse(q)
    for one, expected in zip(q, batch, strict=True):
        np.testing.assert_array_equal(robot.mass_matrix_inverse(one), expected)


def test_one_lane() -> None:
    """Where the lanes are one there are none for columns: they come one after the other."""
    (program, *_) = programs("chain", "mass_matrix")
    given = state(program, MODELS["chain"], "double")
    size = next(iter(program.signature.outputs.values()))
    alone, other = np.empty((2, size))
    assert entry(program, Lanes(1), True)(*given, alone)
    assert entry(program, Lanes(1), False)(*given, other)
    np.testing.assert_array_equal(alone, other)
    assert np.isfinite(alone).all()
