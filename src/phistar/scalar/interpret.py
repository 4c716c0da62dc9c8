# SPDX-License-Identifier: BSD-3-Clause
"""Runs scalar programs in NumPy, one array operation a scalar operation: the oracle of level 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.scalar.graph import Value, operands
from phistar.scalar.program import Body, Rolled, ScalarProgram, Straight, first_met, start_of
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
        _run_body(program.body, lambda name, entry: inputs[name][:, entry], _writer(outputs))
        return outputs
    _run_loops(
        program, inputs, outputs, np.zeros((len(program.links), program.slots, len(some)), dtype)
    )
    return outputs


def _writer(outputs: dict[str, Array]) -> Callable[..., None]:
    def write(space: str, index: int, base: str, value: Any, add: bool) -> None:
        outputs[space][:, index] = value + (outputs[space][:, index] if add else 0)

    return write


def _run_loops(
    program: Rolled, inputs: Mapping[str, Array], outputs: dict[str, Array], work: Array
) -> None:
    links = program.links
    for loop in program.loops:
        order = range(len(links))
        begins = first_met(links.parent, loop.direction)
        for k in order if loop.direction is Direction.OUTWARD else reversed(order):
            body = loop.bodies.get(links.class_of[k])
            if body is not None:
                _run_link(program, body, k, begins[k], inputs, outputs, work)


def _run_link(
    program: Rolled,
    body: Body,
    k: int,
    begins: bool,
    inputs: Mapping[str, Array],
    outputs: dict[str, Array],
    work: Array,
) -> None:
    links = program.links
    at = {"link": k, "parent": links.parent[k]}

    def read(space: str, index: int, base: str) -> Any:
        if space == "table":
            return links.table[k][index]
        if space == "work":
            return work[at[base], index]
        return inputs[space][:, start_of(links, base, k) + index]

    def write(space: str, index: int, base: str, value: Any, add: bool) -> None:
        row = work[at[base], index] if space == "work" else None
        if row is None:
            row = outputs[space][:, start_of(links, base, k) + index]
        row[...] = row + value if add else value

    _run_body(body, read, write, begins)


def _run_body(
    body: Body, read: Callable[..., Any], write: Callable[..., None], begins: bool = False
) -> None:
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
        add = store.add and not (begins and store.begins)
        write(store.space, store.index, store.base, value, add)
