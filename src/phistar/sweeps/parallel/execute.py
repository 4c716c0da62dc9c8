# SPDX-License-Identifier: BSD-3-Clause
"""Runs the stages of a parallel program on all links of a robot at once, over any array library."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.sweeps.ir import Direction, Node, Type
from phistar.sweeps.ops import Reduction
from phistar.sweeps.parallel.join_tree import JoinTree
from phistar.sweeps.parallel.linear_forms import defining
from phistar.sweeps.parallel.link_fields import CROSSING, LOCAL, LinkFields
from phistar.sweeps.parallel.parallel_schedule import (
    Local,
    ParallelSchedule,
    RiccatiScan,
    RoundStage,
    Scan,
    StarPair,
)
from phistar.sweeps.parallel.scans import (
    MatrixTransfers,
    PoseTransfers,
    Transfers,
    linear_part,
    scan_inward,
    scan_outward,
)
from phistar.sweeps.parallel.star import StarFactor, StarSolve
from phistar.sweeps.stream_types import GROUND_COMPONENTS


def run_stages(
    schedule: ParallelSchedule, tree: JoinTree, fields: LinkFields, inputs: Mapping[str, Array]
) -> dict[str, Array]:
    """The outputs of a program.

    Args:
        schedule: The program.
        tree: The segments of the robot's links.
        fields: The links at configurations, in the order of the tree's numbers.
        inputs: Leaves by name: JOINT vectors (coordinates, samples), MOTION and FORCE vectors
            (6, links, samples) in link axes, forces on frames (frames, 6, samples). Joint vectors
            and links are in the order of the robot.

    Returns:
        Outputs by name, shaped and ordered like the inputs; at the ground (components, samples).
    """
    machine = _Machine(schedule, tree, fields, inputs)
    for stage in schedule.stages:
        machine.run(stage)
    return {name: machine.output(stream) for name, stream in schedule.program.outputs.items()}


class _Machine:
    """Values of streams at all links."""

    def __init__(
        self,
        schedule: ParallelSchedule,
        tree: JoinTree,
        fields: LinkFields,
        inputs: Mapping[str, Array],
    ) -> None:
        self.program, self.schedule = schedule.program, schedule
        self.tree, self.fields, self.inputs = tree, fields, inputs
        self.values: dict[int, Array] = {}
        self.transfers: dict[object, Transfers] = {}
        self.factor: StarFactor | None = None

    def value(self, stream: int) -> Array:
        """The value of a stream that was computed."""
        return self.values[stream]

    def run(self, stage: RoundStage) -> None:
        """One stage."""
        if isinstance(stage, Local):
            self._put(stage.gives[0], self.computed(stage.gives[0]))
        elif isinstance(stage, Scan):
            self._scan(stage)
        elif isinstance(stage, RiccatiScan):
            self._articulated(stage)
        else:
            assert isinstance(stage, StarPair)
            self._pair(stage)

    def _put(self, stream: int, value: Array) -> None:
        self.values[stream] = value

    def output(self, stream: int) -> Array:
        """A stream over all links, or its value at the ground."""
        kind = self.program.nodes[stream].type
        value = self.value(stream)
        if kind.at_ground:
            return value
        count = self.fields.numbers.count
        value = self.fields.ops.xp.broadcast_to(value, (value.shape[0], count, value.shape[-1]))
        if kind is Type.JOINT:
            return self.fields.joint_output(value)
        return self.fields.ops.take(value, self.tree.label)

    # -- streams

    def computed(self, stream: int) -> Array:
        """A stream from its operands."""
        program, node = self.program, self.program.nodes[stream]
        if node.op == "rec":
            return self.value(program.definitions[stream])
        if node.op in _GIVEN:
            return _GIVEN[node.op](self, node)
        operands = [self.value(o) for o in node.operands]
        if node.op == "sum":
            return _sum(node, operands)
        if node.spec.reduction is not None:
            return self._reduced(node, operands[0])
        if node.type.at_ground:
            return _AT_GROUND[node.op](self.fields, *operands)
        if node.spec.shift is not None:
            return self._shifted(node, operands[0])
        return LOCAL[node.op](self.fields, *operands)

    def _shifted(self, node: Node, x: Array) -> Array:
        fields = self.fields
        if node.spec.shift is Direction.OUTWARD:
            crossed = CROSSING[node.op](fields, fields.R, fields.p, fields.from_parents(x))
            return crossed
        return fields.from_children(CROSSING[node.op](fields, fields.R, fields.p, x))

    def _reduced(self, node: Node, x: Array) -> Array:
        fields = self.fields
        crossed = CROSSING[node.op](fields, fields.R, fields.p, x)
        if node.spec.reduction is Reduction.ROOTS:
            return fields.from_roots(crossed)
        wide = (crossed.shape[0], fields.numbers.count, crossed.shape[-1])
        total: Array = fields.ops.xp.broadcast_to(crossed, wide).sum(axis=-2)
        return total

    def leaf(self, node: Node) -> Array:
        """A vector from outside, gravity, or no external forces."""
        if node.data not in self.inputs:
            if node.data == "gravity":
                return self.fields.gravity()
            if node.data == "f_ext":
                return self.fields.zero((6,))
            raise ArgumentError(f"no value was given for the input {node.data!r}")
        x = self.inputs[node.data]
        if node.type is Type.JOINT:
            return self.fields.joint_vector(x)
        return self.fields.ops.take(x, self.tree.order)

    def scatter(self, node: Node) -> Array:
        """Forces on frames."""
        if node.data not in self.inputs:
            raise ArgumentError(f"no value was given for the input {node.data!r}")
        return self.fields.frame_forces(self.inputs[node.data])

    def zero(self, node: Node) -> Array:
        """Nothing, in the shape of its type."""
        if node.type.at_ground:
            dtype = self.fields.numbers.inertia.dtype
            return self.fields.ops.xp.zeros((GROUND_COMPONENTS[node.type], 1), dtype=dtype)
        if node.type is Type.JOINT:
            return self.fields.zero((len(self.fields.numbers.H),))
        if node.type in (Type.INERTIA, Type.TRANSFER):
            return self.fields.zero((6, 6))
        return self.fields.zero((node.type.width,))

    # -- recursions

    def _members(self, stage: Scan | RiccatiScan, known: Mapping[int, Array]) -> None:
        """The streams of a recursion, from what crossed the joints."""
        self.values.update(known)
        for stream in stage.gives:
            if stream not in known:
                self._put(stream, self.computed(stream))

    def _own(self, stage: Scan) -> Array:
        """The state where nothing crosses joints."""
        shift = self.program.nodes[stage.cycle.shift]
        shape = (6, 6) if stage.two_sided else (shift.type.width,)
        self._members(stage, {stage.cycle.shift: self.fields.zero(shape)})
        return self.value(stage.cycle.state)

    def _scan(self, stage: Scan) -> None:
        cycle, fields = stage.cycle, self.fields
        own = self._over_links(self._own(stage))
        op = self.program.nodes[cycle.shift].op
        transfers = self._transfers(stage)
        if stage.direction is Direction.OUTWARD:
            state = scan_outward(self.tree, transfers, op, own)
            shifted = self._shifted(self.program.nodes[cycle.shift], state)
            self._members(stage, {cycle.shift: shifted, cycle.state: state})
        else:
            leaving = CROSSING[op](fields, fields.R, fields.p, own)
            total = scan_inward(self.tree, transfers, op, leaving, leaving)
            self._members(stage, {cycle.shift: total})

    def _over_links(self, x: Array) -> Array:
        shape = (*x.shape[:-2], self.fields.numbers.count, x.shape[-1])
        return self.fields.ops.xp.broadcast_to(x, shape)

    def _transfers(self, stage: Scan) -> Transfers:
        key = stage.transfer_key
        if key not in self.transfers:
            if stage.by_poses:
                self.transfers[key] = PoseTransfers(self.fields, self.tree)
            else:
                L = linear_part(
                    self.fields,
                    self.program,
                    stage.words,
                    lambda each: self.value(defining(self.program, each)),
                )
                L = self._over_links(L)
                self.transfers[key] = MatrixTransfers(self.fields, self.tree, L, stage.direction)
        return self.transfers[key]

    def _star(self, riccati: RiccatiScan) -> StarFactor:
        inertia = self._over_links(self.value(riccati.inertia))
        return StarFactor(self.fields, self.tree, inertia)

    def _articulated(self, stage: RiccatiScan) -> None:
        if self.factor is None:
            self.factor = self._star(stage)
            self.factor.all_up()
        self._members(stage, {stage.cycle.shift: self.factor.outer_inertias()})

    def _pair(self, stage: StarPair) -> None:
        """Matrices go up once, with the vectors of the first pair."""
        first = self.factor is None
        factor = self._star(stage.riccati) if self.factor is None else self.factor
        self.factor = factor
        solve = StarSolve(factor, *(self.value(s) for s in (stage.a, stage.b, stage.tau)))
        solve.all_up_and_down(with_factor=first)
        for stream in stage.gives:
            if stream == stage.entering:
                self._put(stream, solve.entering)
            else:
                rates = stream in stage.rates
                self._put(stream, solve.joint_acceleration if rates else solve.acceleration)


def _sum(node: Node, terms: list[Array]) -> Array:
    total = float(node.data[0]) * terms[0] if node.data[0] != 1 else terms[0]
    for factor, term in zip(node.data[1:], terms[1:], strict=True):
        if abs(factor) == 1:
            total = total + term if factor > 0 else total - term
        else:
            total = total + float(factor) * term
    return total


_GIVEN: dict[str, Callable[[_Machine, Node], Array]] = {
    "leaf": _Machine.leaf,
    "scatter": _Machine.scatter,
    "zero": _Machine.zero,
    "rigid": lambda m, node: m.fields.numbers.inertia,
    "mass_point": lambda m, node: m.fields.numbers.mass_point,
    **{
        f"coordinate_{axis}": lambda m, node: m.fields.coordinate("xyz".index(node.op[-1]))
        for axis in "xyz"
    },
    "ground_point": lambda m, node: m.fields.constant(m.fields.numbers.ground.point[:, None]),
}

_AT_GROUND: dict[str, Callable[..., Array]] = {
    "weigh": lambda f, x: (f.constant(f.numbers.upward[:, None]) * x[:3]).sum(0)[None],
    "center": lambda f, x: x[:3] / f.constant(f.numbers.ground.mass),
    "moving_center": lambda f, x: x[:3] / f.constant(f.numbers.ground.moving_mass),
}
