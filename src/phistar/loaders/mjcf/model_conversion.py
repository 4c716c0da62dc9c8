# SPDX-License-Identifier: BSD-3-Clause
"""MuJoCo's compiled model -> links, joints, frames and configurations in our conventions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.loaders.load_report import Entry, LoadReport
from phistar.loaders.mjcf.equality_constraints import add_loops
from phistar.loaders.mjcf.mujoco_actuators import (
    JOINT_TRANSMISSIONS,
    add_actuators,
    driven_joints,
)
from phistar.loaders.mjcf.mujoco_model import (
    BALL,
    FREE,
    HINGE,
    JOINT_NQ,
    JOINT_NV,
    NO_CONSTRAINT,
    NO_DAMPER,
    NO_EQUALITY,
    NO_FRICTION,
    NO_GRAVITY,
    NO_LIMIT,
    NO_SPRING,
    SLIDE,
    MujocoModel,
    element_names,
    mujoco_pose,
    unique_name,
)
from phistar.loaders.mjcf.mujoco_types import MjModel
from phistar.loaders.mjcf.shapes import Shapes, shapes_of
from phistar.model.builder import ROOT_JOINT, ModelBuilder
from phistar.model.components import frozen
from phistar.model.joints import free_configuration
from phistar.model.model import Model
from phistar.spatial import pose, pose_product, quat_normalize, rotate_inertia, wxyz_to_xyzw

_ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]


def convert(
    compiled: MujocoModel,
    report: LoadReport,
    *,
    floating_base: bool = False,
    gravity: ArrayLike | None = None,
) -> Model:
    """The model of a compiled robot; the report receives what was used and defaulted.

    Raises:
        ModelError: With every problem found.
        ArgumentError: ``floating_base`` where no single body is welded to the world.
    """
    return _Converter(compiled, report, floating_base).run(gravity)


class _Converter:
    """Fills a builder from MuJoCo's arrays."""

    def __init__(self, compiled: MujocoModel, report: LoadReport, floating_base: bool) -> None:
        self.compiled = compiled
        self.model = compiled.model
        self.report = report
        self.body_names = element_names(self.model, "body", "body")
        self.joint_names = element_names(self.model, "jnt", "joint")
        self.used_link_names = set(self.body_names)
        self.used_joint_names = {*self.joint_names, ROOT_JOINT}
        self.flags = int(self.model.opt.disableflags)
        self.added_armature, self.added_damping = self._actuator_shares()
        self.base = self._floating_body() if floating_base else None
        self.poses = mujoco_pose(self.model.body_pos, self.model.body_quat)
        self.inertias = _inertias(self.model)
        self.builder = ModelBuilder(compiled.name)

    def run(self, gravity: ArrayLike | None) -> Model:
        self._set_gravity(gravity)
        shapes = shapes_of(self.model, self.compiled.meshes, self.report)
        for body in range(self.model.nbody):
            self._add_joints(body)
            self._add_link(body, shapes)
        self._add_frames()
        off = bool(self.flags & (NO_CONSTRAINT | NO_EQUALITY))
        names = (self.body_names, self.joint_names)
        add_loops(self.builder, self.compiled, names, self.report, switched_off=off)
        self._add_configurations()
        self._add_actuated()
        order = ([ROOT_JOINT] if self.base is not None else []) + self.joint_names
        return self.builder.build(order=order)

    def _set_gravity(self, gravity: ArrayLike | None) -> None:
        value = np.array(self.model.opt.gravity)
        if self.flags & NO_GRAVITY:
            value = np.zeros(3)
            note = '<flag gravity="disable"/> switches it off: (0, 0, 0) is used'
            self.report.used.append(Entry(self.compiled.file, "gravity", note))
            what = 'gravity is switched off by <flag gravity="disable"/>.'
            cure = "Pass gravity=(0, 0, -9.81) if you want it."
            self.report.add_problem("note", "gravity-off", self.compiled.file, what, cure)
        if gravity is not None:
            value = frozen(gravity, (3,), "gravity")
            self.report.used.append(Entry("", "gravity", f"{value.tolist()} as asked for"))
        self.builder.gravity = value

    def _floating_body(self) -> int:
        """The only body welded to the world, which a floating base frees."""
        parents = self.model.body_parentid
        top = [b for b in range(1, self.model.nbody) if parents[b] == 0]
        welded = [b for b in top if self.model.body_jntnum[b] == 0]
        if len(top) == 1 and len(welded) == 1:
            return top[0]
        names = ", ".join(f"'{self.body_names[b]}'" for b in top[:5])
        raise ArgumentError(
            "floating_base=True needs exactly one body in the world, and that welded to it; "
            f"'{self.compiled.name}' has {len(top)} ({names}), {len(welded)} of them welded. "
            "Give the body a <freejoint/> in the file instead."
        )

    def _add_link(self, body: int, shapes: Sequence[Shapes]) -> None:
        model = self.model
        visuals, collisions = shapes[body]
        self.builder.link(
            self.body_names[body],
            float(model.body_mass[body]),
            model.body_ipos[body],
            self.inertias[body],
            visuals=visuals,
            collisions=collisions,
            where=self.compiled.bodies.get(body, ""),
            excluded=[self.body_names[other] for other in self._excluded(body)],
        )

    def _excluded(self, body: int) -> list[int]:
        """Bodies that do not touch this one, by ``<exclude>``."""
        pairs = [divmod(int(x), 1 << 16) for x in self.model.exclude_signature]
        return [two if one == body else one for one, two in pairs if body in (one, two)]

    def _add_joints(self, body: int) -> None:
        """The joints that carry a body, with massless links between them."""
        if body == 0:
            return
        model = self.model
        parent = self.body_names[model.body_parentid[body]]
        base = self.poses[body]
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        where = self.compiled.bodies.get(body, "")
        if body == self.base:
            self.builder.joint(ROOT_JOINT, "free", parent, self.body_names[body], where=where)
        elif count == 0:
            name = unique_name(f"{self.body_names[body]}_fixed", self.used_joint_names)
            self.used_joint_names.add(name)
            child = self.body_names[body]
            self.builder.joint(name, "fixed", parent, child, origin=base, where=where)
        for joint in range(first, first + count):
            child = self.body_names[body]
            if joint < first + count - 1:
                child = unique_name(f"{child}/{self.joint_names[joint]}", self.used_link_names)
                self.used_link_names.add(child)
                self.builder.link(child, virtual=True, where=where)
            self._add_joint(joint, parent, child, base)
            parent, base = child, np.eye(4)

    def _add_joint(self, joint: int, parent: str, child: str, base: Array) -> None:
        model, kind = self.model, int(self.model.jnt_type[joint])
        anchor = np.array(model.jnt_pos[joint])
        free, single = kind == FREE, kind in (SLIDE, HINGE)
        limited, (low, high) = bool(model.jnt_limited[joint]), model.jnt_range[joint]
        stopped = limited and single and not self.flags & (NO_LIMIT | NO_CONSTRAINT)
        reference = float(model.qpos0[model.jnt_qposadr[joint]])
        self.builder.joint(
            self.joint_names[joint],
            ("free", "spherical", "prismatic", "revolute" if limited else "continuous")[kind],
            parent,
            child,
            origin=np.eye(4) if free else pose_product(base, pose(translation=anchor)),
            child_pose=np.eye(4) if free else pose(translation=-anchor),
            axis=tuple(model.jnt_axis[joint]) if single else None,
            lower=float(low) if stopped else -math.inf,
            upper=float(high) if stopped else math.inf,
            effort=self._effort(joint),
            armature=self._per_dof(joint, model.dof_armature, self.added_armature),
            damping=self._per_dof(joint, model.dof_damping, self.added_damping, NO_DAMPER),
            friction=self._per_dof(joint, model.dof_frictionloss, off=NO_FRICTION | NO_CONSTRAINT),
            stiffness=0.0 if self.flags & NO_SPRING else float(model.jnt_stiffness[joint]),
            spring_reference=tuple(self._to_xyzw(joint, model.qpos_spring)),
            reference=reference if single else 0.0,
            where=self.compiled.joints.get(joint, ""),
        )

    def _effort(self, joint: int) -> float:
        if not self.model.jnt_actfrclimited[joint]:
            return math.inf
        return float(np.abs(self.model.jnt_actfrcrange[joint]).max())

    def _per_dof(
        self, joint: int, values: Array, added: Array | None = None, off: int = 0
    ) -> tuple[float, ...]:
        """A joint's values in one of MuJoCo's arrays per velocity coordinate, in our order.

        ``added`` has one more number per joint; a flag of ``off`` makes all of it zero.
        """
        kind, start = int(self.model.jnt_type[joint]), int(self.model.jnt_dofadr[joint])
        result = np.array(values[start : start + JOINT_NV[kind]])
        result = result if added is None else result + added[joint]
        result = np.zeros_like(result) if self.flags & off else result
        return tuple(float(x) for x in (result[_ANGULAR_FIRST] if kind == FREE else result))

    def _actuator_shares(self) -> tuple[Array, Array]:
        """Actuators' contribution to each joint's armature and damping: gear^2 times their own."""
        armature, damping = np.zeros((2, self.model.njnt))
        if not hasattr(self.model, "actuator_armature"):
            return armature, damping
        for actuator, kind in enumerate(self.model.actuator_trntype):
            share = float(self.model.actuator_gear[actuator, 0]) ** 2
            if kind in JOINT_TRANSMISSIONS:
                joint = int(self.model.actuator_trnid[actuator, 0])
                armature[joint] += share * self.model.actuator_armature[actuator]
                damping[joint] += share * self.model.actuator_damping[actuator]
        return armature, damping

    def _add_actuated(self) -> None:
        """Joints that actuators drive, themselves or by a tendon that is a sum of joints."""
        found = {
            joint: None
            for actuator in range(len(self.model.actuator_trntype))
            for joint, _ in driven_joints(self.model, actuator)
        }
        self.builder.actuate(*(self.joint_names[joint] for joint in found))
        if found:
            note = f"{len(found)}, driven directly or by a tendon that is a sum of joints"
            self.report.used.append(Entry(self.compiled.file, "actuated joints", note))
        add_actuators(self.builder, self.compiled, self.joint_names, self.report)

    def _to_xyzw(self, joint: int, qpos: Array) -> Array:
        """A joint's coordinates out of qpos, its quaternion in our order and of unit length."""
        kind, start = int(self.model.jnt_type[joint]), int(self.model.jnt_qposadr[joint])
        coordinates = np.array(qpos[start : start + JOINT_NQ[kind]])
        if kind in (FREE, BALL):
            quat = wxyz_to_xyzw(coordinates[-4:])
            coordinates[-4:] = quat_normalize(quat) if quat.any() else (0.0, 0.0, 0.0, 1.0)
        return coordinates

    def _add_frames(self) -> None:
        """Sites become frames; a site with a link's name is called ``site:NAME``."""
        poses = mujoco_pose(self.model.site_pos, self.model.site_quat)
        for index, name in enumerate(element_names(self.model, "site", "site")):
            if name in self.used_link_names:
                new = unique_name(f"site:{name}", self.used_link_names)
                note = f'there is a body of that name: the frame is called "{new}"'
                self.report.used.append(Entry(self.compiled.file, f'site "{name}"', note))
                name = new
            self.used_link_names.add(name)
            body = self.body_names[self.model.site_bodyid[index]]
            self.builder.frame(name, body, pose=poses[index])

    def _add_configurations(self) -> None:
        """Keyframes, and MuJoCo's qpos0 as ``home`` (``qpos0`` if a keyframe has that name)."""
        named = {"home": self.model.qpos0}
        for name, q in zip(
            element_names(self.model, "key", "key"), self.model.key_qpos, strict=True
        ):
            if name == "home":
                named["qpos0"] = self.model.qpos0
            named[name] = q
        for name, q in named.items():
            self.builder.configurations[name] = self._configuration(q)

    def _configuration(self, qpos: Array) -> Array:
        pieces = [np.zeros(0)]
        if self.base is not None:
            pieces.append(free_configuration(self.poses[self.base]))
        pieces += [self._to_xyzw(joint, qpos) for joint in range(self.model.njnt)]
        return np.concatenate(pieces)


def _inertias(model: MjModel) -> Array:
    """(nbody, 3, 3) inertias about the centres of mass, in the bodies' axes."""
    rotation = mujoco_pose(model.body_ipos, model.body_iquat)[:, :3, :3]
    principal = model.body_inertia[:, :, None] * np.eye(3)
    return rotate_inertia(rotation, principal)
