# SPDX-License-Identifier: BSD-3-Clause
"""The passes of a program on all links: recursions as scans over the depths, the rest at once.

Of a pass only the streams that recursions are made of go link after link. What these read is
computed before for all links side by side, what reads them after. The code does not grow with the
number of links, whatever that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.backends.jax.links import DepthArrays, DepthLinks, DepthTables
from phistar.backends.jax.package import jax, varying_alike
from phistar.errors import ArgumentError
from phistar.model.components import GROUND
from phistar.sweeps.inlining import defining_stream
from phistar.sweeps.ir import Direction, Node, StreamProgram, Type
from phistar.sweeps.op_values import adjoint
from phistar.sweeps.ops import Reduction
from phistar.sweeps.schedule import Schedule, Sweep
from phistar.sweeps.stream_types import GROUND_COMPONENTS
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.backends.jax.package import JaxArray

_Carry = dict[int, Array]


@dataclass(frozen=True)
class PassPlan:
    """The streams of a pass, each in order; recursions are known by what defines them.

    Attributes:
        direction: The way of the scan.
        before: Streams that no recursion of the pass leads to.
        recursive: Those on the way from a recursion to a recursion.
        after: The others.
    """

    direction: Direction
    before: tuple[int, ...]
    recursive: tuple[int, ...]
    after: tuple[int, ...]

    @classmethod
    def of(cls, program: StreamProgram, each: Sweep) -> PassPlan:
        """The plan of a pass."""
        reads = _reads(program, each)
        streams, readers = list(reads), _turned_around(reads)
        loops = [s for s in streams if s in _reached(reads[s], reads)]
        core = _reached(loops, readers) & _reached(loops, reads)
        later = _reached(loops, readers) - core
        return cls(
            each.direction,
            tuple(s for s in streams if s not in core | later),
            tuple(s for s in streams if s in core),
            tuple(s for s in streams if s in later),
        )


def _reads(program: StreamProgram, each: Sweep) -> dict[int, list[int]]:
    """For each stream of a pass the others of it that it reads, recursions as what defines them."""
    streams = [s for s in each.streams if program.nodes[s].op != "rec"]
    inside = set(streams)
    return {s: [o for o in _operands(program, s) if o in inside] for s in streams}


def _turned_around(edges: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """A graph with its edges the other way."""
    back: dict[int, list[int]] = {s: [] for s in edges}
    for start, ends in edges.items():
        for end in ends:
            back[end].append(start)
    return back


def _operands(program: StreamProgram, stream: int) -> tuple[int, ...]:
    return tuple(defining_stream(program, o) for o in program.nodes[stream].operands)


def _reached(starts: Iterable[int], edges: Mapping[int, Sequence[int]]) -> set[int]:
    """What can be reached, the starts included."""
    found: set[int] = set()
    stack = list(starts)
    while stack:
        stream = stack.pop()
        if stream not in found:
            found.add(stream)
            stack.extend(edges[stream])
    return found


class StreamFunction:
    """A scheduled program on a robot: a pure function of q and inputs for one sample."""

    def __init__(self, schedule: Schedule, tables: DepthTables) -> None:
        self.program = schedule.program
        self.sweeps = schedule.sweeps
        self.tables = tables

    @cached_property
    def plans(self) -> tuple[PassPlan, ...]:
        """The passes."""
        return tuple(PassPlan.of(self.program, each) for each in self.sweeps)

    def __call__(self, q: Array, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs.

        Args:
            q: (nq,).
            inputs: What the program reads, as for ``sweeps.interpret.run``, without batch axes and
                all in the precision of q.
        """
        machine = _Evaluation(self, self.tables.at(q), inputs)
        for plan in self.plans:
            machine.run(plan)
        return {name: machine.output(s) for name, s in self.program.outputs.items()}


class _Evaluation:
    """The values of streams at a configuration, (links, ...) each; at the ground, one value."""

    def __init__(
        self, function: StreamFunction, links: DepthLinks, inputs: Mapping[str, Array]
    ) -> None:
        self.program = function.program
        self.tables = function.tables
        self.links = links
        self.inputs = inputs
        self.dtype = reduce(np.promote_types, (x.dtype for x in inputs.values()), links.q.dtype)
        self.values: dict[int, Array] = {}
        self._xp = jax().numpy

    def run(self, plan: PassPlan) -> None:
        """A pass."""
        for stream in plan.before:
            self.value(stream)
        if plan.recursive and self.tables.levels.count:
            _Scan(self, plan).run()
        for stream in (*plan.recursive, *plan.after):
            self.value(stream)

    def value(self, stream: int) -> Array:
        """A stream, computed when it is first asked for."""
        stream = defining_stream(self.program, stream)
        if stream not in self.values:
            self.values[stream] = self._compute(self.program.nodes[stream])
        return self.values[stream]

    def zeros(self, kind: Type, *links: int) -> Array:
        """Zeros of a type."""
        found: Array = self._xp.zeros((*links, *self.shape(kind)), self.dtype)
        return found

    def shape(self, kind: Type) -> tuple[int, ...]:
        """Of a value at one link or at the ground."""
        d = self.tables.joint_width
        shapes: dict[Type, tuple[int, ...]] = {
            Type.JOINT: (d,),
            Type.BLOCK: (6, d),
            Type.FACTOR: (d, d),
            Type.INERTIA: (6, 6),
            Type.TRANSFER: (6, 6),
            **{at_ground: (size,) for at_ground, size in GROUND_COMPONENTS.items()},
        }
        return shapes.get(kind, (kind.width,))

    def _compute(self, node: Node) -> Array:
        count = self.tables.levels.count
        if not count and not node.type.at_ground:
            return self.zeros(node.type, 0)
        if node.spec.is_given:
            return self._given(node)
        if node.op == "sum":
            return weighted_sum(node, [self.value(o) for o in node.operands])
        if node.spec.reduction is not None:
            return self._reduced(node)
        if node.spec.shift is not None:
            return self._shifted(node)
        place: JaxArray = self.links.ground if node.type.at_ground else self.links.flat
        return node.spec.evaluate(place, *(self.value(o) for o in node.operands))

    def _given(self, node: Node) -> Array:
        links, op = self.links, node.op
        if op == "rigid":
            return links.flat.rigid_inertia
        if op == "mass_point":
            return links.constant(self.tables.mass_points)
        if op == "ground_point":
            return links.ground.point
        if op.startswith("coordinate_"):
            return links.at_roots(links.flat.transform[:, "xyz".index(op[-1]), :])
        if op == "zero":
            many = () if node.type.at_ground else (self.tables.levels.count,)
            return self.zeros(node.type, *many)
        return self._read(node)

    def _read(self, node: Node) -> Array:
        if node.data not in self.inputs:
            if node.data == "gravity":
                return self.links.gravity()
            if node.data == "f_ext":
                return self.zeros(node.type, self.tables.levels.count)
            raise ArgumentError(f"no value was given for the input {node.data!r}")
        array = self.inputs[node.data]
        if node.op == "scatter":
            return self.links.frame_forces(array)
        return self.links.joint_vector(array) if node.type is Type.JOINT else array

    def _reduced(self, node: Node) -> Array:
        (operand,) = (self.value(o) for o in node.operands)
        links = self.links.flat
        if not self.tables.levels.count:
            return self.zeros(node.type)
        if node.spec.reduction is Reduction.ROOTS:
            links, operand = links.take(self.tables.roots), operand[self.tables.roots]
        found: Array = node.spec.evaluate(links, operand).sum(axis=0)
        return found

    def _shifted(self, node: Node) -> Array:
        """Across all joints at once; of a stream that is finished."""
        operands = [self.value(o) for o in node.operands]
        above = self.tables.levels.above
        if node.spec.shift is Direction.OUTWARD:
            parents = np.maximum(above, 0)
            found = node.spec.evaluate(self.links.flat, *(x[parents] for x in operands))
            return found - self.links.at_roots(found)
        terms = node.spec.evaluate(self.links.flat, *operands)
        inner = np.flatnonzero(above != GROUND).astype(np.int32)
        total: JaxArray = self._xp.zeros_like(terms)
        return total.at[above[inner]].add(terms[inner])  # type: ignore[no-any-return]

    def output(self, stream: int) -> Array:
        """A stream over all links, or its value at the ground."""
        kind = self.program.nodes[stream].type
        found = self.value(stream).astype(self.dtype)
        if kind is Type.JOINT:
            return self.links.from_joints(found)
        return found[0] if kind is Type.TOTAL else found


def weighted_sum(node: Node, terms: Sequence[Array]) -> Array:
    """A linear combination."""
    return reduce(
        add, (_scaled(float(factor), x) for factor, x in zip(node.data, terms, strict=True))
    )


def _scaled(factor: float, x: Array) -> Array:
    return x if factor == 1.0 else factor * x


class _Scan:
    """The recursions of a pass: a scan over the depths, from the ground or to it."""

    def __init__(self, state: _Evaluation, plan: PassPlan) -> None:
        self.state = state
        self.plan = plan
        self.nodes = state.program.nodes
        self.inside = set(plan.recursive)
        self.outward = plan.direction is Direction.OUTWARD
        shifts = [s for s in plan.recursive if self.nodes[s].spec.shift is not None]
        self.shifts = shifts
        # Outward the values of the parents are kept, inward what the children have added up to.
        kept = {o for s in shifts for o in self.operands(s)} if self.outward else shifts
        self.kept = sorted(kept)

    def operands(self, stream: int) -> tuple[int, ...]:
        """What a stream reads, recursions resolved."""
        return _operands(self.state.program, stream)

    def run(self) -> None:
        """Scan, and keep the values of all streams."""
        state, lax = self.state, jax().lax
        levels = state.tables.levels
        read = sorted({o for s in self.plan.recursive for o in self.operands(s)} - self.inside)
        given = {o: self._by_depth(o) for o in read}
        # What the children of a row add up to belongs to the row before.
        collected = np.concatenate([levels.children[:1], levels.children[:-1]])
        rows = (state.links.rows().as_tree(), given, levels.parents, collected)
        start = {s: state.zeros(self.nodes[s].type, levels.width) for s in self.kept}
        leaves = jax().tree.leaves(rows)
        zeros = varying_alike([*leaves, *start.values()])[len(leaves) :]
        start = dict(zip(start, zeros, strict=True))
        _, found = lax.scan(self._step, start, rows, reverse=not self.outward)
        for stream, value in found.items():
            state.values[stream] = state.links.by_link(value)

    def _by_depth(self, stream: int) -> Array:
        value = self.state.value(stream)
        kind = self.nodes[stream].type
        size = self.state.shape(kind)
        nothing = np.eye(size[0]) if kind is Type.FACTOR else np.zeros(size)
        return self.state.links.by_depth(value, nothing)

    def _step(self, carry: _Carry, row: JaxArray) -> tuple[_Carry, _Carry]:
        """All links of one depth."""
        arrays, given, parents, collected = row
        links = DepthArrays.from_tree(arrays)
        local: _Carry = dict(given)
        for stream in self.plan.recursive:
            local[stream] = self._value(stream, links, local, carry, parents)
        dtype = self.state.dtype
        if self.outward:
            kept = {s: local[s].astype(dtype) for s in self.kept}
        else:
            kept = {s: self._collected(s, links, local, collected, parents) for s in self.kept}
        return kept, {s: local[s] for s in self.plan.recursive}

    def _value(
        self, stream: int, links: DepthArrays, local: _Carry, carry: _Carry, parents: Array
    ) -> Array:
        node = self.nodes[stream]
        operands = self.operands(stream)
        if node.spec.shift is not None:
            if not self.outward:
                return carry[stream]
            return _symmetric(
                node,
                node.spec.evaluate(links, *(self._of_parent(carry[o], parents) for o in operands)),
            )
        values = [local[o] for o in operands]
        return (
            weighted_sum(node, values) if node.op == "sum" else node.spec.evaluate(links, *values)
        )

    def _of_parent(self, x: Array, parents: Array) -> Array:
        """Roots read what there is before the first row: zeros."""
        return x if self.state.tables.levels.is_chain else x[parents]

    def _collected(
        self, stream: int, links: DepthArrays, local: _Carry, collected: Array, parents: Array
    ) -> Array:
        """What the links of a row add to their parents, at the places of these."""
        node = self.nodes[stream]
        terms = node.spec.evaluate(links, *(local[o] for o in self.operands(stream)))
        terms = _symmetric(node, terms).astype(self.state.dtype)
        if self.state.tables.levels.is_chain:
            return terms
        if collected.shape[-1] <= POLICY.jax_gathered_children:
            found = terms.at[collected].get(mode="fill", fill_value=0)  # type: ignore[attr-defined]
            return found.sum(axis=1)  # type: ignore[no-any-return]
        total: JaxArray = jax().numpy.zeros_like(terms)
        return total.at[parents].add(terms, mode="drop")  # type: ignore[no-any-return]


def _symmetric(node: Node, x: Array) -> Array:
    """Inertias that cross joints keep their symmetry, or rounding would grow along long chains."""
    return (x + adjoint(x)) / 2 if node.type is Type.INERTIA else x
