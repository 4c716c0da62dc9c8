# SPDX-License-Identifier: BSD-3-Clause
"""Runs a scheduled program link by link in NumPy, over a whole batch, for any dtype.

The oracle of level 2: each operation is one line of linear algebra at one link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.errors import ArgumentError
from phistar.model.configuration import configuration
from phistar.model.model import Model
from phistar.model.parts import GROUND
from phistar.spatial import (
    crf,
    crf_apply,
    crm_apply,
    force_transform,
    inertia_matrix,
    motion_transform,
    pose_inverse,
    skew,
)
from phistar.sweeps.ir import Direction, Node, Type
from phistar.sweeps.schedule import Schedule

Array = NDArray[Any]


def run(
    schedule: Schedule,
    model: Model,
    q: ArrayLike,
    inputs: Mapping[str, ArrayLike],
    frames: Sequence[str] = (),
    locked: Set[int] = frozenset(),
) -> dict[str, Array]:
    """The outputs of a program.

    Args:
        schedule: The program.
        model: The robot.
        q: (..., nq).
        inputs: Leaves by name: JOINT vectors (..., joints) in body order, MOTION and FORCE vectors
            (..., bodies, 6) in link axes, forces on frames (..., frames, 6) in their own axes.
        frames: Names of the frames that B speaks of, in order.
        locked: Bodies whose joints are not free: the hinge map H has no row for them, and JOINT
            vectors no entry.

    Returns:
        Outputs by name, shaped like the inputs.
    """
    machine = Machine(schedule, model, configuration(model, q), inputs, frames, locked)
    machine.run()
    return {name: machine.output(s) for name, s in schedule.program.outputs.items()}


class Machine:
    """Values of all streams at all links."""

    def __init__(
        self,
        schedule: Schedule,
        model: Model,
        q: Array,
        inputs: Mapping[str, ArrayLike],
        frames: Sequence[str] = (),
        locked: Set[int] = frozenset(),
    ) -> None:
        self.frames = [model.frame(name) for name in frames]
        self.program = schedule.program
        self.passes = schedule.passes
        self.model = model
        self.parents = [body.parent for body in model.bodies]
        self.children: list[list[int]] = [[] for _ in model.bodies]
        for body in model.bodies:
            if body.parent != GROUND:
                self.children[body.parent].append(body.index)
        self.transforms = [body.transform(q) for body in model.bodies]
        self.phi = [force_transform(t) for t in self.transforms]
        free = [slice(0, 0) if b.index in locked else slice(None) for b in model.bodies]
        self.H = [b.motion.motion_map().T[rows] for b, rows in zip(model.bodies, free, strict=True)]
        self._armature = [
            np.array(b.armature)[rows] for b, rows in zip(model.bodies, free, strict=True)
        ]
        ends = np.cumsum([0, *(len(h) for h in self.H)])
        self.slices = [slice(a, b) for a, b in pairwise(ends)]
        self.batch = q.shape[:-1]
        self.inputs = {name: np.asarray(value) for name, value in inputs.items()}
        self.values: dict[tuple[int, int], Array] = {}

    def run(self) -> None:
        """Walk all passes."""
        links = range(len(self.parents))
        for each in self.passes:
            for k in links if each.direction is Direction.OUTWARD else reversed(links):
                for stream in each.streams:
                    self.execute(stream, k)

    def value(self, stream: int, k: int) -> Array:
        """The value of a stream at a link; given ones are read when they are asked for."""
        key = (stream, k)
        if key not in self.values:
            self.execute(stream, k)
        return self.values[key]

    def execute(self, stream: int, k: int) -> None:
        """Compute a stream at a link."""
        node = self.program.nodes[stream]
        if node.op == "rec":
            result = self.values[self.program.definitions[stream], k]
        elif node.op in _SHIFT:
            result = _SHIFT[node.op](self, node, k)
        elif node.op in _GIVEN:
            result = _GIVEN[node.op](self, node, k)
        else:
            result = self.local(node, k, [self.value(o, k) for o in node.operands])
        self.values[stream, k] = result

    def local(self, node: Node, k: int, operands: Sequence[Array]) -> Array:
        """A statement whose operands belong to the same link."""
        return _LOCAL[node.op](self, node, k, *operands)

    def output(self, stream: int) -> Array:
        """A stream over all links."""
        parts = [self.value(stream, k) for k in range(len(self.parents))]
        batch = np.broadcast_shapes(self.batch, *(p.shape[:-1] for p in parts))
        parts = [np.broadcast_to(p, (*batch, p.shape[-1])) for p in parts]
        if self.program.nodes[stream].type is Type.JOINT:
            return np.concatenate([np.zeros((*batch, 0)), *parts], axis=-1)
        return np.stack(parts, axis=-2) if parts else np.zeros((*batch, 0, 6))

    def leaf(self, node: Node, k: int) -> Array:
        """A vector from outside, or gravity as an acceleration of the ground on the roots."""
        if node.data == "gravity" and "gravity" not in self.inputs:
            if self.parents[k] != GROUND:
                return np.zeros(6)
            upward = np.concatenate([np.zeros(3), -self.model.gravity])
            return _times(motion_transform(pose_inverse(self.transforms[k])), upward)
        if node.data == "f_ext" and "f_ext" not in self.inputs:
            return np.zeros(6)
        if node.data not in self.inputs:
            raise ArgumentError(f"no value was given for the input {node.data!r}")
        array = self.inputs[node.data]
        return array[..., self.slices[k]] if node.type is Type.JOINT else array[..., k, :]

    def scatter(self, node: Node, k: int) -> Array:
        """Forces on the frames that this link carries."""
        if node.data not in self.inputs:
            raise ArgumentError(f"no value was given for the input {node.data!r}")
        total: Array = np.zeros(6)
        for index, frame in enumerate(self.frames):
            if frame.body == k:
                wrench = self.inputs[node.data][..., index, :]
                total = total + _times(force_transform(frame.body_pose), wrench)
        return total

    def rigid(self, node: Node, k: int) -> Array:
        """The link's own inertia."""
        return inertia_matrix(self.model.bodies[k].inertia)

    def zero(self, node: Node, k: int) -> Array:
        """Nothing, in the shape of its type."""
        shapes = {
            Type.JOINT: (len(self.H[k]),),
            Type.MOTION: (6,),
            Type.FORCE: (6,),
            Type.INERTIA: (6, 6),
            Type.TRANSFER: (6, 6),
        }
        return np.zeros(shapes[node.type])

    def shin(self, node: Node, k: int) -> Array:
        """Forces of the children, moved to this link."""
        total: Array = np.zeros(6)
        for c in self.children[k]:
            total = total + _times(self.phi[c], self.value(node.operands[0], c))
        return total

    def cong(self, node: Node, k: int) -> Array:
        """Inertias of the children, moved to this link."""
        total: Array = np.zeros((6, 6))
        for c in self.children[k]:
            inertia = self.value(node.operands[0], c)
            total = total + self.phi[c] @ inertia @ np.swapaxes(self.phi[c], -1, -2)
        return total

    def shout(self, node: Node, k: int) -> Array:
        """The motion of the parent, moved to this link; the ground does not move."""
        if self.parents[k] == GROUND:
            return np.zeros(6)
        motion = self.value(node.operands[0], self.parents[k])
        return _times(np.swapaxes(self.phi[k], -1, -2), motion)

    def outcong(self, node: Node, k: int) -> Array:
        """The compliance of the parent, moved to this link; the ground has none."""
        if self.parents[k] == GROUND:
            return np.zeros((6, 6))
        compliance = self.value(node.operands[0], self.parents[k])
        return np.asarray(np.swapaxes(self.phi[k], -1, -2) @ compliance @ self.phi[k])

    def outsim(self, node: Node, k: int) -> Array:
        """Motions per motion of the parent, as of this link; the ground has none."""
        if self.parents[k] == GROUND:
            return np.zeros((6, 6))
        transfer = self.value(node.operands[0], self.parents[k])
        turned = np.swapaxes(self.phi[k], -1, -2)
        # A rigid motion is undone by its blocks transposed, also where q left its manifold.
        back = np.zeros_like(turned)
        for rows, columns in ((_TOP, _TOP), (_LOW, _TOP), (_LOW, _LOW)):
            back[..., rows, columns] = np.swapaxes(turned[..., rows, columns], -1, -2)
        return np.asarray(turned @ transfer @ back)

    def armature(self, k: int) -> Array:
        """Rotor inertia of a link's joint, (d,)."""
        return self._armature[k]


_TOP, _LOW = slice(0, 3), slice(3, 6)


def _times(matrix: Array, vector: Array) -> Array:
    return np.asarray((matrix @ vector[..., None])[..., 0])


def _sum(m: Machine, node: Node, k: int, *terms: Array) -> Array:
    total: Array = float(node.data[0]) * terms[0]
    for factor, term in zip(node.data[1:], terms[1:], strict=True):
        total = total + float(factor) * term
    return total


def _give(m: Machine, node: Node, k: int, s: Array, g: Array, d: Array) -> Array:
    """(I - G H)* S (I - G H) + H* D⁻¹ H."""
    H = m.H[k]
    across = np.eye(6) - g @ H
    own = H.T @ np.linalg.solve(d, np.broadcast_to(H, (*d.shape[:-2], *H.shape)))
    return np.asarray(np.swapaxes(across, -1, -2) @ s @ across + own)


def _turn(x: Array, s: Array) -> Array:
    """crf[x] S - S crm[x], which is crf[x] S and its transpose."""
    half = crf(x) @ s
    return np.asarray(half + np.swapaxes(half, -1, -2))


def _congruent(a: Array, s: Array) -> Array:
    return np.asarray(a @ s @ np.swapaxes(a, -1, -2))


def _slip(m: Machine, node: Node, k: int, n: Array, s: Array, g: Array, d: Array) -> Array:
    """N* H* D⁻¹ - S* G."""
    told = np.swapaxes(np.linalg.solve(d, m.H[k] @ n), -1, -2)
    return np.asarray(told - np.swapaxes(s, -1, -2) @ g)


def _gyro(inertia: Array, v: Array) -> Array:
    """M̂ = ½(crf[V] M - M crm[V] - Q[MV]) without what cancels in it: its right half is zero."""
    J, h = inertia[:3, :3], inertia[:3, 3:]
    turning = skew(v[..., :3])
    E = np.eye(3) * np.trace(J) / 2 - J
    moment = E @ turning - skew(_times(J, v[..., :3])) - h @ skew(v[..., 3:])
    force = -skew(_times(inertia, v)[..., 3:])
    left = np.concatenate([moment, force], axis=-2)
    return np.concatenate([left, np.zeros_like(left)], axis=-1)


_GIVEN: dict[str, Callable[[Machine, Node, int], Array]] = {
    "leaf": Machine.leaf,
    "scatter": Machine.scatter,
    "rigid": Machine.rigid,
    "zero": Machine.zero,
}
_SHIFT: dict[str, Callable[[Machine, Node, int], Array]] = {
    "shin": Machine.shin,
    "shout": Machine.shout,
    "cong": Machine.cong,
    "outcong": Machine.outcong,
    "outsim": Machine.outsim,
}
_LOCAL: dict[str, Callable[..., Array]] = {
    "sum": _sum,
    "H": lambda m, n, k, f: _times(m.H[k], f),
    "Ht": lambda m, n, k, x: _times(m.H[k].T, x),
    "inertia": lambda m, n, k, s, x: _times(s, x),
    "inertia_t": lambda m, n, k, s, x: _times(np.swapaxes(s, -1, -2), x),
    "gyro": lambda m, n, k, v: _gyro(m.rigid(n, k), v),
    "across": lambda m, n, k, s, g: s - g @ (m.H[k] @ s),
    "U": lambda m, n, k, p: p @ m.H[k].T,
    "D": lambda m, n, k, u: m.H[k] @ u + np.diag(m.armature(k)),
    "G": lambda m, n, k, u, d: np.swapaxes(np.linalg.solve(d, np.swapaxes(u, -1, -2)), -1, -2),
    "give": _give,
    "slip": _slip,
    "bend": lambda m, n, k, s, b: s + m.H[k].T @ np.swapaxes(b, -1, -2),
    "down": lambda m, n, k, p, u, g: p - g @ np.swapaxes(u, -1, -2),
    "Gx": lambda m, n, k, g, x: _times(g, x),
    "Gtx": lambda m, n, k, g, x: _times(np.swapaxes(g, -1, -2), x),
    "Dx": lambda m, n, k, d, x: _times(d, x),
    "Dsolve": lambda m, n, k, d, x: np.linalg.solve(d, x[..., None])[..., 0],
    "Ax": lambda m, n, k, x: m.armature(k) * x,
    "turn": lambda m, n, k, x, s: _turn(x, s),
    "through": lambda m, n, k, s, g: _congruent(np.eye(6) - g @ m.H[k], s),
    "crm": lambda m, n, k, x, y: crm_apply(x, y),
    "crf": lambda m, n, k, x, f: crf_apply(x, f),
}
"""What each operation does at link k; shifts and given streams are above."""
