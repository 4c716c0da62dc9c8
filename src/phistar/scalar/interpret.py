# SPDX-License-Identifier: BSD-3-Clause
"""Runs scalar programs in NumPy, one array operation a scalar operation: the oracle of level 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.scalar.graph import Value, operands
from phistar.scalar.program import (
    Body,
    Links,
    Product,
    Repeat,
    Rolled,
    ScalarProgram,
    Store,
    Straight,
    first_met,
    hand_places,
    start_of,
)
from phistar.scalar.relations import Kinship
from phistar.sweeps.ir import Direction

Array = NDArray[Any]

_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
}


def run(program: ScalarProgram, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs (batch, size) of a program for inputs (batch, size), of any inexact dtype."""
    some = next(iter(inputs.values()))
    dtype = np.result_type(*inputs.values())
    outputs = {
        name: np.zeros((len(some), size), dtype) for name, size in program.signature.outputs.items()
    }
    if isinstance(program, Straight):
        kept = {"work": np.zeros((len(some), program.slots), dtype)}
        write = _writer({**outputs, **kept})
        _run_body(program.body, lambda name, entry: inputs[name][:, entry], write)
        for product in program.products:
            outputs[product.output][...] = _product(product, kept["work"])
        for repeat in program.repeats:
            for row in repeat.rows:
                _repeat(repeat, row, outputs, kept["work"])
        return outputs
    n = len(program.links)
    kept = {
        "work": np.zeros((n, program.slots, len(some)), dtype),
        "hand": np.zeros((n, program.hands, len(some)), dtype),
    }
    _run_loops(program, inputs, outputs, kept)
    return outputs


def _product(product: Product, work: Array) -> Array:
    """Minus the left matrix times the right one, rows one after the other."""
    size = product.rows**2
    left = work[:, product.left : product.left + size].reshape(-1, product.rows, product.rows)
    right = np.zeros((len(work), product.rows, len(product.right)), work.dtype)
    for j, column in enumerate(product.right):
        for row, slot in column.items():
            right[:, row, j] = work[:, slot]
    return np.asarray(-(left @ right)).reshape(len(work), -1)


def _repeat(repeat: Repeat, row: int, outputs: dict[str, Array], work: Array) -> None:
    """A row."""

    def read(space: str, slot: int, base: str = "") -> Array:
        return work[:, repeat.slot(slot, row) if base else slot]

    def write(store: Store, value: Any) -> None:
        if store.space == "work":
            work[:, repeat.slot(store.index, row)] = value
        else:
            outputs[store.space][:, row * repeat.across + store.index] = value

    _run_body(repeat.body, read, write)


def _writer(outputs: dict[str, Array]) -> Callable[..., None]:
    def write(store: Store, value: Any) -> None:
        row = outputs[store.space][:, store.index]
        row[...] = row + value if store.add else value

    return write


def _run_loops(
    program: Rolled,
    inputs: Mapping[str, Array],
    outputs: dict[str, Array],
    kept: Mapping[str, Array],
) -> None:
    links = program.links
    machine = _Links(links, inputs, outputs, kept)
    for loop in program.loops:
        order = range(len(links))
        for k in order if loop.direction is Direction.OUTWARD else reversed(order):
            body = loop.bodies.get(links.class_of[k])
            if body is not None:
                machine.run(body, k, loop.direction)
    columns = program.columns
    if columns is None:
        return
    kinship = Kinship(links.parent)
    for number, (c, entry) in enumerate(zip(columns.link, columns.entry, strict=True)):
        for walk in columns.walks:
            for k in walk.order(c, links):
                variant = (links.class_of[k], kinship(k, c), entry if k == c else 0)
                if variant in walk.bodies:
                    place = partial(columns.place, column=number)
                    machine.run(walk.bodies[variant], k, walk.direction, place)


class _Links:
    """Loops on arrays."""

    def __init__(
        self,
        links: Links,
        inputs: Mapping[str, Array],
        outputs: dict[str, Array],
        kept: Mapping[str, Array],
    ) -> None:
        self.links = links
        self.inputs = inputs
        self.outputs = outputs
        self.kept = kept
        self.first = {way: first_met(links.parent, way) for way in Direction}
        self.hands = {way: hand_places(links.parent, way) for way in Direction}

    def run(
        self,
        body: Body,
        k: int,
        way: Direction,
        place: Callable[[Store, int], int] | None = None,
    ) -> None:
        """A body at a link; in a walk for a column, ``place`` is the entry of a store and row."""
        links, hands = self.links, self.hands[way]
        at = {"link": k, "parent": links.parent[k]}

        def kept(space: str, index: int, base: str) -> Any:
            seat = at[base] if space == "work" else hands[at[base]]
            return self.kept[space][seat, index]

        def read(space: str, index: int, base: str) -> Any:
            if space == "table":
                return links.table[k][index]
            if space in self.kept:
                return kept(space, index, base)
            return self.inputs[space][:, start_of(links, base, k) + index]

        def write(store: Store, value: Any) -> None:
            if store.space in self.kept:
                row = kept(store.space, store.index, store.base)
            else:
                entry = start_of(links, store.base, k) + store.index
                entry = entry if place is None else place(store, entry)
                row = self.outputs[store.space][:, entry]
            adds = store.add and not (store.begins and self.first[way][k])
            row[...] = row + value if adds else value

        _run_body(body, read, write)


def _run_body(body: Body, read: Callable[..., Any], write: Callable[..., None]) -> None:
    graph = body.graph
    values: dict[int, Any] = {}
    for number in body.live:
        node = graph.nodes[number]
        if node[0] == "const":
            values[number] = node[1]
        elif node[0] == "load":
            values[number] = np.array(read(*node[1]))
        else:
            values[number] = _OPERATIONS[node[0]](*(values[i] for i in operands(node)))
    for store in body.stores:
        value = values[store.value.id] if isinstance(store.value, Value) else store.value
        write(store, value)
