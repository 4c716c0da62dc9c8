# SPDX-License-Identifier: BSD-3-Clause
"""Conversion of coordinates, wrenches and Jacobians to and from Pinocchio and MuJoCo.

Ours: spatial vectors [angular; linear], quaternions xyzw, free joint v = [angular; linear] in body
axes, continuous joints one angle, joints depth first in file order, mimic joints reduced.
Pinocchio: [linear; angular], continuous and planar angles as (cos, sin), siblings sorted by name,
mimic joints independent. MuJoCo: quaternions wxyz, free joint v = [linear in world axes; angular in
body axes]. The peers' modules are never imported: their model objects are only read.

A peer's velocity is linear in ours, v_peer = S(q) v, so tau = S* tau_peer, J = J_peer S and
M = S* M_peer S. For reduced mimic joints S has more rows than columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.model.configuration import Coordinates, batch_shape, configuration, tangent
from phistar.model.model import Model
from phistar.model.parts import Joint
from phistar.spatial import quat_to_rotation, skew, wxyz_to_xyzw, xyzw_to_wxyz

Array = NDArray[Any]


def swap_spatial(x: ArrayLike) -> Array:
    """[angular; linear] <-> [linear; angular] of motions or wrenches (..., 6)."""
    x = np.asarray(x)
    return np.concatenate([x[..., 3:], x[..., :3]], axis=-1)


def swap_rows(matrix: ArrayLike) -> Array:
    """[angular; linear] <-> [linear; angular] rows of a Jacobian (..., 6, n)."""
    matrix = np.asarray(matrix)
    return np.concatenate([matrix[..., 3:, :], matrix[..., :3, :]], axis=-2)


def _same(q: Array) -> Array:
    return q


def _no_turn(q: Array, size: int) -> Array:
    return np.broadcast_to(np.eye(size, dtype=q.dtype), (*q.shape[:-1], size, size))


def _swap_turn(q: Array, size: int) -> Array:
    swapped = np.roll(np.eye(6, dtype=q.dtype), 3, axis=0)
    return np.broadcast_to(swapped, (*q.shape[:-1], 6, 6))


def _world_linear_turn(q: Array, size: int) -> Array:
    result = np.zeros((*q.shape[:-1], 6, 6), dtype=q.dtype)
    result[..., :3, 3:] = quat_to_rotation(q[..., 3:])
    result[..., 3:, :3] = np.eye(3)
    return result


def _angle_to_pair(q: Array) -> Array:
    return np.concatenate([q[..., :-1], np.cos(q[..., -1:]), np.sin(q[..., -1:])], axis=-1)


def _pair_to_angle(q: Array) -> Array:
    return np.concatenate([q[..., :-2], np.arctan2(q[..., -1:], q[..., -2:-1])], axis=-1)


def _quat_first(q: Array) -> Array:
    return np.concatenate([q[..., :-4], xyzw_to_wxyz(q[..., -4:])], axis=-1)


def _quat_last(q: Array) -> Array:
    return np.concatenate([q[..., :-4], wxyz_to_xyzw(q[..., -4:])], axis=-1)


@dataclass(frozen=True)
class _Form:
    """How a peer writes one joint: size of q, q both ways, and the block of S(q)."""

    nq: int
    to_peer: Callable[[Array], Array] = _same
    from_peer: Callable[[Array], Array] = _same
    turn: Callable[[Array, int], Array] = _no_turn


_PINOCCHIO = {
    "continuous": _Form(2, _angle_to_pair, _pair_to_angle),
    "planar": _Form(4, _angle_to_pair, _pair_to_angle),
    "free": _Form(7, turn=_swap_turn),
}
_MUJOCO = {
    "spherical": _Form(4, _quat_first, _quat_last),
    "free": _Form(7, _quat_first, _quat_last, _world_linear_turn),
}


@dataclass(frozen=True)
class PeerJoint:
    """Where a joint's coordinates start in a peer's q and v."""

    name: str
    q_start: int
    v_start: int


class Convention:
    """Converts between a robot's coordinates and a peer's.

    ``to_peer`` methods take our arrays, ``from_peer`` methods the peer's; all accept leading
    batch axes. ``q`` always is our configuration.
    """

    def __init__(
        self, robot: Any, peer: str, joints: Sequence[PeerJoint], nq: int, nv: int
    ) -> None:
        self.model: Model = getattr(robot, "model", robot)
        self.peer = peer
        self.nq = nq
        self.nv = nv
        self._joints = tuple(joints)
        self._check_cover()

    def _check_cover(self) -> None:
        moving = {j.name for j in self.model.joints.values() if j.motion.nv}
        for each in self._joints:
            if each.name not in moving:
                raise UnknownNameError("moving joint", each.name, moving, f"'{self.model.name}'")
        missing = set(self.model.joint_names) - {each.name for each in self._joints}
        if missing:
            raise ArgumentError(
                f"the {self.peer} model lacks joints of '{self.model.name}': {sorted(missing)}; "
                "was it loaded with the same base?"
            )

    def _form(self, joint: Joint) -> _Form:
        table = _PINOCCHIO if self.peer == "pinocchio" else _MUJOCO
        return table.get(joint.kind, _Form(joint.motion.nq))

    def _own(self, joint: Joint, q: Array) -> Array:
        """A joint's own coordinates, those of a follower worked out from its leader's."""
        own = q[..., joint.q_slice]
        if joint.mimic is None:
            return own
        body = self.model.bodies[joint.bodies[0]]
        return body.scale * own + body.offset + joint.reference

    def q_to_peer(self, q: Coordinates) -> Array:
        """Our q (..., nq) as the peer writes it."""
        q = configuration(self.model, q)
        result = np.zeros((*q.shape[:-1], self.nq), dtype=q.dtype)
        for each in self._joints:
            joint = self.model.joints[each.name]
            form = self._form(joint)
            result[..., each.q_start : each.q_start + form.nq] = form.to_peer(self._own(joint, q))
        return result

    def q_from_peer(self, q_peer: ArrayLike) -> Array:
        """The peer's q as ours (..., nq); angles from (cos, sin) lie in (-pi, pi]."""
        q_peer = self._peer_array(q_peer, self.nq, "q")
        result = np.zeros((*q_peer.shape[:-1], self.model.nq), dtype=q_peer.dtype)
        for each in self._joints:
            joint = self.model.joints[each.name]
            if joint.mimic is None:
                form = self._form(joint)
                part = q_peer[..., each.q_start : each.q_start + form.nq]
                result[..., joint.q_slice] = form.from_peer(part)
        return result

    def velocity_matrix(self, q: Coordinates) -> Array:
        """S(q): v_peer = S v, (..., nv of the peer, nv)."""
        q = configuration(self.model, q)
        result = np.zeros((*q.shape[:-1], self.nv, self.model.nv), dtype=q.dtype)
        for each in self._joints:
            joint = self.model.joints[each.name]
            size = joint.motion.nv
            block = self._form(joint).turn(q[..., joint.q_slice], size)
            if joint.mimic is not None:
                block = self.model.bodies[joint.bodies[0]].scale * block
            result[..., each.v_start : each.v_start + size, joint.v_slice] = block
        return result

    def v_to_peer(self, q: Coordinates, v: Coordinates) -> Array:
        """Our velocity (..., nv) as the peer writes it."""
        return _apply(self.velocity_matrix(q), tangent(self.model, v))

    def v_from_peer(self, q: Coordinates, v_peer: ArrayLike) -> Array:
        """The peer's velocity as ours (..., nv); followers are taken from their leaders."""
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
        return _apply(self.velocity_matrix(q), vdot) + self._turning(q, v)

    def vdot_from_peer(self, q: Coordinates, v: Coordinates, vdot_peer: ArrayLike) -> Array:
        """The peer's acceleration as ours (..., nv)."""
        vdot_peer = self._peer_array(vdot_peer, self.nv, "vdot")
        return _apply(self._inverse(q), vdot_peer - self._turning(q, v))

    def _turning(self, q: Coordinates, v: Coordinates) -> Array:
        """(dS/dt) v: R (angular x linear) for MuJoCo's free joints, whose linear axes are fixed."""
        q, v = configuration(self.model, q), tangent(self.model, v)
        batch = batch_shape(self.model, {"q": q, "v": v})
        result = np.zeros((*batch, self.nv), dtype=np.result_type(q, v))
        for each in self._joints:
            joint = self.model.joints[each.name]
            if self.peer == "mujoco" and joint.kind == "free":
                own = v[..., joint.v_slice]
                turned = quat_to_rotation(q[..., joint.q_slice][..., 3:]) @ skew(own[..., :3])
                result[..., each.v_start : each.v_start + 3] = _apply(turned, own[..., 3:])
        return result

    def tau_from_peer(self, q: Coordinates, tau_peer: ArrayLike) -> Array:
        """The peer's generalised force as ours: S* tau_peer, followers' forces summed in."""
        tau_peer = self._peer_array(tau_peer, self.nv, "tau")
        return _apply(np.swapaxes(self.velocity_matrix(q), -1, -2), tau_peer)

    def tau_to_peer(self, q: Coordinates, tau: Coordinates) -> Array:
        """Our generalised force as the peer writes it; followers get none."""
        return _apply(np.swapaxes(self._inverse(q), -1, -2), tangent(self.model, tau, "tau"))

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


def pinocchio(robot: Any, pin_model: Any) -> Convention:
    """Conversion between a robot and a ``pinocchio.Model`` of the same file.

    Joints are matched by name; a robot loaded with reduced mimic joints may be paired with a
    Pinocchio model in which they are independent.
    """
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


def mujoco(robot: Any, mj_model: Any) -> Convention:
    """Conversion between a robot and a ``mujoco.MjModel`` of the same file.

    Joints are matched by name, unnamed ones by their place in the file.
    """
    model: Model = getattr(robot, "model", robot)
    moving = [j.name for j in model.joints.values() if j.motion.nv]
    joints = []
    for index in range(int(mj_model.njnt)):
        name = mj_model.joint(index).name or moving[index]
        start_q, start_v = mj_model.jnt_qposadr[index], mj_model.jnt_dofadr[index]
        joints.append(PeerJoint(name, int(start_q), int(start_v)))
    return Convention(robot, "mujoco", joints, int(mj_model.nq), int(mj_model.nv))
