# SPDX-License-Identifier: BSD-3-Clause
"""Every URDF of the example-robot-data package against Pinocchio, reading the same file."""

import sysconfig
import warnings
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import phistar
from tools.golden import dense_mass_matrix

ROBOTS = Path(sysconfig.get_path("purelib"), "cmeel.prefix/share/example-robot-data/robots")
XACRO = {"ur3.urdf"}
FILES = sorted(path for path in ROBOTS.rglob("*.urdf") if path.name not in XACRO)
SAMPLES = 3


def test_the_package_is_there() -> None:
    """The test extra brings the robots; without them nothing below would run."""
    assert len(FILES) >= 60


@pytest.mark.parametrize("name", sorted(XACRO))
def test_xacro_named_urdf_is_recognised(name: str) -> None:
    """A file that still needs xacro is refused with that advice; Pinocchio refuses it too."""
    (path,) = ROBOTS.rglob(name)
    with pytest.raises(phistar.errors.ModelError, match="xacro"):
        phistar.load(path)
    with pytest.raises(ValueError, match="valid URDF"):
        pin.buildModelFromUrdf(str(path))


@pytest.mark.parametrize("floating_base", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_same_poses_jacobians_and_mass_matrix(path: Path, floating_base: bool) -> None:
    """Relative 1e-9, in every frame of the file, mimic joints independent on both sides."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = phistar.load(path, floating_base=floating_base, mimic="independent")
    base = [pin.JointModelFreeFlyer()] if floating_base else []
    peer = pin.buildModelFromUrdf(str(path), *base)
    data = peer.createData()
    convert = phistar.conventions.pinocchio(robot, peer)
    assert robot.nv == peer.nv
    for q in robot.random_configuration(5, SAMPLES):
        theirs = convert.q_to_peer(q)
        pin.framesForwardKinematics(peer, data, theirs)
        pin.computeJointJacobians(peer, data, theirs)
        poses = robot.link_poses(q)
        for name in robot.link_names:
            expected = data.oMf[peer.getFrameId(name, pin.BODY)].homogeneous
            assert np.abs(poses[name] - expected).max() <= 1e-9 * max(1.0, np.abs(expected).max())
        if robot.nv == 0:
            continue  # Pinocchio crashes when asked for Jacobians of a robot without joints.
        tip = robot.link_names[-1]
        index = peer.getFrameId(tip, pin.BODY)
        jacobian = pin.getFrameJacobian(peer, data, index, pin.LOCAL_WORLD_ALIGNED)
        ours = convert.jacobian_to_peer(q, robot.jacobian(q, tip))
        assert np.abs(ours - jacobian).max(initial=0.0) <= 1e-9 * np.abs(jacobian).max(initial=1.0)
        mass = pin.crba(peer, data, theirs)
        matrix = convert.matrix_to_peer(q, dense_mass_matrix(robot, q, armature=False))
        assert np.abs(matrix - mass).max(initial=0.0) <= 1e-9 * np.abs(mass).max(initial=1e-12)
