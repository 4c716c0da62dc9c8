# SPDX-License-Identifier: BSD-3-Clause
"""Inertial parameters: dynamics is linear in them, and accelerations follow them."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import phistar
from phistar.derivatives.parameters import PARAMETERS_PER_BODY
from phistar.errors import ArgumentError, ShapeError, SingularHingeError
from phistar.spatial import crf_apply
from tests.derivatives.witness import ROBOTS, State, close, state

ORDER = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
"""Pinocchio's parameters in our order: Ixx, Ixy, Iyy, Ixz, Iyz, Izz there."""


@pytest.fixture(scope="module", params=ROBOTS)
def case(request: pytest.FixtureRequest) -> State:
    """Every joint kind, rotors, welded links."""
    return state(request.param)


def _changed(robot: phistar.Robot, parameters: np.ndarray) -> phistar.Robot:
    """The same robot with other masses and inertias."""
    rows = parameters.reshape(-1, PARAMETERS_PER_BODY)
    bodies = [replace(b, inertia=row) for b, row in zip(robot.model.bodies, rows, strict=True)]
    return phistar.Robot(replace(robot.model, bodies=tuple(bodies)))


def _rotors(case: State) -> np.ndarray:
    """A v̇, and what rotors of joints with several axes ask for as they turn."""
    result = np.zeros_like(case.x)
    for body in case.robot.model.bodies:
        armature, rows = np.array(body.armature or (0.0,)), body.v_slice
        result[..., rows] += body.scale**2 * armature * case.x[..., rows]
        if len(armature) > 1:
            axes, rate = body.joint_kind.motion_map(), case.v[..., rows]
            turned = crf_apply(rate @ axes.T, (armature * rate) @ axes.T)
            result[..., rows] += turned @ axes
    return result


def test_dynamics_is_linear(case: State) -> None:
    """τ = Yπ + what rotors ask for, here and with other parameters; relative 1e-11."""
    robot = case.robot
    matrix = robot.regressor(case.q, case.v, case.x)
    assert matrix.shape == (2, robot.nv, PARAMETERS_PER_BODY * len(robot.model.bodies))
    assert np.array_equal(robot.parameters, robot.model.inertias.reshape(-1))
    rotors = _rotors(case)
    close(matrix @ robot.parameters + rotors, robot.inverse_dynamics(case.q, case.v, case.x))
    other = np.random.default_rng(3).normal(size=len(robot.parameters))
    changed = _changed(robot, other)
    close(matrix @ other + rotors, changed.inverse_dynamics(case.q, case.v, case.x))


def test_accelerations(case: State) -> None:
    """∂v̇/∂π is what central differences over the parameters approach; relative 1e-6.

    Along random directions, each the size of the parameters.
    """
    robot, parameters = case.robot, case.robot.parameters
    found = robot.vdot_parameters(case.q, case.v, case.x)
    for seed in range(2):
        way = np.random.default_rng(seed).normal(size=len(parameters)) * np.abs(parameters)
        ahead, behind = (
            _changed(robot, parameters + h * way).forward_dynamics(case.q, case.v, case.x)
            for h in (1e-6, -1e-6)
        )
        close(found @ way, (ahead - behind) / 2e-6, 1e-6)


@pytest.mark.parametrize("name", ["panda", "ur5", "quadruped"])
def test_pinocchio(name: str, machine_code: None) -> None:
    """Y is computeJointTorqueRegressor, whose parameters come in another order; relative 1e-9."""
    robot = phistar.load(name)
    base = [pin.JointModelFreeFlyer()] if phistar.robots.floats(name) else []
    peer = pin.buildModelFromUrdf(str(phistar.robots.path(name)), *base)
    data, rng = peer.createData(), np.random.default_rng(4)
    convert = phistar.conventions.pinocchio(robot, peer)
    q, (v, x) = robot.random_configuration(rng), rng.normal(size=(2, robot.nv))
    theirs = pin.computeJointTorqueRegressor(
        peer,
        data,
        convert.q_to_peer(q),
        convert.v_to_peer(q, v),
        convert.vdot_to_peer(q, v, x),
    )
    joints = [peer.getJointId(body.joint) - 1 for body in robot.model.bodies]
    blocks = theirs.reshape(peer.nv, -1, PARAMETERS_PER_BODY)[:, joints][:, :, ORDER]
    expected = convert.velocity_matrix(q).T @ blocks.reshape(peer.nv, -1)
    close(robot.regressor(q, v, x), expected, 1e-9)


def test_reduced_mimic_joints() -> None:
    """Followers count for their leaders: τ = Yπ + A v̇; relative 1e-11."""
    case = state("tree", seed=6, kinds=["revolute", "prismatic", "spherical"], mimic=0.5)
    robot = case.robot
    assert len(robot.joint_names) < sum(j.joint_kind.nv > 0 for j in robot.joints.values())
    test_dynamics_is_linear(case)
    test_accelerations(case)


def test_batches_broadcast() -> None:
    """Axes of q and v broadcast; a batch is its single states; 1e-12."""
    case = state(batch=())
    robot = case.robot
    q = robot.random_configuration(1, (3, 1))
    v = np.random.default_rng(2).normal(size=(2, robot.nv))
    for call in (robot.regressor, robot.vdot_parameters):
        whole = call(q, v, case.x)
        assert whole.shape == (3, 2, robot.nv, PARAMETERS_PER_BODY * len(robot.model.bodies))
        close(whole[2, 1], call(q[2, 0], v[1], case.x), 1e-12)


def test_errors() -> None:
    """Wrong shapes, numbers that are none and joints that move no inertia are named."""
    robot = phistar.load("double_pendulum")
    x = np.zeros(robot.nv)
    with pytest.raises(ShapeError, match="vdot"):
        robot.regressor(x, x, np.zeros(3))
    with pytest.raises(ArgumentError, match=r"v\[0\] is nan"):
        robot.regressor(x, x * np.nan, x)
    builder = phistar.ModelBuilder("loose")
    builder.link("base")
    builder.link("tip")
    builder.joint("hinge", "revolute", "base", "tip")
    bare = phistar.Robot(builder.build())
    with pytest.raises(SingularHingeError, match="hinge"):
        bare.vdot_parameters([0.0], [0.0], [0.0])
    assert bare.regressor([0.0], [0.0], [1.0]).shape == (1, PARAMETERS_PER_BODY)
