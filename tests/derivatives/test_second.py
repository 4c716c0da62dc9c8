# SPDX-License-Identifier: BSD-3-Clause
"""Second derivatives of dynamics: complex steps of the first, torsion, and the mass matrix."""

from dataclasses import fields
from typing import Any, get_args

import numpy as np
import pytest

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.symbols import H, M, phi
from phistar.derivatives.first import FUNCTIONS
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.model.joints import JOINT_KINDS
from phistar.model.numpy_kinematics import Reference
from phistar.spatial import crf, crm
from tests.derivatives.witness import ROBOTS, State, along, close, state, steps

SIZES = {"serial": (6, 4), "tree": (7, 5), "forest": (6, 6), "free base": (5, 7)}
"""Number of joints, and seed."""


def _state(name: str) -> State:
    n, seed = SIZES[name]
    return state(name, n=n, seed=seed)


@pytest.fixture(scope="module", params=ROBOTS)
def case(request: pytest.FixtureRequest) -> State:
    """Smaller robots than those of the first derivatives: tensors are cubic."""
    return _state(request.param)


def test_every_joint_kind_is_here() -> None:
    """Between them the robots have every joint kind that moves."""
    robots = [_state(name).robot for name in ROBOTS]
    kinds = {joint.kind for robot in robots for joint in robot.joints.values()}
    assert kinds >= {name for name, kind in JOINT_KINDS.items() if kind.nv}


def test_inverse_dynamics(case: State) -> None:
    """Tensors of joint forces are complex steps of the matrices; relative 1e-11."""
    robot, arguments = case.robot, (case.q, case.v, case.x)
    found = robot.inverse_dynamics_second(*arguments)
    of_q = steps(robot, lambda *x: robot.linearize_inverse(*x).tau_q, arguments)
    of_v = steps(robot, lambda *x: robot.linearize_inverse(*x).tau_v, arguments)
    close(found.qq, of_q[0])
    close(found.qv, of_q[1])
    close(found.q_vdot, of_q[2])
    close(found.vv, of_v[1])
    close(np.swapaxes(found.qv, -1, -2), of_v[0])
    assert not of_v[2].any()


def test_forward_dynamics(case: State) -> None:
    """Tensors of accelerations are complex steps of the matrices; relative 1e-9, for 𝓜⁻¹."""
    robot, arguments = case.robot, (case.q, case.v, case.x)
    found = robot.forward_dynamics_second(*arguments)
    of_q = steps(robot, lambda *x: robot.linearize(*x).vdot_q, arguments)
    of_v = steps(robot, lambda *x: robot.linearize(*x).vdot_v, arguments)
    close(found.qq, of_q[0], 1e-9)
    close(found.qv, of_q[1], 1e-9)
    close(found.q_tau, of_q[2], 1e-9)
    close(found.vv, of_v[1], 1e-9)
    close(np.swapaxes(found.qv, -1, -2), of_v[0], 1e-9)


def _torsion(robot: phistar.Robot) -> np.ndarray:
    """(nv, nv, nv): [·, j, k] is G*[H*e_j, H*e_k] joint by joint, with G*H* = 1."""
    result = np.zeros((robot.nv, robot.nv, robot.nv))
    for body in robot.model.bodies:
        axes, own = body.motion_map(), body.v_slice
        brackets = np.stack([crm(axis) @ axes for axis in axes.T], axis=1)
        result[own, own, own] = np.einsum("ai,ijk->ajk", np.linalg.pinv(axes), brackets)
    return result


def test_torsion(case: State) -> None:
    """D_ε(Bδ) - D_δ(Bε) = -B G*[H*δ, H*ε]: the asymmetry of qq, and there is one; 1e-9."""
    robot, arguments = case.robot, (case.q, case.v, case.x)
    torsion = _torsion(robot)
    pairs = (
        (
            robot.inverse_dynamics_second(*arguments).qq,
            robot.linearize_inverse(*arguments).tau_q,
        ),
        (robot.forward_dynamics_second(*arguments).qq, robot.linearize(*arguments).vdot_q),
    )
    for tensor, first in pairs:
        expected = -np.einsum("...ia,ajk->...ijk", first, torsion)
        assert np.abs(expected).max() > 1e-3 * np.abs(tensor).max()
        odd = tensor - np.swapaxes(tensor, -1, -2)
        assert np.abs(odd - expected).max() <= 1e-9 * np.abs(tensor).max()


def test_joints_with_one_axis() -> None:
    """Partial derivatives commute: qq is symmetric, and so is vv on any robot; 1e-12."""
    case = state("tree", n=6, kinds=["revolute", "prismatic", "helical", "continuous"])
    for found in (
        case.robot.inverse_dynamics_second(case.q, case.v, case.x),
        case.robot.forward_dynamics_second(case.q, case.v, case.x),
    ):
        close(found.qq, np.swapaxes(found.qq, -1, -2), 1e-12)
        close(found.vv, np.swapaxes(found.vv, -1, -2), 1e-12)


# -- forces on frames


def _forces(robot: phistar.Robot, batch: tuple[int, ...] = ()) -> dict[str, np.ndarray]:
    """Wrenches about as large as the weight of links, on every other link, the first one too."""
    rng = np.random.default_rng(8)
    return {name: 10 * rng.normal(size=(*batch, 6)) for name in robot.link_names[::2]}


def _check_forces(case: State, reference: str) -> None:
    robot, arguments = case.robot, (case.q, case.v, case.x)
    held: dict[str, Any] = {"forces": _forces(robot), "reference": reference}
    inverse = robot.inverse_dynamics_second(*arguments, **held)
    free = robot.inverse_dynamics_second(*arguments)
    assert np.abs(inverse.qq - free.qq).max() > 1e-2 * np.abs(free.qq).max()
    of_q = steps(robot, lambda *x: robot.linearize_inverse(*x, **held).tau_q, arguments)
    for ours, theirs in zip((inverse.qq, inverse.qv, inverse.q_vdot), of_q, strict=True):
        close(ours, theirs)
    forward = robot.forward_dynamics_second(*arguments, **held)
    of_q = steps(robot, lambda *x: robot.linearize(*x, **held).vdot_q, arguments)
    for ours, theirs in zip((forward.qq, forward.qv, forward.q_tau), of_q, strict=True):
        close(ours, theirs, 1e-9)
    for function, (*_, third) in FUNCTIONS.items():
        changes = {"dq": case.dq, "dv": case.dv, f"d{third}": case.dx}
        found = robot.hvp(function, *arguments, case.w, **held, **changes)
        for name, ours in found.items():

            def gradient(*x: np.ndarray, f: str = function, name: str = name) -> np.ndarray:
                return robot.vjp(f, *x, case.w, **held)[name]

            moves = (case.dq, case.dv, case.dx)
            close(ours, along(robot, gradient, arguments, moves), 1e-9)


@pytest.mark.parametrize("reference", get_args(Reference))
def test_forces(case: State, reference: str) -> None:
    """Under forces, held in any axes, tensors and products are complex steps; relative 1e-9.

    They are those of ``linearize`` and ``vjp``, which ``test_first`` compares with complex steps of
    the dynamics itself.
    """
    _check_forces(case, reference)


@pytest.mark.parametrize("reference", get_args(Reference))
def test_forces_on_reduced_mimic_joints(reference: str) -> None:
    """The same with followers reduced."""
    kinds = ["revolute", "prismatic", "spherical"]
    _check_forces(state("tree", n=7, seed=6, kinds=kinds, mimic=0.5), reference)


def test_batches_of_forces() -> None:
    """Axes of forces broadcast with those of q; a batch is its single states; 1e-12."""
    case = state("tree", n=4, batch=(3, 1))
    robot, arguments = case.robot, (case.q, case.v, case.x)
    forces = _forces(robot, (2,))
    one = {name: f[1] for name, f in forces.items()}
    for call in (robot.inverse_dynamics_second, robot.forward_dynamics_second):
        whole = call(*arguments, forces=forces)
        single = call(*(x[2, 0] for x in arguments), forces=one)
        for each in fields(whole):
            tensor = getattr(whole, each.name)
            assert tensor.shape == (3, 2, *3 * (robot.nv,))
            close(tensor[2, 1], getattr(single, each.name), 1e-12)
    for function in FUNCTIONS:
        product = robot.hvp(function, *arguments, case.w, forces=forces, dq=case.dq)["q"]
        own = [x[2, 0] for x in (*arguments, case.w)]
        expected = robot.hvp(function, *own, forces=one, dq=case.dq[2, 0])["q"]
        close(product[2, 1], expected, 1e-12)


# -- mass matrix


def test_mass_matrix(case: State) -> None:
    """∂𝓜/∂q is the complex step of 𝓜, symmetric in its first indices; relative 1e-11."""
    found = case.robot.mass_matrix_q(case.q)
    (expected,) = steps(case.robot, case.robot.mass_matrix, (case.q,))
    close(found, expected)
    close(found, np.swapaxes(found, -3, -2), 1e-12)
    second = case.robot.inverse_dynamics_second(case.q, case.v, case.x)
    close(np.swapaxes(second.q_vdot, -1, -2), found, 1e-12)


def test_mass_matrix_twice(case: State) -> None:
    """∂²𝓜/∂q² is the complex step of ∂𝓜/∂q, symmetric in its first indices; relative 1e-11."""
    found = case.robot.mass_matrix_qq(case.q)
    (expected,) = steps(case.robot, case.robot.mass_matrix_q, (case.q,))
    close(found, expected)
    close(found, np.swapaxes(found, -4, -3), 1e-12)


def _turn(robot: phistar.Robot, column: int, cross: object) -> np.ndarray:
    """Cross product with one column of H*, in the block of its body: H^i of the papers."""
    count = len(robot.model.bodies)
    result = np.zeros((6 * count, 6 * count))
    for body in robot.model.bodies:
        start = body.v_slice.start
        if start <= column < start + body.joint_kind.nv:
            here = slice(6 * body.index, 6 * body.index + 6)
            axis = body.motion_map()[:, column - start]
            result[here, here] = cross(axis)  # type: ignore[operator]
    return result


def test_identity_6_3() -> None:
    """∂𝓜/∂θ_i = Hφ[H^i_f φM - Mφ*H^i_m]φ*H* for joints with one axis; relative 1e-11."""
    case = state("tree", n=6, batch=(), kinds=["revolute", "prismatic"])
    found = case.robot.mass_matrix_q(case.q)
    dense = Dense(case.robot.model, case.q)
    h, p, m = (dense(x) for x in (H, phi, M))
    for i in range(case.robot.nv):
        turn_f, turn_m = (_turn(case.robot, i, cross) for cross in (crf, crm))
        expected = h @ p @ (turn_f @ p @ m - m @ p.T @ turn_m) @ p.T @ h.T
        assert np.abs(found[..., i] - expected).max() <= 1e-11 * np.abs(found).max()


def test_identity_6_3_for_several_axes(case: State) -> None:
    """∂𝓜/∂θ_i = Hφ̃ H^i_f φMφ*H* and its transpose, column by column of H*; relative 1e-11."""
    robot, q = case.robot, case.q[0]
    found = robot.mass_matrix_q(q)
    dense = Dense(robot.model, q)
    h, p, m = (dense(x) for x in (H, phi, M))
    above = p - np.eye(len(p))
    for i in range(robot.nv):
        half = h @ above @ _turn(robot, i, crf) @ p @ m @ p.T @ h.T
        assert np.abs(found[..., i] - half - half.T).max() <= 1e-11 * np.abs(found).max()


# -- products


@pytest.mark.parametrize("function", FUNCTIONS)
def test_products(case: State, function: str) -> None:
    """The second-order product is the complex step of the gradient along a direction; 1e-10."""
    robot, third = case.robot, FUNCTIONS[function][2]
    arguments, moves = (case.q, case.v, case.x), (case.dq, case.dv, case.dx)
    changes = {"dq": case.dq, "dv": case.dv, f"d{third}": case.dx}
    found = robot.hvp(function, *arguments, case.w, **changes)
    assert list(found) == ["q", "v", third]
    for name, ours in found.items():

        def gradient(*x: np.ndarray, name: str = name) -> np.ndarray:
            return robot.vjp(function, *x, case.w)[name]

        close(ours, along(robot, gradient, arguments, moves), 1e-10)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_products_are_contractions(function: str) -> None:
    """w and δ into the tensors give the product; changes left out are zero; relative 1e-10."""
    case = state("tree", n=5)
    robot, arguments = case.robot, (case.q, case.v, case.x)
    if function == "inverse_dynamics":
        inverse = robot.inverse_dynamics_second(*arguments)
        qq, qv, qx = inverse.qq, inverse.qv, inverse.q_vdot
    else:
        forward = robot.forward_dynamics_second(*arguments)
        qq, qv, qx = forward.qq, forward.qv, forward.q_tau
    third = FUNCTIONS[function][2]
    for tensor, change in ((qq, "dq"), (qv, "dv"), (qx, f"d{third}")):
        found = robot.hvp(function, *arguments, case.w, **{change: case.dq})
        expected = np.einsum("...i,...ijk,...k->...j", case.w, tensor, case.dq)
        close(found["q"], expected, 1e-10)


def test_reduced_mimic_joints() -> None:
    """Followers reduced: tensors and products are complex steps, too; relative 1e-9."""
    case = state("tree", n=7, seed=6, kinds=["revolute", "prismatic", "spherical"], mimic=0.5)
    robot, arguments = case.robot, (case.q, case.v, case.x)
    assert len(robot.joint_names) < sum(j.joint_kind.nv > 0 for j in robot.joints.values())
    found = robot.inverse_dynamics_second(*arguments)
    of_q = steps(robot, lambda *x: robot.linearize_inverse(*x).tau_q, arguments)
    close(found.qq, of_q[0])
    close(found.qv, of_q[1])
    forward = robot.forward_dynamics_second(*arguments)
    of_q = steps(robot, lambda *x: robot.linearize(*x).vdot_q, arguments)
    close(forward.qq, of_q[0], 1e-9)
    close(forward.q_tau, of_q[2], 1e-9)
    for function, (*_, third) in FUNCTIONS.items():
        changes = {"dq": case.dq, "dv": case.dv, f"d{third}": case.dx}
        ours = robot.hvp(function, *arguments, case.w, **changes)["q"]
        expected = along(
            robot,
            lambda *x, f=function: robot.vjp(f, *x, case.w)["q"],
            arguments,
            (case.dq, case.dv, case.dx),
        )
        close(ours, expected, 1e-9)


def test_batches_broadcast() -> None:
    """Axes of q and v broadcast; a batch is its single states; 1e-12."""
    case = state("tree", n=4, batch=())
    robot = case.robot
    q = robot.random_configuration(1, (3, 1))
    v = np.random.default_rng(2).normal(size=(2, robot.nv))
    for call in (robot.inverse_dynamics_second, robot.forward_dynamics_second):
        whole, one = call(q, v, case.x), call(q[2, 0], v[1], case.x)
        for each in fields(whole):
            tensor = getattr(whole, each.name)
            assert tensor.shape == (3, 2, *3 * (robot.nv,))
            close(tensor[2, 1], getattr(one, each.name), 1e-12)
    product = robot.hvp("inverse_dynamics", q, v, case.x, case.w, dv=case.dv)["v"]
    tensor = robot.inverse_dynamics_second(q, v, case.x).vv
    close(product, np.einsum("i,...ijk,k->...j", case.w, tensor, case.dv), 1e-11)


def test_errors() -> None:
    """Unknown functions and changes, wrong shapes and numbers that are none are named."""
    robot = phistar.load("double_pendulum")
    x = np.zeros(robot.nv)
    with pytest.raises(UnknownNameError, match=r"aba.*forward_dynamics"):
        robot.hvp("aba", x, x, x, x)
    with pytest.raises(UnknownNameError, match=r"dvdot.*dtau"):
        robot.hvp("forward_dynamics", x, x, x, x, dvdot=x)
    with pytest.raises(ShapeError, match="dq"):
        robot.hvp("forward_dynamics", x, x, x, x, dq=np.zeros(5))
    with pytest.raises(ShapeError, match="vdot"):
        robot.inverse_dynamics_second(x, x, np.zeros(5))
    with pytest.raises(ArgumentError, match=r"q\[0\] is nan"):
        robot.mass_matrix_q(x * np.nan)
    tip = robot.link_names[-1]
    for call in (robot.inverse_dynamics_second, robot.forward_dynamics_second):
        with pytest.raises(ShapeError, match="forces"):
            call(x, x, x, forces={tip: np.ones(5)})
        with pytest.raises(ArgumentError, match="reference must be one of"):
            call(x, x, x, forces={tip: np.ones(6)}, reference="up")
    with pytest.raises(UnknownNameError, match="hand"):
        robot.hvp("inverse_dynamics", x, x, x, x, forces={"hand": np.ones(6)}, dq=x)
