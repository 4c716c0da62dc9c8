# SPDX-License-Identifier: BSD-3-Clause
"""Whole matrices as machine code, against level 2 and against each other."""

import numpy as np
import pytest

import phistar
from phistar.algebra.ir import Expr
from phistar.algebra.random_examples import given_names
from phistar.algebra.spaces import TASK_MOTION
from phistar.algebra.symbols import H, K, M, mass_matrix, phi
from phistar.algorithms.innovations import mass_matrix_inverse
from phistar.algorithms.link_kinematics import J
from phistar.algorithms.operational_space import Omega, compliance
from phistar.algorithms.programs import MATRICES
from phistar.backends import base
from phistar.backends.robot_programs import MatrixProgram
from phistar.backends.to_llvm import MachineCode
from phistar.compile import matrix_executable, matrix_request, with_closed_inverses
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.robot import Robot
from phistar.scalar.interpret import run
from phistar.scalar.lower_matrix import to_unrolled_matrix
from phistar.scalar.verify import verify
from phistar.sweeps.matrix_plans import cheapest_plan, evaluate
from phistar.sweeps.matrix_requests import Block, Col, Diag, Full, Request, Row, matrix_forms
from phistar.thresholds import POLICY
from tests.helpers import numbers, patch_policy


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    monkeypatch.setattr(base, "_default_name", "llvm")


MODELS: dict[str, Model] = {
    "panda": phistar.load("panda").model,
    "quadruped": phistar.load("quadruped").model,
    "every kind": random_model(np.random.default_rng(3), 7, armature=0.5),
    "forest": random_model(np.random.default_rng(4), 6, topology="forest"),
}
SMALL: dict[str, Model] = {
    "small tree": random_model(np.random.default_rng(3), 4, topology="tree", armature=0.5),
    "small forest": random_model(np.random.default_rng(4), 4, topology="forest"),
    "quadruped": MODELS["quadruped"],
}
"""For the many operators of one test: a class of links more is as much code again."""


def _close(ours: np.ndarray, theirs: np.ndarray, bound: float = 1e-11) -> None:
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= bound * np.abs(theirs).max()


@pytest.mark.parametrize("name", ["mass_matrix", "mass_matrix_inverse", "coriolis_matrix"])
@pytest.mark.parametrize("robot", MODELS)
def test_agrees_with_level_2(robot: str, name: str) -> None:
    """The matrices of the catalogue, with inertia regrouped; relative 1e-11."""
    model = MODELS[robot]
    rng = np.random.default_rng(1)
    q = Robot(model).random_configuration(rng, 5)
    joints = sum(body.joint_kind.nv for body in model.bodies)
    inputs = {"v": rng.normal(size=(5, joints))} if name == "coriolis_matrix" else {}
    code = matrix_executable(name, model)
    assert isinstance(code, MachineCode)
    ours = numbers(code, q, inputs)
    assert ours is not None
    _close(
        ours,
        evaluate(
            cheapest_plan(
                with_closed_inverses(matrix_request(name, model).operator), Full(), model
            ),
            q,
            inputs,
        ),
    )


@pytest.mark.parametrize(
    ("expr", "frames"),
    [
        (compliance, ("HR_FOOT", "FR_SHOULDER")),
        (J, ("HR_FOOT",)),
        (J.T, ("HR_FOOT", "FL_FOOT")),
        (H @ phi @ M, ()),
        (M @ phi.T @ H.T, ()),
        (K.T @ phi.T @ H.T, ()),
        (H @ M @ H.T, ()),
    ],
    ids=str,
)
def test_own_operators(expr: Expr, frames: tuple[str, ...]) -> None:
    """Between joints, links and frames, as a user writes them; relative 1e-11."""
    model = MODELS["quadruped"]
    q = Robot(model).random_configuration(np.random.default_rng(2), 3)
    code = matrix_executable(expr, model, frames)
    assert isinstance(code, MachineCode)
    ours = numbers(code, q, {})
    assert ours is not None
    _close(ours, evaluate(cheapest_plan(with_closed_inverses(expr), Full(), model, frames), q, {}))


def test_every_program_gives_the_same_matrix() -> None:
    """By columns or walks, of the operator or its adjoint: the scalar programs agree."""
    model = MODELS["every kind"]
    q = Robot(model).random_configuration(np.random.default_rng(5), 2)
    for expr in (mass_matrix, H @ phi @ M):
        results = []
        for form in matrix_forms(with_closed_inverses(expr), Full()):
            program = to_unrolled_matrix([form], model, absent={"gravity", "f_ext"})
            results.append(run(program, {"q": q})["matrix"])
        assert len(results) > 1
        for other in results[1:]:
            _close(other, results[0])


PARTS: list[Request] = [Diag(), Block(3, 1), Block((2, 0), (1, 5, 2)), Row(4), Col((1, 3))]


@pytest.mark.parametrize("request_", PARTS, ids=str)
@pytest.mark.parametrize("expr", [mass_matrix, mass_matrix_inverse.result, Omega, H @ phi @ M])
def test_parts(expr: Expr, request_: Request) -> None:
    """Machine code, its interpreter and level 2 give the same parts of a matrix; 1e-11."""
    if isinstance(request_, Diag) and expr not in (mass_matrix, mass_matrix_inverse.result, Omega):
        return
    for robot in ("every kind", "quadruped"):
        model = MODELS[robot]
        rng = np.random.default_rng(6)
        q = Robot(model).random_configuration(rng, 5)
        code = matrix_executable(expr, model, (), request_)
        assert isinstance(code, MachineCode)
        ours = numbers(code, q, {})
        assert ours is not None
        theirs = evaluate(cheapest_plan(with_closed_inverses(expr), request_, model), q, {})
        scalars = run(code.program.traced("straight"), {"q": q})["matrix"]
        if isinstance(request_, Diag):
            theirs = np.concatenate([block.reshape(5, -1) for block in theirs], axis=-1)
        _close(ours, theirs)
        _close(scalars, theirs.reshape(5, -1))


def test_parts_through_the_public_methods() -> None:
    """Blocks, rows, columns and diagonal of a compliance of frames, by name; float32 too."""
    robot = phistar.load("quadruped")
    function = robot.function(compliance, frames=("HR_FOOT", "FR_SHOULDER"))
    q = robot.random_configuration(np.random.default_rng(7), 4)
    whole = evaluate(
        cheapest_plan(with_closed_inverses(compliance), Full(), robot.model, function.frames), q, {}
    )
    _close(function.block(q, "HR_FOOT", "FR_SHOULDER"), whole[:, :6, 6:])
    _close(function.row(q, "FR_SHOULDER"), whole[:, 6:])
    _close(function.column(q, "HR_FOOT"), whole[:, :, :6])
    _close(function.diagonal(q), np.diagonal(whole, axis1=1, axis2=2))
    low = function.block(q.astype(np.float32), "HR_FOOT", "HR_FOOT")
    assert low.dtype == np.float32
    _close(low, whole[:, :6, :6], 1e-3)


def test_a_part_is_compiled_when_it_is_asked_for_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Level 2 answers until then, and until the code is ready; ``rolled`` never compiles it."""
    model = random_model(np.random.default_rng(8), 5)
    q = Robot(model).random_configuration(np.random.default_rng(9))
    code = matrix_executable(mass_matrix, model, (), Block(2, 0))
    assert isinstance(code, MachineCode)
    monkeypatch.setenv("PHISTAR_TIER", "rolled")
    assert all(numbers(code, q, {}) is None for _ in range(2 * POLICY.part_requests_before_compile))
    assert not code.tiers().is_started
    monkeypatch.setenv("PHISTAR_TIER", "auto")
    other = matrix_executable(mass_matrix, model, (), Block(2, 1))
    assert isinstance(other, MachineCode)
    for _ in range(POLICY.part_requests_before_compile - 1):
        assert numbers(other, q, {}) is None
        assert not other.tiers().is_started
    numbers(other, q, {})
    assert other.tiers().is_started
    other.tiers().wait_for_final()
    _close(numbers(other, q, {}), evaluate(cheapest_plan(mass_matrix, Block(2, 1), model), q, {}))


def test_inverse_is_the_inverse() -> None:
    """Through the public methods, one sample, a batch, float32: 𝓜 𝓜⁻¹ = I."""
    robot = phistar.load("panda")
    q = robot.random_configuration(np.random.default_rng(0), 40)
    for _ in range(2):
        product = robot.mass_matrix(q) @ robot.mass_matrix_inverse(q)
        assert np.abs(product - np.eye(7)).max() < 1e-10
        single = robot.mass_matrix(q[3]) @ robot.mass_matrix_inverse(q[3])
        assert np.abs(single - np.eye(7)).max() < 1e-10
    low = robot.mass_matrix(q.astype(np.float32))
    assert low.dtype == np.float32
    _close(low, robot.mass_matrix(q), 1e-5)


def test_complex_numbers_go_to_level_2() -> None:
    """Machine code does not know them; a complex step still differentiates the mass matrix."""
    robot = phistar.load("panda")
    q = robot.random_configuration(np.random.default_rng(0))
    step = robot.mass_matrix(q + 1e-30j * np.eye(7)).imag / 1e-30
    h = 1e-6
    difference = (robot.mass_matrix(q + h * np.eye(7)) - robot.mass_matrix(q - h * np.eye(7))) / (
        2 * h
    )
    _close(step, difference, 1e-7)


@pytest.mark.parametrize("name", ["mass_matrix", "mass_matrix_inverse"])
@pytest.mark.parametrize("links", [100, 300])
def test_long_chains(links: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops do matrices of any size, at the first call too; relative 1e-10 beside level 2."""
    monkeypatch.setenv("PHISTAR_TIER", "auto")
    robot = phistar.robots.chain(links, axes="xyz")
    q = robot.random_configuration(np.random.default_rng(0), 3)
    code = matrix_executable(name, robot.model)
    assert isinstance(code, MachineCode)
    ours = numbers(code, q, {})
    assert ours is not None
    assert code.tiers().wait_for_final().shape == "rolled"
    _close(
        ours,
        evaluate(cheapest_plan(with_closed_inverses(MATRICES[name]), Full(), robot.model), q, {}),
        1e-10,
    )


@pytest.mark.parametrize(
    ("robot", "real"), [*((name, np.float64) for name in SMALL), ("small forest", np.float32)]
)
def test_loops_agree_with_the_interpreter(
    robot: str, real: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machine code of the loops does what the oracle does, in float32 to its rounding."""
    monkeypatch.setenv("PHISTAR_TIER", "rolled")
    model = SMALL[robot]
    q = Robot(model).random_configuration(np.random.default_rng(3), 9).astype(real)
    frames = tuple(model.frames)[-2:]
    first = [MATRICES[n] for n in MATRICES if not n.endswith(("qq", "qv", "vv"))]
    for expr in (*first, compliance, phi):
        used = frames if expr.codomain is TASK_MOTION else ()
        code = matrix_executable(expr, model, used)
        assert isinstance(code, MachineCode)
        rng = np.random.default_rng(4)
        joints = sum(body.joint_kind.nv for body in model.bodies)
        names = sorted(given_names([expr]) - {"f_ext"})
        inputs = {name: rng.normal(size=(9, joints)).astype(real) for name in names}
        program = code.program.traced("rolled")
        verify(program)
        exact = {name: x.astype(float) for name, x in {"q": q, **inputs}.items()}
        ours = numbers(code, q, inputs)
        assert ours is not None
        assert ours.dtype == real
        assert code.tiers().kernel.shape == "rolled"
        known = run(program, exact)["matrix"].reshape(ours.shape)
        _close(ours, known, 1e-12 if real is np.float64 else 1e-3)


def test_loops_first_then_a_straight_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call is answered by loops; both shapes give the same numbers, relative 1e-12."""
    monkeypatch.setenv("PHISTAR_TIER", "auto")
    patch_policy(monkeypatch, background_delay_seconds=600.0)  # no line before it is waited for
    model = phistar.load("quadruped").model
    q = Robot(model).random_configuration(np.random.default_rng(6), 4)
    code = MachineCode(MatrixProgram(matrix_forms(mass_matrix, Full()), model))
    first = numbers(code, q, {})
    assert code.tiers().kernel.shape == "rolled"
    assert code.tiers().wait_for_final().shape == "straight"
    then = numbers(code, q, {})
    assert first is not None
    assert then is not None
    _close(first, then, 1e-12)


def test_empty_and_enormous_matrices_are_left_to_level_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no code for them, and the method still answers."""
    assert matrix_executable(J, MODELS["panda"], ()) is None
    patch_policy(monkeypatch, max_matrix_entries=10)
    robot = phistar.robots.chain(5)
    assert matrix_executable("mass_matrix", robot.model) is None
    assert robot.mass_matrix(np.zeros(5)).shape == (5, 5)
