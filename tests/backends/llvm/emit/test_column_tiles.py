# SPDX-License-Identifier: BSD-3-Clause
"""Columns of large matrices are turned out block by block; here of small ones, too."""

import numpy as np
import pytest

import phistar
from phistar.algebra.ir import Expr
from phistar.algebra.symbols import H, M, phi
from phistar.algorithms.programs import MATRICES
from phistar.backends import base
from phistar.backends.llvm.emit import column_tiles
from phistar.backends.to_llvm import MachineCode
from phistar.compile import matrix_executable, with_closed_inverses
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.robot import Robot
from phistar.scalar.program import Looped
from phistar.sweeps.matrix_plans import cheapest_plan, evaluate
from phistar.sweeps.matrix_requests import Full
from phistar.thresholds import POLICY
from tests.helpers import numbers, patch_policy


@pytest.fixture(autouse=True)
def _loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHISTAR_TIER", "rolled")
    monkeypatch.setenv("PHISTAR_CACHE", "off")
    monkeypatch.setattr(base, "_default_name", "llvm")
    patch_policy(monkeypatch, min_rows_tiled=1)


def _loops_of(operator: Expr | str, model: Model) -> tuple[MachineCode, Looped]:
    code = matrix_executable(operator, model)
    assert isinstance(code, MachineCode)
    program = code.program.traced("rolled")
    assert isinstance(program, Looped)
    return code, program


@pytest.mark.parametrize(
    ("operator", "joints", "seed"),
    [
        ("inverse_dynamics_q", 8, 1),
        ("inverse_dynamics_v", 7, 2),
        ("forward_dynamics_v", 12, 3),
        (M @ phi.T @ H.T, 5, 4),
    ],
    ids=str,
)
@pytest.mark.parametrize("real", [np.float64, np.float32])
def test_blocks_of_columns(operator: Expr | str, joints: int, seed: int, real: type) -> None:
    """Full blocks and what is left over, on trees of all joints, batches that fill no lanes.

    The witness is level 2; relative 1e-11 in double and 2e-3 in single precision.
    """
    model = random_model(np.random.default_rng(seed), joints)
    code, program = _loops_of(operator, model)
    assert program.column_loop is not None
    assert column_tiles.is_tiled(program) != program.column_loop.zero_fill
    rng = np.random.default_rng(seed)
    q = Robot(model).random_configuration(rng, 5)
    size = sum(body.joint_kind.nv for body in model.bodies)
    inputs = {name: rng.normal(size=(5, size)) for name in ("v", "vdot", "tau")}
    ours = numbers(code, q.astype(real), {name: x.astype(real) for name, x in inputs.items()})
    expr = MATRICES[operator] if isinstance(operator, str) else operator
    theirs = evaluate(cheapest_plan(with_closed_inverses(expr), Full(), model), q, inputs)
    assert ours.dtype == real
    bound = 1e-11 if real is np.float64 else 2e-3
    assert np.abs(ours - theirs).max() <= bound * np.abs(theirs).max()


@pytest.mark.parametrize("links", [16, 19])
def test_all_samples_of_a_batch(links: int) -> None:
    """Every row and column of every sample is written, and nothing beyond: relative 1e-11."""
    robot = phistar.robots.chain(links, axes="xyz")
    code, program = _loops_of("forward_dynamics_v", robot.model)
    assert column_tiles.is_tiled(program)
    assert (
        column_tiles.output_vectors(program) == links * POLICY.tile_columns + 1
    )  # and the sum of all
    rng = np.random.default_rng(links)
    q, v = rng.normal(size=(2, 9, links))
    theirs = evaluate(
        cheapest_plan(with_closed_inverses(MATRICES["forward_dynamics_v"]), Full(), robot.model),
        q,
        {"v": v},
    )
    ours = numbers(code, q, {"v": v})
    assert np.abs(ours - theirs).max() <= 1e-11 * np.abs(theirs).max()


def test_what_needs_the_whole_matrix_keeps_it() -> None:
    """Columns that write mirror images, and entries that nobody writes, are no blocks."""
    chain = phistar.robots.chain(9, axes="xyz").model
    _, symmetric = _loops_of("mass_matrix", chain)
    assert not column_tiles.is_tiled(symmetric)
    assert column_tiles.output_vectors(symmetric) == 81
    _, gaps = _loops_of(H @ phi, chain)
    assert gaps.column_loop is not None
    assert gaps.column_loop.zero_fill
    assert not column_tiles.is_tiled(gaps)


def test_small_matrices_are_kept_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """They stay in the caches as they are."""
    monkeypatch.undo()
    _, program = _loops_of("inverse_dynamics_q", phistar.robots.chain(9, axes="xyz").model)
    assert not column_tiles.is_tiled(program)
