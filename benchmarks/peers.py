# SPDX-License-Identifier: BSD-3-Clause
"""Pinocchio and MuJoCo on the same robots and states, checked before they are timed.

A peer gets its arrays in its own coordinates and memory order beforehand, and nothing collects its
results: what is timed is its best case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from benchmarks import cases
from benchmarks.timing import Act
from phistar import Robot, conventions, robots
from phistar.arrays import Array

LONGEST = 200
"""Links beyond which peers are not tried.

Pinocchio's data has four tensors of nv³ numbers. A call of MuJoCo on a chain of 1000 links takes 50
milliseconds; there its forward dynamics differ from ours by 2e-6, for a reason not looked into.
"""

TOLERANCE = 1e-9
"""Relative, between a peer's results and ours."""


class Peer(Protocol):
    """Another engine on one robot."""

    name: str

    def ways(self, quantity: str, arrays: Sequence[Array], single: bool) -> dict[str, Act]:
        """Ways to compute a quantity for all rows of our arrays, by what they are called.

        Args:
            quantity: Of ``cases.QUANTITIES``; there may be no way.
            arrays: (batch, n) each.
            single: Samples come one by one.
        """
        ...

    def result(self, quantity: str, arrays: Sequence[Array]) -> Array:
        """The quantity for all rows, in our coordinates."""
        ...


class Pinocchio:
    """Pinocchio on a robot."""

    name = "pinocchio"

    def __init__(self, robot: Robot, urdf: str, floats: bool) -> None:
        import pinocchio as pin

        base = [pin.JointModelFreeFlyer()] if floats else []
        self.pin = pin
        self.model = pin.buildModelFromXML(urdf, *base)
        self.data = self.model.createData()
        self.pool = pin.ModelPool(self.model, 1)
        self.convert = conventions.pinocchio(robot, self.model)

    def _arrays(self, quantity: str, arrays: Sequence[Array]) -> list[Array]:
        q = arrays[0]
        given = [self.convert.q_to_peer(q)]
        if len(arrays) == 3:
            v, x = arrays[1:]
            given.append(self.convert.v_to_peer(q, v))
            inverse = quantity in ("inverse_dynamics", "linearize_inverse")
            given.append(
                self.convert.vdot_to_peer(q, v, x) if inverse else self.convert.tau_to_peer(q, x)
            )
        return [np.ascontiguousarray(x) for x in given]

    def _calls(self, quantity: str) -> dict[str, Callable[..., Any]]:
        """Functions of one sample."""
        pin, model, data = self.pin, self.model, self.data
        world, local = pin.Convention.WORLD, pin.Convention.LOCAL
        if quantity == "inverse_dynamics":
            return {"loop": lambda q, v, a: pin.rnea(model, data, q, v, a)}
        if quantity == "forward_dynamics":
            return {
                "loop": lambda q, v, tau: pin.aba(model, data, q, v, tau, world),
                "loop, local": lambda q, v, tau: pin.aba(model, data, q, v, tau, local),
            }
        if quantity == "linearize_inverse":
            derive = pin.computeRNEADerivatives
            return {"loop": lambda q, v, a: derive(model, data, q, v, a)}
        if quantity == "linearize":
            derive = pin.computeABADerivatives
            return {"loop": lambda q, v, tau: derive(model, data, q, v, tau)}
        if quantity == "mass_matrix":
            return {
                "loop": lambda q: pin.crba(model, data, q, world),
                "loop, local": lambda q: pin.crba(model, data, q, local),
            }
        return {"loop": lambda q: pin.computeMinverse(model, data, q)}

    def ways(self, quantity: str, arrays: Sequence[Array], single: bool) -> dict[str, Act]:
        """See ``Peer``: a pool of one thread loops in C++, the rest is looped over in Python."""
        given = self._arrays(quantity, arrays)
        rows = [tuple(row) for row in zip(*given, strict=True)]
        found = {how: _loop(call, rows) for how, call in self._calls(quantity).items()}
        if quantity in cases.VECTORS and not single:
            found["pool"] = self._pooled(quantity, given)
        return found

    def _pooled(self, quantity: str, given: Sequence[Array]) -> Act:
        inverse = quantity == "inverse_dynamics"
        run = self.pin.rneaInParallel if inverse else self.pin.abaInParallel
        columns = [x.T for x in given]
        return lambda: run(1, self.pool, *columns)

    def result(self, quantity: str, arrays: Sequence[Array]) -> Array:
        """See ``Peer``."""
        given = self._arrays(quantity, arrays)
        call = self._calls(quantity)["loop"]
        found = np.array([np.array(call(*row)) for row in zip(*given, strict=True)])
        q = arrays[0]
        if quantity == "inverse_dynamics":
            return self.convert.tau_from_peer(q, found)
        if quantity == "forward_dynamics":
            return self.convert.vdot_from_peer(q, arrays[1], found)
        if quantity in cases.DERIVATIVES:
            return self._derivatives(quantity, q, found)
        upper = np.triu(found)
        whole = upper + np.swapaxes(np.triu(found, 1), -1, -2)
        if quantity == "mass_matrix":
            return self.convert.matrix_from_peer(q, whole)
        back = np.linalg.inv(self.convert.velocity_matrix(q))
        return np.asarray(back @ whole @ np.swapaxes(back, -1, -2))

    def _derivatives(self, quantity: str, q: Array, found: Array) -> Array:
        """(batch, 3, nv, nv) with respect to q, v and the third argument, in our coordinates.

        Velocities of both are in link axes, so they differ by a constant matrix.
        """
        across = self.convert.velocity_matrix(q)[:, None]
        down = np.swapaxes(across, -1, -2)
        if quantity == "linearize_inverse":
            return np.asarray(down @ found @ across)
        back = np.linalg.inv(across)
        first, second = (
            back @ found[:, :2] @ across,
            back @ found[:, 2:] @ np.swapaxes(back, -1, -2),
        )
        return np.concatenate([first, second], axis=1)


class MuJoCo:
    """MuJoCo on a robot, without contacts, limits, damping and shapes.

    ``mj_inverse`` and ``mj_forward`` also work out poses, the mass matrix, its factors and more.
    """

    name = "mujoco"

    def __init__(self, robot: Robot, urdf: str, floats: bool) -> None:
        import mujoco

        spec = mujoco.MjSpec.from_string(urdf)
        for geom in list(spec.geoms):
            spec.delete(geom)
        if floats:
            spec.bodies[1].add_freejoint(name="root_joint")
        self.mujoco = mujoco
        self.model = spec.compile()
        self.model.dof_damping[:] = 0.0
        self.model.dof_frictionloss[:] = 0.0
        off = mujoco.mjtDisableBit
        self.model.opt.disableflags |= off.mjDSBL_CONTACT | off.mjDSBL_CONSTRAINT
        self.data = mujoco.MjData(self.model)
        self.convert = conventions.mujoco(robot, self.model)

    def _call(self, quantity: str) -> Callable[..., Array]:
        """A function of one sample."""
        data, model = self.data, self.model
        position, velocity = data.qpos, data.qvel
        inverse = quantity == "inverse_dynamics"
        target = data.qacc if inverse else data.qfrc_applied
        run = self.mujoco.mj_inverse if inverse else self.mujoco.mj_forward
        found: Array = data.qfrc_inverse if inverse else data.qacc

        def call(q: Array, v: Array, x: Array) -> Array:
            position[:] = q
            velocity[:] = v
            target[:] = x
            run(model, data)
            return found

        return call

    def _arrays(self, quantity: str, arrays: Sequence[Array]) -> list[Array]:
        q, v, x = arrays
        inverse = quantity == "inverse_dynamics"
        third = self.convert.vdot_to_peer(q, v, x) if inverse else self.convert.tau_to_peer(q, x)
        return [self.convert.q_to_peer(q), self.convert.v_to_peer(q, v), third]

    def ways(self, quantity: str, arrays: Sequence[Array], single: bool) -> dict[str, Act]:
        """See ``Peer``: a loop in Python; matrices are not offered by themselves."""
        if quantity not in cases.VECTORS:
            return {}
        rows = [tuple(row) for row in zip(*self._arrays(quantity, arrays), strict=True)]
        return {"loop": _loop(self._call(quantity), rows)}

    def result(self, quantity: str, arrays: Sequence[Array]) -> Array:
        """See ``Peer``."""
        given = self._arrays(quantity, arrays)
        call = self._call(quantity)
        found = np.array([call(*row).copy() for row in zip(*given, strict=True)])
        if quantity == "inverse_dynamics":
            return self.convert.tau_from_peer(arrays[0], found)
        return self.convert.vdot_from_peer(arrays[0], arrays[1], found)


def _loop(call: Callable[..., Any], rows: Sequence[tuple[Array, ...]]) -> Act:
    """One call for each row."""

    def run() -> None:
        for row in rows:
            call(*row)

    return run


PEERS: dict[str, Callable[[Robot, str, bool], Peer]] = {
    "pinocchio": Pinocchio,
    "mujoco": MuJoCo,
}


def why_not(peer: str, name: str) -> str:
    """Why a peer cannot be run on a robot of ``cases.ROBOTS``; empty if it can."""
    if find_spec(peer) is None:
        return "not installed"
    if cases.robot(name).nv > LONGEST:
        return f"not tried beyond {LONGEST} links"
    return ""


def make(peer: str, name: str) -> Peer:
    """A peer on a robot of ``cases.ROBOTS``."""
    robot, floats = cases.robot(name), cases.floats(name)
    # Where the base is free the file says nothing of it, and ours would write a joint for it.
    urdf = robots.path(name).read_text(encoding="utf-8") if floats else robot.to_urdf()
    return PEERS[peer](robot, urdf, floats)


def disagreement(robot: Robot, quantity: str, arrays: Sequence[Array], theirs: Array) -> float:
    """Relative difference of a peer's result and ours.

    Accelerations and inverses amplify rounding by the condition of the mass matrix, whoever
    computes them. So they are compared as the forces and the identity that they lead back to.
    """
    ours = getattr(robot, quantity)(*arrays)
    if quantity in cases.DERIVATIVES:
        mass = robot.mass_matrix(arrays[0])
        return _worst(quantity, mass, stacked(quantity, ours), theirs)
    if quantity == "forward_dynamics":
        q, v, _ = arrays
        ours, theirs = (robot.inverse_dynamics(q, v, x) for x in (ours, theirs))
    elif quantity == "mass_matrix_inverse":
        mass = robot.mass_matrix(arrays[0])
        scale = np.abs(mass).max() * np.abs(theirs).max()
        return float(np.abs(mass @ (ours - theirs)).max() / scale)
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def stacked(quantity: str, found: object) -> Array:
    """The three matrices (batch, 3, nv, nv) of a linearization."""
    inverse = quantity == "linearize_inverse"
    names = ("tau_q", "tau_v", "tau_vdot") if inverse else ("vdot_q", "vdot_v", "vdot_tau")
    return np.stack([getattr(found, name) for name in names], axis=1)


def _worst(quantity: str, mass: Array, ours: Array, theirs: Array) -> float:
    """Of three matrices; those of accelerations are compared as the forces they lead back to."""
    if quantity == "linearize":
        ours, theirs = mass[:, None] @ ours, mass[:, None] @ theirs
    errors = np.abs(ours - theirs).max(axis=(0, 2, 3)) / np.abs(theirs).max(axis=(0, 2, 3))
    return float(errors.max())
