# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of operators, whole and in parts: every program gives what dense operators give."""

from itertools import pairwise

import numpy as np
import pytest

from phistar.algebra.dense import Dense
from phistar.algebra.ir import Expr, let
from phistar.algebra.random_examples import random_vectors, vector_names
from phistar.algebra.spaces import JOINT
from phistar.algebra.symbols import (
    SYMBOLS,
    B,
    D,
    E_psi,
    H,
    K,
    M,
    P,
    Upsilon,
    composite,
    mass_matrix,
    phi,
    psi,
)
from phistar.algorithms.innovations import L, mass_matrix_inverse
from phistar.algorithms.link_kinematics import J
from phistar.algorithms.operational_space import Omega, compliance
from phistar.algorithms.programs import MATRICES
from phistar.errors import ArgumentError, LoweringError
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.sweeps.column_support import BlockPartition
from phistar.sweeps.lower import ARGUMENTS
from phistar.sweeps.matrix_plans import all_plans, cheapest_plan, evaluate
from phistar.sweeps.matrix_requests import Apply, Block, Col, Diag, Full, Row

ROBOTS = {
    "serial": {"topology": "serial"},
    "tree": {"topology": "tree", "floating_base": True},
    "forest": {"topology": "forest"},
}
SQUARE: dict[str, Expr] = {
    **{name: expr for name, expr in MATRICES.items() if expr.domain == expr.codomain},
    "HφP H*": H @ phi @ P @ H.T,
    "one-sided": H @ (phi @ M + M @ phi.T - 2 * composite) @ H.T,
    "ψMφ*": H @ psi @ M @ phi.T @ H.T,
    "L D L*": L @ D @ L.T,
    "L": L,
    "Ω": Omega,
    "named": let("Ω", Omega),
    "Υ": psi.T @ Upsilon,
    "φ": phi,
    "φEψ": phi @ E_psi,
    "compliance": compliance,
    "J 𝓜⁻¹ J*": J @ mass_matrix_inverse.result @ J.T,
    "spread source": H @ psi @ M @ Omega @ phi @ composite @ phi.T @ H.T,
    "twice": Omega @ M @ Omega,
}
OTHER: dict[str, Expr] = {
    **{name: expr for name, expr in MATRICES.items() if expr.domain != expr.codomain},
    "J": J,
    "HψB": H @ psi @ B,
    "φB": phi @ B,
    "K": K,
    "ΩB": Omega @ B,
}


def _robot(
    shape: str, seed: int
) -> tuple[Model, np.ndarray, tuple[str, ...], dict[str, np.ndarray]]:
    """A robot with all joint kinds, rotors, a configuration, frames (one at rest), vectors."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, 7, armature=0.5, fixed=0.2, massless=0.2, frames=3, **ROBOTS[shape])
    names = [*rng.choice(model.frame_names, 3, replace=False), "frame1"]
    frames = (*dict.fromkeys([*names, *_at_rest(model)]),)
    q = random_configuration(model, rng)
    return model, q, frames, random_vectors(rng, model, MATRICES.values())


def _at_rest(model: Model) -> list[str]:
    return [name for name in model.frame_names if model.frame(name).body < 0][:1]


def _joints(model: Model) -> int:
    return sum(body.joint_kind.nv for body in model.bodies)


def _inputs(expr: Expr, vectors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The vectors in an expression, shaped for sweeps."""
    read = vector_names([expr])
    joints = {n for n in read if SYMBOLS[n].symbol.codomain is JOINT}
    return {n: vectors[n] if n in joints else vectors[n].reshape(-1, 6) for n in read}


def _close(ours: np.ndarray, theirs: np.ndarray, scale: float) -> None:
    """Relative 1e-9 to the largest entry of the matrix."""
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max(initial=0.0) <= 1e-9 * scale


def _slices(blocks: BlockPartition) -> list[slice]:
    ends = np.cumsum([0, *blocks.sizes])
    return [slice(a, b) for a, b in pairwise(ends)]


@pytest.mark.parametrize("name", [*SQUARE, *OTHER])
@pytest.mark.parametrize("shape", ROBOTS)
def test_every_request_by_every_program(name: str, shape: str) -> None:
    """Full, Row, Col, Block and Diag, by all routes, are parts of the dense matrix."""
    expr = {**SQUARE, **OTHER}[name]
    model, q, frames, vectors = _robot(shape, 1)
    inputs = _inputs(expr, vectors)
    expected = Dense(model, q, vectors=vectors, tasks=frames)(expr)
    scale = np.abs(expected).max()
    rows, columns = (
        _slices(BlockPartition.of(space, model, frames)) for space in (expr.codomain, expr.domain)
    )
    for each in all_plans(expr, Full(), model, frames):
        _close(evaluate(each, q, inputs), expected, scale)
    i, j = len(rows) // 2, len(columns) - 1
    for each in all_plans(expr, Row(i), model, frames):
        _close(evaluate(each, q, inputs), expected[rows[i]], scale)
    for each in all_plans(expr, Col(j), model, frames):
        _close(evaluate(each, q, inputs), expected[:, columns[j]], scale)
    for row, column in ((0, 0), (i, j), (len(rows) - 1, 0), (0, j)):
        for each in all_plans(expr, Block(row, column), model, frames):
            _close(evaluate(each, q, inputs), expected[rows[row], columns[column]], scale)
    for each in all_plans(expr, Diag(), model, frames) if name in SQUARE else ():
        for block, row, column in zip(evaluate(each, q, inputs), rows, columns, strict=True):
            _close(block, expected[row, column], scale)


@pytest.mark.parametrize("name", SQUARE)
def test_apply(name: str) -> None:
    """An operator times a vector, through the same machine."""
    expr = SQUARE[name]
    model, q, frames, vectors = _robot("tree", 2)
    dense = Dense(model, q, vectors=vectors, tasks=frames)
    x = np.random.default_rng(3).normal(size=dense.dimensions[expr.domain])
    argument = ARGUMENTS[expr.domain]
    given = x if argument.codomain.name == "JOINT" else x.reshape(-1, 6)
    inputs = {**_inputs(expr, vectors), argument.name: given}
    expected = dense(expr) @ x
    result = evaluate(cheapest_plan(expr, Apply(), model, frames), q, inputs)
    _close(result, expected, np.abs(expected).max())


def test_several_blocks_at_once() -> None:
    """Rows and columns may be lists of links, in any order, also overlapping."""
    model, q, frames, _ = _robot("tree", 4)
    expr = mass_matrix_inverse.result
    expected = Dense(model, q, tasks=frames)(expr)
    slices = _slices(BlockPartition.of(expr.domain, model, frames))
    chosen, others = (4, 1), (1, 0, 5)
    numbers = [
        np.concatenate([np.arange(expected.shape[0])[slices[k]] for k in c])
        for c in (chosen, others)
    ]
    for each in all_plans(expr, Block(chosen, others), model, frames):
        result = evaluate(each, q, {})
        _close(result, expected[np.ix_(*numbers)], np.abs(expected).max())


def test_trees_of_a_forest_do_not_meet() -> None:
    """Links of different trees have no block in an inverse, and none is computed."""
    rng = np.random.default_rng(8)
    model = random_model(rng, 8, topology="forest", armature=0.5)
    roots = [_root(model, k) for k in range(8)]
    j = next(k for k in range(8) if roots[k] != roots[0])
    for each in all_plans(mass_matrix_inverse.result, Block(0, j), model):
        assert each.cost.total == 0
        assert not evaluate(each, random_configuration(model, rng), {}).any()


def _root(model: Model, k: int) -> int:
    while model.bodies[k].parent >= 0:
        k = model.bodies[k].parent
    return k


@pytest.mark.parametrize("name", ["mass_matrix", "mass_matrix_inverse", "compliance"])
def test_batches_and_complex_numbers(name: str) -> None:
    """A batch is a loop over samples; a complex step differentiates by every route."""
    expr = SQUARE[name]
    rng = np.random.default_rng(6)
    kinds = ["revolute", "prismatic", "helical"]
    model = random_model(rng, 6, kinds=kinds, topology="serial", armature=0.5, frames=2)
    q, frames = random_configuration(model, rng, (2, 3)), ("frame1", "frame2")
    direction = rng.normal(size=model.nq)
    for request in (Full(), Block(1, 0), Row(1), Col(0)):
        for each in all_plans(expr, request, model, frames):
            batch = evaluate(each, q, {})
            for place in np.ndindex(2, 3):
                _close(batch[place], evaluate(each, q[place], {}), np.abs(batch).max())
            exact = evaluate(each, q + 1e-30j * direction, {}).imag / 1e-30
            ahead, behind = (evaluate(each, q + h * direction, {}) for h in (1e-6, -1e-6))
            step = (ahead - behind) / 2e-6
            assert np.abs(exact - step).max() < 1e-6 * np.abs(exact).max()


def test_inputs_may_have_batches_of_their_own() -> None:
    """One configuration, many velocities: the Coriolis matrix of each."""
    model, q, _, _ = _robot("tree", 7)
    v = np.random.default_rng(8).normal(size=(4, _joints(model)))
    expr = MATRICES["coriolis_matrix"]
    for each in all_plans(expr, Full(), model):
        result = evaluate(each, q, {"v": v})
        for k in range(4):
            expected = Dense(model, q, vectors={"v": v[k]})(expr)
            _close(result[k], expected, np.abs(expected).max())


def test_what_cannot_be_asked() -> None:
    """A vector, a diagonal of something oblong, a block that is not there: each says so."""
    model, _, _, _ = _robot("serial", 9)
    with pytest.raises(LoweringError, match="vector"):
        cheapest_plan(mass_matrix @ ARGUMENTS[mass_matrix.domain], Full(), model)
    with pytest.raises(LoweringError, match="no diagonal"):
        cheapest_plan(H @ psi, Diag(), model)
    with pytest.raises(ArgumentError, match="no column of blocks 99"):
        cheapest_plan(mass_matrix, Block(0, 99), model)
    with pytest.raises(LoweringError, match="theorem"):
        cheapest_plan(mass_matrix.inv, Full(), model)
    with pytest.raises(LoweringError, match="zero"):
        cheapest_plan(mass_matrix - mass_matrix, Full(), model)
