# SPDX-License-Identifier: BSD-3-Clause
"""Scalar programs from one joint vector entry per body's joint to the robot's own coordinates.

Users order joints as they like, and a joint that mimics another one shares its entry: velocities
are spread from it, scaled, and forces are summed into it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from phistar.model.model import Model
from phistar.scalar.graph import Graph, Scalar, Value, operands
from phistar.scalar.program import Body, Loop, Rolled, ScalarProgram, Signature, Store, Straight


def in_coordinates(program: ScalarProgram, model: Model, arrays: Collection[str]) -> ScalarProgram:
    """A program on the robot's coordinates.

    Args:
        program: A program whose joint vectors hold the joints of all bodies in body order.
        model: The robot.
        arrays: Names of the inputs and outputs that are joint vectors.

    Returns:
        The same program on joint vectors (nv,).
    """
    if isinstance(program, Straight):
        return _straight(program, model, arrays)
    return _Loops(program, model, arrays).changed()


def _signature(signature: Signature, model: Model, arrays: Collection[str]) -> Signature:
    def sizes(of: Mapping[str, int]) -> dict[str, int]:
        return {name: model.nv if name in arrays else size for name, size in of.items()}

    return Signature(sizes(signature.inputs), sizes(signature.outputs))


def _copied(
    body: Body, load: Callable[..., Scalar], store: Callable[[Store, Scalar], Store], graph: Graph
) -> Body:
    """A body whose loads and stores are replaced; its operations stay as they are."""
    known: dict[int, Scalar] = {}
    for number in body.live:
        node = body.graph.nodes[number]
        if node[0] == "load":
            known[number] = load(*node[1])
        elif node[0] == "const":
            known[number] = graph.number(node[1])
        else:
            known[number] = graph.node(
                node[0], *(graph.number(known[i]).id for i in operands(node))
            )
    stores = [
        store(s, known[s.value.id] if isinstance(s.value, Value) else s.value) for s in body.stores
    ]
    return Body(graph, stores)


def _straight(program: Straight, model: Model, arrays: Collection[str]) -> Straight:
    """Every entry has a place and a factor."""
    entries = [
        (body.v_slice.start + i, float(body.scale))
        for body in model.bodies
        for i in range(body.motion.nv)
    ]
    graph = Graph()
    written: set[tuple[str, int]] = set()

    def load(name: str, entry: int) -> Scalar:
        if name not in arrays:
            return graph.load(name, entry)
        place, factor = entries[entry]
        return factor * graph.load(name, place)

    def store(old: Store, value: Scalar) -> Store:
        if old.space not in arrays:
            return replace(old, value=value)
        place, factor = entries[old.index]
        again = (old.space, place) in written
        written.add((old.space, place))
        return replace(old, index=place, value=factor * value, add=old.add or again)

    body = _copied(program.body, load, store, graph)
    return Straight(_signature(program.signature, model, arrays), body)


class _Loops:
    """Links know where their entries are; factors that differ in a class stand in the table."""

    def __init__(self, program: Rolled, model: Model, arrays: Collection[str]) -> None:
        self.program = program
        self.model = model
        self.arrays = arrays
        self.shared = sum(body.motion.nv for body in model.bodies) > model.nv
        self.table = [list(row) for row in program.links.table]
        self.same: dict[int, float] = {}
        self.column: dict[int, int] = {}
        members: dict[int, list[int]] = {}
        for k, kind in enumerate(program.links.class_of):
            members.setdefault(kind, []).append(k)
        for kind, links in members.items():
            factors = [float(model.bodies[k].scale) for k in links]
            if len({*factors}) == 1:
                self.same[kind] = factors[0]
                continue
            self.column[kind] = len(self.table[links[0]])
            for k, factor in zip(links, factors, strict=True):
                self.table[k].append(factor)

    def changed(self) -> Rolled:
        program = self.program
        loops = [
            Loop(loop.direction, {kind: self._body(b, kind) for kind, b in loop.bodies.items()})
            for loop in program.loops
        ]
        starts = [body.v_slice.start for body in self.model.bodies]
        links = replace(program.links, v=starts, table=self.table)
        signature = _signature(program.signature, self.model, self.arrays)
        return replace(program, signature=signature, links=links, loops=loops)

    def _body(self, body: Body, kind: int) -> Body:
        graph = Graph()

        def factor() -> Scalar:
            if kind in self.same:
                return self.same[kind]
            return graph.load("table", self.column[kind], "link")

        def load(space: str, index: int, base: str) -> Scalar:
            value = graph.load(space, index, base)
            return factor() * value if space in self.arrays and base == "v" else value

        def store(old: Store, value: Scalar) -> Store:
            if old.space not in self.arrays or old.base != "v":
                return replace(old, value=value)
            return replace(old, value=factor() * value, add=old.add or self.shared)

        return _copied(body, load, store, graph)
