# SPDX-License-Identifier: BSD-3-Clause
"""Compares a robot file, as phistar reads it, with golden values of Pinocchio or MuJoCo beside it.

Used by ``make robots`` (a table) and by the tests (a test a robot). The golden ``.json`` names
joints with their places in the peer's q and v; the ``.npz`` holds states, poses, Jacobians, mass
matrices and derivatives of dynamics in the peer's conventions.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import phistar
from phistar.arrays import Array
from phistar.conventions import Convention, PeerJoint
from phistar.errors import PhistarError
from phistar.model.configuration import integrate
from phistar.model.numpy_kinematics import body_velocities
from phistar.spatial import inertia_matrix

TOLERANCE = 1e-9
"""Largest relative error that counts as agreement."""

DIFFERENCE_TOLERANCE = 1e-7
"""The same for derivatives that the peer has by finite differences: MuJoCo's."""

STEP = 1e-30
"""Of complex steps through the conversion of coordinates."""

PEER_KINDS = {
    "slide": {"prismatic"},
    "hinge": {"revolute", "continuous"},
    "ball": {"spherical"},
    "free": {"free"},
    "JointModelFreeFlyer": {"free"},
    "JointModelPlanar": {"planar"},
}


@dataclass
class Outcome:
    """What came of one robot: errors are relative, ``faults`` are disagreements in words."""

    path: Path
    nq: int = 0
    nv: int = 0
    warnings: int = 0
    singular: int = 0
    errors: dict[str, float] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether the robot loaded and everything compared agrees."""
        return not self.faults


def golden_files(folder: Path) -> list[Path]:
    """Every robot file below ``folder`` that has golden values, in order of its name."""
    found = [*folder.glob("*/*.urdf"), *folder.glob("*/*.xml")]
    return sorted(p for p in found if p.with_name(p.name + ".json").exists())


def compare(path: Path) -> Outcome:
    """Load a robot file and compare it with its golden values."""
    outcome = Outcome(path)
    golden = json.loads(path.with_name(path.name + ".json").read_text())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            robot = phistar.load(
                path, floating_base=golden["base"] == "free_flyer", mimic="independent"
            ).tree
    except PhistarError as error:
        outcome.faults.append(f"does not load: {error}")
        return outcome
    outcome.nq, outcome.nv = robot.nq, robot.nv
    outcome.warnings = len(robot.load_report.warnings)
    outcome.singular = len(robot.singular_hinges)
    _compare_structure(outcome, robot, golden)
    if not outcome.faults:
        with np.load(path.with_name(path.name + ".npz")) as arrays:
            _compare_numbers(outcome, robot, golden, arrays)
    return outcome


def _compare_structure(outcome: Outcome, robot: phistar.Robot, golden: dict[str, Any]) -> None:
    moving = [j for j in robot.joints.values() if j.joint_kind.nv]
    names = [
        peer["name"] or mine.name for peer, mine in zip(golden["joints"], moving, strict=False)
    ]
    mujoco = golden["tool"].startswith("mujoco")
    if mujoco and list(robot.joint_names) != names:
        outcome.faults.append("joint order differs")
    if sorted(robot.joint_names) != sorted(names):
        outcome.faults.append("joint names differ")
        return
    if robot.nv != golden["nv"]:
        outcome.faults.append(f"nv {robot.nv}, golden {golden['nv']}")
    for peer, name in zip(golden["joints"], names, strict=True):
        kind = robot.joints[name].kind
        if kind not in _kinds(peer["type"]):
            outcome.faults.append(f"joint {name} is {kind}, golden {peer['type']}")
    mass = golden["total_mass"]
    if abs(robot.total_mass - mass) > TOLERANCE * max(mass, 1e-9):
        outcome.faults.append(f"total mass {robot.total_mass:g}, golden {mass:g}")
    if not np.allclose(robot.gravity, golden["gravity"], rtol=TOLERANCE):
        disabled = mujoco and not robot.gravity.any()
        (outcome.notes if disabled else outcome.faults).append(
            "gravity switched off by flag" if disabled else f"gravity {robot.gravity}"
        )
    if bool(robot.singular_hinges) != bool(golden.get("singular_mass_matrix")):
        found = [hinge.joint for hinge in robot.singular_hinges]
        outcome.faults.append(f"singular hinges {found}, golden says otherwise")


def _kinds(peer_type: str) -> set[str]:
    if peer_type in PEER_KINDS:
        return PEER_KINDS[peer_type]
    if peer_type.startswith(("JointModelRUB", "JointModelRevoluteUnbounded")):
        return {"continuous"}
    return {"revolute"} if peer_type.startswith("JointModelR") else {"prismatic"}


def _convention(robot: phistar.Robot, golden: dict[str, Any]) -> Convention:
    moving = [j.name for j in robot.joints.values() if j.joint_kind.nv]
    peer = "mujoco" if golden["tool"].startswith("mujoco") else "pinocchio"
    joints = [
        PeerJoint(joint["name"] or moving[k], joint["idx_q"], joint["idx_v"])
        for k, joint in enumerate(golden["joints"])
    ]
    return Convention(robot, peer, joints, golden["nq"], golden["nv"])


def _compare_numbers(
    outcome: Outcome, robot: phistar.Robot, golden: dict[str, Any], arrays: Any
) -> None:
    convention = _convention(robot, golden)
    mujoco = convention.peer == "mujoco"
    q = convention.q_from_peer(arrays["q"])
    if "frame_T" in arrays:
        pose, jacobian = arrays["frame_T"], arrays["frame_J_lwa"]
    else:
        pose = np.broadcast_to(np.eye(4), (len(q), 4, 4)).copy()
        pose[:, :3, :3], pose[:, :3, 3] = arrays["body_mat"], arrays["body_pos"]
        jacobian = np.concatenate([arrays["body_jacp"], arrays["body_jacr"]], axis=-2)
    # The golden frame is the last body; where the file does not name it, its place does.
    frame = golden["frame"] or robot.link_names[-1]
    pairs = {
        "q": (convention.q_to_peer(q), arrays["q"]),
        "pose": (robot.frame_pose(q, frame), pose),
        "jacobian": (robot.jacobian(q, frame), convention.jacobian_from_peer(q, jacobian)),
        "mass matrix": (
            dense_mass_matrix(robot, q, armature=mujoco),
            convention.matrix_from_peer(q, arrays["M"]),
        ),
    }
    if golden.get("tendon_armature"):
        del pairs["mass matrix"]
        _expect_tendon_warning(outcome, robot)
    elif _same_dynamics(outcome, robot, mujoco):
        pairs |= _dynamics(robot, convention, q, arrays)
        if "dtau_dq" in arrays:
            pairs |= _derivatives(robot, convention, q, arrays)
    if np.isfinite(arrays["com"]).all() and (mujoco or robot.model.inertias[:, 0].any()):
        pairs["com"] = (robot.center_of_mass(q, fixed=mujoco), arrays["com"])
    for name, (ours, theirs) in pairs.items():
        error = float(
            np.abs(ours - theirs).max(initial=0.0) / max(np.abs(theirs).max(initial=0.0), 1e-3)
        )
        outcome.errors[name] = error
        if not error <= _allowed(name, mujoco, arrays["M"]):
            outcome.faults.append(f"{name} differs by {error:.1e}")


def _allowed(name: str, mujoco: bool, masses: Array) -> float:
    """The largest relative error of a quantity that counts as agreement.

    Derivatives of accelerations are solved with the mass matrix, by the peer as well, and lose the
    digits that its condition number says.
    """
    known = DIFFERENCE_TOLERANCE if mujoco and name.startswith("∂") else TOLERANCE
    if not name.startswith("∂v̇"):
        return known
    return max(known, float(np.finfo(float).eps * np.linalg.cond(masses).max()))


def _same_dynamics(outcome: Outcome, robot: phistar.Robot, mujoco: bool) -> bool:
    """Whether the peer has the same equations of motion; what differs is noted."""
    motored = [body for body in robot.model.bodies if any(body.armature)]
    if not mujoco and motored:
        outcome.notes.append("rotor inertia is used; the golden values are without")
        return False
    return True


def _dynamics(
    robot: phistar.Robot, convention: Convention, q: Array, arrays: Any
) -> dict[str, tuple[Array, Array]]:
    """What the compiled programs give beside the peer's values."""
    v = convention.v_from_peer(q, arrays["v"])
    vdot = convention.vdot_from_peer(q, v, arrays["a"])
    torque = arrays["tau_rb" if convention.peer == "mujoco" else "tau_rnea"]
    expected = convention.tau_from_peer(q, torque)
    gravity = convention.tau_from_peer(q, arrays["gravity_torque"])
    kinetic, potential = arrays["energy"].T
    ours = robot.potential_energy(q)
    pairs = {
        "torque": (robot.inverse_dynamics(q, v, vdot), expected),
        "gravity torque": (robot.gravity_force(q), gravity),
        "compiled mass matrix": (
            robot.mass_matrix(q),
            convention.matrix_from_peer(q, arrays["M"]),
        ),
        "kinetic energy": (robot.kinetic_energy(q, v), kinetic),
    }
    if robot.gravity.any():
        # MuJoCo counts the links that rest, too: only differences between states compare. Where a
        # flag switches gravity off, the golden energy has it nevertheless.
        pairs["potential energy"] = (ours - ours[0], potential - potential[0])
    if not robot.singular_hinges:
        tau = convention.tau_from_peer(q, arrays["tau_in"])
        vdot = convention.vdot_from_peer(q, v, arrays["qdd"])
        pairs["acceleration"] = (robot.forward_dynamics(q, v, tau), vdot)
    return pairs


@dataclass(frozen=True)
class _Turning:
    """How v = S⁻¹ v_peer and its like turn with q: derivatives along tangent steps, last index.

    The peer writes v_p = S v, a_p = S v̇ + Ṡ v and τ = S*τ_p; a step δq of ours is S δq of theirs.
    """

    S: Array
    S_q: Array
    v_q: Array
    a_q: Array
    a_v: Array

    @classmethod
    def of(cls, convention: Convention, q: Array, v: Array, vdot: Array) -> _Turning:
        """At states (n, ...), by complex steps through the conversion."""
        model = convention.model
        units = STEP * 1j * np.eye(model.nv)[:, None, :]
        moved = integrate(model, q[None], units)

        def last(x: Array) -> Array:
            return np.moveaxis(x.imag / STEP, 0, -1)

        v_q = last(convention.v_to_peer(moved, v))
        a_q = last(convention.vdot_to_peer(moved, v, vdot))
        a_v = last(convention.vdot_to_peer(q[None], v + units, vdot[None]))
        S_q = last(convention.velocity_matrix(moved))
        return cls(convention.velocity_matrix(q), S_q, v_q, a_q, a_v)


def _derivatives(
    robot: phistar.Robot, convention: Convention, q: Array, arrays: Any
) -> dict[str, tuple[Array, Array]]:
    """Derivatives of dynamics beside the peer's, by the chain rule through its coordinates."""
    count = len(arrays["dtau_dq"])
    q, given = q[:count], {name: arrays[name][:count] for name in ("v", "a", "tau_in", "qdd", "M")}
    v = convention.v_from_peer(q, given["v"])
    vdot = convention.vdot_from_peer(q, v, given["a"])
    tau_peer = arrays["tau_rb" if convention.peer == "mujoco" else "tau_rnea"][:count]
    turn = _Turning.of(convention, q, v, vdot)
    by_q, by_v = arrays["dtau_dq"], arrays["dtau_dv"]
    St = np.swapaxes(turn.S, -1, -2)
    turned = np.einsum("...pik,...p->...ik", turn.S_q, tau_peer)
    ours = robot.linearize_inverse(q, v, vdot)
    pairs = {
        "∂τ/∂q": (
            ours.tau_q,
            turned + St @ (by_q @ turn.S + by_v @ turn.v_q + given["M"] @ turn.a_q),
        ),
        "∂τ/∂v": (ours.tau_v, St @ (by_v @ turn.S + given["M"] @ turn.a_v)),
    }
    if not robot.singular_hinges:
        pairs |= _forward_derivatives(robot, convention, q, v, given, arrays)
    return pairs


def _forward_derivatives(
    robot: phistar.Robot,
    convention: Convention,
    q: Array,
    v: Array,
    given: dict[str, Array],
    arrays: Any,
) -> dict[str, tuple[Array, Array]]:
    """S v̇ + Ṡ v = a_p(q, v_p, τ_p) with S*τ_p = τ held, differentiated."""
    tau = convention.tau_from_peer(q, given["tau_in"])
    vdot = convention.vdot_from_peer(q, v, given["qdd"])
    turn = _Turning.of(convention, q, v, vdot)
    by_q, by_v = arrays["dqdd_dq"], arrays["dqdd_dv"]
    back = np.linalg.inv(turn.S)
    turned = np.einsum("...pik,...p->...ik", turn.S_q, given["tau_in"])
    pushed = np.linalg.solve(given["M"], np.swapaxes(back, -1, -2) @ turned)
    ours = robot.linearize(q, v, tau)
    return {
        "∂v̇/∂q": (
            ours.vdot_q,
            back @ (by_q @ turn.S + by_v @ turn.v_q - pushed - turn.a_q),
        ),
        "∂v̇/∂v": (ours.vdot_v, back @ (by_v @ turn.S - turn.a_v)),
    }


def _expect_tendon_warning(outcome: Outcome, robot: phistar.Robot) -> None:
    """Inertia of tendons is not modelled: the user must have been told."""
    outcome.notes.append("tendon armature not modelled, reported")
    if not any("armature" in p.what and "tendon" in p.what for p in robot.load_report.warnings):
        outcome.faults.append("tendon armature is ignored without a warning")


def dense_mass_matrix(robot: phistar.Robot, q: Array, *, armature: bool = True) -> Array:
    """Mass matrix as the sum of J* M J over the bodies, plus the reflected rotor inertias."""
    units = np.eye(robot.nv)
    velocities = body_velocities(robot.model, np.asarray(q)[..., None, :], units)
    momenta = np.einsum("kij,...kj->...ki", inertia_matrix(robot.model.inertias), velocities)
    matrix = np.einsum("...aki,...bki->...ab", velocities, momenta)
    for body in robot.model.bodies if armature else ():
        for offset, rotor in enumerate(body.armature):
            index = body.v_slice.start + offset
            matrix[..., index, index] += body.scale**2 * rotor
    return np.asarray(matrix)
