# SPDX-License-Identifier: BSD-3-Clause
"""Pinocchio's ``constraintDynamics`` and MuJoCo's equalities on robots with loops.

Pinocchio knows points and welds. Its model is made of the bodies of ours, so that any robot will
do, and a constraint is put between the same frames. MuJoCo's points are soft.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from phistar import Robot, conventions
from phistar.arrays import Array
from phistar.conventions import swap_spatial
from phistar.errors import ArgumentError
from phistar.model.components import Body, LoopJoint
from phistar.model.joints import JointKind
from phistar.model.kinematic_loops import LoopEnd, active_loops, loop_ends

KINDS = {"spherical": "CONTACT_3D", "weld": "CONTACT_6D"}
"""What Pinocchio calls loop joints."""

_JOINTS = {
    "revolute": "JointModelRevoluteUnaligned",
    "continuous": "JointModelRevoluteUnaligned",
    "prismatic": "JointModelPrismaticUnaligned",
    "spherical": "JointModelSpherical",
    "free": "JointModelFreeFlyer",
}


class PinocchioLoops:
    """Pinocchio on a robot whose loops are points and welds.

    Attributes:
        model, data: Pinocchio's.
        constraints, held: Its constraint models and their data, in the order of the loops.
        q_order, v_order: Entries of our q and v in its order; the numbers are the same ones.
    """

    name = "pinocchio"

    def __init__(
        self, robot: Robot, damping: float = 0.0, iterations: int = 1, planar: bool = False
    ) -> None:
        """Args:
        robot: Ours.
        damping: μ of its proximal solver; rows that depend on each other need some.
        iterations: Of that solver, at most.
        planar: The mechanism is in a plane, where a hinge is as good as a point.
        """
        import pinocchio as pin

        self.pin: Any = pin
        self.robot = robot
        self.model = self._bodies(robot)
        self.data = self.model.createData()
        self.q_order, self.v_order = self._orders(robot)
        loops = active_loops(robot.model.loops)
        if planar:
            loops = tuple(replace(loop, kind="spherical") for loop in loops)  # type: ignore[call-arg]
        for loop in loops:
            if not isinstance(loop, LoopJoint) or loop.kind not in KINDS:
                raise ArgumentError(f"Pinocchio knows points and welds, not loop '{loop.name}'")
        self.loops = [loop for loop in loops if isinstance(loop, LoopJoint)]
        self.constraints = pin.StdVec_RigidConstraintModel()
        self.held = pin.StdVec_RigidConstraintData()
        for loop in self.loops:
            self.constraints.append(self._constraint(loop))
            self.held.append(self.constraints[-1].createData())
        self.settings = pin.ProximalSettings(1e-14, damping, iterations)
        pin.initConstraintDynamics(self.model, self.data, self.constraints, self.held)

    def _bodies(self, robot: Robot) -> Any:
        """Its model: a joint for each body of ours, with the inertia of that body."""
        model = self.pin.Model()
        model.gravity.linear = np.array(robot.gravity)
        for body in robot.model.bodies:
            if body.scale != 1.0 or body.joint_kind.name not in _JOINTS:
                raise ArgumentError(f"joint '{body.joint}' has no counterpart in Pinocchio")
            place = self._pose(body.placement)
            number = model.addJoint(body.parent + 1, self._joint(body), place, body.joint)
            model.appendBodyToJoint(number, self._inertia(body), self.pin.SE3.Identity())
        for body in robot.model.bodies:
            first = model.joints[body.index + 1].idx_v
            model.armature[first : first + len(body.armature)] = body.armature
        return model

    def _joint(self, body: Body) -> Any:
        kind: JointKind = body.joint_kind
        make = getattr(self.pin, _JOINTS[kind.name])
        return make(kind.direction(2)) if kind.has_axis else make()

    def _inertia(self, body: Body) -> Any:
        mass, x, y, z, xx, xy, xz, yy, yz, zz = body.inertia
        if not mass:
            return self.pin.Inertia.Zero()
        numbers = np.array([mass, x, y, z, xx, xy, yy, xz, yz, zz])
        return self.pin.Inertia.FromDynamicParameters(numbers)

    def _pose(self, pose: Array) -> Any:
        return self.pin.SE3(np.array(pose[:3, :3]), np.array(pose[:3, 3]))

    def _constraint(self, loop: LoopJoint) -> Any:
        """The successor is its first frame, on which it says forces."""
        before, after = loop_ends(self.robot.model, loop)
        kind = getattr(self.pin.ContactType, KINDS[loop.kind])

        def end(at: LoopEnd) -> tuple[int, Any]:
            return at.body + 1, self._pose(at.pose)

        local = self.pin.ReferenceFrame.LOCAL
        return self.pin.RigidConstraintModel(kind, self.model, *end(after), *end(before), local)

    def _orders(self, robot: Robot) -> tuple[Array, Array]:
        """Its joints are in the order of bodies; velocities of free ones are [linear; angular]."""
        q, v = np.empty(self.model.nq, dtype=int), np.empty(self.model.nv, dtype=int)
        for body in robot.model.bodies:
            joint = self.model.joints[body.index + 1]
            q[joint.idx_q : joint.idx_q + joint.nq] = np.r_[body.q_slice]
            own = np.r_[body.v_slice]
            v[joint.idx_v : joint.idx_v + joint.nv] = np.roll(own, 3) if joint.nv == 6 else own
        return q, v

    def rows(self, q: Array, v: Array, tau: Array) -> list[tuple[Array, ...]]:
        """Its arguments for each row of our arrays (batch, n)."""
        given = q[:, self.q_order], v[:, self.v_order], tau[:, self.v_order]
        return list(zip(*map(np.ascontiguousarray, given), strict=True))

    def dynamics(self, q: Array, v: Array, tau: Array) -> Array:
        """One call, in its coordinates."""
        found: Array = self.pin.constraintDynamics(
            self.model, self.data, q, v, tau, self.constraints, self.held, self.settings
        )
        return found

    def derivatives(self, q: Array, v: Array, tau: Array) -> Sequence[Array]:
        """∂v̇/∂q, ∂v̇/∂v, ∂v̇/∂τ and the same of its forces, in its coordinates."""
        self.dynamics(q, v, tau)
        found: Sequence[Array] = self.pin.computeConstraintDynamicsDerivatives(
            self.model, self.data, self.constraints, self.held, self.settings
        )
        return found

    def forward_dynamics(self, q: Array, v: Array, tau: Array) -> tuple[Array, dict[str, Array]]:
        """v̇ (batch, nv) and wrenches (batch, 6) on the successors, in our coordinates."""
        vdot, forces = np.empty_like(v), []
        for i, row in enumerate(self.rows(q, v, tau)):
            vdot[i, self.v_order] = self.dynamics(*row)
            forces.append([np.array(each.contact_force.vector) for each in self.held])
        wrenches = swap_spatial(np.array(forces))
        return vdot, {loop.name: wrenches[:, i] for i, loop in enumerate(self.loops)}

    def linearize(self, q: Array, v: Array, tau: Array) -> Array:
        """(batch, 3, nv, nv): ∂v̇ with respect to q, v and τ, in our coordinates."""
        # Each result is its memory, which the next call writes to.
        found = np.array([np.array(self.derivatives(*row)[:3]) for row in self.rows(q, v, tau)])
        back = np.argsort(self.v_order)
        return found[..., back[:, None], back]


class MuJoCoLoops:
    """MuJoCo on a robot on a fixed base whose loops are points, or hinges of planar mechanisms.

    Args:
        robot: Ours.
        integrator: ``"Euler"``, ``"implicit"`` or ``"RK4"``.
        stiff: As hard as it gets for steps of ``dt``: a time constant of two steps. Otherwise the
            equalities are those of a file that says nothing.
        dt: Step [s].
    """

    def __init__(self, robot: Robot, integrator: str, dt: float, stiff: bool = False) -> None:
        import mujoco

        spec = mujoco.MjSpec.from_string(robot.tree.to_urdf())
        for geom in list(spec.geoms):
            spec.delete(geom)
        for loop in active_loops(robot.model.loops):
            assert isinstance(loop, LoopJoint)
            ends = (loop.successor, loop.successor_pose), (loop.predecessor, loop.predecessor_pose)
            for number, (link, pose) in enumerate(ends):
                spec.body(link).add_site(name=f"{loop.name}{number}", pos=pose[:3, 3])
            equality = spec.add_equality(
                type=mujoco.mjtEq.mjEQ_CONNECT,
                objtype=mujoco.mjtObj.mjOBJ_SITE,
                name1=f"{loop.name}0",
                name2=f"{loop.name}1",
            )
            if stiff:
                equality.solref[:] = (2.0 * dt, 1.0)
                equality.solimp[:3] = (0.9999, 0.9999, 0.001)
        self.mujoco: Any = mujoco
        self.model = spec.compile()
        self.model.dof_damping[:] = 0.0
        self.model.dof_frictionloss[:] = 0.0
        off = mujoco.mjtDisableBit
        self.model.opt.disableflags |= off.mjDSBL_CONTACT | off.mjDSBL_LIMIT
        self.model.opt.gravity[:] = robot.gravity
        self.model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
        self.model.opt.timestep = dt
        self.data = mujoco.MjData(self.model)
        self.convert = conventions.mujoco(robot.tree, self.model)

    def starts(self, q: Array, v: Array) -> Array:
        """States (batch, 1 + nq + nv) with which it begins."""
        parts = [np.zeros((len(q), 1)), self.convert.q_to_peer(q), self.convert.v_to_peer(q, v)]
        return np.concatenate(parts, axis=-1)

    def rollout(self, starts: Array, steps: int) -> Array:
        """Its states (batch, steps, 1 + nq + nv)."""
        from mujoco import rollout

        found: Array = rollout.rollout(self.model, self.data, starts, nstep=steps)[0]
        return found

    def ours(self, states: Array) -> tuple[Array, Array]:
        """q and v (batch, steps, n) of its states, in our coordinates."""
        flat = states.reshape(-1, states.shape[-1])
        q = self.convert.q_from_peer(flat[:, 1 : self.model.nq + 1])
        v = self.convert.v_from_peer(q, flat[:, self.model.nq + 1 :])
        batch = states.shape[:2]
        return q.reshape(*batch, -1), v.reshape(*batch, -1)
