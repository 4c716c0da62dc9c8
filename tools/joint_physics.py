# SPDX-License-Identifier: BSD-3-Clause
"""Springs and damping of joints beside MuJoCo: the same files, the same steps, one second.

Contacts, actuators, limits, dry friction and equality constraints are off. Two schemes:

- ``rk4`` in both, with steps that are short enough for explicit damping;
- ``implicit`` beside MuJoCo's ``implicitfast``, whose damping is implicit too. Its springs are not:
  the file's stiffness K goes into MuJoCo as armature h² K and forces -h K v, which is what an
  implicit spring is. Robots with a free joint are left out there: MuJoCo moves the origin of a free
  body along a straight line in each step, we move it along the screw of its velocity, and schemes
  of first order tell that apart.

Run: ``python -m tools.joint_physics [FILES]``; by default the files of ../shared/robots that have
springs or damping. The exit code says whether all agree to ``TOLERANCE``.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import phistar
from phistar import conventions
from phistar.errors import PhistarError
from phistar.model.kinematic_loops import active_loops
from phistar.sim.scheme_choice import is_stiff

SMOOTH = ("springs", "damping")
TOLERANCE = 1e-6
"""Largest difference of a coordinate after a second [rad, m]."""
SECONDS = 1.0
STEP_LENGTHS = (1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5)
"""[s]; the first one at which explicit steps are not stiff, or only implicit ones."""
MAX_COORDINATES = 90
LEFT_OUT = ("tendon-armature", "tendon-forces", "gravcomp", "fluid", "nonlinear-joint", "flex")
"""Warnings of the loader about forces that MuJoCo has and a rigid robot has not."""


class Agreement(NamedTuple):
    """How far two motions are apart after a second [rad, m]; None if there is no comparison."""

    rk4: float | None
    implicit: float | None
    dt: float


def compared(path: Path, seed: int = 0) -> Agreement | str:
    """How well a file agrees, or why it is left out."""
    import mujoco

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            robot = phistar.load(path)
            peer = mujoco.MjModel.from_xml_path(str(path))
        except (PhistarError, ValueError) as error:
            return f"does not load: {str(error).splitlines()[0][:60]}"
    left_out = {problem.code for problem in robot.load_report.problems} & set(LEFT_OUT)
    if left_out:
        return f"other forces: {', '.join(sorted(left_out))}"
    robot = robot.tree if active_loops(robot.loops) else robot
    if not robot.limits.damping.any() and not robot.limits.stiffness.any():
        return "neither springs nor damping"
    if robot.nv > MAX_COORDINATES or robot.singular_hinges:
        return f"{robot.nv} coordinates, or joints without inertia"
    found = compare(robot, peer, seed)
    if found.rk4 is None and found.implicit is None:
        return f"a free joint, and damping that is stiff at {STEP_LENGTHS[-1]:g} s"
    return found


def compare(robot: phistar.Robot, peer: Any, seed: int = 0) -> Agreement:
    """The same motion by both.

    Args:
        robot: A tree.
        peer: MuJoCo's model of the same file.
        seed: Of the initial state.
    """
    import mujoco

    flags = mujoco.mjtDisableBit
    for name in ("CONTACT", "LIMIT", "FRICTIONLOSS", "EQUALITY", "ACTUATION"):
        peer.opt.disableflags |= int(getattr(flags, f"mjDSBL_{name}"))
    soft = [x for x in STEP_LENGTHS if not is_stiff(robot.model, 4.0 * x, SMOOTH)]
    dt = soft[0] if soft else STEP_LENGTHS[0]
    steps = round(SECONDS / dt)
    rng = np.random.default_rng(seed)
    q, v = _start(robot, rng)
    rk4 = implicit = None
    if soft:
        found = robot.simulate(q, v, dt=dt, steps=steps, every=steps, scheme="rk4", passive=SMOOTH)
        explicit = _mujoco_motion(robot, peer, mujoco.mjtIntegrator.mjINT_RK4, (q, v), dt, steps)
        rk4 = float(np.abs(robot.difference(explicit, found.q[-1])).max())
    if not any(joint.kind == "free" for joint in robot.joints.values()):
        found = robot.simulate(
            q, v, dt=dt, steps=steps, every=steps, scheme="implicit", passive=SMOOTH
        )
        fast = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        other = _mujoco_motion(robot, peer, fast, (q, v), dt, steps, implicit_springs=True)
        implicit = float(np.abs(robot.difference(other, found.q[-1])).max())
    return Agreement(rk4, implicit, dt)


def _start(robot: phistar.Robot, rng: np.random.Generator) -> tuple[Any, Any]:
    """Near home, moving slowly: what is chaotic does not get far in a second."""
    return robot.integrate(robot.home, 0.05 * rng.normal(size=robot.nv)), 0.1 * rng.normal(
        size=robot.nv
    )


def _mujoco_motion(
    robot: phistar.Robot,
    peer: Any,
    integrator: Any,
    start: tuple[Any, Any],
    dt: float,
    steps: int,
    implicit_springs: bool = False,
) -> Any:
    """MuJoCo's configuration at the end, in our coordinates."""
    import mujoco

    convention = conventions.mujoco(robot, peer)
    peer.opt.integrator, peer.opt.timestep = integrator, dt
    data = mujoco.MjData(peer)
    q, v = start
    data.qpos[:], data.qvel[:] = convention.q_to_peer(q), convention.v_to_peer(q, v)
    K = np.array(peer.jnt_stiffness)[peer.dof_jntid]
    armature = np.array(peer.dof_armature)
    if implicit_springs:
        peer.dof_armature[:] = armature + dt * dt * K
        mujoco.mj_setConst(peer, mujoco.MjData(peer))
    for _ in range(steps):
        if implicit_springs:
            data.qfrc_applied[:] = -dt * K * data.qvel
        mujoco.mj_step(peer, data)
    peer.dof_armature[:] = armature
    return convention.q_from_peer(data.qpos)


def main() -> int:
    """Print a line for each file."""
    given = [Path(x) for x in sys.argv[1:]]
    folder = Path(__file__).resolve().parents[2] / "shared" / "robots"
    paths = given or sorted(folder.rglob("*.xml"))
    agreed = failed = 0
    for path in paths:
        found = compared(path)
        if isinstance(found, str):
            if given:
                print(f"{path.name}: left out, {found}")
            continue
        bad = not all(x is None or x <= TOLERANCE for x in found[:2])
        failed, agreed = failed + bad, agreed + (not bad)
        rk4, implicit = ("-" if x is None else f"{x:.1e}" for x in found[:2])
        print(f"{'FAIL' if bad else 'ok':4} rk4 {rk4:>7}  implicit {implicit:>7}  "
              f"dt {found.dt:g}  {path.name}", flush=True)  # fmt: skip
    print(f"{agreed} files agree to {TOLERANCE:g}, {failed} do not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
