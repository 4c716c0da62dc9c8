# SPDX-License-Identifier: BSD-3-Clause
"""The bundled arms and the quadruped have the dynamics of the files they stand in for.

Pinocchio reads our files here, so these tests judge the data and not our own reader.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from lxml import etree

from tests.helpers import ROOT, SHARED, needs_shared

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the engine of these tests")

pytestmark = needs_shared

DATA = ROOT / "src" / "phistar" / "robots" / "data"
EXAMPLE = "example_robot_data__robots__"
GOLDEN = {
    "ur5": f"arm/{EXAMPLE}ur_description__urdf__ur5_robot.urdf",
    "panda_hand": f"arm/{EXAMPLE}panda_description__urdf__panda.urdf",
    "quadruped": f"quadruped/{EXAMPLE}solo_description__robots__solo12.urdf",
}

# Same numbers, same engine: only the order of a few sums may differ.
TOLERANCE = 1e-12


def golden(name: str) -> tuple[Path, dict, dict[str, np.ndarray]]:
    """Path, description and recorded values of the file that a bundled robot stands in for."""
    path = SHARED / "robots" / GOLDEN[name]
    with np.load(f"{path}.npz") as values:
        return path, json.loads(Path(f"{path}.json").read_text(encoding="utf-8")), dict(values)


def bundled(name: str, **options: object) -> "pin.Model":
    """A bundled robot as Pinocchio reads it; the quadruped on a free base."""
    root = (pin.JointModelFreeFlyer(),) if name == "quadruped" else ()
    return pin.buildModelFromUrdf(str(DATA / f"{name}.urdf"), *root, **options)


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    """Largest deviation as a share of the largest expected entry."""
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def mass_matrix(model: "pin.Model", q: np.ndarray) -> np.ndarray:
    """Joint-space inertia with both triangles filled, as copies."""
    upper = np.triu(pin.crba(model, model.createData(), q))
    return upper + np.triu(upper, 1).T


def torque(model: "pin.Model", q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Inverse dynamics, as a copy."""
    return np.array(pin.rnea(model, model.createData(), q, v, a))


def pose(model: "pin.Model", q: np.ndarray, frame: str) -> np.ndarray:
    """Pose of a frame in the world, (4, 4)."""
    assert model.existFrame(frame)
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    return np.array(data.oMf[model.getFrameId(frame)].homogeneous)


@pytest.mark.parametrize("name", GOLDEN)
def test_joints_are_the_same(name: str) -> None:
    """Names, order and sizes of the joints are those of the reference, so q means the same."""
    model, (_, info, _) = bundled(name), golden(name)
    found = [(n, j.idx_q, j.idx_v) for n, j in zip(model.names[1:], model.joints[1:], strict=True)]
    assert found == [(j["name"], j["idx_q"], j["idx_v"]) for j in info["joints"]]
    assert (model.nq, model.nv) == (info["nq"], info["nv"])


@pytest.mark.parametrize("name", GOLDEN)
def test_mass_matrix_torque_and_pose_agree(name: str) -> None:
    """𝓜(q), τ(q, v, a) and the pose of the tip or foot equal the recorded ones."""
    model, (_, info, values) = bundled(name), golden(name)
    assert len(values["q"]) == 3
    for k, q in enumerate(values["q"]):
        assert relative_error(mass_matrix(model, q), values["M"][k]) < TOLERANCE
        tau = torque(model, q, values["v"][k], values["a"][k])
        assert relative_error(tau, values["tau_rnea"][k]) < TOLERANCE
        assert relative_error(pose(model, q, info["frame"]), values["frame_T"][k]) < TOLERANCE


@pytest.mark.parametrize("name", GOLDEN)
def test_masses_add_up(name: str) -> None:
    """All links, the fixed base included, weigh what the reference records."""
    masses = etree.parse(DATA / f"{name}.urdf").iterfind("link/inertial/mass")
    total = sum(float(mass.get("value")) for mass in masses)
    assert total == pytest.approx(golden(name)[1]["total_mass"], rel=TOLERANCE)


def test_mimic_finger_agrees() -> None:
    """With the second finger tied to the first, the gripper still has the recorded dynamics."""
    model, (_, info, values) = bundled("panda_hand", mimic=True), golden("panda_hand")
    assert (model.nq, model.nv) == (8, 8)
    assert info["mimic"]["mimic"] == {"panda_finger_joint2": ["panda_finger_joint1", 1.0, 0.0]}
    for k, q in enumerate(values["mimic_q"]):
        assert relative_error(mass_matrix(model, q), values["mimic_M"][k]) < TOLERANCE
        tau = torque(model, q, values["mimic_v"][k], values["mimic_a"][k])
        assert relative_error(tau, values["mimic_tau"][k]) < TOLERANCE


def without_hand(path: Path) -> str:
    """The text of a Panda file with all that hangs on the flange taken off."""
    robot = etree.parse(path).getroot()
    kept = {f"panda_link{k}" for k in range(9)}
    for element in [*robot.findall("link"), *robot.findall("joint")]:
        child = element.find("child")
        name = element.get("name") if child is None else child.get("link")
        if name not in kept:
            robot.remove(element)
    return etree.tostring(robot, encoding="unicode")


def test_bare_arm_agrees() -> None:
    """The bare Panda is the reference Panda without its hand, up to the flange."""
    path, _, values = golden("panda_hand")
    model, reference = bundled("panda"), pin.buildModelFromXML(without_hand(path))
    assert list(model.names) == list(reference.names)
    for q, v, a in zip(values["q"], values["v"], values["a"], strict=True):
        q, v, a = q[:7], v[:7], a[:7]
        assert relative_error(mass_matrix(model, q), mass_matrix(reference, q)) < TOLERANCE
        assert relative_error(torque(model, q, v, a), torque(reference, q, v, a)) < TOLERANCE
        flange = pose(reference, q, "panda_link8")
        assert relative_error(pose(model, q, "panda_link8"), flange) < TOLERANCE


def test_comparison_has_teeth() -> None:
    """One gram more on a link of ours breaks the agreement."""
    model, (_, _, values) = bundled("ur5"), golden("ur5")
    model.inertias[3].mass += 1e-3
    assert relative_error(mass_matrix(model, values["q"][0]), values["M"][0]) > 1e-6
