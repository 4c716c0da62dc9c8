# SPDX-License-Identifier: BSD-3-Clause
"""Runs scalar programs in NumPy, one array operation a scalar operation: the oracle of level 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from phistar.arrays import Array
from phistar.scalar.graph import FORWARD, TABLE, WORK, Place, Value
from phistar.scalar.program import (
    BasicBlock,
    LinkTable,
    Looped,
    MatrixProduct,
    RowLoop,
    ScalarProgram,
    Store,
    Unrolled,
    entry_start,
    first_visited_siblings,
)
from phistar.scalar.robot.link_relations import AncestorRelations
from phistar.sweeps.ir import Direction

Number = Array | float
_Read = Callable[[Place], Number]
_Write = Callable[[Store, Number], None]

_OPERATIONS: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "guard": lambda x, least: np.where(np.real(x) > np.real(least), x, np.nan),
    "select": lambda a, b, x, y: np.asarray(np.where(np.real(a) > np.real(b), x, y)),
    "neg": np.negative,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "log": np.log,
}


def run(program: ScalarProgram, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs (batch, size) of a program for inputs (batch, size), of any inexact dtype."""
    some = next(iter(inputs.values()))
    dtype = np.result_type(*inputs.values())
    outputs = {
        name: np.zeros((len(some), size), dtype) for name, size in program.signature.outputs.items()
    }
    if isinstance(program, Unrolled):
        kept = {WORK: np.zeros((len(some), program.slots), dtype)}
        write = _writer({**outputs, **kept})
        block = program.block
        _run_block(
            block, block.live_nodes, lambda place: inputs[place.space][:, place.entry], write
        )
        for product in program.products:
            outputs[product.output][...] = _matrix_product(product, kept[WORK])
        for repeat in program.row_loops:
            for row in repeat.rows:
                _run_row(repeat, row, outputs, kept[WORK])
        return outputs
    n = len(program.links)
    kept = {
        WORK: np.zeros((n, program.slots, len(some)), dtype),
        FORWARD: np.zeros((n, program.forward_slots, len(some)), dtype),
    }
    for name, start in program.ground_start.items():
        outputs[name][...] = start
    _run_looped(program, inputs, outputs, kept)
    return outputs


def _matrix_product(product: MatrixProduct, work: Array) -> Array:
    """Minus the left matrix times the right one, rows one after the other."""
    rows, inner = product.rows, product.inner
    left = np.zeros((len(work), rows, inner), work.dtype)
    for band in product.all_bands:
        shape = len(band.rows), len(band.inner)
        kept = work[:, band.left_slot : band.left_slot + shape[0] * shape[1]]
        left[:, np.array(band.rows)[:, None], np.array(band.inner)] = kept.reshape(-1, *shape)
    right = np.zeros((len(work), inner, len(product.right_slots)), work.dtype)
    for j, column in enumerate(product.right_slots):
        for row, slot in column.items():
            right[:, row, j] = work[:, slot]
    found = np.asarray(-(left @ right)).reshape(len(work), -1)
    for entry, slot in product.known.items():
        found[:, entry] = work[:, slot]
    for entry, other in product.mirrored.items():
        found[:, entry] = found[:, other]
    return found


def _run_row(repeat: RowLoop, row: int, outputs: dict[str, Array], work: Array) -> None:
    """A row."""

    def read(place: Place) -> Array:
        return work[:, repeat.slot(place.entry, row) if place.base else place.entry]

    def write(store: Store, value: Number) -> None:
        if store.space == WORK:
            work[:, repeat.slot(store.index, row)] = value
        else:
            outputs[store.space][:, row * repeat.row_width + store.index] = value

    _run_block(repeat.block, repeat.block.live_nodes, read, write)


def _writer(outputs: dict[str, Array]) -> _Write:
    def write(store: Store, value: Number) -> None:
        row = outputs[store.space][:, store.index]
        row[...] = row + value if store.add else value

    return write


def _run_looped(
    program: Looped,
    inputs: Mapping[str, Array],
    outputs: dict[str, Array],
    kept: Mapping[str, Array],
) -> None:
    links = program.links
    machine = _LoopMachine(links, inputs, outputs, kept)
    for loop in program.sweeps:
        order = range(len(links))
        for k in order if loop.direction is Direction.OUTWARD else reversed(order):
            body = loop.blocks.get(links.class_of[k])
            if body is not None:
                machine.run(body, k, loop.direction)
    columns = program.column_loop
    if columns is None:
        return
    kinship = AncestorRelations(links.parent)
    for number, (c, entry) in enumerate(zip(columns.link, columns.entry, strict=True)):
        for walk in columns.sweeps:
            for k in walk.order(c, links):
                variant = (links.class_of[k], kinship(k, c), entry if k == c else 0)
                if variant in walk.blocks:
                    place = partial(columns.output_entry, column=number)
                    machine.run(walk.blocks[variant], k, walk.direction, place)


class _LoopMachine:
    """Loops on arrays."""

    def __init__(
        self,
        links: LinkTable,
        inputs: Mapping[str, Array],
        outputs: dict[str, Array],
        kept: Mapping[str, Array],
    ) -> None:
        self.links = links
        self.inputs = inputs
        self.outputs = outputs
        self.kept = kept
        self.first = {way: first_visited_siblings(links.parent, way) for way in Direction}
        self.hands = links.forward_places
        # By identity: blocks are many visits of one object, and live as long as their program.
        self.live: dict[int, list[int]] = {}

    def run(
        self,
        body: BasicBlock,
        k: int,
        way: Direction,
        matrix_entry: Callable[[Store, int], int] | None = None,
    ) -> None:
        """A block at a link; in a walk for a column, with the entry of a store and row."""
        links, hands = self.links, self.hands[way]
        at = {"link": k, "parent": links.parent[k]}

        def kept(space: str, index: int, base: str) -> Array:
            seat = at[base] if space == WORK else hands[at[base]]
            found: Array = self.kept[space][seat, index]
            return found

        def read(place: Place) -> Number:
            if place.space == TABLE:
                return links.table[k][place.entry]
            if place.space in self.kept:
                return kept(*place)
            return self.inputs[place.space][:, entry_start(links, place.base, k) + place.entry]

        def write(store: Store, value: Number) -> None:
            if store.space in self.kept:
                row = kept(store.space, store.index, store.base)
            else:
                entry = entry_start(links, store.base, k) + store.index
                entry = entry if matrix_entry is None else matrix_entry(store, entry)
                row = self.outputs[store.space][:, entry]
            adds = store.add and not (store.first_child_stores and self.first[way][k])
            row[...] = row + value if adds else value

        if id(body) not in self.live:
            self.live[id(body)] = body.live_nodes
        _run_block(body, self.live[id(body)], read, write)


def _run_block(body: BasicBlock, live: Sequence[int], read: _Read, write: _Write) -> None:
    nodes = body.graph.nodes
    values: dict[int, Number] = {}
    for number in live:
        op, *given = nodes[number]
        if op == "const":
            values[number] = given[0]
        elif op == "load":
            values[number] = np.array(read(given[0]))
        else:
            values[number] = _OPERATIONS[op](*[values[i] for i in given])
    for store in body.stores:
        value = values[store.value.id] if isinstance(store.value, Value) else store.value
        write(store, value)
