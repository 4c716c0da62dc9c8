# SPDX-License-Identifier: BSD-3-Clause
"""Springs, dampers, friction, limits and actuators as data and as forces at a state."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import conventions
from phistar.arrays import Array
from phistar.errors import ArgumentError, ModelError, PhistarError, ShapeError, UnknownNameError
from phistar.model import Mimic, ModelBuilder

MJCF = """<mujoco><compiler angle="radian"/><worldbody>
<body><joint name="h" type="hinge" axis="0 1 0" stiffness="3" springref="0.3" damping="0.4"
 range="-1 2" limited="true" frictionloss="0.2" actuatorfrcrange="-30 30"
 actuatorfrclimited="true"/>
<inertial mass="1" pos="0 0 -.5" diaginertia=".1 .1 .01"/>
<body pos="0 0 -1"><joint type="ball" name="b" stiffness="2" damping="0.2"/>
<inertial mass="1" pos="0.1 0 -.5" diaginertia=".1 .2 .15"/></body></body>
<body pos="1 0 0"><freejoint name="f"/>
<inertial mass="1" pos="0.1 0 0" diaginertia=".1 .2 .15"/></body><body pos="2 0 0">
<joint name="s" type="slide" axis="0 0 1" stiffness="20" springref="0.1" ref="0.05"/>
<inertial mass="1" pos="0.1 0 0" diaginertia=".1 .2 .15"/></body></worldbody>
<tendon><fixed name="t"><joint joint="h" coef="2"/><joint joint="s" coef="-1"/></fixed></tendon>
<actuator><motor name="m" joint="h" gear="2" ctrlrange="-1 1" ctrllimited="true"/>
<position name="p" joint="h" kp="30" kv="2" forcerange="-5 5" forcelimited="true"/>
<velocity name="v" joint="s" kv="3"/>
<general name="g" tendon="t" gainprm="2 1 .5" gaintype="affine" biastype="affine" biasprm="1 2 3"/>
<motor name="far" joint="b" gear="1 0 0"/><cylinder name="slow" joint="h"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def robot() -> phistar.Robot:
    """Hinge, ball, free body and slide, with springs and actuators."""
    pytest.importorskip("mujoco")
    return phistar.load(MJCF.encode())


def states(robot: phistar.Robot, shape: tuple[int, ...] = ()) -> tuple[Array, Array]:
    """Random ones."""
    rng = np.random.default_rng(3)
    return robot.random_configuration(rng, shape), rng.normal(size=(*shape, robot.nv))


def test_forces_of_springs_dampers_and_actuators_are_those_of_mujoco(robot: phistar.Robot) -> None:
    """To rounding, on joints of every kind."""
    import mujoco

    peer = mujoco.MjModel.from_xml_string(MJCF)
    data, convention = mujoco.MjData(peer), conventions.mujoco(robot, peer)
    used = [robot.actuators.names.index(name) for name in ("m", "p", "v", "g")]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
        ctrl = 3.0 * rng.normal(size=4)
        data.qpos[:], data.qvel[:] = convention.q_to_peer(q), convention.v_to_peer(q, v)
        data.ctrl[:] = 0.0
        data.ctrl[[0, 1, 2, 3]] = ctrl
        mujoco.mj_forward(peer, data)
        smooth = robot.passive_force(q, v, passive={"springs", "damping"})
        expected = convention.tau_from_peer(q, data.qfrc_passive)
        assert np.abs(smooth - expected).max() < 1e-13 * max(1.0, np.abs(expected).max())
        forces = robot.actuators.actuator_force(ctrl[np.argsort(used)], q, v)
        assert np.abs(forces - data.actuator_force[:4]).max() < 1e-12
        tau = convention.tau_from_peer(q, data.qfrc_actuator)
        assert np.abs(robot.actuators.force(ctrl, q, v) - tau).max() < 1e-12


def test_actuators_as_data(robot: phistar.Robot) -> None:
    """Names, kinds, joints and ranges; those of other kinds are listed with the reason."""
    actuators = robot.actuators
    assert actuators.names == ("m", "p", "v", "g")
    assert actuators.kind == ("motor", "position", "velocity", "general")
    assert actuators.joint == ("h", "h", "s", "h+s")
    assert actuators.gear.tolist() == [2, 1, 1, 2]
    assert actuators.ctrlrange[0].tolist() == [-1, 1]
    assert actuators.forcerange[1].tolist() == [-5, 5]
    assert np.isinf(actuators.forcerange[0]).all()
    told = {entry.what: entry.note for entry in robot.load_report.ignored}
    assert "one coordinate" in told['actuator "far"']
    assert "states of their own" in told['actuator "slow"']
    with pytest.raises(ShapeError, match="ctrl"):
        actuators.force([1.0], *states(robot))
    assert len(phistar.load("panda").actuators) == 0


def test_limits_as_arrays(robot: phistar.Robot) -> None:
    """One number per coordinate, infinite or zero where there is none, read-only."""
    limits, at = robot.limits, {n: j.v_slice.start for n, j in robot.joints.items()}
    assert limits.lower[robot.joints["h"].q_slice].tolist() == [-1.0]
    assert limits.upper[robot.joints["s"].q_slice].tolist() == [np.inf]
    assert limits.damping[at["h"]] == 0.4
    assert limits.friction[at["h"]] == 0.2
    assert limits.stiffness[at["b"] : at["b"] + 3].tolist() == [2, 2, 2]
    assert limits.effort[at["h"]] == 30.0
    assert np.isinf(limits.velocity).all()
    assert not any(np.isnan(x).any() for x in vars(limits).values())
    with pytest.raises(ValueError, match="read-only"):
        limits.damping[0] = 1.0


def test_everything_survives_urdf_and_pickle(robot: phistar.Robot) -> None:
    """The same model back, bit for bit, actuators among it."""
    assert phistar.load(robot.to_urdf().encode()).model == robot.model
    again = pickle.loads(pickle.dumps(robot))
    assert again.model.fingerprint == robot.model.fingerprint
    q, v = states(robot)
    assert np.array_equal(again.passive_force(q, v), robot.passive_force(q, v))
    assert np.array_equal(again.reorder(robot.joint_names).actuators.moment, robot.actuators.moment)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('<phistar:actuator name="a"/>', "drives no joint"),
        ('<phistar:actuator name="a"><phistar:joint name="x"/></phistar:actuator>', "unknown"),
        ('<phistar:actuator name="a" ctrlrange="2 1"><phistar:joint name="j"/></phistar:actuator>',
         "from 2 to 1"),
    ],
)  # fmt: skip
def test_bad_actuators_of_a_file_are_refused(text: str, match: str) -> None:
    """With their line."""
    urdf = f"""<robot name="r" xmlns:phistar="urn:phistar:urdf"><link name="a"/><link name="b">
<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
</link><joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>{text}
</robot>"""
    with pytest.raises(ModelError, match=match):
        phistar.load(urdf.encode())


def pendulum(**joint: object) -> ModelBuilder:
    """One link on a hinge."""
    builder = ModelBuilder("pendulum")
    builder.link("base")
    builder.link("arm", 1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    builder.joint("pin", "revolute", "base", "arm", axis=(0, 1, 0), **joint)  # type: ignore[arg-type]
    return builder


def built(**actuator: Any) -> None:
    """A pendulum with an actuator."""
    builder = pendulum()
    builder.actuator("a", **actuator)
    builder.build()


def test_bad_actuators_of_a_builder_are_refused() -> None:
    """By name, with what was expected."""
    for change, error in (
        ({"joints": "no"}, UnknownNameError),
        ({"joints": "pin", "ctrlrange": (1, -1)}, ArgumentError),
        ({"joints": "pin", "gear": np.inf}, ArgumentError),
        ({"joints": "pin", "gain": (1, 2)}, ArgumentError),
        ({"joints": ()}, ArgumentError),
    ):
        with pytest.raises(error):
            built(**change)  # type: ignore[arg-type]


def test_mimic_joints_are_part_of_their_leaders() -> None:
    """Two springs and dampers on one coordinate are what they are on two that move together."""
    builder = pendulum(damping=0.3, stiffness=2.0, spring_reference=0.1, friction=0.5)
    builder.link("hand", 0.5, com=(0, 0, -0.2), inertia=(0.02, 0.02, 0.01))
    builder.joint(
        "wrist", "revolute", "arm", "hand", xyz=(0, 0, -1), axis=(0, 1, 0), damping=0.2,
        stiffness=4.0, spring_reference=-0.2, friction=0.25, mimic=Mimic("pin", -2.0, 0.3),
    )  # fmt: skip
    both = phistar.load(builder.build())
    apart = phistar.load(builder.build(mimic="independent"))
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(20, 1)), rng.normal(size=(20, 1))
    force = apart.passive_force(np.hstack([q, -2 * q + 0.3]), np.hstack([v, -2 * v]))
    expected = force @ np.array([1.0, -2.0])
    assert np.abs(both.passive_force(q, v)[:, 0] - expected).max() < 1e-13 * np.abs(expected).max()


def test_precisions_batches_and_compiled_rows_agree(robot: phistar.Robot) -> None:
    """Machine code, NumPy, single precision and single samples; NaN where a sample is bad."""
    q, v = states(robot, (40,))
    found = robot.compile("passive_force")(q, v=v)
    expected = np.stack([robot.passive_force(a, b) for a, b in zip(q, v, strict=True)])
    assert np.abs(found - expected).max() < 1e-13 * np.abs(expected).max()
    single = robot.passive_force(q.astype(np.float32), v.astype(np.float32))
    assert single.dtype == np.float32
    assert np.abs(single - expected).max() < 1e-5 * np.abs(expected).max()
    v[3] = np.nan
    kept = robot.passive_force(q, v, on_error="nan")
    assert np.isnan(kept[3]).all()
    assert np.array_equal(
        np.delete(kept, 3, 0), np.delete(robot.passive_force(q, np.nan_to_num(v)), 3, 0)
    )


def test_rigid_dynamics_takes_the_switch(robot: phistar.Robot) -> None:
    """Forward and inverse dynamics are inverse to each other with it, and as ever without."""
    q, v = states(robot, (5,))
    tau = np.random.default_rng(1).normal(size=v.shape)
    vdot = robot.forward_dynamics(q, v, tau, passive=True)
    back = robot.inverse_dynamics(q, v, vdot, passive=True)
    assert np.abs(back - tau).max() < 1e-11 * np.abs(tau).max()
    pushed = tau + robot.passive_force(q, v)
    assert np.abs(robot.forward_dynamics(q, v, pushed) - vdot).max() < 1e-11 * np.abs(vdot).max()
    some = robot.forward_dynamics(q, v, tau, passive={"damping"})
    assert not np.allclose(some, vdot)
    for bad in ("spring", {"springs", "x"}, 3):
        with pytest.raises(PhistarError, match=r"passive|joint physics"):
            robot.forward_dynamics(q, v, tau, passive=bad)  # type: ignore[arg-type]


def test_derivatives_take_the_switch(robot: phistar.Robot) -> None:
    """Against central differences, of accelerations and of steps."""
    q, v = states(robot)
    tau, h, step = np.zeros(robot.nv), 1e-6, 0.01
    units = h * np.eye(robot.nv)
    at = robot.linearize(q, v, tau, passive=True)

    def rate(dq: Array, dv: Array) -> Array:
        return robot.forward_dynamics(robot.integrate(q, dq), v + dv, tau, passive=True)

    by_q = np.stack([(rate(u, 0 * u) - rate(-u, 0 * u)) / (2 * h) for u in units], axis=-1)
    by_v = np.stack([(rate(0 * u, u) - rate(0 * u, -u)) / (2 * h) for u in units], axis=-1)
    size = np.abs(at.vdot_q).max()
    assert np.abs(at.vdot_q - by_q).max() < 1e-7 * size
    assert np.abs(at.vdot_v - by_v).max() < 1e-7 * size
    inverse = robot.linearize_inverse(q, v, at.vdot, passive=True)
    assert np.abs(inverse.tau - tau).max() < 1e-10
    assert np.abs(at.vdot_q + at.vdot_tau @ inverse.tau_q).max() < 1e-9 * size
    for method in ("euler", "semi_implicit", "implicit"):
        ahead = robot.discretize(q, v, tau, step, method=method, passive=True)

        def end(dq: Array, dv: Array, method: str = method, ahead: object = ahead) -> Array:
            there = robot.integrate(q, dq)
            found = robot.discretize(there, v + dv, tau, step, method=method, passive=True)
            return np.concatenate([robot.difference(ahead.q, found.q), found.v])  # type: ignore[attr-defined]

        columns = [(end(u, 0 * u) - end(-u, 0 * u)) / (2 * h) for u in units]
        columns += [(end(0 * u, u) - end(0 * u, -u)) / (2 * h) for u in units]
        assert np.abs(ahead.A - np.stack(columns, axis=-1)).max() < 1e-7 * np.abs(ahead.A).max()
