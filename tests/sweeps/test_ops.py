# SPDX-License-Identifier: BSD-3-Clause
"""The table of operations: columns agree with the values, and a row is all that a new one needs."""

import re
from dataclasses import replace
from fractions import Fraction
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from phistar.algorithms.programs import PROGRAMS
from phistar.arrays import Array
from phistar.backends import Tuning, names, running_names, to_numpy
from phistar.compile import compile_outputs
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.scalar.graph import Graph, Value
from phistar.scalar.linear.vectors import scaled, times
from phistar.scalar.trace import link_operations
from phistar.spatial import inertia_matrix, motion_transform, pose_inverse
from phistar.sweeps.classical_accelerations import with_classical_accelerations
from phistar.sweeps.costs import OperationCount, count_operations
from phistar.sweeps.interpret import Interpreter, run
from phistar.sweeps.ir import Direction, StreamProgram, Type
from phistar.sweeps.op_values import GroundState, LinkState
from phistar.sweeps.ops import OPS, Op, Support
from phistar.sweeps.printing import to_text
from phistar.sweeps.schedule import schedule
from phistar.sweeps.stream_types import GROUND_COMPONENTS, OpSignature
from phistar.sweeps.verify import verify_schedule
from tests.helpers import build, chosen_backends

CASES = [
    pytest.param(row, signature, id=f"{row.name} {signature}")
    for row in OPS.values()
    if row.value
    for signature in row.signatures
]


def _link(rotors: float = 0.5) -> LinkState:
    model = random_model(np.random.default_rng(8), 2, kinds=["spherical"])
    q = random_configuration(model, np.random.default_rng(9))
    program = StreamProgram()
    program.outputs = {"x": program.leaf("x", Type.JOINT)}
    link = Interpreter(schedule(program), model, q, {}).links[1]
    return replace(link, armature=np.full(3, rotors))


def _state(row: Op, rotors: float = 0.5) -> Any:
    """A link, or the ground for what is made there of sums over links."""
    if row.reduction is None and row.signatures[0].result.at_ground:
        return GroundState(3.0, 2.0, np.array([0.1, 0.2, -9.8]), np.ones(4))
    return _link(rotors)


def _random(type: Type, size: int, rng: np.random.Generator) -> Any:
    shapes = {
        **dict.fromkeys((Type.MOTION, Type.FORCE, Type.WORLD_MOTION), (6,)),
        **dict.fromkeys((Type.INERTIA, Type.TRANSFER), (6, 6)),
        **{Type.JOINT: (size,), Type.BLOCK: (6, size), Type.FACTOR: (size, size)},
        Type.ANGULAR_ACCELERATION_MATRIX: (3, 3),
        **{kind: (kind.width,) for kind in (Type.NUMBER, Type.POINT, Type.PLANE)},
        **{kind: (size,) for kind, size in GROUND_COMPONENTS.items()},
    }
    x = rng.normal(size=shapes[type])
    if type in (Type.INERTIA, Type.FACTOR):
        return x @ x.T + np.eye(len(x))
    if type is Type.TRANSFER:
        x[:, 3:] = 0.0
    return x


def _operands(signature: OpSignature, link: Any) -> list[Any]:
    rng = np.random.default_rng(3)
    size = len(link.H) if isinstance(link, LinkState) else 0
    return [_random(each, size, rng) for each in signature.operands]


def test_rows_are_complete() -> None:
    """What has a value also has types, a text with all operands, a cost; all have a meaning."""
    assert [row.name for row in OPS.values()] == list(OPS)
    for row in OPS.values():
        assert row.meaning
        assert (row.value is None) is (row.cost is None)
        if row.value is not None:
            (count,) = {len(s.operands) for s in row.signatures}
            assert set(re.findall(r"{(\d)}", row.text)) == {str(i) for i in range(count)}


def test_both_forms_of_code_are_complete() -> None:
    """NumPy source for all operations that lowering makes, scalars for all that there are."""
    valued = {row.name: row for row in OPS.values() if row.value}
    assert set(link_operations.LINK_OPERATIONS) == set(valued)
    assert set(to_numpy.OP_SOURCE) == {n for n, row in valued.items() if not row.is_scalar_only}


@pytest.mark.parametrize(("row", "signature"), CASES)
def test_results_have_the_type_that_is_stated(row: Op, signature: OpSignature) -> None:
    """Shapes of results, symmetric where they should be, the right half of transfers zero."""
    link = _state(row)
    operands = _operands(signature, link)
    if row.name == "transfer_update":
        operands[1][3:] = 0.0  # as bias_gain makes it
    result = row.evaluate(link, *operands)
    assert result.shape == _random(signature.result, 3, np.random.default_rng(0)).shape
    if signature.result in (Type.INERTIA, Type.FACTOR):
        if row.name == "articulated_downdate":
            P = operands[0]
            U = OPS["U"].evaluate(link, P)
            G = OPS["G"].evaluate(link, U, OPS["D"].evaluate(link, U))
            result = row.evaluate(link, P, U, G)
        if row.name != "D":
            np.testing.assert_allclose(result, result.T, rtol=1e-12, atol=1e-12)
    if signature.result is Type.TRANSFER:
        assert not result[:, 3:].any()


@pytest.mark.parametrize(("row", "signature"), CASES)
def test_linear_operations_are_linear(row: Op, signature: OpSignature) -> None:
    """In their last operand, if the row says so."""
    link = _state(row)
    *others, x = _operands(signature, link)
    y = _random(signature.operands[-1], 3, np.random.default_rng(4))
    both = row.evaluate(link, *others, 2.0 * x - 3.0 * y)
    apart = 2.0 * row.evaluate(link, *others, x) - 3.0 * row.evaluate(link, *others, y)
    if row.linear:
        np.testing.assert_allclose(both, apart, rtol=1e-9, atol=1e-9)
    assert not row.linear or signature.operands[-1] not in (Type.BLOCK, Type.FACTOR)


@pytest.mark.parametrize(("row", "signature"), CASES)
def test_results_are_zero_where_the_support_says(row: Op, signature: OpSignature) -> None:
    """One operand zero, or all of them; gains and factors are never zero."""
    link = _state(row)
    given = _operands(signature, link)
    optional = [i for i, t in enumerate(signature.operands) if t not in (Type.BLOCK, Type.FACTOR)]
    if row.support is Support.INTERSECTION:
        for i in optional:
            operands = [0.0 * x if i == j else x for j, x in enumerate(given)]
            assert not row.evaluate(link, *operands).any()
    elif row.support is Support.UNION:
        assert not row.evaluate(link, *(0.0 * x for x in given)).any()
    assert row.evaluate(link, *given).any()


@pytest.mark.parametrize(("row", "signature"), CASES)
def test_operations_divide_by_D_where_stated(row: Op, signature: OpSignature) -> None:
    """With a singular D these fail, the others do not notice."""
    link = _state(row)
    given = _operands(signature, link)
    operands = [
        0.0 * x if each is Type.FACTOR else x
        for each, x in zip(signature.operands, given, strict=True)
    ]
    if row.divides:
        with pytest.raises(np.linalg.LinAlgError):
            row.evaluate(link, *operands)
    else:
        assert np.isfinite(row.evaluate(link, *operands)).all()


@pytest.mark.parametrize(("row", "signature"), CASES)
def test_operations_need_rotors_where_stated(row: Op, signature: OpSignature) -> None:
    """Zero without rotors, whatever the operands are."""
    link = _state(row, rotors=0.0)
    is_zero = not row.evaluate(link, *_operands(signature, link)).any()
    assert is_zero is row.needs_rotors


@pytest.mark.parametrize("name", ["inverse_dynamics", "bias_force", "forward_dynamics_3"])
def test_classical_accelerations_give_the_same(name: str) -> None:
    """Programs rewritten with operations that scalar programs alone use, by the interpreter."""
    rng = np.random.default_rng(1)
    model = random_model(rng, 8, armature=0.3)
    given = compile_outputs(name, tuple(PROGRAMS[name].items())).schedule
    rewritten = with_classical_accelerations(given.program)
    assert rewritten is not None
    used = {rewritten.nodes[s].op for s in rewritten.live()}
    assert {n for n, row in OPS.items() if row.is_scalar_only} <= used
    q = random_configuration(model, rng, (3,))
    inputs = {each: rng.normal(size=(3, model.nv)) for each in ("v", "vdot", "tau")}
    expected = run(given, model, q, inputs)
    found = run(schedule(rewritten), model, q, inputs)
    for output, values in expected.items():
        np.testing.assert_allclose(found[output], values, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("row", [row for row in OPS.values() if row.is_scalar_only])
def test_costs_of_classical_accelerations(row: Op) -> None:
    """What the scalar form takes of numbers none of which is known."""
    graph, entry = Graph(), count()

    def numbers(size: int) -> list[Value]:
        return [graph.load("x", next(entry)) for _ in range(size)]

    def matrix() -> list[list[Value]]:
        return [numbers(3) for _ in range(3)]

    back = matrix()
    place = SimpleNamespace(
        link=SimpleNamespace(mass=numbers(1)[0], h=numbers(3), J=numbers(6), E=numbers(3)),
        rotation=SimpleNamespace(rotate_back=lambda x: times(back, x)),
        offset=numbers(3),
    )
    (signature,) = row.signatures
    operands = [numbers(6) if each is Type.MOTION else matrix() for each in signature.operands]
    result = link_operations.LINK_OPERATIONS[row.name](place, *operands)
    found = graph.count(np.array(result).ravel().tolist())
    assert row.count(None) == OperationCount(found["mul"], found["add"] + found["sub"])


# -- a new operation is a row and two forms of code


SQUARE = Op(
    "square",
    (Type.JOINT >> Type.JOINT,),
    "entries of a joint vector, squared",
    "{0}²",
    value=lambda link, x: x * x,
    cost=lambda link, *operands: OperationCount(link.size),
)
SHIFT_TWICE = Op(
    "shift_out_twice",
    (Type.MOTION >> Type.MOTION,),
    "2 φ* x of the parent",
    "2 φ*(p,k) {0}(p)",
    shift=Direction.OUTWARD,
    linear=True,
    support=Support.UNION,
    value=lambda link, x: 2.0 * OPS["shift_out"].evaluate(link, x),
    cost=lambda link, *operands: OperationCount(30, 18),
)


@pytest.fixture
def new_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two operations more: all that a contributor writes."""
    for row in (SQUARE, SHIFT_TWICE):
        monkeypatch.setitem(OPS, row.name, row)
    monkeypatch.setitem(to_numpy.OP_SOURCE, "square", "({0}) ** 2")
    monkeypatch.setitem(to_numpy.OP_SOURCE, "shift_out_twice", "2.0 * shift_out(k, {0})")
    forms = link_operations.LINK_OPERATIONS
    monkeypatch.setitem(forms, "square", lambda place, x: [a * a for a in x])
    shifted = lambda place, x: scaled(2.0, place.shift_out(x))  # noqa: E731
    monkeypatch.setitem(forms, "shift_out_twice", shifted)


def _with_new_ops() -> StreamProgram:
    """y = H* v² + 2 φ* y(parent), and its component along the joint axes."""
    program = StreamProgram()
    v = program.leaf("v", Type.JOINT)
    squared = program.add("square", (v,), Type.JOINT)
    own = program.add("Ht", (squared,), Type.MOTION)
    y = program.recursion("y", Type.MOTION)
    outward = program.add("shift_out_twice", (y,), Type.MOTION)
    program.define(y, program.sum([(Fraction(1), own), (Fraction(1), outward)]))
    momentum = program.add("inertia", (program.add("rigid", (), Type.INERTIA), y), Type.FORCE)
    program.outputs = {"x": program.add("H", (momentum,), Type.JOINT)}
    return program


@pytest.mark.usefixtures("new_ops")
def test_a_new_operation_is_one_row_and_two_forms_of_code() -> None:
    """Verified, printed, counted, interpreted, and run by every backend, as loops as well."""
    rng = np.random.default_rng(6)
    model = random_model(rng, 5, topology="binary")
    q, v = random_configuration(model, rng, (3,)), rng.normal(size=(3, model.nv))
    given = schedule(_with_new_ops())
    verify_schedule(given)
    assert "v²" in to_text(given)
    assert "2 φ*(p,k)" in to_text(given)
    counted = count_operations(given, model).by_operation
    assert counted["square"] == (5, OperationCount(model.nv))
    roots = sum(body.parent < 0 for body in model.bodies)
    assert counted["shift_out_twice"] == (5 - roots, OperationCount(30, 18) * (5 - roots))
    expected = _by_hand(model, q, v)
    np.testing.assert_allclose(run(given, model, q, {"v": v})["x"], expected, rtol=1e-12)
    written = {*names()} - {*running_names()}
    for backend in (*chosen_backends(), *written):
        for shape in ("straight", "rolled"):
            built = build(backend, given, model, tuning=Tuning(shape=shape))
            assert built.source
            if backend in written:
                continue
            found = built(q, {"v": v})["x"]
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def _by_hand(model: Model, q: Array, v: Array) -> Array:
    """Velocities of all links, by transforms of motions from parent to child."""
    result = []
    for sample in range(len(q)):
        y: list[Array] = []
        for body, rates in zip(model.bodies, _by_body(model, v[sample]), strict=True):
            own = body.joint_kind.motion_map() @ rates**2
            carry = motion_transform(pose_inverse(body.transform(q[sample])))
            y.append(own + (2.0 * carry @ y[body.parent] if body.parent >= 0 else 0.0))
        parts = [
            body.joint_kind.motion_map().T @ inertia_matrix(body.inertia) @ each
            for body, each in zip(model.bodies, y, strict=True)
        ]
        result.append(np.concatenate(parts))
    return np.array(result)


def _by_body(model: Model, v: Array) -> list[Array]:
    """A joint vector in body order, by body."""
    ends = np.cumsum([body.joint_kind.nv for body in model.bodies])
    return np.split(v, ends[:-1])
