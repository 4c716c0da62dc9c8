# SPDX-License-Identifier: BSD-3-Clause
"""Which joints of a file have motors, and what takes them by default."""

import pickle

import numpy as np
import pytest

import phistar
from phistar.errors import UnderactuatedError, UnknownNameError
from phistar.model import ModelBuilder
from tests.loops.mechanisms import error

TRANSMISSION = (
    b'<transmission name="t"><joint name="%s"/><actuator name="m"/></transmission></robot>'
)

MJCF = b"""<mujoco><worldbody><body name="a">
<joint name="j1" axis="0 1 0"/><inertial mass="1" pos="0 0 -.5" diaginertia=".1 .1 .01"/>
<body name="b" pos="0 0 -1"><joint name="j2" axis="0 1 0"/>
<inertial mass="1" pos="0 0 -.5" diaginertia=".1 .1 .01"/>
<body name="c" pos="0 0 -1"><joint name="j3" axis="0 1 0"/>
<inertial mass="1" pos="0 0 -.5" diaginertia=".1 .1 .01"/></body></body></body></worldbody>
<tendon><fixed name="sum"><joint joint="j3" coef="1"/></fixed></tendon>
<actuator>%s</actuator></mujoco>"""


def driven_four_bar(*joints: bytes) -> phistar.Robot:
    """The bundled four-bar with transmissions."""
    text = phistar.robots.path("four_bar").read_bytes()
    for joint in joints:
        text = text.replace(b"</robot>", TRANSMISSION % joint)
    return phistar.load(text)


def test_urdf_transmissions_name_the_motors() -> None:
    """Those with an actuator and a joint that moves; the report says that they are used."""
    robot = driven_four_bar(b"crank_joint", b"nothing")
    assert robot.actuated == ("crank_joint",)
    assert phistar.load("four_bar").actuated == ()
    used = {entry.what: entry.note for entry in robot.load_report.used}
    assert used["actuated joints"] == "1, those of transmissions"
    (ignored,) = [e for e in robot.load_report.ignored if "transmission" in e.what]
    assert ignored.note == "how motors are wired; only which joints have one is kept"


def test_mjcf_actuators_name_the_motors() -> None:
    """Motors of joints and of tendons that are sums of joints, each joint once."""
    pytest.importorskip("mujoco")
    motors = b'<motor joint="j2"/><motor tendon="sum"/><position joint="j2" kp="3"/>'
    robot = phistar.load(MJCF % motors)
    assert robot.actuated == ("j2", "j3")
    used = {entry.what: entry.note for entry in robot.load_report.used}
    assert used["actuated joints"].startswith("2, ")
    none = phistar.load(MJCF % b"")
    assert none.actuated == ()
    assert "actuated joints" not in {entry.what for entry in none.load_report.used}


def test_motors_survive_copies_and_files() -> None:
    """Pickled, reordered, written as URDF and in other gravity: the same motors, equal models."""
    robot = driven_four_bar(b"rocker_joint", b"crank_joint")
    assert robot.actuated == ("rocker_joint", "crank_joint")
    assert phistar.load(robot.to_urdf().encode()).model == robot.model
    assert robot.model != phistar.load("four_bar").model
    for other in (
        pickle.loads(pickle.dumps(robot)),
        robot.reorder(robot.joint_names[::-1]),
        robot.with_gravity((0, 0, 0)),
        robot.tree,
    ):
        assert other.actuated == robot.actuated


def test_inverse_dynamics_takes_the_motors_of_the_file() -> None:
    """One motor drives the four-bar: its torque gives the motion back, to 1e-9."""
    robot = driven_four_bar(b"crank_joint")
    rng = np.random.default_rng(0)
    q, v = robot.project(robot.assemble(robot.neutral()), rng.normal(size=3))
    vdot = robot.forward_dynamics(q, v, rng.normal(size=3), method="kkt")
    found = robot.constrained_inverse_dynamics(q, v, vdot)
    assert found.actuated == ("crank_joint",)
    assert found.effort.shape == (1,)
    assert error(robot.forward_dynamics(q, v, found.tau, method="kkt"), vdot) < 1e-9
    every = phistar.load("four_bar").constrained_inverse_dynamics(q, v, vdot)
    assert every.actuated == robot.joint_names
    named = robot.constrained_inverse_dynamics(q, v, vdot, actuated=robot.joint_names)
    assert np.array_equal(named.effort, every.effort)


def test_motors_that_do_not_suffice_are_named() -> None:
    """Of a tree, too: a pendulum with a motor at its elbow alone."""
    builder = ModelBuilder("pendulum")
    builder.link("ground")
    for number, parent in enumerate(("ground", "a")):
        builder.link("ab"[number], 1.0, (0, 0, -0.5), (0.1, 0.1, 0.1))
        builder.joint(f"j{number}", "continuous", parent, "ab"[number], axis=(0, 1, 0))
    builder.actuate("j1")
    robot = phistar.load(builder.build())
    still = np.zeros(2)
    with pytest.raises(UnderactuatedError):
        robot.constrained_inverse_dynamics(np.array([0.3, 0.4]), still, still)
    builder.actuate("nothing")
    with pytest.raises(UnknownNameError, match="moving joint 'nothing'"):
        builder.build()


def test_a_motor_on_a_follower_drives_its_leader() -> None:
    """Reduced mimic joints share the leader's coordinate."""
    text = phistar.robots.path("panda_hand").read_bytes()
    followers = [j for j in phistar.load(text).joints.values() if j.mimic is not None]
    name = followers[0].name.encode()
    robot = phistar.load(text.replace(b"</robot>", TRANSMISSION % name))
    assert robot.actuated == (followers[0].name,)
    still = np.zeros(robot.nv)
    found = robot.constrained_inverse_dynamics(robot.home, still, still, allow_residual=True)
    assert found.actuated == (followers[0].mimic.joint,)  # type: ignore[union-attr]
