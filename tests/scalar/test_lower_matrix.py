# SPDX-License-Identifier: BSD-3-Clause
"""Parts of matrices as scalar programs: every route to every request, against dense operators."""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest

from phistar.algebra.dense import Dense
from phistar.algebra.ir import Expr
from phistar.algebra.symbols import H, Upsilon, mass_matrix, phi, psi
from phistar.algorithms.innovations import L, mass_matrix_inverse
from phistar.algorithms.link_kinematics import J
from phistar.algorithms.operational_space import Omega, compliance
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.model.generators import chain
from phistar.model.joints import JOINT_KINDS
from phistar.model.random import random_model
from phistar.scalar.interpret import run
from phistar.scalar.lower_matrix import MATRIX_OUTPUT, result_blocks, to_unrolled_matrix
from phistar.scalar.verify import verify
from phistar.sweeps.column_support import BlockPartition
from phistar.sweeps.matrix_plans import cheapest_plan, evaluate
from phistar.sweeps.matrix_requests import Block, Col, Diag, Full, Request, Row, matrix_forms

MOVING = tuple(kind for kind in JOINT_KINDS if kind != "fixed")
ROBOTS = {
    "serial": {"topology": "serial", "kinds": MOVING[0::3]},
    "tree": {"topology": "tree", "floating_base": True, "kinds": MOVING[1::3]},
    "forest": {"topology": "forest", "kinds": MOVING[2::3]},
}
"""Between them they have all joint kinds."""
OPERATORS: dict[str, Expr] = {
    "mass matrix": mass_matrix,
    "inverse": mass_matrix_inverse.result,
    "Ω": Omega,
    "compliance": compliance,
    "ψ*Υ": psi.T @ Upsilon,
    "L": L,
    "J": J,
    "Hψ": H @ psi,
    "φ": phi,
}
CLOSE = 1e-9
"""Relative to the largest entry of the matrix: the condition of the mass matrices is up to 1e5."""


def _slices(blocks: BlockPartition) -> list[slice]:
    return [slice(a, b) for a, b in pairwise(np.cumsum([0, *blocks.sizes]))]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("shape", ROBOTS)
def test_every_request_by_every_program(name: str, shape: str) -> None:
    """Full, Row, Col, Block and Diag on robots with all joint kinds; all programs verify."""
    expr = OPERATORS[name]
    rng = np.random.default_rng(1)
    model = random_model(rng, 5, armature=0.5, fixed=0.2, massless=0.2, frames=3, **ROBOTS[shape])  # type: ignore[arg-type]
    frames = tuple(rng.choice(model.frame_names, 3, replace=False))
    q = random_configuration(model, rng)
    known = Dense(model, q, tasks=frames)(expr)
    rows, columns = (
        _slices(BlockPartition.of(space, model, frames)) for space in (expr.codomain, expr.domain)
    )
    i, j = len(rows) // 2, len(columns) - 1
    cases: dict[Request, list[np.ndarray]] = {
        Full(): [known],
        Row(i): [known[rows[i]]],
        Col(j): [known[:, columns[j]]],
        Block(0, 0): [known[rows[0], columns[0]]],
        Block(i, j): [known[rows[i], columns[j]]],
        Block((i, 0), (j, 1, i)): [
            np.block([[known[rows[r], columns[c]] for c in (j, 1, i)] for r in (i, 0)])
        ],
    }
    if expr.domain in (expr.codomain, expr.codomain.dual):
        cases[Diag()] = [known[r, c] for r, c in zip(rows, columns, strict=True)]
    for request, expected in cases.items():
        for form in matrix_forms(expr, request):
            program = to_unrolled_matrix([form], model, frames, request=request)
            verify(program)
            answer = result_blocks(form, model, frames, request)
            assert [(len(r), len(c)) for r, c in answer] == [x.shape for x in expected]
            ours = run(program, {"q": q[None]})[MATRIX_OUTPUT][0]
            flat = np.concatenate([x.ravel() for x in expected])
            assert np.abs(ours - flat).max() <= CLOSE * np.abs(known).max(), (request, form.name)


@pytest.mark.parametrize("expr", [mass_matrix, mass_matrix_inverse.result, Omega], ids=str)
def test_long_robots(expr: Expr) -> None:
    """A chain that is longer than Python's stack is deep: programs are traced in order."""
    n = 120
    model = chain(n)
    with _stack(n):
        _compare_parts(expr, model)


@contextmanager
def _stack(frames: int) -> Iterator[None]:
    """Python's stack may grow by this many frames, no more."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + frames)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _compare_parts(expr: Expr, model: Model) -> None:
    n = len(model.bodies)
    q = np.random.default_rng(2).normal(size=n)
    for request in (Diag(), Block(n // 2, n - 1), Col(n - 1)):
        if expr is Omega and not isinstance(request, Block):
            continue
        chosen = cheapest_plan(expr, request, model)
        known = evaluate(chosen, q, {})
        flat = np.concatenate([np.ravel(x) for x in known])
        program = to_unrolled_matrix([chosen.form], model, request=request)
        ours = run(program, {"q": q[None]})[MATRIX_OUTPUT][0]
        assert np.abs(ours - flat).max() <= CLOSE * np.abs(flat).max(), request
