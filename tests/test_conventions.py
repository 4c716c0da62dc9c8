# SPDX-License-Identifier: BSD-3-Clause
"""Conversions to and from Pinocchio and MuJoCo, with those two libraries as witnesses."""

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import phistar
from phistar.conventions import Convention, swap_rows, swap_spatial
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from tools.golden import dense_mass_matrix

URDF = b"""
<robot name="probe">
  <link name="base"><inertial><mass value="2"/><origin xyz="0.1 0 0"/>
    <inertia ixx="0.2" iyy="0.3" izz="0.4" ixy="0.01" ixz="0" iyz="0"/></inertial></link>
  <link name="wheel"><inertial><mass value="1"/><origin xyz="0 0.1 0.2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="cart"><inertial><mass value="1.5"/><origin xyz="0.2 0 0.1"/>
    <inertia ixx="0.1" iyy="0.2" izz="0.2" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="left"><inertial><mass value="0.5"/><origin xyz="0 0.1 0"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="right"><inertial><mass value="0.5"/><origin xyz="0 0.1 0"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="z_wheel" type="continuous"><parent link="base"/><child link="wheel"/>
    <origin xyz="0.3 0 0" rpy="0.1 0.2 0.3"/><axis xyz="0 1 0"/></joint>
  <joint name="a_cart" type="planar"><parent link="base"/><child link="cart"/>
    <origin xyz="0 0 0.5" rpy="0.3 0 0"/><axis xyz="0 0 1"/></joint>
  <joint name="left_finger" type="revolute"><parent link="wheel"/><child link="left"/>
    <axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="right_finger" type="revolute"><parent link="wheel"/><child link="right"/>
    <axis xyz="-1 0 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/>
    <mimic joint="left_finger" multiplier="-0.5" offset="0.2"/></joint>
</robot>"""

MJCF = b"""
<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <body name="trunk" pos="0 0 1"><freejoint name="float"/>
    <inertial pos="0.1 0 0" mass="3" fullinertia="0.1 0.2 0.25 0.01 0 0"/>
    <body name="head" pos="0 0 0.3" quat="0.8 0.6 0 0">
      <joint name="neck" type="ball" pos="0 0 0.1"/>
      <inertial pos="0 0.1 0" mass="1" diaginertia="0.01 0.02 0.02"/>
      <body name="jaw"><joint name="slide" type="slide" axis="1 1 0" ref="0.1"/>
        <joint name="hinge" type="hinge" axis="0 1 0" pos="0 0 0.2" ref="0.3" armature="0.05"/>
        <inertial pos="0 0 0.1" mass="0.5" diaginertia="0.01 0.01 0.01"/></body></body></body>
</worldbody></mujoco>"""


def _close(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-12) -> None:
    assert np.shape(a) == np.shape(b)
    assert np.abs(a - b).max() <= tolerance * max(1.0, np.abs(b).max())


@pytest.fixture(scope="module")
def pinocchio_pair() -> tuple[phistar.Robot, pin.Model]:
    """A robot with a floating base, continuous, planar and mimic joints, on both sides."""
    robot = phistar.load(URDF, floating_base=True)
    peer = pin.buildModelFromXML(URDF.decode(), pin.JointModelFreeFlyer())
    return robot, peer


@pytest.fixture(scope="module")
def mujoco_pair() -> tuple[phistar.Robot, mujoco.MjModel]:
    """A robot with free, ball, slide and hinge joints, on both sides."""
    return phistar.load(MJCF), mujoco.MjModel.from_xml_string(MJCF.decode())


def test_pinocchio_poses_and_jacobians(pinocchio_pair: tuple[phistar.Robot, pin.Model]) -> None:
    """Our q, written as Pinocchio's, gives the same poses and, converted, the same Jacobians."""
    robot, peer = pinocchio_pair
    convert = phistar.conventions.pinocchio(robot, peer)
    rng = np.random.default_rng(3)
    data = peer.createData()
    for q in robot.random_configuration(rng, 5):
        theirs = convert.q_to_peer(q)
        pin.framesForwardKinematics(peer, data, theirs)
        pin.computeJointJacobians(peer, data, theirs)
        for frame in robot.link_names:
            index = peer.getFrameId(frame)
            _close(robot.frame_pose(q, frame), data.oMf[index].homogeneous)
            for reference, name in (
                (pin.LOCAL, "local"),
                (pin.WORLD, "world"),
                (pin.LOCAL_WORLD_ALIGNED, "world_aligned"),
            ):
                jacobian = pin.getFrameJacobian(peer, data, index, reference)
                ours = robot.jacobian(q, frame, name)
                _close(convert.jacobian_from_peer(q, jacobian), ours)


def test_pinocchio_velocities_forces_and_mass(
    pinocchio_pair: tuple[phistar.Robot, pin.Model],
) -> None:
    """Velocities, power and kinetic energy mean the same on both sides; mimic joints are summed."""
    robot, peer = pinocchio_pair
    convert = phistar.conventions.pinocchio(robot, peer)
    rng = np.random.default_rng(4)
    data = peer.createData()
    q = robot.random_configuration(rng)
    v = rng.normal(size=robot.nv)
    theirs, speed = convert.q_to_peer(q), convert.v_to_peer(q, v)
    pin.forwardKinematics(peer, data, theirs, speed)
    index = peer.getFrameId("right")
    for reference, name in ((pin.LOCAL, "local"), (pin.WORLD, "world")):
        velocity = pin.getFrameVelocity(peer, data, index, reference).vector
        _close(robot.frame_velocity(q, v, "right", name), swap_spatial(velocity))
    tau = rng.normal(size=peer.nv)
    assert convert.tau_from_peer(q, tau) @ v == pytest.approx(tau @ speed, rel=1e-12)
    mass = pin.crba(peer, data, theirs)
    _close(dense_mass_matrix(robot, q), convert.matrix_from_peer(q, mass))
    _close(convert.v_from_peer(q, speed), v)


def test_pinocchio_integrate_and_difference(
    pinocchio_pair: tuple[phistar.Robot, pin.Model],
) -> None:
    """Steps on the manifold agree with pin.integrate and pin.difference."""
    robot, peer = pinocchio_pair
    convert = phistar.conventions.pinocchio(robot, peer)
    rng = np.random.default_rng(5)
    for _ in range(5):
        q, dv = robot.random_configuration(rng), rng.normal(size=robot.nv)
        stepped = pin.integrate(peer, convert.q_to_peer(q), convert.v_to_peer(q, dv))
        _close(convert.q_to_peer(robot.integrate(q, dv)), stepped, 1e-11)
        other = robot.random_configuration(rng)
        step = pin.difference(peer, convert.q_to_peer(q), convert.q_to_peer(other))
        ours = convert.v_to_peer(q, robot.difference(q, other))
        # One continuous angle: Pinocchio gives the short way round, we keep turns.
        wheel = peer.idx_vs[peer.getJointId("z_wheel")]
        ours[wheel] = (ours[wheel] + np.pi) % (2 * np.pi) - np.pi
        _close(ours, step, 1e-10)


def test_q_round_trip_with_batch_axes(pinocchio_pair: tuple[phistar.Robot, pin.Model]) -> None:
    """to_peer and from_peer are inverse, on any leading axes."""
    robot, peer = pinocchio_pair
    convert = phistar.conventions.pinocchio(robot, peer)
    rng = np.random.default_rng(6)
    q, v = robot.random_configuration(rng, (2, 3)), rng.normal(size=(2, 3, robot.nv))
    assert convert.q_to_peer(q).shape == (2, 3, peer.nq)
    _close(convert.q_from_peer(convert.q_to_peer(q)), q)
    _close(convert.v_from_peer(q, convert.v_to_peer(q, v)), v)
    _close(convert.tau_from_peer(q, convert.tau_to_peer(q, v)), v)
    jacobian = robot.jacobian(q, "cart")
    _close(convert.jacobian_from_peer(q, convert.jacobian_to_peer(q, jacobian)), jacobian)


def test_mujoco_poses_jacobians_and_mass(
    mujoco_pair: tuple[phistar.Robot, mujoco.MjModel],
) -> None:
    """Poses, Jacobians and mass matrix of MuJoCo, converted, are ours."""
    robot, peer = mujoco_pair
    convert = phistar.conventions.mujoco(robot, peer)
    rng = np.random.default_rng(7)
    data = mujoco.MjData(peer)
    for q in robot.random_configuration(rng, 4):
        data.qpos[:] = convert.q_to_peer(q)
        mujoco.mj_forward(peer, data)
        mass = np.zeros((peer.nv, peer.nv))
        mujoco.mj_fullM(peer, data, mass)
        _close(dense_mass_matrix(robot, q), convert.matrix_from_peer(q, mass), 1e-11)
        _close(convert.matrix_to_peer(q, dense_mass_matrix(robot, q)), mass, 1e-11)
        for body in ("trunk", "head", "jaw"):
            index = peer.body(body).id
            pose = robot.frame_pose(q, body)
            _close(pose[:3, 3], data.xpos[index])
            _close(pose[:3, :3], data.xmat[index].reshape(3, 3))
            linear, angular = np.zeros((3, peer.nv)), np.zeros((3, peer.nv))
            mujoco.mj_jacBody(peer, data, linear, angular, index)
            stacked = np.concatenate([linear, angular])
            _close(convert.jacobian_from_peer(q, stacked), robot.jacobian(q, body))
            _close(convert.jacobian_to_peer(q, robot.jacobian(q, body)), stacked)


def test_mujoco_velocity_and_acceleration(
    mujoco_pair: tuple[phistar.Robot, mujoco.MjModel],
) -> None:
    """MuJoCo's velocity integrates to ours; its acceleration is the time derivative of it."""
    robot, peer = mujoco_pair
    convert = phistar.conventions.mujoco(robot, peer)
    rng = np.random.default_rng(8)
    q, v, vdot = (
        robot.random_configuration(rng),
        rng.normal(size=robot.nv),
        rng.normal(size=robot.nv),
    )
    h = 1e-6
    ahead, behind = convert.q_to_peer(q).copy(), convert.q_to_peer(q).copy()
    mujoco.mj_integratePos(peer, ahead, convert.v_to_peer(q, v), h)
    mujoco.mj_integratePos(peer, behind, convert.v_to_peer(q, v), -h)
    step = robot.difference(convert.q_from_peer(behind), convert.q_from_peer(ahead)) / (2 * h)
    _close(step, v, 1e-8)
    later = convert.v_to_peer(robot.integrate(q, h * v), v + h * vdot)
    earlier = convert.v_to_peer(robot.integrate(q, -h * v), v - h * vdot)
    _close(convert.vdot_to_peer(q, v, vdot), (later - earlier) / (2 * h), 1e-8)
    _close(convert.vdot_from_peer(q, v, convert.vdot_to_peer(q, v, vdot)), vdot)


def test_mujoco_generalised_force_does_the_same_work(
    mujoco_pair: tuple[phistar.Robot, mujoco.MjModel],
) -> None:
    """Power tau . v does not depend on who writes it down."""
    robot, peer = mujoco_pair
    convert = phistar.conventions.mujoco(robot, peer)
    rng = np.random.default_rng(9)
    q, v, tau = (
        robot.random_configuration(rng),
        rng.normal(size=robot.nv),
        rng.normal(size=robot.nv),
    )
    assert convert.tau_to_peer(q, tau) @ convert.v_to_peer(q, v) == pytest.approx(
        tau @ v, rel=1e-12
    )
    _close(convert.tau_from_peer(q, convert.tau_to_peer(q, tau)), tau)


def test_mujoco_wrench(mujoco_pair: tuple[phistar.Robot, mujoco.MjModel]) -> None:
    """A wrench on a body gives the generalised force that MuJoCo finds for it, J* f."""
    robot, peer = mujoco_pair
    convert = phistar.conventions.mujoco(robot, peer)
    rng = np.random.default_rng(10)
    q, wrench = robot.random_configuration(rng), rng.normal(size=6)
    data = mujoco.MjData(peer)
    data.qpos[:] = convert.q_to_peer(q)
    mujoco.mj_forward(peer, data)
    theirs = convert.wrench_to_peer(wrench)
    tau, body = np.zeros(peer.nv), peer.body("jaw").id
    mujoco.mj_applyFT(peer, data, theirs[:3], theirs[3:], data.xpos[body], body, tau)
    _close(convert.tau_from_peer(q, tau), robot.jacobian(q, "jaw").T @ wrench)
    assert np.array_equal(convert.wrench_from_peer(theirs), wrench)


def test_pinocchio_wrench(pinocchio_pair: tuple[phistar.Robot, pin.Model]) -> None:
    """A wrench in a link's own axes does the power that Pinocchio finds for it."""
    robot, peer = pinocchio_pair
    convert = phistar.conventions.pinocchio(robot, peer)
    rng = np.random.default_rng(11)
    q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    wrench = rng.normal(size=6)
    data = peer.createData()
    pin.forwardKinematics(peer, data, convert.q_to_peer(q), convert.v_to_peer(q, v))
    velocity = pin.getFrameVelocity(peer, data, peer.getFrameId("cart", pin.BODY), pin.LOCAL)
    power = velocity.dot(pin.Force(convert.wrench_to_peer(wrench)))
    assert power == pytest.approx(robot.frame_velocity(q, v, "cart", "local") @ wrench, rel=1e-12)


def test_swaps_are_involutions() -> None:
    """Swapping angular and linear parts twice changes nothing; once exchanges the halves."""
    x = np.arange(12.0).reshape(2, 6)
    assert np.array_equal(swap_spatial(x)[0], [3, 4, 5, 0, 1, 2])
    assert np.array_equal(swap_spatial(swap_spatial(x)), x)
    assert np.array_equal(swap_rows(x.T), swap_spatial(x).T)


def test_mismatches_are_named(pinocchio_pair: tuple[phistar.Robot, pin.Model]) -> None:
    """Another base, another joint, a wrong length, reduced mimics: each says what is wrong."""
    robot, peer = pinocchio_pair
    with pytest.raises(UnknownNameError, match="root_joint"):
        phistar.conventions.pinocchio(phistar.load(URDF), peer)
    with pytest.raises(ArgumentError, match="lacks joints"):
        Convention(robot, "pinocchio", [], 0, 0)
    convert = phistar.conventions.pinocchio(robot, peer)
    with pytest.raises(ShapeError, match="q of pinocchio"):
        convert.q_from_peer(np.zeros(3))
    with pytest.raises(ArgumentError, match="mimic='independent'"):
        convert.matrix_to_peer(robot.neutral(), np.eye(robot.nv))


def test_mujoco_bias(mujoco_pair: tuple[phistar.Robot, mujoco.MjModel]) -> None:
    """qfrc_bias becomes our bias force, on a free base too, where forces alone do not."""
    robot, peer = mujoco_pair
    convention = phistar.conventions.mujoco(robot, peer)
    q = robot.random_configuration(3)
    v = np.random.default_rng(4).normal(size=robot.nv)
    data = mujoco.MjData(peer)
    data.qpos, data.qvel = convention.q_to_peer(q), convention.v_to_peer(q, v)
    mujoco.mj_forward(peer, data)
    mass = np.zeros((peer.nv, peer.nv))
    mujoco.mj_fullM(peer, data, mass)
    expected = robot.bias_force(q, v)
    _close(convention.bias_from_peer(q, v, data.qfrc_bias, mass), expected, 1e-9)
    plain = convention.tau_from_peer(q, data.qfrc_bias)
    assert np.abs(plain - expected).max() > 0.1 * np.abs(expected).max()


def test_pinocchio_bias(pinocchio_pair: tuple[phistar.Robot, pin.Model]) -> None:
    """Pinocchio's axes move with the body as ours do: forces alone would do."""
    robot, peer = pinocchio_pair
    convention = phistar.conventions.pinocchio(robot, peer)
    q = robot.random_configuration(3)
    v = np.random.default_rng(4).normal(size=robot.nv)
    theirs, rates = convention.q_to_peer(q), convention.v_to_peer(q, v)
    bias = pin.nonLinearEffects(peer, peer.createData(), theirs, rates)
    mass = np.zeros((peer.nv, peer.nv))
    _close(convention.bias_from_peer(q, v, bias, mass), robot.bias_force(q, v), 1e-9)


def test_models_of_nobody_are_refused(mujoco_pair: tuple[phistar.Robot, mujoco.MjModel]) -> None:
    """What is no robot or no model of the peer is named, with what was expected."""
    robot, peer = mujoco_pair
    with pytest.raises(ArgumentError, match=r"mj_model is a str, expected a mujoco\.MjModel"):
        phistar.conventions.mujoco(robot, "x")
    with pytest.raises(
        ArgumentError, match=r"pin_model is an MjModel, expected a pinocchio\.Model"
    ):
        phistar.conventions.pinocchio(robot, peer)
    with pytest.raises(ArgumentError, match="robot is an MjModel, expected a Robot or a Model"):
        phistar.conventions.mujoco(peer, robot)
