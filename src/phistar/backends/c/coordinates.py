# SPDX-License-Identifier: BSD-3-Clause
"""Scalar programs from one joint vector entry per body's joint to the robot's own coordinates.

Users order joints as they like, and a joint that mimics another one shares its entry: velocities
are spread from it, scaled, and forces are summed into it. Axes of matrices over the joints change
in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from math import prod

from phistar.errors import LoweringError
from phistar.model.joint_map import JointMap, joint_map
from phistar.model.model import Model
from phistar.scalar.graph import Graph, Scalar, Value, operands
from phistar.scalar.program import (
    BasicBlock,
    LinkSweep,
    Looped,
    MatrixProduct,
    RowLoop,
    ScalarProgram,
    Signature,
    Store,
    Unrolled,
)

Axes = tuple[int | None, ...]
"""Sizes of the axes of an array; None is an axis over the coordinates of the joints."""
JOINT_VECTOR: Axes = (None,)
JOINT_MATRIX: Axes = (None, None)


def in_coordinates(
    program: ScalarProgram, model: Model, arrays: Mapping[str, Axes]
) -> ScalarProgram:
    """A program on the robot's coordinates.

    Args:
        program: A program whose axes over joints hold the joints of all bodies in body order.
        model: The robot.
        arrays: Axes of the inputs and outputs that have one over the joints; matrices stand in
            their arrays row by row.

    Returns:
        The same program with axes (nv,) over the joints.

    Raises:
        LoweringError: It has loops over columns, or over rows where joints share coordinates.
    """
    joints = joint_map(model)
    if joints.is_identity:
        return program
    if isinstance(program, Unrolled):
        return _UnrolledChange(program, joints, arrays).changed()
    if program.column_loop is not None:
        raise LoweringError("loops over the columns of a matrix keep the joints in body order")
    return _LoopedChange(program, model, set(arrays)).changed()


def array_shape(axes: Axes, joint_size: int) -> tuple[int, ...]:
    """Sizes of all axes, where those over the joints have ``joint_size`` entries."""
    return tuple(joint_size if size is None else size for size in axes)


def _in_coordinates_signature(
    signature: Signature, nv: int, arrays: Mapping[str, Axes]
) -> Signature:
    def sizes(of: Mapping[str, int]) -> dict[str, int]:
        return {
            name: prod(array_shape(arrays[name], nv)) if name in arrays else size
            for name, size in of.items()
        }

    return replace(signature, inputs=sizes(signature.inputs), outputs=sizes(signature.outputs))


def _copy_block(
    body: BasicBlock,
    load: Callable[..., Scalar],
    store: Callable[[Store, Scalar], Store],
    graph: Graph,
) -> BasicBlock:
    """A block whose loads and stores are replaced; its operations stay as they are."""
    known: dict[int, Scalar] = {}
    for number in body.live_nodes:
        node = body.graph.nodes[number]
        if node[0] == "load":
            known[number] = load(*node[1])
        elif node[0] == "const":
            known[number] = graph.as_value(node[1])
        else:
            known[number] = graph.intern(
                node[0], *(graph.as_value(known[i]).id for i in operands(node))
            )
    stores = [
        store(s, known[s.value.id] if isinstance(s.value, Value) else s.value) for s in body.stores
    ]
    return BasicBlock(graph, stores)


class _UnrolledChange:
    """Every entry has a place and a factor."""

    def __init__(self, program: Unrolled, joints: JointMap, arrays: Mapping[str, Axes]) -> None:
        shared = not joints.one_to_one or bool((joints.scales != 1.0).any())
        if shared and (program.products or program.row_loops):
            raise LoweringError("rows of matrices have no form in which joints share coordinates")
        self.program = program
        self.joints = joints
        self.arrays = arrays
        self.places: list[int] = joints.v_indices.tolist()
        self.scales: list[float] = joints.scales.tolist()
        self.written: set[tuple[str, int]] = set()

    def changed(self) -> Unrolled:
        program = self.program
        graph = Graph()

        def load(name: str, entry: int, _: str) -> Scalar:
            place, factor = self._place(name, entry)
            return factor * graph.load(name, place)

        block = _copy_block(program.block, load, self._store, graph)
        signature = _in_coordinates_signature(program.signature, self.joints.size, self.arrays)
        products = tuple(map(self._product, program.products))
        rows = tuple(one for loop in program.row_loops for one in self._single_rows(loop))
        return Unrolled(signature, block, products, program.slots, rows)

    def _place(self, name: str, entry: int) -> tuple[int, float]:
        """Where an entry of an array goes, and what it is multiplied by."""
        if name not in self.arrays:
            return entry, 1.0
        place, factor, stride = 0, 1.0, 1
        for size in reversed(self.arrays[name]):
            entry, i = divmod(entry, len(self.places) if size is None else size)
            if size is None:
                factor *= self.scales[i]
                i = self.places[i]
            place += i * stride
            stride *= self.joints.size if size is None else size
        return place, factor

    def _store(self, old: Store, value: Scalar) -> Store:
        if old.space == "work":
            return replace(old, index=self._left_slot(old.index), value=value)
        place, factor = self._place(old.space, old.index)
        again = (old.space, place) in self.written
        self.written.add((old.space, place))
        return replace(old, index=place, value=factor * value, add=old.add or again)

    def _left_slot(self, slot: int) -> int:
        """Rows of the left matrices of products move, so that those of the products do."""
        for product in (each for each in self.program.products if not each.bands):
            row, k = divmod(slot - product.left_slot, product.rows)
            if 0 <= row < product.rows:
                return product.left_slot + self.places[row] * product.rows + k
        return slot

    def _product(self, product: MatrixProduct) -> MatrixProduct:
        columns = dict(zip(self.places, product.right_slots, strict=True))
        size = len(columns)

        def moved(entry: int) -> int:
            return self.places[entry // size] * size + self.places[entry % size]

        return replace(
            product,
            right_slots=[columns[j] for j in range(size)],
            known={moved(entry): slot for entry, slot in product.known.items()},
            bands=[replace(x, rows=[self.places[i] for i in x.rows]) for x in product.bands],
            mirrored={moved(entry): moved(other) for entry, other in product.mirrored.items()},
        )

    def _single_rows(self, loop: RowLoop) -> list[RowLoop]:
        """Rows that follow one another in body order may stand anywhere: each gets its own line."""
        return [self._single_row(loop, row) for row in loop.rows]

    def _single_row(self, loop: RowLoop, row: int) -> RowLoop:
        graph = Graph()

        def load(space: str, slot: int, base: str = "") -> Scalar:
            return graph.load(space, loop.slot(slot, row) if base else slot)

        def store(old: Store, value: Scalar) -> Store:
            if old.space == "work":
                return replace(old, index=loop.slot(old.index, row), value=value)
            return replace(old, index=self.places[old.index], value=value)

        place = self.places[row]
        block = _copy_block(loop.block, load, store, graph)
        return RowLoop(range(place, place + 1), loop.row_width, loop.stride, block)


class _LoopedChange:
    """Links know where their entries are; factors that differ in a class stand in the table."""

    def __init__(self, program: Looped, model: Model, arrays: Set[str]) -> None:
        self.program = program
        self.model = model
        self.arrays = arrays
        self.shared = sum(body.joint_kind.nv for body in model.bodies) > model.nv
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

    def changed(self) -> Looped:
        program = self.program
        loops = [
            LinkSweep(
                loop.direction, {kind: self._body(b, kind) for kind, b in loop.blocks.items()}
            )
            for loop in program.sweeps
        ]
        starts = [body.v_slice.start for body in self.model.bodies]
        links = replace(program.links, v=starts, table=self.table)
        vectors = dict.fromkeys(self.arrays, JOINT_VECTOR)
        signature = _in_coordinates_signature(program.signature, self.model.nv, vectors)
        return replace(program, signature=signature, links=links, sweeps=loops)

    def _body(self, body: BasicBlock, kind: int) -> BasicBlock:
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

        return _copy_block(body, load, store, graph)
