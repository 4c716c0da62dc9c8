# SPDX-License-Identifier: BSD-3-Clause
"""Operators and user functions: applied without forming matrices, equal to the matrices."""

import numpy as np
import pytest
import scipy.sparse.linalg

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.ir import Expr, crf, crm, let
from phistar.algebra.symbols import (
    A,
    B,
    D,
    E_phi,
    G,
    H,
    K,
    M,
    P,
    f_ext,
    gravity,
    mass_matrix,
    phi,
    psi,
    tau,
    v,
)
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


@pytest.mark.parametrize("reference", ["local", "world", "world_aligned"])
def test_jacobian_of_several_frames(reference: str) -> None:
    """op.J of frames on two branches is their Jacobians stacked."""
    robot = phistar.load("humanoid")
    q, frames = robot.random_configuration(12, (2,)), ["left_hand", "right_hand", "left_foot"]
    operator = robot.operators(q).J(frames, reference)
    matrix = np.concatenate([robot.jacobian(q, name, reference) for name in frames], axis=-2)
    assert operator.shape == (18, robot.nv)
    _close(operator.dense(), matrix)
    _close(operator.T.dense(), np.swapaxes(matrix, -1, -2))


OWN: dict[str, Expr] = {
    "phi": phi,
    "psi": psi,
    "E_phi": E_phi,
    "H": H,
    "P": P,
    "D": D,
    "G": G,
    "K": K,
}


def _random(seed: int) -> tuple[phistar.Robot, np.ndarray]:
    rng = np.random.default_rng(seed)
    robot = phistar.Robot(random_model(rng, 8, fixed=0.3, armature=0.5, topology="forest"))
    return robot, robot.random_configuration(rng, (2,))


@pytest.mark.parametrize("name", OWN)
def test_operators_of_the_papers(name: str) -> None:
    """op.phi and its like are the dense operators, transposed too, sample by sample; 1e-9."""
    robot, q = _random(13)
    operator = getattr(robot.operators(q), name)
    for k in range(2):
        matrix = Dense(robot.model, q[k])(OWN[name])
        _close(operator.dense()[k], matrix)
        _close(operator.T.dense()[k], matrix.T)
    x = np.random.default_rng(14).normal(size=(3, 1, operator.shape[1]))
    _close(operator @ x, (operator.dense() @ x[..., None])[..., 0])


@pytest.mark.parametrize("name", ["phi", "psi", "D"])
def test_inverses_of_the_papers(name: str) -> None:
    """φ⁻¹ = I - Eφ, ψ⁻¹ = I - Eψ and D⁻¹ are applied, transposed too."""
    robot, q = _random(15)
    operator = getattr(robot.operators(q[0]), name)
    _close(operator.inv.dense(), np.linalg.inv(operator.dense()), 1e-8)
    _close(operator.T.inv.dense(), np.linalg.inv(operator.dense().T), 1e-8)
    x = np.ones(operator.shape[0])
    _close(operator @ operator.solve(x), x, 1e-9)


def test_operators_compose() -> None:
    """𝓜 = H φ M φ* H* + A and 𝓜⁻¹ = (I - HψK)* D⁻¹ (I - HψK), put together by hand."""
    robot, q = _random(16)
    op = robot.operators(q)
    product = op.H @ op.phi @ op.operator(M) @ op.phi.T @ op.H.T + op.operator(A)
    _close(product.dense(), op.M.dense())
    whiten = op.D @ op.D.inv - op.H @ op.psi @ op.K
    _close((whiten.T @ op.D.inv @ whiten).dense(), op.M.inv.dense(), 1e-8)
    _close((op.M.inv @ op.M).dense()[1], np.eye(robot.nv), 1e-8)


def test_operators_of_users() -> None:
    """op.operator compiles any expression; v comes from the state; frames are named."""
    robot, q = _random(17)
    speed = np.random.default_rng(18).normal(size=(2, robot.nv))
    op, frames = robot.operators(q, speed), ("link3", "link6")
    velocity = let("V", phi.T @ H.T @ v)
    expr = B.T @ OMEGA @ crf(velocity) @ B
    operator = op.operator(expr, frames=frames)
    assert (operator.shape, operator.batch) == ((12, 12), (2,))
    for k in range(2):
        dense = Dense(robot.model, q[k], vectors={"v": speed[k]}, tasks=frames)
        _close(operator.dense()[k], dense(expr))
        _close(op.apply(velocity)[k], dense(velocity))
    x = np.random.default_rng(19).normal(size=12)
    _close(op.apply(expr, x, frames=frames), operator @ x)
    _close(
        op.apply(H @ phi @ f_ext, f_ext=np.ones(op.phi.shape[0])),
        op.H @ (op.phi @ np.ones(op.phi.shape[0])),
    )
    with pytest.raises(ArgumentError, match="is a vector"):
        op.operator(velocity)
    with pytest.raises(ArgumentError, match="acts on nothing"):
        op.apply(velocity, x)
    with pytest.raises(ArgumentError, match="is an operator"):
        op.apply(expr, frames=frames)
    with pytest.raises(ArgumentError, match="needs a value for v"):
        robot.operators(q).operator(expr, frames=frames) @ x


def test_complex_operators() -> None:
    """At a complex configuration the imaginary part is the derivative of the matrix; 1e-7."""
    rng = np.random.default_rng(20)
    robot = phistar.Robot(random_model(rng, 5, kinds=["revolute", "prismatic"]))
    q, direction, x = robot.random_configuration(rng), *rng.normal(size=(2, 5))
    operator = robot.operators(q + 1e-30j * direction).M
    assert operator.dtype == np.complex128
    ahead, behind = (robot.mass_matrix(q + h * direction) @ x for h in (1e-6, -1e-6))
    _close((operator @ x).imag / 1e-30, (ahead - behind) / 2e-6, 1e-7)


def test_scipy_solves_with_the_mass_matrix() -> None:
    """Conjugate gradients on op.M agree with op.M.solve; the operator serves SciPy as it is."""
    robot = phistar.load("panda")
    op = robot.operators(robot.random_configuration(21))
    right = np.random.default_rng(22).normal(size=7)
    theirs = scipy.sparse.linalg.aslinearoperator(op.M)
    solution, failed = scipy.sparse.linalg.cg(theirs, right, rtol=1e-12, maxiter=100)
    assert not failed
    _close(solution, op.M.solve(right), 1e-7)
    jacobian = scipy.sparse.linalg.aslinearoperator(op.J("panda_link8"))
    _close(jacobian.rmatvec(np.ones(6)), op.J("panda_link8").T @ np.ones(6))


def test_operator_errors() -> None:
    """Wrong lengths, missing inverses, unknown or repeated frames, NaN, batches: all named."""
    robot = phistar.load("panda")
    op = robot.operators(np.zeros(7))
    with pytest.raises(ShapeError, match=r"needs \(\.\.\., 7\)"):
        op.M @ np.zeros(6)
    with pytest.raises(ArgumentError, match="J of 'panda_link8' has no inverse"):
        op.J("panda_link8").solve(np.zeros(6))
    with pytest.raises(UnknownNameError, match="panda_link8"):
        op.J("panda_lnk8")
    with pytest.raises(UnknownNameError, match="panda_link8"):
        op.J(["panda_link7", "panda_lnk8"])
    with pytest.raises(ArgumentError, match="each named once"):
        op.J(["panda_link7", "panda_link7"])
    with pytest.raises(ArgumentError, match="reference"):
        op.J("panda_link7", "body")
    with pytest.raises(LoweringError, match="no sweep form"):
        op.P.inv  # noqa: B018
    with pytest.raises(ArgumentError, match="q is not finite"):
        robot.operators([np.nan] * 7)
    with pytest.raises(ShapeError, match="broadcast"):
        robot.operators(np.zeros((2, 7)), np.zeros((3, 7)))
    with pytest.raises(ShapeError, match="broadcast"):
        robot.operators(np.zeros((2, 7))).phi @ np.zeros((3, 42))
    with pytest.raises(ArgumentError, match="mimic='independent'"):
        phistar.load("panda_hand").operators(np.zeros(8)).psi  # noqa: B018


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
        phistar.load("panda_hand").function(OMEGA)
    with pytest.raises(LoweringError, match="theorem"):
        robot.function(M.inv @ f_ext)


def test_operators_print_and_become_arrays() -> None:
    """``np.asarray`` gives the matrix, and ``print`` one line."""
    robot = phistar.load("panda")
    q, v = robot.random_configuration(1), np.ones(7)
    op = robot.operators(q, v)
    assert np.asarray(op.M).shape == (7, 7)
    np.testing.assert_allclose(np.asarray(op.M), robot.mass_matrix(q), rtol=1e-12, atol=1e-14)
    assert np.array(op.phi, dtype=np.float32).dtype == np.float32
    assert repr(op).startswith("<operators of 'panda' at q (7,), v (7,): M, C, J(frame), ")
    assert repr(op.M) == "<operator 𝓜 of 'panda': 7 x 7, float64>"
