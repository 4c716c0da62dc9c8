# SPDX-License-Identifier: BSD-3-Clause
"""Operators and user functions: applied without forming matrices, equal to the matrices."""

import numpy as np
import pytest

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.ir import crm, let
from phistar.algebra.symbols import B, D, H, K, M, f_ext, gravity, mass_matrix, phi, psi, tau, v
from phistar.errors import ArgumentError, LoweringError, ShapeError, SpaceError, UnknownNameError
from phistar.model.random import random_model

OMEGA = psi.T @ H.T @ D.inv @ H @ psi


def _close(ours: np.ndarray, theirs: np.ndarray, tolerance: float = 1e-9) -> None:
    assert np.shape(ours) == np.shape(theirs)
    assert np.abs(ours - theirs).max() <= tolerance * max(np.abs(theirs).max(), 1e-9)


@pytest.mark.parametrize("name", ["panda_hand", "quadruped"])
@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_mass_operator(name: str, shape: tuple[int, ...]) -> None:
    """op.M multiplies, solves, inverts and shows itself, batches and mimic joints included."""
    robot = phistar.load(name)
    q = robot.random_configuration(1, shape)
    operator, matrix = robot.operators(q).M, robot.mass_matrix(q)
    x = np.random.default_rng(2).normal(size=(*shape, robot.nv))
    _close(operator @ x, (matrix @ x[..., None])[..., 0])
    _close(operator.T @ x, operator @ x)
    _close(operator.solve(operator @ x), x, 1e-7)
    _close(operator.inv @ (operator @ x), x, 1e-7)
    _close(operator.dense(), matrix)
    _close(operator.inv.dense() @ matrix, np.broadcast_to(np.eye(robot.nv), matrix.shape), 1e-7)


@pytest.mark.parametrize("reference", ["local", "world", "world_aligned"])
def test_jacobian_operator(reference: str) -> None:
    """op.J multiplies velocities and, transposed, wrenches."""
    robot = phistar.load("quadruped")
    q = robot.random_configuration(3, (2,))
    operator = robot.operators(q).J("FL_FOOT", reference)
    matrix = robot.jacobian(q, "FL_FOOT", reference)
    rng = np.random.default_rng(4)
    speed, wrench = rng.normal(size=(2, robot.nv)), rng.normal(size=(2, 6))
    _close(operator @ speed, (matrix @ speed[..., None])[..., 0])
    _close(operator.T @ wrench, (np.swapaxes(matrix, -1, -2) @ wrench[..., None])[..., 0])
    _close(operator.dense(), matrix)
    _close(operator.T.dense(), np.swapaxes(matrix, -1, -2))


@pytest.mark.parametrize("shape", [(), (2,)])
def test_coriolis_operator(shape: tuple[int, ...]) -> None:
    """op.C multiplies, transposed too: the adjoint is the transposed program."""
    robot = phistar.load("quadruped")
    rng = np.random.default_rng(11)
    q, (speed, x) = robot.random_configuration(rng, shape), rng.normal(size=(2, *shape, robot.nv))
    operator, matrix = robot.operators(q, speed).C, robot.coriolis_matrix(q, speed)
    _close(operator @ x, (matrix @ x[..., None])[..., 0])
    _close(operator.T @ x, (np.swapaxes(matrix, -1, -2) @ x[..., None])[..., 0])
    _close(operator.dense(), matrix)
    with pytest.raises(ArgumentError, match="operators\\(q, v\\)"):
        robot.operators(q).C  # noqa: B018


def test_operator_errors() -> None:
    """Wrong lengths, missing inverses and unknown frames are named."""
    op = phistar.load("panda").operators(np.zeros(7))
    with pytest.raises(ShapeError, match=r"needs \(\.\.\., 7\)"):
        op.M @ np.zeros(6)
    with pytest.raises(ArgumentError, match="J of 'panda_link8' has no inverse"):
        op.J("panda_link8").solve(np.zeros(6))
    with pytest.raises(UnknownNameError, match="panda_link8"):
        op.J("panda_lnk8")


def test_operational_compliance_of_two_branches() -> None:
    """B*ψ*H*D⁻¹HψB for two feet is J 𝓜⁻¹ J*: O(n), two passes, three recursions."""
    robot = phistar.load("quadruped")
    feet = ("FL_FOOT", "HR_FOOT")
    function = robot.function(B.T @ OMEGA @ B, frames=feet)
    assert function.kernel.schedule.directions == ("inward", "outward")
    assert len(function.kernel.schedule.program.recursions) == 3
    q = robot.random_configuration(5, (3,))
    jacobian = np.concatenate([robot.jacobian(q, foot, "local") for foot in feet], axis=-2)
    expected = jacobian @ np.linalg.inv(robot.mass_matrix(q)) @ np.swapaxes(jacobian, -1, -2)
    _close(function(q), expected)
    wrenches = np.random.default_rng(6).normal(size=(3, 12))
    _close(function(q, wrenches), (expected @ wrenches[..., None])[..., 0])


@pytest.mark.parametrize(
    "expr",
    [phi, K, M @ phi.T, H @ psi, mass_matrix.inv, B.T @ phi.T @ H.T, phi @ B, D.inv @ H @ psi],
    ids=repr,
)
def test_functions_equal_dense_operators(expr: phistar.algebra.ir.Expr) -> None:
    """A compiled operator is its matrix, on random trees with every joint kind; relative 1e-9."""
    robot = phistar.Robot(random_model(np.random.default_rng(7), 7, fixed=0.3, armature=0.5))
    q = robot.random_configuration(8)
    frames = ("link3", "link6")
    function = robot.function(expr, frames=frames)
    _close(function(q), Dense(robot.model, q, tasks=frames)(expr))


def test_vector_functions_take_inputs_by_name() -> None:
    """Inverses are factored by the theorem; named inputs; gravity comes from the robot."""
    robot = phistar.load("panda")
    q, rng = robot.random_configuration(9), np.random.default_rng(10)
    torque, speed = rng.normal(size=(2, 7))
    velocity = let("V", phi.T @ H.T @ v)
    bias = H @ phi @ M @ phi.T @ (crm(velocity) @ H.T @ v + gravity)
    function = robot.function(mass_matrix.inv @ (tau - bias))
    assert function.inputs == ("tau", "v")
    result = function(q, tau=torque, v=speed)
    dense = Dense(robot.model, q, vectors={"tau": torque, "v": speed})
    _close(result, dense(function.expr))
    with pytest.raises(ArgumentError, match="needs a value for v"):
        function(q, tau=torque)
    with pytest.raises(ShapeError, match="tau has shape"):
        function(q, tau=np.zeros(3), v=speed)


def test_function_errors() -> None:
    """Wrong composition, wrong frame, mimic joints, B in the middle: each says what to do."""
    robot = phistar.load("panda")
    with pytest.raises(SpaceError, match=r"did you forget a \.T"):
        robot.function(H @ H)
    with pytest.raises(UnknownNameError, match="panda_link8"):
        robot.function(B.T @ OMEGA @ B, frames=["panda_link_8"])
    with pytest.raises(ArgumentError, match="mimic='independent'"):
        phistar.load("panda_hand").function(phi)
    with pytest.raises(LoweringError, match="theorem"):
        robot.function(M.inv @ f_ext)
