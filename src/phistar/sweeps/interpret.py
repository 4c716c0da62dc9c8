# SPDX-License-Identifier: BSD-3-Clause
"""Runs a scheduled program link by link in NumPy, over a whole batch, for any dtype.

The oracle of level 2: the values of ``sweeps.ops``, each a line of linear algebra at one link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.components import GROUND, Body
from phistar.model.configuration import normalized_configuration
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.model.singular import pivot_thresholds
from phistar.spatial import force_transform, inertia_matrix, motion_transform, pose_inverse
from phistar.sweeps.ir import Direction, Node, Type
from phistar.sweeps.op_values import GroundState, LinkState, times
from phistar.sweeps.ops import Reduction
from phistar.sweeps.schedule import Schedule
from phistar.sweeps.stream_types import GROUND_COMPONENTS


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
        frames: Names of the frames that B selects, in order.
        locked: Bodies whose joints are not free: the hinge map H has no row for them, and JOINT
            vectors no entry.

    Returns:
        Outputs by name, shaped like the inputs.
    """
    machine = Interpreter(
        schedule, model, normalized_configuration(model, q), inputs, frames, locked
    )
    machine.run()
    return {name: machine.output(s) for name, s in schedule.program.outputs.items()}


class Interpreter:
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
        self.sweeps = schedule.sweeps
        self.model = model
        self.parents = [body.parent for body in model.bodies]
        self.children: list[list[int]] = [[] for _ in model.bodies]
        for body in model.bodies:
            if body.parent != GROUND:
                self.children[body.parent].append(body.index)
        self.transforms = [body.transform(q) for body in model.bodies]
        pivots = pivot_thresholds(model)
        self.links = [
            _link_state(body, transform, own, body.index in locked, pivots.get(body.index))
            for body, transform, own in zip(
                model.bodies, self.transforms, _link_constants(model), strict=True
            )
        ]
        self.ground = GroundState.of(model)
        ends = np.cumsum([0, *(len(link.H) for link in self.links)])
        self.slices = [slice(a, b) for a, b in pairwise(ends)]
        self.batch = q.shape[:-1]
        self.inputs = {name: np.asarray(value) for name, value in inputs.items()}
        self.values: dict[tuple[int, int], Array] = {}

    def run(self) -> None:
        """Walk all passes."""
        links = range(len(self.parents))
        for each in self.sweeps:
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
        if node.type.at_ground and k != GROUND:
            if node.spec.reduction is not None:
                self.reduce(stream, node, k)
            return
        if node.op == "rec":
            result = self.values[self.program.definitions[stream], k]
        elif node.spec.reduction is not None:
            result = self.zero(node, k)  # of a robot without links
        elif node.op in _GIVEN:
            result = _GIVEN[node.op](self, node, k)
        elif node.spec.shift is not None:
            result = self.shifted(node, k)
        else:
            result = self.local(node, k, [self.value(o, k) for o in node.operands])
        self.values[stream, k] = result

    def reduce(self, stream: int, node: Node, k: int) -> None:
        """Add what a link has to a sum at the ground."""
        if node.spec.reduction is Reduction.ROOTS and self.parents[k] != GROUND:
            return
        term = node.spec.evaluate(self.links[k], *(self.value(o, k) for o in node.operands))
        total = self.values.get((stream, GROUND))
        self.values[stream, GROUND] = term if total is None else total + term

    def local(self, node: Node, k: int, operands: Sequence[Array]) -> Array:
        """A statement whose operands belong to the same link."""
        if node.op == "sum":
            return _sum(node, operands)
        return node.spec.evaluate(self.ground if k == GROUND else self.links[k], *operands)

    def output(self, stream: int) -> Array:
        """A stream over all links, or its value at the ground."""
        kind = self.program.nodes[stream].type
        if kind.at_ground:
            total = self.value(stream, GROUND)
            return total[..., 0] if kind is Type.TOTAL else total
        parts = [self.value(stream, k) for k in range(len(self.parents))]
        batch = np.broadcast_shapes(self.batch, *(p.shape[:-1] for p in parts))
        parts = [np.broadcast_to(p, (*batch, p.shape[-1])) for p in parts]
        if kind is Type.JOINT:
            return np.concatenate([np.zeros((*batch, 0)), *parts], axis=-1)
        return np.stack(parts, axis=-2) if parts else np.zeros((*batch, 0, kind.width))

    def leaf(self, node: Node, k: int) -> Array:
        """A vector from outside, or gravity as an acceleration of the ground on the roots."""
        if node.data == "gravity" and "gravity" not in self.inputs:
            if self.parents[k] != GROUND:
                return np.zeros(6)
            upward = np.concatenate([np.zeros(3), -self.model.gravity])
            return times(motion_transform(pose_inverse(self.transforms[k])), upward)
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
                total = total + times(force_transform(frame.body_pose), wrench)
        return total

    def rigid(self, node: Node, k: int) -> Array:
        """The link's own inertia."""
        return self.links[k].rigid_inertia

    def mass_point(self, node: Node, k: int) -> Array:
        """First moment and mass of the link."""
        return np.roll(self.links[k].body.inertia[:4], -1)

    def coordinate(self, node: Node, k: int) -> Array:
        """A row of the root's pose; nothing elsewhere."""
        if self.parents[k] != GROUND:
            return np.zeros(4)
        return self.transforms[k][..., "xyz".index(node.op[-1]), :]

    def ground_point(self, node: Node, k: int) -> Array:
        """The same of the links that are welded to the ground."""
        return self.ground.point

    def zero(self, node: Node, k: int) -> Array:
        """Nothing, in the shape of its type."""
        if node.type is Type.JOINT:
            return np.zeros(0 if k == GROUND else len(self.links[k].H))
        return np.zeros(_SHAPES[node.type])

    def shifted(self, node: Node, k: int) -> Array:
        """What crosses joints: from the children, added up, or from the parent."""
        spec = node.spec
        if spec.shift is Direction.OUTWARD:
            parent = self.parents[k]
            if parent == GROUND:
                return self.zero(node, k)
            return spec.evaluate(self.links[k], *(self.value(o, parent) for o in node.operands))
        total = self.zero(node, k)
        for c in self.children[k]:
            total = total + spec.evaluate(self.links[c], *(self.value(o, c) for o in node.operands))
        return total


_SHAPES: dict[Type, tuple[int, ...]] = {
    **{kind: (kind.width,) for kind in (Type.NUMBER, Type.POINT, Type.PLANE)},
    **{kind: (size,) for kind, size in GROUND_COMPONENTS.items()},
    **dict.fromkeys((Type.MOTION, Type.FORCE, Type.WORLD_MOTION), (6,)),
    **dict.fromkeys((Type.INERTIA, Type.TRANSFER), (6, 6)),
}
"""Of a value at a link, for types that have the same at all links."""

_LinkConstants = tuple[Array, Array, Array]


@cached_on_model
def _link_constants(model: Model) -> list[_LinkConstants]:
    """Of each link H (d, 6), rotor inertia (d,) and inertia (6, 6), none of which depends on q."""
    inertias = inertia_matrix(model.inertias)
    return [
        (body.joint_kind.motion_map().T, np.array(body.armature), inertia)
        for body, inertia in zip(model.bodies, inertias, strict=True)
    ]


def _link_state(
    body: Body,
    transform: Array,
    constants: _LinkConstants,
    locked: bool,
    min_pivots: Sequence[float] | None,
) -> LinkState:
    H, armature, inertia = constants
    free = slice(0, 0) if locked else slice(None)
    return LinkState(body, transform, H[free], armature[free], inertia, min_pivots)


def _sum(node: Node, terms: Sequence[Array]) -> Array:
    total: Array = float(node.data[0]) * terms[0]
    for factor, term in zip(node.data[1:], terms[1:], strict=True):
        total = total + float(factor) * term
    return total


_GIVEN: dict[str, Callable[[Interpreter, Node, int], Array]] = {
    "leaf": Interpreter.leaf,
    "scatter": Interpreter.scatter,
    "rigid": Interpreter.rigid,
    "mass_point": Interpreter.mass_point,
    **{f"coordinate_{axis}": Interpreter.coordinate for axis in "xyz"},
    "ground_point": Interpreter.ground_point,
    "zero": Interpreter.zero,
}
