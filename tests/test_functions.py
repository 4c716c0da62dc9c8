# SPDX-License-Identifier: BSD-3-Clause
"""A user's own operator by name: diagonal, blocks, rows and columns of its matrix."""

import numpy as np
import pytest

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.ir import Expr, I
from phistar.algebra.symbols import (
    E_0,
    A,
    B,
    D,
    E_phi,
    G_hat,
    H,
    J_hat,
    K,
    K_hat,
    M,
    M_hat,
    P_dot_v,
    P_hat,
    R_hat,
    T,
    X,
    gravity,
    mass_matrix,
    phi,
    psi,
    tau,
    v,
    vdot,
)
from phistar.algorithms.equations_of_motion import coriolis
from phistar.algorithms.link_kinematics import J
from phistar.algorithms.operational_space import compliance
from phistar.algorithms.rotor_forces import rotor_coriolis
from phistar.errors import (
    ArgumentError,
    LoweringError,
    ShapeError,
    SingularHingeError,
    UnknownNameError,
)
from phistar.model.builder import ModelBuilder
from phistar.model.generators import chain
from phistar.model.joint_map import joint_map
from phistar.model.random import random_model
from phistar.robot import Robot


def _close(ours: np.ndarray, theirs: np.ndarray, tolerance: float = 1e-9) -> None:
    """Relative to the largest entry."""
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= tolerance * np.abs(theirs).max()


def _robot(seed: int, **options: object) -> Robot:
    """A tree of all joint kinds with rotors; coordinates not in the order of the bodies."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, 8, armature=0.5, fixed=0.2, frames=2, **options)  # type: ignore[arg-type]
    return Robot(model.reorder(tuple(rng.permutation(model.joint_names))))


@pytest.mark.parametrize("options", [{}, {"topology": "forest"}, {"floating_base": True}], ids=str)
def test_inverse_mass_matrix_in_parts(options: dict[str, object]) -> None:
    """𝓜⁻¹ whole, its diagonal, blocks, rows, columns against LAPACK, in the user's order."""
    robot = _robot(1, **options)
    q = robot.random_configuration(2, (2,))
    expected = np.linalg.inv(robot.mass_matrix(q))
    function = robot.function(mass_matrix.inv)
    _close(function(q), expected)
    _close(robot.mass_matrix_inverse(q), expected)
    _close(function.diagonal(q), np.diagonal(expected, axis1=-2, axis2=-1))
    own = {name: robot.joints[name].v_slice for name in robot.joint_names}
    for name, part in own.items():
        _close(function.row(q, name), expected[..., part, :])
        _close(function.column(q, name), expected[..., :, part])
        block = function.block(q, name, robot.joint_names[0])
        error = block - expected[..., part, own[robot.joint_names[0]]]
        assert np.abs(error).max() <= 1e-9 * np.abs(expected).max()


def test_compound_joints_have_one_block() -> None:
    """A universal joint is two bodies inside and one name outside."""
    builder = ModelBuilder("gimbal")
    builder.link("base")
    for k, kind in enumerate(("universal", "cylindrical", "revolute")):
        builder.link(f"link{k}", 1.0, (0.1, 0.2, 0.3), np.diag([1.0, 2.0, 2.5]))
        parent = "base" if k == 0 else f"link{k - 1}"
        builder.joint(f"joint{k}", kind, parent, f"link{k}")
    robot = phistar.Robot(builder.build())
    q = robot.random_configuration(3)
    expected = robot.mass_matrix(q)
    function = robot.function(mass_matrix)
    assert function.block(q, "joint0", "joint1").shape == (2, 2)
    _close(function.block(q, "joint0", "joint1"), expected[:2, 2:4])
    _close(function.block(q, "joint2", "joint0"), expected[4:, :2])
    _close(function.row(q, "joint1"), expected[2:4])


def test_blocks_between_frames_of_two_branches() -> None:
    """How a hand gives way to a force on the other, and to one on itself: J 𝓜⁻¹ J*."""
    robot = phistar.load("humanoid")
    frames = ("left_hand", "right_hand", "left_foot")
    q = robot.random_configuration(4, (2,))
    function = robot.function(compliance, frames=frames)
    jacobian = np.concatenate([robot.jacobian(q, name, "local") for name in frames], axis=-2)
    expected = jacobian @ np.linalg.inv(robot.mass_matrix(q)) @ np.swapaxes(jacobian, -1, -2)
    _close(function(q), expected)
    _close(function.block(q, "left_hand", "right_hand"), expected[..., :6, 6:12])
    _close(function.row(q, "right_hand"), expected[..., 6:12, :])
    _close(function.column(q, "left_hand"), expected[..., :, :6])
    _close(function.diagonal(q), np.diagonal(expected, axis1=-2, axis2=-1))
    _close(robot.operational_inertia(q, frames), np.linalg.inv(expected), 1e-7)


def test_frames_at_rest_do_not_give_way() -> None:
    """A frame on the ground has blocks of zeros."""
    robot = phistar.load("panda")
    frames = ("panda_link0", "panda_link8")
    function = robot.function(compliance, frames=frames)
    q = robot.random_configuration(5)
    assert not function.block(q, "panda_link0", "panda_link8").any()
    whole = function(q)
    assert not whole[:6].any()
    assert not whole[:, :6].any()
    _close(whole[6:, 6:], function.block(q, "panda_link8", "panda_link8"))


def test_rows_and_columns_of_oblong_operators() -> None:
    """A Jacobian by frame and by joint; operators over links by the joint that carries them."""
    robot = _robot(6)
    q = robot.random_configuration(7)
    frames = ("frame1", "frame2")
    expected = np.concatenate([robot.jacobian(q, name, "local") for name in frames], axis=-2)
    function = robot.function(J, frames=frames)
    _close(function(q), expected)
    _close(function.row(q, "frame2"), expected[6:])
    name = next(n for n in robot.joint_names if np.abs(expected[:, _own(robot, n)]).max() > 0)
    _close(function.column(q, name), expected[:, _own(robot, name)])
    spread = robot.function(phi @ B, frames=frames)
    body = next(b for b in robot.model.bodies if b.parent < 0)
    _close(spread.row(q, body.joint)[:6], spread(q)[:6])


def _own(robot: Robot, joint: str) -> slice:
    return robot.joints[joint].v_slice


def test_operators_with_inputs() -> None:
    """The Coriolis matrix in parts, with the velocity by name."""
    robot = _robot(8)
    q, rng = robot.random_configuration(9), np.random.default_rng(10)
    speed = rng.normal(size=robot.nv)
    expected = robot.coriolis_matrix(q, speed)
    function = robot.function(coriolis + rotor_coriolis)
    columns = np.stack([function(q, unit, v=speed) for unit in np.eye(robot.nv)], axis=-1)
    _close(expected, columns)
    _close(function(q, v=speed), columns)
    _close(function.diagonal(q, v=speed), np.diagonal(columns))
    name = robot.joint_names[2]
    _close(function.row(q, name, v=speed), columns[_own(robot, name)])
    with pytest.raises(ArgumentError, match="needs a value for v"):
        function.diagonal(q)
    with pytest.raises(ShapeError, match="v has shape"):
        function.row(q, name, v=speed[:-1])


def test_inverses_in_closed_form() -> None:
    """The inverse of what 𝓜 stands for is the same as 𝓜⁻¹."""
    robot = _robot(11)
    q = robot.random_configuration(12)
    written = robot.function((H @ phi @ M @ phi.T @ H.T + A).inv)
    _close(written(q), robot.mass_matrix_inverse(q))
    _close(written.diagonal(q), np.diagonal(robot.mass_matrix_inverse(q)))


def test_log_determinant_of_a_long_chain() -> None:
    """The diagonal blocks of D in one sweep: 500 links against LAPACK."""
    robot = Robot(chain(500))
    q = np.random.default_rng(13).normal(size=500)
    expected = np.linalg.slogdet(robot.mass_matrix(q))[1]
    assert abs(robot.log_determinant(q) - expected) < 1e-8 * abs(expected)


@pytest.mark.parametrize("expr", [tau, mass_matrix.inv @ tau], ids=repr)
def test_vectors_have_no_blocks(expr: Expr) -> None:
    """Asking a vector for its matrix says what it is."""
    robot = phistar.load("panda")
    function = robot.function(expr)
    asked = [
        lambda q: function.diagonal(q),
        lambda q: function.block(q, "panda_joint1", "panda_joint1"),
        lambda q: function.row(q, "panda_joint1"),
        lambda q: function.column(q, "panda_joint1"),
    ]
    for ask in asked:
        with pytest.raises(ArgumentError, match="is a vector"):
            ask(robot.neutral())


def test_errors_by_name() -> None:
    """Unknown joints and frames suggest close ones; no diagonal, singular hinge: said so."""
    robot = phistar.load("panda")
    q = robot.neutral()
    with pytest.raises(UnknownNameError, match="panda_joint3"):
        robot.function(mass_matrix).row(q, "panda_jiont3")
    with pytest.raises(UnknownNameError, match="panda_link8"):
        robot.function(compliance, frames=["panda_link8"]).block(q, "panda_link8", "panda_lnk8")
    with pytest.raises(ArgumentError, match="no diagonal"):
        robot.function(H @ psi).diagonal(q)
    builder = ModelBuilder("empty")
    builder.link("base")
    builder.link("tip")
    builder.joint("hinge", "revolute", "base", "tip", axis=(0.0, 0.0, 1.0))
    with pytest.raises(SingularHingeError):
        phistar.Robot(builder.build()).function(D.inv)


def test_robots_without_joints_and_batches_without_samples() -> None:
    """Nothing moves: empty matrices over joints, zeros over frames; zero samples stay zero."""
    builder = ModelBuilder("block")
    builder.link("base", 1.0, (0.0, 0.0, 0.0), np.eye(3))
    block = phistar.Robot(builder.build())
    q = np.zeros((3, 0))
    assert block.mass_matrix(q).shape == block.mass_matrix_inverse(q).shape == (3, 0, 0)
    assert block.function(mass_matrix).diagonal(q).shape == (3, 0)
    assert not block.function(compliance, frames=["base"])(q).any()
    assert block.function(J, frames=["base"])(q).shape == (3, 6, 0)
    panda = phistar.load("panda")
    assert panda.mass_matrix_inverse(np.zeros((0, 7))).shape == (0, 7, 7)
    assert panda.function(mass_matrix).diagonal(np.zeros((0, 7))).shape == (0, 7)


def test_an_inverse_is_derived_away() -> None:
    """J 𝓜⁻¹ J* compiles to B*ψ*H*D⁻¹HψB: two passes, three recursions, and nothing is inverted."""
    robot = phistar.load("panda")
    spelt_out = B.T @ phi.T @ H.T @ mass_matrix.inv @ H @ phi @ B
    mine = robot.function(spelt_out, frames=["panda_link4", "panda_link7"])
    assert mine.kernel.schedule.directions == ("inward", "outward")
    assert len(mine.kernel.schedule.program.recursions) == 3
    q = robot.random_configuration(np.random.default_rng(5))
    rows = [robot.jacobian(q, frame, reference="local") for frame in mine.frames]
    jacobian = np.concatenate(rows)
    _close(mine(q), jacobian @ np.linalg.solve(robot.mass_matrix(q), jacobian.T))


def test_what_cancels_is_exactly_zero() -> None:
    """x - 𝓜⁻¹𝓜x is found to be zero by the identities, not by rounding."""
    robot = phistar.load("panda")
    nothing = robot.function(I - mass_matrix.inv @ mass_matrix)
    x = np.random.default_rng(6).normal(size=(3, robot.nv))
    np.testing.assert_array_equal(nothing(robot.neutral(), x), np.zeros((3, robot.nv)))


def _speeds(robot: Robot, seed: int, batch: tuple[int, ...] = ()) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(*batch, robot.nv))


@pytest.mark.parametrize("backend", ["llvm", "sweeps"])
def test_numbers(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """½v*𝓜v is the kinetic energy, spelt in two ways; products and sums of numbers; (...)."""
    monkeypatch.setenv("PHISTAR_BACKEND", backend)
    robot = _robot(20)
    q, u, w = robot.random_configuration(21, (2, 1)), _speeds(robot, 22, (3,)), _speeds(robot, 23)
    expected = robot.kinetic_energy(q, u)
    assert expected.shape == (2, 3)
    _close(robot.function(v.T @ mass_matrix @ v / 2)(q, v=u), expected, 1e-12)
    written = v.T @ H @ phi @ M @ phi.T @ H.T @ v / 2 + v.T @ A @ v / 2
    _close(robot.function(written)(q, v=u), expected, 1e-12)
    inverse = np.linalg.inv(robot.mass_matrix(q))
    power = np.einsum("i,...ij,j", w, inverse, w) * np.einsum("...i,i", u, w)
    both = robot.function((tau.T @ mass_matrix.inv @ tau) @ (v.T @ tau) - v.T @ v)
    _close(both(q, v=u, tau=w), power - (u**2).sum(-1), 1e-9)
    single = robot.function(v.T @ v)(q[0, 0], v=w)
    assert single.shape == ()
    assert "a number" in repr(both)
    with pytest.raises(ArgumentError, match="is a number, it acts on nothing"):
        both(q, w)


@pytest.mark.parametrize("backend", ["llvm", "numpy", "sweeps"])
def test_forces_on_the_ground(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """E₀φMV is the momentum, by machine code and as matrices; as a matrix it is refused."""
    monkeypatch.setenv("PHISTAR_BACKEND", backend)
    robot = _robot(26, topology="forest")
    q, u = robot.random_configuration(27, (2,)), _speeds(robot, 28, (3, 1))
    momentum = robot.function(E_0 @ phi @ M @ phi.T @ H.T)
    found = momentum(q, u)
    assert found.shape == (3, 2, 6)
    _close(found, robot.momentum(q, u), 1e-12)
    dense = Dense(robot.model, q[1])
    spread = joint_map(robot.model).spread(u[2, 0])
    _close(found[2, 1], dense(momentum.expr) @ spread, 1e-12)
    for expr in (E_0.T, momentum.expr):
        with pytest.raises((ArgumentError, LoweringError), match=r"of the ground|on the ground"):
            robot.function(expr)(q)


def test_numbers_that_cannot_be_had() -> None:
    """A number that no two vectors make is refused by name."""
    robot = _robot(20)
    with pytest.raises(LoweringError, match=r"γ\* X γ is no product of two vectors"):
        robot.function(gravity.T @ X @ gravity)


def test_the_mass_matrix_without_rotors() -> None:
    """(HφMφ*H*)⁻¹ is 𝓜⁻¹ on a robot without rotors, however it is written; with rotors refused."""
    rng = np.random.default_rng(24)
    robot = Robot(random_model(rng, 5))
    q = robot.random_configuration(25)
    expected = np.linalg.inv(robot.mass_matrix(q))
    inner = phi @ (M @ phi.T)
    for expr in ((H @ inner @ H.T).inv, (H @ (inner @ H.T + inner @ H.T) / 2).inv):
        function = robot.function(expr)
        _close(function(q), expected)
        assert "P = M + " in function.sweeps
        _close(function(q, tau_ := _speeds(robot, 26)), expected @ tau_)
    with pytest.raises(LoweringError, match=r"without A only on robots without rotors"):
        _robot(1).function((H @ inner @ H.T).inv)


@pytest.mark.parametrize(
    "expr",
    [phi.T.inv, psi.T.inv, (I - E_phi.T).inv, (I + H @ phi @ K).T.inv, (I - H @ psi @ K).inv],
    ids=str,
)
def test_matrices_of_inverses(expr: Expr) -> None:
    """Adjoints of inverses, and inverses of adjoints, have matrices; densely, relative 1e-9."""
    robot = Robot(random_model(np.random.default_rng(27), 4, armature=0.5))
    q = robot.random_configuration(28)
    expected = Dense(robot.model, q)(expr)
    function = robot.function(expr)
    _close(function(q), expected)
    x = np.random.default_rng(29).normal(size=expected.shape[1])
    _close(function(q, x), expected @ x)


@pytest.mark.parametrize("expr", [G_hat, K_hat, P_hat, J_hat, M_hat, R_hat, P_dot_v], ids=str)
def test_inputs_inside_definitions(expr: Expr) -> None:
    """Vectors that the definition of a symbol names are inputs, too."""
    robot = Robot(random_model(np.random.default_rng(30), 3))
    q, u = robot.random_configuration(31), _speeds(robot, 32)
    function = robot.function(expr)
    assert function.inputs == ("v",)
    with pytest.raises(ArgumentError, match="needs a value for v"):
        function(q)
    _close(function(q, v=u), Dense(robot.model, q, vectors={"v": u})(expr))


def test_wrong_calls_are_clear() -> None:
    """What is no expression, frames left out, names mistyped or not used: one clear line each."""
    robot = phistar.load("panda")
    q, u = robot.random_configuration(33), np.ones(7)
    for wrong in ("H phi M", None, I):
        with pytest.raises(ArgumentError, match=r"an operator expression, got (an? |None)"):
            robot.function(wrong)
    with pytest.raises(ArgumentError, match=r"B\* φ\* H\* contains B: name the frames"):
        robot.function(B.T @ phi.T @ H.T)
    assert robot.function(B.T @ phi.T @ H.T, frames="panda_link8")(q).shape == (6, 7)
    force = robot.function(H @ phi @ (M @ phi.T @ H.T @ vdot))
    with pytest.raises(UnknownNameError, match=r"no input 'vdott' .* Did you mean 'vdot'"):
        force(q, vdott=u)
    with pytest.raises(UnknownNameError, match="no input 'tau' in the function H φ M"):
        force(q, vdot=u, tau=u)
    with pytest.raises(ArgumentError, match="is a vector, it acts on nothing"):
        force(q, u, vdot=u)
    assert repr(force) == "<function(q, vdot=) -> joint vectors: H φ M φ* H* v̇ of 'panda'>"


def test_what_has_no_sweep_form_says_what_to_do() -> None:
    """M⁻¹ names the inverses that exist, X how it gets a value, T where it lives."""
    robot = phistar.load("panda")
    with pytest.raises(LoweringError, match=r"M⁻¹ has no sweep form; .*mass_matrix_inverse"):
        robot.function(M.inv)
    with pytest.raises(LoweringError, match=r"any block diagonal .*vectors=\{'X': matrix\}"):
        robot.function(X)
    with pytest.raises(LoweringError, match=r"T\* has no sweep form: .*Dense\(robot.model, q\)"):
        robot.function(T.T)
