# SPDX-License-Identifier: BSD-3-Clause
"""First derivatives of dynamics: complex steps, Pinocchio, and each way against the others."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import phistar
from phistar.backends import base
from phistar.derivatives.first import FORWARD_METHODS, FUNCTIONS, JVP_METHODS, fastest_method
from phistar.errors import ArgumentError, ShapeError, SingularHingeError, UnknownNameError
from phistar.model.random import random_model
from tests.derivatives.witness import ROBOTS, State, close, flip, state, steps, times

REFERENCES = ("local", "world", "world_aligned")
Forces = dict[str, np.ndarray]


@pytest.fixture(scope="module", params=ROBOTS)
def case(request: pytest.FixtureRequest) -> State:
    """Robots with every joint kind, rotors and gravity along no axis, two states each."""
    return state(request.param)


def _forces(robot: phistar.Robot, batch: tuple[int, ...] = ()) -> Forces:
    rng = np.random.default_rng(8)
    return {name: rng.normal(size=(*batch, 6)) for name in robot.link_names[1::3]}


def _pushed(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    def value(*arguments: np.ndarray) -> Any:
        return function(*arguments, **options)

    return value


PUSHES = [(None, "local"), *(("pushed", name) for name in REFERENCES)]


@pytest.mark.parametrize(("push", "reference"), PUSHES)
def test_inverse_dynamics(case: State, push: str | None, reference: str) -> None:
    """∂τ/∂q, ∂τ/∂v, ∂τ/∂v̇ are the complex steps of inverse dynamics; relative 1e-11."""
    robot = case.robot
    held = {"forces": _forces(robot) if push else None, "reference": reference}
    found = robot.linearize_inverse(case.q, case.v, case.x, **held)
    arguments = (case.q, case.v, case.x)
    expected = steps(robot, _pushed(robot.inverse_dynamics, **held), arguments)
    for ours, theirs in zip((found.tau_q, found.tau_v, found.tau_vdot), expected, strict=True):
        close(ours, theirs)
    close(found.tau, robot.inverse_dynamics(*arguments, **held), 1e-14)


@pytest.mark.parametrize(("push", "reference"), PUSHES)
def test_forward_dynamics(case: State, push: str | None, reference: str) -> None:
    """∂v̇/∂q, ∂v̇/∂v, ∂v̇/∂τ by either method are complex steps; relative 1e-10.

    The mass matrices have condition numbers up to some 1e3, and both sides invert them.
    """
    robot = case.robot
    held = {"forces": _forces(robot) if push else None, "reference": reference}
    arguments = (case.q, case.v, case.x)
    expected = steps(robot, _pushed(robot.forward_dynamics, **held), arguments)
    for method in FORWARD_METHODS:
        found = robot.linearize(*arguments, **held, method=method)
        matrices = (found.vdot_q, found.vdot_v, found.vdot_tau)
        for ours, theirs in zip(matrices, expected, strict=True):
            close(ours, theirs, 1e-10)
        close(found.vdot, robot.forward_dynamics(*arguments, **held), 1e-10)


def test_algorithms_agree(case: State) -> None:
    """Algorithm 6 along a direction is Algorithm 5; relative 1e-10."""
    call, changes = (case.q, case.v, case.x), {"dq": case.dq, "dv": case.dv, "dtau": case.dx}
    found = case.robot.linearize(*call, method="6")
    expected = case.robot.jvp("forward_dynamics", *call, **changes, method="5")
    parts = ((found.vdot_q, case.dq), (found.vdot_v, case.dv), (found.vdot_tau, case.dx))
    close(sum(times(matrix, x) for matrix, x in parts), expected, 1e-10)


def test_the_method_is_chosen_by_size() -> None:
    """Products of matrices for small robots, single columns where n³ would be too much.

    Nothing is linearized to find out; some 90 links with one joint each are as good either way.
    Loops take four samples at the price of one.
    """
    chain = phistar.robots.chain
    assert fastest_method(chain(20).model) == fastest_method(chain(88).model) == "product"
    assert fastest_method(chain(89).model) == fastest_method(chain(2000).model) == "columns"
    assert (
        fastest_method(chain(354).model, samples=1)
        == fastest_method(chain(354).model, samples=0)
        == "product"
    )
    assert fastest_method(chain(355).model, samples=1) == "columns"


def test_continuous_system(case: State) -> None:
    """A = [[transport, 1], [∂v̇/∂q, ∂v̇/∂v]] and B = [[0], [∂v̇/∂τ]]."""
    found = case.robot.linearize(case.q, case.v, case.x)
    n = case.robot.nv
    assert np.array_equal(found.A[..., :n, :n], found.transport)
    assert np.array_equal(found.A[..., :n, n:], np.broadcast_to(np.eye(n), (2, n, n)))
    assert np.array_equal(found.A[..., n:, :n], found.vdot_q)
    assert np.array_equal(found.A[..., n:, n:], found.vdot_v)
    assert np.array_equal(found.B[..., n:, :], found.vdot_tau)
    assert not found.B[..., :n, :].any()


def test_forward_is_inverse_solved(case: State) -> None:
    """∂v̇/∂q = -𝓜⁻¹ ∂τ/∂q at the accelerations that τ gives; relative 1e-9."""
    robot = case.robot
    forward = robot.linearize(case.q, case.v, case.x, method="columns")
    inverse = robot.linearize_inverse(case.q, case.v, forward.vdot)
    close(inverse.tau_vdot @ forward.vdot_q, -inverse.tau_q, 1e-9)
    close(inverse.tau_vdot @ forward.vdot_v, -inverse.tau_v, 1e-9)


@pytest.mark.parametrize(("push", "reference"), PUSHES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_products(case: State, function: str, push: str | None, reference: str) -> None:
    """JVP and VJP are products with the matrices, and each other's adjoint; 1e-10 and 1e-12."""
    robot = case.robot
    held = {"forces": _forces(robot) if push else None, "reference": reference}
    third = FUNCTIONS[function][2]
    if function == "inverse_dynamics":
        inverse = robot.linearize_inverse(case.q, case.v, case.x, **held)
        matrices = (inverse.tau_q, inverse.tau_v, inverse.tau_vdot)
    else:
        forward = robot.linearize(case.q, case.v, case.x, **held)
        matrices = (forward.vdot_q, forward.vdot_v, forward.vdot_tau)
    directions = (case.dq, case.dv, case.dx)
    expected = sum(times(m, x) for m, x in zip(matrices, directions, strict=True))
    changes = {"dq": case.dq, "dv": case.dv, f"d{third}": case.dx}
    call = (function, case.q, case.v, case.x)
    for method in JVP_METHODS:
        change = robot.jvp(*call, **held, **changes, method=method)
        close(change, expected, 1e-10)
    gradient = robot.vjp(*call, case.w, **held)
    assert list(gradient) == ["q", "v", third]
    for ours, matrix in zip(gradient.values(), matrices, strict=True):
        close(ours, times(flip(matrix), case.w), 1e-10)
    there = case.w * robot.jvp(*call, **held, **changes)
    back = sum(g * x for g, x in zip(gradient.values(), directions, strict=True))
    size = np.abs(there).sum(axis=-1) + np.abs(back).sum(axis=-1)
    assert (np.abs(there.sum(axis=-1) - back.sum(axis=-1)) <= 1e-12 * size).all()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_changes_left_out_are_zero(function: str) -> None:
    """A product along dq alone is that with the others zero; along none it is zero."""
    case = state()
    third = FUNCTIONS[function][2]
    call = (function, case.q, case.v, case.x)
    zero = np.zeros(case.robot.nv)
    whole = case.robot.jvp(*call, dq=case.dq, dv=zero, **{f"d{third}": zero})
    assert np.array_equal(case.robot.jvp(*call, dq=case.dq), whole)
    assert not case.robot.jvp(*call).any()


# -- arrays: batches, dicts, dtypes


def test_batches_broadcast() -> None:
    """Axes of q, v and forces broadcast: each entry is what the single state gives; 1e-12."""
    case = state(batch=())
    robot = case.robot
    q = robot.random_configuration(1, (3, 1))
    v = np.random.default_rng(2).normal(size=(2, robot.nv))
    forces = {robot.link_names[-1]: np.random.default_rng(4).normal(size=(4, 1, 1, 6))}
    options = {"forces": forces, "reference": "world"}
    forward = robot.linearize(q, v, case.x, **options)
    inverse = robot.linearize_inverse(q, v, case.x, **options)
    assert forward.A.shape == (4, 3, 2, 2 * robot.nv, 2 * robot.nv)
    assert forward.B.shape == (4, 3, 2, 2 * robot.nv, robot.nv)
    single: dict[str, Any] = {"forces": {k: f[3, 0, 0] for k, f in forces.items()}}
    one = robot.linearize(q[2, 0], v[1], case.x, **single, reference="world")
    close(forward.A[3, 2, 1], one.A, 1e-12)
    close(forward.B[3, 2, 1], one.B, 1e-12)
    other = robot.linearize_inverse(q[2, 0], v[1], case.x, **single, reference="world")
    for name in ("tau", "tau_q", "tau_v", "tau_vdot"):
        close(getattr(inverse, name)[3, 2, 1], getattr(other, name), 1e-12)
    change = robot.jvp("forward_dynamics", q, v, case.x, dq=case.dq, **options)
    close(change, times(forward.vdot_q, case.dq), 1e-10)
    gradient = robot.vjp("forward_dynamics", q, v, case.x, case.w, **options)
    close(gradient["q"], times(flip(forward.vdot_q), case.w), 1e-10)


def test_no_states() -> None:
    """A batch of no states gives no matrices."""
    robot = phistar.load("double_pendulum")
    found = robot.linearize(np.zeros((0, robot.nq)), np.zeros(robot.nv), np.zeros(robot.nv))
    assert found.A.shape == (0, 2 * robot.nv, 2 * robot.nv)


def test_joint_names() -> None:
    """Dicts by joint name are the arrays."""
    case = state(batch=())
    robot = case.robot

    def named(x: np.ndarray, space: str) -> dict[str, np.ndarray]:
        joints = {name: robot.joints[name] for name in robot.joint_names}
        return {n: x[j.q_slice if space == "q" else j.v_slice] for n, j in joints.items()}

    q = named(case.q, "q")
    v, x, dq, w = (named(a, "v") for a in (case.v, case.x, case.dq, case.w))
    assert np.array_equal(robot.linearize(q, v, x).A, robot.linearize(case.q, case.v, case.x).A)
    ours = robot.jvp("inverse_dynamics", q, v, x, dq=dq)
    assert np.array_equal(ours, robot.jvp("inverse_dynamics", case.q, case.v, case.x, dq=case.dq))
    gradient = robot.vjp("inverse_dynamics", q, v, x, w)
    expected = robot.vjp("inverse_dynamics", case.q, case.v, case.x, case.w)
    assert all(np.array_equal(gradient[k], expected[k]) for k in expected)


def test_single_precision() -> None:
    """States of 32 bits cost no more than their digits: relative 1e-3; products stay such."""
    case = state()
    robot = case.robot
    small = (case.q, case.v, case.x, case.dq, case.w)
    q, v, x, dq, w = (a.astype(np.float32) for a in small)
    exact = robot.linearize_inverse(case.q, case.v, case.x)
    found = robot.linearize_inverse(q, v, x)
    for name in ("tau", "tau_q", "tau_v", "tau_vdot"):
        close(getattr(found, name), getattr(exact, name), 1e-3)
    close(robot.linearize(q, v, x).A, robot.linearize(case.q, case.v, case.x).A, 1e-3)
    change = robot.jvp("inverse_dynamics", q, v, x, dq=dq)
    assert change.dtype == np.float32
    close(change, times(exact.tau_q, case.dq), 1e-3)
    gradient = robot.vjp("inverse_dynamics", q, v, x, w)["q"]
    assert gradient.dtype == np.float32
    close(gradient, times(flip(exact.tau_q), case.w), 1e-3)


def test_whole_numbers() -> None:
    """Integers are taken as numbers."""
    robot = phistar.load("double_pendulum")
    ones = np.ones(robot.nv, dtype=int)
    found = robot.linearize(ones, ones, ones)
    assert np.array_equal(found.A, robot.linearize(1.0 * ones, 1.0 * ones, 1.0 * ones).A)


# -- mimic joints, reduced


@pytest.fixture(scope="module")
def coupled() -> tuple[State, phistar.Robot, np.ndarray, np.ndarray]:
    """A robot with followers; the same with independent joints, v = S v, and its q."""
    rng = np.random.default_rng(5)
    kinds = ["revolute", "prismatic", "continuous", "spherical"]
    model = random_model(rng, 9, kinds=kinds, mimic=0.4, armature=0.5)
    robot = phistar.Robot(model)
    joints = {name: joint for name, joint in model.joints.items() if joint.joint_kind.nv}
    free = phistar.load(robot.to_urdf().encode(), mimic="independent")
    q = robot.random_configuration(rng)
    wide, matrix = np.zeros(free.nq), np.zeros((free.nv, robot.nv))
    for name, joint in joints.items():
        body = model.bodies[joint.bodies[0]]
        own = free.joints[name]
        wide[own.q_slice] = body.scale * q[body.q_slice] + body.offset
        matrix[own.v_slice, body.v_slice] = body.scale * np.eye(joint.joint_kind.nv)
    assert robot.nv < free.nv
    rows = rng.normal(size=(6, robot.nv))
    return State(robot, q, *rows), free, matrix, wide


def test_reduced_inverse_dynamics(
    coupled: tuple[State, phistar.Robot, np.ndarray, np.ndarray],
) -> None:
    """Derivatives in the independent coordinates are S*(·)S of those of all joints; 1e-11."""
    case, free, s, q = coupled
    found = case.robot.linearize_inverse(case.q, case.v, case.x)
    wide = free.linearize_inverse(q, s @ case.v, s @ case.x)
    for ours, theirs in zip(
        (found.tau_q, found.tau_v, found.tau_vdot),
        (wide.tau_q, wide.tau_v, wide.tau_vdot),
        strict=True,
    ):
        close(ours, s.T @ theirs @ s)
    change = case.robot.jvp(
        "inverse_dynamics", case.q, case.v, case.x, dq=case.dq, dv=case.dv, dvdot=case.dx
    )
    close(change, found.tau_q @ case.dq + found.tau_v @ case.dv + found.tau_vdot @ case.dx)
    gradient = case.robot.vjp("inverse_dynamics", case.q, case.v, case.x, case.w)
    close(gradient["q"], found.tau_q.T @ case.w)


def test_reduced_forward_dynamics(
    coupled: tuple[State, phistar.Robot, np.ndarray, np.ndarray],
) -> None:
    """The robot with followers accelerates as S says: -(S*𝓜S)⁻¹ S* ∂τ/∂q S; 1e-9."""
    case, free, s, q = coupled
    robot = case.robot
    for method in FORWARD_METHODS:
        found = robot.linearize(case.q, case.v, case.x, method=method)
        wide = free.linearize_inverse(q, s @ case.v, s @ found.vdot)
        inverse = np.linalg.inv(s.T @ wide.tau_vdot @ s)
        close(found.vdot_tau, inverse, 1e-9)
        close(found.vdot_q, -inverse @ s.T @ wide.tau_q @ s, 1e-9)
        close(found.vdot_v, -inverse @ s.T @ wide.tau_v @ s, 1e-9)
    changes = {"dq": case.dq, "dv": case.dv, "dtau": case.dx}
    expected = found.vdot_q @ case.dq + found.vdot_v @ case.dv + found.vdot_tau @ case.dx
    call = ("forward_dynamics", case.q, case.v, case.x)
    for method in JVP_METHODS:
        close(robot.jvp(*call, **changes, method=method), expected, 1e-9)
    gradient = robot.vjp(*call, case.w)
    close(gradient["q"], found.vdot_q.T @ case.w, 1e-9)
    close(gradient["tau"], found.vdot_tau.T @ case.w, 1e-9)


# -- Pinocchio


@pytest.mark.parametrize("name", ["double_pendulum", "panda", "ur5", "quadruped", "humanoid"])
def test_pinocchio(name: str, machine_code: None) -> None:
    """The same matrices as computeRNEADerivatives and computeABADerivatives; relative 1e-9.

    Both step in the axes of the moving link; the free joint's linear part comes first there.
    """
    robot = phistar.load(name, mimic="independent")
    base = [pin.JointModelFreeFlyer()] if phistar.robots.floats(name) else []
    peer = pin.buildModelFromUrdf(str(phistar.robots.path(name)), *base)
    peer.armature[:] = 0.0
    data, rng = peer.createData(), np.random.default_rng(1)
    convert = phistar.conventions.pinocchio(robot, peer)
    q, (v, x) = robot.random_configuration(rng), rng.normal(size=(2, robot.nv))
    s = convert.velocity_matrix(q)
    if any(any(body.armature) for body in robot.model.bodies):
        rotors = np.concatenate([np.array(body.armature) for body in robot.model.bodies])
        peer.armature[:] = s @ rotors
    peer_q, peer_v = convert.q_to_peer(q), convert.v_to_peer(q, v)
    pin.computeRNEADerivatives(peer, data, peer_q, peer_v, convert.vdot_to_peer(q, v, x))
    ours = robot.linearize_inverse(q, v, x)
    close(ours.tau_q, s.T @ data.dtau_dq @ s, 1e-9)
    close(ours.tau_v, s.T @ data.dtau_dv @ s, 1e-9)
    pin.computeABADerivatives(peer, data, peer_q, peer_v, convert.tau_to_peer(q, x))
    for method in ("auto", "6") if robot.nv < 41 else ("auto",):
        forward = robot.linearize(q, v, x, method=method)
        close(forward.vdot_q, s.T @ data.ddq_dq @ s, 1e-9)
        close(forward.vdot_v, s.T @ data.ddq_dv @ s, 1e-9)


# -- errors


def test_unknown_names() -> None:
    """Functions, changes, methods and axes that do not exist are named, with those that do."""
    robot = phistar.load("double_pendulum")
    x = np.zeros(robot.nv)
    with pytest.raises(UnknownNameError, match=r"rnea.*inverse_dynamics"):
        robot.jvp("rnea", x, x, x, dq=x)
    with pytest.raises(UnknownNameError, match=r"rnea.*inverse_dynamics"):
        robot.vjp("rnea", x, x, x, x)
    with pytest.raises(UnknownNameError, match=r"dtau.*dvdot"):
        robot.jvp("inverse_dynamics", x, x, x, dtau=x)
    with pytest.raises(UnknownNameError, match=r"magic.*rigid"):
        robot.jvp("forward_dynamics", x, x, x, method="magic")
    with pytest.raises(UnknownNameError, match=r"magic.*columns"):
        robot.linearize(x, x, x, method="magic")
    with pytest.raises(ArgumentError, match=r"world_aligned.*'up'"):
        robot.linearize(x, x, x, forces={robot.link_names[-1]: np.ones(6)}, reference="up")


def test_wrong_shapes() -> None:
    """Sizes that do not fit are named."""
    robot = phistar.load("double_pendulum")
    x, long = np.zeros(robot.nv), np.zeros(robot.nv + 1)
    with pytest.raises(ShapeError, match="vdot"):
        robot.linearize_inverse(x, x, long)
    with pytest.raises(ShapeError, match="tau"):
        robot.linearize(x, x, long)
    with pytest.raises(ShapeError, match="dv"):
        robot.jvp("inverse_dynamics", x, x, x, dv=long)
    with pytest.raises(ShapeError, match="w"):
        robot.vjp("inverse_dynamics", x, x, x, long)
    with pytest.raises(ShapeError, match=r"\(4, 2\).*broadcast"):
        robot.linearize(np.zeros((3, robot.nq)), np.zeros((4, robot.nv)), x)
    with pytest.raises(ShapeError, match="forces"):
        robot.linearize(x, x, x, forces={robot.link_names[-1]: np.ones(5)})


@pytest.mark.parametrize("bad", ["q", "v", "vdot"])
def test_nan_is_named(bad: str) -> None:
    """A number that is none is named with its place."""
    robot = phistar.load("double_pendulum")
    values = {name: np.zeros(robot.nv) for name in ("q", "v", "vdot")}
    values[bad] = np.array([0.0, np.nan])
    with pytest.raises(ArgumentError, match=rf"{bad}\[1\] is nan"):
        robot.linearize_inverse(**values)
    with pytest.raises(ArgumentError, match=rf"{bad}\[1\] is nan"):
        robot.jvp("inverse_dynamics", values["q"], values["v"], values["vdot"])


def test_singular_hinges_are_refused() -> None:
    """Forward dynamics has no derivative where a joint moves no inertia; inverse dynamics has."""
    builder = phistar.ModelBuilder("loose")
    builder.link("base")
    builder.link("tip")
    builder.joint("hinge", "revolute", "base", "tip")
    robot = phistar.Robot(builder.build())
    x = np.zeros(robot.nv)
    for call in (
        lambda: robot.linearize(x, x, x),
        lambda: robot.jvp("forward_dynamics", x, x, x, dq=x),
        lambda: robot.vjp("forward_dynamics", x, x, x, x),
    ):
        with pytest.raises(SingularHingeError, match="hinge"):
            call()
    assert not robot.linearize_inverse(x, x, x).tau_q.any()


def test_results_may_be_written() -> None:
    """Nobody else holds them, also where q is one for the whole batch."""
    robot = phistar.load("panda")
    v = np.ones((3, robot.nv))
    found = robot.linearize(robot.home, v, v)
    inverse = robot.linearize_inverse(robot.home, v, v)
    for each in (found.vdot_q, found.vdot_tau, inverse.tau_q, inverse.tau_vdot):
        assert each.shape == (3, robot.nv, robot.nv)
        each[0] = 0.0
        assert each[1].any()


@pytest.mark.users_code
@pytest.mark.parametrize("batch", [(), (1,), (5,)])
def test_the_quick_way_gives_the_same(
    batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call makes the kernel, later ones go straight to it; other arrays still work."""
    monkeypatch.setattr(base, "_default_name", "llvm")
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    robot = phistar.load("quadruped")
    rng = np.random.default_rng(5)
    q = robot.random_configuration(rng, batch)
    v, x = rng.normal(size=(2, *batch, robot.nv))
    for method in (robot.linearize, robot.linearize_inverse):
        first = method(q.tolist(), v, x)
        for again in (method(q, v, x), method(q.tolist(), v, x)):
            for name in first.__dataclass_fields__:
                if name not in ("model", "v"):
                    assert np.array_equal(getattr(first, name), getattr(again, name))
        with pytest.raises(ArgumentError, match="v is not finite"):
            method(q, np.full_like(v, np.nan), x)
