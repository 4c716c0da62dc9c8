# SPDX-License-Identifier: BSD-3-Clause
"""Matrices as loops: every program of an operator, against straight lines and sweeps."""

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import phistar
from phistar.algebra.ir import Expr
from phistar.algebra.random_examples import given_names
from phistar.algebra.spaces import TASK_FORCE, TASK_MOTION
from phistar.algebra.symbols import E_phi, H, K, M, P, phi
from phistar.algorithms.link_kinematics import J
from phistar.algorithms.operational_space import compliance
from phistar.algorithms.programs import MATRICES
from phistar.compile import with_closed_inverses
from phistar.errors import LoweringError
from phistar.model import Model
from phistar.model.components import GROUND
from phistar.model.configuration import random_configuration
from phistar.model.joints import JOINT_KINDS
from phistar.scalar import interpret
from phistar.scalar.interpret import run
from phistar.scalar.lower_matrix import MATRIX_OUTPUT, to_looped_matrix, to_unrolled_matrix
from phistar.scalar.printing import to_text
from phistar.scalar.program import Looped, count_arithmetic
from phistar.scalar.robot.link_relations import (
    ABOVE,
    AFTER,
    AT,
    BEFORE,
    BELOW,
    AncestorRelations,
    nonzero_relations,
)
from phistar.scalar.verify import VerifyError, verify
from phistar.sweeps.column_support import BlockPartition, ColumnSupport
from phistar.sweeps.matrix_plans import cheapest_plan, evaluate
from phistar.sweeps.matrix_requests import Full, MatrixForm, matrix_forms

ABSENT = frozenset({"f_ext", "gravity"})
OPERATORS: dict[str, Expr] = {
    **{name: MATRICES[name] for name in MATRICES if not name.endswith(("qq", "qv", "vv"))},
    "compliance": compliance,
    "J": J,
    "J*": J.T,
    "HφM": H @ phi @ M,
    "φ": phi,
    "K*φ*H*": K.T @ phi.T @ H.T,
    "HMH*": H @ M @ H.T,
    "φMφ*": phi @ M @ phi.T,
    "EφMEφ*": E_phi @ M @ E_phi.T,
    "PEφ*": P @ E_phi.T,
}
MIXED = ("mixed tree", "forest", "free base", "panda_hand")
SMALL = ("small tree", "small forest", "small base", "panda_hand")
LONG = tuple(name for name in OPERATORS if name.endswith(("_q", "_v", "_split")))
CASES = [
    *((robot, name) for name in OPERATORS for robot in (SMALL if name in LONG else MIXED)),
    *(
        (kind, name)
        for kind in JOINT_KINDS
        if kind != "fixed"
        for name in ("mass_matrix", "mass_matrix_inverse", "coriolis_matrix", "J")
    ),
]
"""All operators on robots of every kind of joint, the most used ones on robots of one kind."""


def _frames(model: Model) -> tuple[str, ...]:
    """Three frames, the last two of them on one link, and the ground."""
    names = [frame.name for frame in model.frames.values() if frame.body != GROUND]
    ground = [frame.name for frame in model.frames.values() if frame.body == GROUND]
    return (names[0], *ground[:1], names[-1], names[-1])


@cache
def _usable(expr: Expr) -> list[MatrixForm]:
    """The programs that have a scalar form."""
    found = []
    for form in matrix_forms(with_closed_inverses(expr), Full()):
        program = form.schedule.program
        if not {program.nodes[s].op for s in program.live()} & {
            "congruence_out",
            "compliance_update",
            "select",
        }:
            found.append(form)
    return found


def _state(model: Model, name: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(7)
    q = random_configuration(model, rng, (2,))
    joints = sum(body.joint_kind.nv for body in model.bodies)
    read = sorted(given_names([OPERATORS[name]]) - {"f_ext"})
    return q, {each: rng.normal(size=(2, joints)) for each in read}


@pytest.mark.parametrize(("robot", "name"), CASES)
def test_loops_straight_line_and_sweeps_agree(
    models: dict[str, Model], robot: str, name: str
) -> None:
    """Every program of an operator gives in loops what sweeps give; relative 1e-11."""
    model, expr = models[robot], OPERATORS[name]
    tasks = {TASK_MOTION, TASK_FORCE} & {expr.codomain, expr.domain}
    frames = _frames(model) if tasks else ()
    q, inputs = _state(model, name)
    known = evaluate(
        cheapest_plan(with_closed_inverses(expr), Full(), model, frames), q, inputs
    ).reshape(2, -1)
    scale = max(np.abs(known).max(), 1e-6)
    for form in _usable(expr):
        loops = to_looped_matrix([form], model, frames, ABSENT)
        verify(loops)
        ours = run(loops, {"q": q, **inputs})[MATRIX_OUTPUT]
        assert np.abs(ours - known).max() <= 1e-11 * scale
    straight = to_unrolled_matrix(_usable(expr)[:1], model, frames, ABSENT)
    assert np.abs(run(straight, {"q": q, **inputs})[MATRIX_OUTPUT] - known).max() <= 1e-11 * scale


@pytest.mark.parametrize("name", ["mass_matrix", "mass_matrix_inverse", "compliance"])
@pytest.mark.parametrize("robot", ["mixed tree", "forest", "free base"])
def test_symmetric_to_the_bit(models: dict[str, Model], robot: str, name: str) -> None:
    """Of a symmetric matrix each number is computed once, and other branches are exactly zero."""
    model = models[robot]
    frames = _frames(model) if name == "compliance" else ()
    q, _ = _state(model, name)
    program = to_looped_matrix(_usable(OPERATORS[name]), model, frames, ABSENT)
    (found,) = run(program, {"q": q[:1]}).values()
    matrix = found.reshape(2 * (round(found.size**0.5),))
    assert np.array_equal(matrix, matrix.T)
    if name == "mass_matrix":
        relation = AncestorRelations([body.parent for body in model.bodies])
        starts = np.cumsum([0, *(body.joint_kind.nv for body in model.bodies)])
        for a in range(len(model.bodies)):
            for b in range(len(model.bodies)):
                if relation(a, b) in (BEFORE, AFTER):
                    block = matrix[starts[a] : starts[a + 1], starts[b] : starts[b + 1]]
                    assert not block.any()


def _ancestors(parent: list[int], k: int) -> set[int]:
    found = set()
    while parent[k] >= 0:
        k = parent[k]
        found.add(k)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_relations(seed: int) -> None:
    """Entering and leaving in depth-first order tells what climbing the tree tells."""
    rng = np.random.default_rng(seed)
    parent = [int(rng.integers(-1, k)) for k in range(12)]
    relation = AncestorRelations(parent)
    for k in range(12):
        for c in range(12):
            expected = BEFORE if k < c else AFTER
            if k == c:
                expected = AT
            elif k in _ancestors(parent, c):
                expected = ABOVE
            elif c in _ancestors(parent, k):
                expected = BELOW
            assert relation(k, c) == expected


TASKS = ("compliance", "J", "J*", "jacobian_rate")
"""Operators whose rows or columns are frames."""


@pytest.mark.parametrize("name", [n for n in OPERATORS if n not in TASKS])
def test_presence_covers_the_support(models: dict[str, Model], name: str) -> None:
    """Wherever level 2 finds columns, the relation of link and column allows for them."""
    model = models["mixed tree"]
    relation = AncestorRelations([body.parent for body in model.bodies])
    for form in _usable(OPERATORS[name]):
        columns = BlockPartition.of(form.domain, model, ())
        support = ColumnSupport(
            form.schedule, model, form.argument, columns.sources(columns.all), {}
        )
        where = nonzero_relations(form.schedule.program, form.argument)
        assert set(where) == set(support.column_streams)
        for stream in where:
            for k, present in enumerate(support.present[stream]):
                for c in range(len(model.bodies)):
                    if present >> c & 1:
                        assert relation(k, c) in where[stream]


class _Counting:
    """Counts the operations that the interpreter does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: Counter[str] = Counter()
        for op, function in interpret._OPERATIONS.items():
            monkeypatch.setitem(interpret._OPERATIONS, op, self._counted(op, function))

    def _counted(self, op: str, function: object) -> object:
        def run(*operands: object) -> object:
            self.done[op] += 1
            return function(*operands)  # type: ignore[operator]

        return run


@pytest.mark.parametrize("name", ["mass_matrix", "mass_matrix_inverse", "coriolis_matrix"])
def test_count_is_what_runs(
    models: dict[str, Model], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bill says how often the interpreter multiplies, divides and subtracts."""
    model = models["mixed tree"]
    q, inputs = _state(model, name)
    program = to_looped_matrix(_usable(OPERATORS[name]), model, (), ABSENT)
    counting = _Counting(monkeypatch)
    run(program, {"q": q, **inputs})
    for op in ("mul", "sub", "div", "sin", "cos"):
        assert program.count()[op] == counting.done[op]
    assert counting.done["mul"] > 100


def _operations(model: Model, name: str) -> int:
    return count_arithmetic(to_looped_matrix(_usable(MATRICES[name]), model, (), ABSENT).count())


def test_cost_grows_with_the_depth() -> None:
    """𝓜 takes O(n·depth) and 𝓜⁻¹ O(n²): twice as many links, four times the work on a chain."""
    short, long = (phistar.robots.chain(n, axes="xyz").model for n in (60, 120))
    for name in ("mass_matrix", "mass_matrix_inverse"):
        assert 3.5 < _operations(long, name) / _operations(short, name) < 4.2
    # Limbs beside each other only add up.
    one, two = (phistar.load(name).model for name in ("double_pendulum", "quadruped"))
    assert _operations(one, "mass_matrix") < _operations(two, "mass_matrix") < 900


def _quadruped() -> Looped:
    model = phistar.load("quadruped").model
    return to_looped_matrix(_usable(MATRICES["mass_matrix_inverse"]), model, (), ABSENT)


def test_verifier_notices_what_is_left_from_another_column() -> None:
    """A step of the way to the root that leaves nothing is named, though a slot has a number."""
    program = _quadruped()
    columns = program.column_loop
    assert columns is not None
    verify(program)
    inward = columns.sweeps[0]
    for variant, body in inward.blocks.items():
        if variant[1] == ABOVE and body.stores:
            body.stores.clear()
            break
    with pytest.raises(VerifyError, match="nothing was left there"):
        verify(program)


def test_verifier_notices_entries_written_twice_or_never() -> None:
    """Every entry of a matrix is stored once unless it begins as zero."""
    program = _quadruped()
    columns = program.column_loop
    assert columns is not None
    outward = columns.sweeps[-1]
    body = next(b for v, b in outward.blocks.items() if v[1] == BEFORE)
    (number, store), *_ = ((i, s) for i, s in enumerate(body.stores) if s.space == MATRIX_OUTPUT)
    body.stores[number] = replace(store, transposed=not store.transposed)
    with pytest.raises(VerifyError, match="stored twice"):
        verify(program)
    del body.stores[number]
    with pytest.raises(VerifyError, match="is never stored"):
        verify(program)


def test_text_names_walks_and_relations() -> None:
    """People can read which body is for which links, and where numbers go."""
    text = to_text(_quadruped())
    assert "for each of 18 columns:" in text
    assert "walk 0, to the ancestors:" in text
    assert "above:" in text
    assert "at it, column 5 of it:" in text
    assert "matrix{k, j}[0] = " in text
    assert "matrix{j, k}[0] = " in text


def test_a_matrix_without_a_scalar_form() -> None:
    """Programs with compliances have none, and say so."""
    found = matrix_forms(with_closed_inverses(MATRICES["mass_matrix_inverse"]), Full())
    walks = [form for form in found if form.name == "propagation"]
    with pytest.raises(LoweringError, match="no program for this matrix has a form of loops"):
        to_looped_matrix(walks, phistar.load("panda").model)
