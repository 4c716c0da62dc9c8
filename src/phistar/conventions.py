# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of coordinates, wrenches and Jacobians to and from Pinocchio and MuJoCo.

Ours: spatial vectors [angular; linear], quaternions xyzw, free joint v = [angular; linear] in body
axes, continuous joints one angle, joints depth first in file order, mimic joints reduced.
Pinocchio: [linear; angular], continuous and planar angles as (cos, sin), siblings sorted by name,
mimic joints independent. MuJoCo: quaternions wxyz, free joint v = [linear in world axes; angular in
body axes]. The peers' modules are never imported: only their model objects are read.

A peer's velocity is linear in ours, v_peer = S(q) v, so tau = S* tau_peer, J = J_peer S and
M = S* M_peer S. For reduced mimic joints S has more rows than columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, ShapeError, UnknownNameError, kind_of
from phistar.model.components import Joint
from phistar.model.configuration import Coordinates, batch_shape, configuration, tangent
from phistar.model.joints import JointKind
from phistar.model.model import Model
from phistar.spatial import wxyz_to_xyzw, xyzw_to_wxyz


def swap_spatial(x: ArrayLike) -> Array:
    """[angular; linear] <-> [linear; angular] of motions or wrenches (..., 6)."""
    x = np.asarray(x)
    return np.concatenate([x[..., 3:], x[..., :3]], axis=-1)


def swap_rows(matrix: ArrayLike) -> Array:
    """[angular; linear] <-> [linear; angular] rows of a Jacobian (..., 6, n)."""
    matrix = np.asarray(matrix)
    return np.concatenate([matrix[..., 3:, :], matrix[..., :3, :]], axis=-2)


@dataclass(frozen=True)
class _Pinocchio:
    """Pinocchio's coordinates of a joint: angles without limits as (cos, sin)."""

    kind: JointKind

    @property
    def nq(self) -> int:
        return self.kind.nq + (self.kind.pinocchio_angle is not None)

    def to_peer(self, q: Array) -> Array:
        at = self.kind.pinocchio_angle
        if at is None:
            return q
        c, s = np.cos(q[..., at : at + 1]), np.sin(q[..., at : at + 1])
        return np.concatenate([q[..., :at], c, s, q[..., at + 1 :]], axis=-1)

    def from_peer(self, q: Array) -> Array:
        at = self.kind.pinocchio_angle
        if at is None:
            return q
        angle = np.arctan2(q[..., at + 1 : at + 2], q[..., at : at + 1])
        return np.concatenate([q[..., :at], angle, q[..., at + 2 :]], axis=-1)

    def velocity_matrix(self, q: Array) -> Array:
        return self.kind.velocity_in_pinocchio(q)

    def bias_velocity(self, q: Array, v: Array) -> Array | None:
        return None


@dataclass(frozen=True)
class _MuJoCo:
    """MuJoCo's coordinates of a joint: quaternions wxyz."""

    kind: JointKind

    @property
    def nq(self) -> int:
        return self.kind.nq

    def to_peer(self, q: Array) -> Array:
        return self._reordered(q, xyzw_to_wxyz)

    def from_peer(self, q: Array) -> Array:
        return self._reordered(q, wxyz_to_xyzw)

    def _reordered(self, q: Array, order: Callable[[Array], Array]) -> Array:
        at = self.kind.quaternion
        if at is None:
            return q
        return np.concatenate([q[..., :at], order(q[..., at : at + 4]), q[..., at + 4 :]], axis=-1)

    def velocity_matrix(self, q: Array) -> Array:
        return self.kind.velocity_in_mujoco(q)

    def bias_velocity(self, q: Array, v: Array) -> Array | None:
        return self.kind.mujoco_bias_velocity(q, v)


_JointCoding = _Pinocchio | _MuJoCo
_CODINGS: dict[str, type[_Pinocchio] | type[_MuJoCo]] = {"pinocchio": _Pinocchio, "mujoco": _MuJoCo}


@dataclass(frozen=True)
class PeerJoint:
    """Start of a joint's coordinates in a peer's q and v."""

    name: str
    q_start: int
    v_start: int


class Convention:
    """Converts between a robot's coordinates and a peer's.

    ``to_peer`` methods take our arrays, ``from_peer`` methods the peer's; all accept leading
    batch axes. ``q`` always is our configuration.
    """

    def __init__(
        self, robot: object, peer: str, joints: Sequence[PeerJoint], nq: int, nv: int
    ) -> None:
        self.model = _model_of(robot)
        self.peer = peer
        self.nq = nq
        self.nv = nv
        self._joints = tuple(joints)
        self._check_cover()

    def _check_cover(self) -> None:
        moving = {j.name for j in self.model.joints.values() if j.joint_kind.nv}
        for each in self._joints:
            if each.name not in moving:
                raise UnknownNameError("moving joint", each.name, moving, f"'{self.model.name}'")
        missing = set(self.model.joint_names) - {each.name for each in self._joints}
        if missing:
            raise ArgumentError(
                f"the {self.peer} model lacks joints of '{self.model.name}': {sorted(missing)}; "
                "was it loaded with the same base?"
            )

    def _form(self, joint: Joint) -> _JointCoding:
        return _CODINGS[self.peer](joint.joint_kind)

    def _joint_coordinates(self, joint: Joint, q: Array) -> Array:
        """A joint's own coordinates, those of a follower from its leader's."""
        coordinates = q[..., joint.q_slice]
        if joint.mimic is None:
            return coordinates
        body = self.model.bodies[joint.bodies[0]]
        return body.scale * coordinates + body.offset + joint.reference

    def q_to_peer(self, q: Coordinates) -> Array:
        """Our q (..., nq) as the peer writes it."""
        q = configuration(self.model, q)
        result = np.zeros((*q.shape[:-1], self.nq), dtype=q.dtype)
        for each in self._joints:
            joint = self.model.joints[each.name]
            form = self._form(joint)
            result[..., each.q_start : each.q_start + form.nq] = form.to_peer(
                self._joint_coordinates(joint, q)
            )
        return result

    def q_from_peer(self, q_peer: ArrayLike) -> Array:
        """The peer's q as ours (..., nq); angles from (cos, sin) lie in (-pi, pi]."""
        q_peer = self._peer_array(q_peer, self.nq, "q")
        result = np.zeros((*q_peer.shape[:-1], self.model.nq), dtype=q_peer.dtype)
        for each in self._joints:
            joint = self.model.joints[each.name]
            if joint.mimic is None:
                form = self._form(joint)
                coordinates = q_peer[..., each.q_start : each.q_start + form.nq]
                result[..., joint.q_slice] = form.from_peer(coordinates)
        return result

    def velocity_matrix(self, q: Coordinates) -> Array:
        """S(q): v_peer = S v, (..., nv of the peer, nv)."""
        q = configuration(self.model, q)
        result = np.zeros((*q.shape[:-1], self.nv, self.model.nv), dtype=q.dtype)
        for each in self._joints:
            joint = self.model.joints[each.name]
            size = joint.joint_kind.nv
            block = self._form(joint).velocity_matrix(q[..., joint.q_slice])
            if joint.mimic is not None:
                block = self.model.bodies[joint.bodies[0]].scale * block
            result[..., each.v_start : each.v_start + size, joint.v_slice] = block
        return result

    def v_to_peer(self, q: Coordinates, v: Coordinates) -> Array:
        """Our velocity (..., nv) as the peer writes it."""
        return _apply(self.velocity_matrix(q), tangent(self.model, v))

    def v_from_peer(self, q: Coordinates, v_peer: ArrayLike) -> Array:
        """The peer's velocity as ours (..., nv); followers follow their leaders."""
        v_peer = self._peer_array(v_peer, self.nv, "v")
        return _apply(self._inverse(q), v_peer)

    def _inverse(self, q: Coordinates) -> Array:
        """Left inverse of S that reads independent joints only; its blocks are orthogonal."""
        matrix = self.velocity_matrix(q).copy()
        for each in self._joints:
            if self.model.joints[each.name].mimic is not None:
                matrix[..., each.v_start, :] = 0.0
        return np.swapaxes(matrix, -1, -2)

    def vdot_to_peer(self, q: Coordinates, v: Coordinates, vdot: Coordinates) -> Array:
        """Our acceleration as the peer writes it: S vdot + (dS/dt) v."""
        vdot = tangent(self.model, vdot, "vdot")
        return _apply(self.velocity_matrix(q), vdot) + self._axes_rate(q, v)

    def vdot_from_peer(self, q: Coordinates, v: Coordinates, vdot_peer: ArrayLike) -> Array:
        """The peer's acceleration as ours (..., nv)."""
        vdot_peer = self._peer_array(vdot_peer, self.nv, "vdot")
        return _apply(self._inverse(q), vdot_peer - self._axes_rate(q, v))

    def _axes_rate(self, q: Coordinates, v: Coordinates) -> Array:
        """(dS/dt) v, where S changes: for MuJoCo's free joints, whose linear axes are fixed."""
        q, v = configuration(self.model, q), tangent(self.model, v)
        batch = batch_shape(self.model, {"q": q, "v": v})
        result = np.zeros((*batch, self.nv), dtype=np.result_type(q, v))
        for each in self._joints:
            joint = self.model.joints[each.name]
            rate = self._form(joint).bias_velocity(q[..., joint.q_slice], v[..., joint.v_slice])
            if rate is not None:
                result[..., each.v_start : each.v_start + joint.joint_kind.nv] = rate
        return result

    def tau_from_peer(self, q: Coordinates, tau_peer: ArrayLike) -> Array:
        """The peer's generalised force as ours: S* tau_peer, followers' forces summed in.

        For a bias force, which belongs to an acceleration, use ``bias_from_peer``.
        """
        tau_peer = self._peer_array(tau_peer, self.nv, "tau")
        return _apply(np.swapaxes(self.velocity_matrix(q), -1, -2), tau_peer)

    def tau_to_peer(self, q: Coordinates, tau: Coordinates) -> Array:
        """Our generalised force as the peer writes it; followers get none."""
        return _apply(np.swapaxes(self._inverse(q), -1, -2), tangent(self.model, tau, "tau"))

    def bias_from_peer(
        self, q: Coordinates, v: Coordinates, bias_peer: ArrayLike, mass_matrix: ArrayLike
    ) -> Array:
        """The peer's bias force (MuJoCo: ``qfrc_bias``, Pinocchio: ``nle``) as ``bias_force``.

        A bias is the force at zero acceleration, and accelerations differ: where the peer's are
        zero, those of MuJoCo's free joints are not zero in ours. So S* (bias + M Ṡ v); the
        conversion of forces alone, ``tau_from_peer``, is right for Pinocchio only, or without free
        joints.

        Args:
            q: (..., nq), ours.
            v: (..., nv), ours.
            bias_peer: (..., nv of the peer).
            mass_matrix: (..., nv, nv), the peer's own, e.g. of ``mujoco.mj_fullM``.
        """
        bias_peer = self._peer_array(bias_peer, self.nv, "bias")
        missing = _apply(np.asarray(mass_matrix), self._axes_rate(q, v))
        return self.tau_from_peer(q, bias_peer + missing)

    def matrix_from_peer(self, q: Coordinates, matrix: ArrayLike) -> Array:
        """A mass matrix (..., nv, nv): S* M_peer S."""
        s = self.velocity_matrix(q)
        return np.asarray(np.swapaxes(s, -1, -2) @ np.asarray(matrix) @ s)

    def matrix_to_peer(self, q: Coordinates, matrix: ArrayLike) -> Array:
        """A mass matrix as the peer writes it; needs a robot without reduced mimic joints."""
        if self.nv != self.model.nv:
            raise ArgumentError(
                f"'{self.model.name}' has reduced mimic joints, so its mass matrix does not "
                f"determine {self.peer}'s; load it with mimic='independent'"
            )
        s = self._inverse(q)
        return np.asarray(np.swapaxes(s, -1, -2) @ np.asarray(matrix) @ s)

    def jacobian_from_peer(self, q: Coordinates, jacobian: ArrayLike) -> Array:
        """The peer's Jacobian (..., 6, nv), rows [linear; angular], as ours [angular; linear].

        For MuJoCo stack jacp over jacr.
        """
        return np.asarray(swap_rows(jacobian) @ self.velocity_matrix(q))

    def jacobian_to_peer(self, q: Coordinates, jacobian: ArrayLike) -> Array:
        """Our Jacobian as the peer writes it, rows [linear; angular]; followers get zeros."""
        return np.asarray(swap_rows(jacobian) @ self._inverse(q))

    def wrench_to_peer(self, wrench: ArrayLike) -> Array:
        """Our wrench (..., 6) [moment; force] as the peer writes it, [force; moment].

        Axes and reference point stay the same: Pinocchio's ``Force`` in that frame; MuJoCo's
        ``xfrc_applied`` if they are the world's axes and the body's centre of mass.
        """
        return swap_spatial(wrench)

    def wrench_from_peer(self, wrench: ArrayLike) -> Array:
        """The peer's wrench (..., 6) [force; moment] as ours, [moment; force]."""
        return swap_spatial(wrench)

    def _peer_array(self, x: ArrayLike, size: int, argument: str) -> Array:
        array = np.asarray(x)
        if array.ndim == 0 or array.shape[-1] != size:
            owner = f"{self.peer}'s model of '{self.model.name}'"
            raise ShapeError(f"{argument} of {self.peer}", array.shape, f"(..., {size})", owner)
        return array


def _apply(matrix: Array, vector: Array) -> Array:
    return np.asarray((matrix @ vector[..., None])[..., 0])


def _model_of(robot: object) -> Model:
    model = getattr(robot, "model", robot)
    if not isinstance(model, Model):
        raise ArgumentError(f"robot is {kind_of(robot)}, expected a Robot or a Model")
    return model


def _check_peer(peer: object, argument: str, expected: str, attributes: Sequence[str]) -> None:
    """Reject what is no model of the peer, without importing its module."""
    if not all(hasattr(peer, attribute) for attribute in attributes):
        raise ArgumentError(f"{argument} is {kind_of(peer)}, expected a {expected}")


class PinocchioPeer(Protocol):
    """What is read of a ``pinocchio.Model``."""

    names: Iterable[str]
    idx_qs: Iterable[int]
    idx_vs: Iterable[int]
    nq: int
    nv: int


class MujocoPeerJoint(Protocol):
    """What is read of a joint of MuJoCo."""

    name: str


class MujocoPeer(Protocol):
    """What is read of a ``mujoco.MjModel``."""

    njnt: int
    jnt_qposadr: Sequence[int]
    jnt_dofadr: Sequence[int]
    nq: int
    nv: int

    def joint(self, index: int) -> MujocoPeerJoint:
        """A joint by its number."""


def pinocchio(robot: object, pin_model: PinocchioPeer) -> Convention:
    """Conversion between a robot and a ``pinocchio.Model`` of the same file.

    Joints are matched by name; a robot loaded with reduced mimic joints may be paired with a
    Pinocchio model in which they are independent.
    """
    _check_peer(pin_model, "pin_model", "pinocchio.Model", ("names", "idx_qs", "idx_vs"))
    joints = [
        PeerJoint(str(name), int(q), int(v))
        for name, q, v in zip(
            list(pin_model.names)[1:],
            list(pin_model.idx_qs)[1:],
            list(pin_model.idx_vs)[1:],
            strict=True,
        )
    ]
    return Convention(robot, "pinocchio", joints, int(pin_model.nq), int(pin_model.nv))


def mujoco(robot: object, mj_model: MujocoPeer) -> Convention:
    """Conversion between a robot and a ``mujoco.MjModel`` of the same file.

    Joints are matched by name, unnamed ones by their position in the file.
    """
    model = _model_of(robot)
    _check_peer(mj_model, "mj_model", "mujoco.MjModel", ("njnt", "jnt_qposadr", "jnt_dofadr"))
    moving = [j.name for j in model.joints.values() if j.joint_kind.nv]
    joints = []
    for index in range(int(mj_model.njnt)):
        name = mj_model.joint(index).name or moving[index]
        start_q, start_v = mj_model.jnt_qposadr[index], mj_model.jnt_dofadr[index]
        joints.append(PeerJoint(name, int(start_q), int(start_v)))
    return Convention(robot, "mujoco", joints, int(mj_model.nq), int(mj_model.nv))


__all__ = ["Convention", "PeerJoint", "mujoco", "pinocchio", "swap_rows", "swap_spatial"]
