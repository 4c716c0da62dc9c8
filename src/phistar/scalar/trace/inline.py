# SPDX-License-Identifier: BSD-3-Clause
"""Unrolled programs as parts of others: a program's operations again in another graph.

Constants that are given for inputs fold, and what both lines compute is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from phistar.errors import LoweringError
from phistar.scalar.graph import Scalar, Value, cos, guard, log, operands, select, sin, sqrt
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.program import Unrolled

FORMULAS: dict[str, Callable[..., Scalar]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "sqrt": sqrt,
    "sin": sin,
    "cos": cos,
    "log": log,
    "guard": guard,
    "select": select,
}
"""What makes a node of each operation."""


def inline(program: Unrolled, inputs: Mapping[str, Sequence[Scalar]]) -> dict[str, Vector]:
    """The outputs of an unrolled program on scalars of another graph.

    Args:
        program: The unrolled program.
        inputs: The entries of everything that it reads.

    Raises:
        LoweringError: It has loops or products of matrices.
    """
    if program.row_loops or program.products:
        raise LoweringError("a line with loops after it cannot be part of another line")
    graph = program.block.graph
    known: dict[int, Scalar] = {}
    for number in program.block.live_nodes:
        node = graph.nodes[number]
        if node[0] == "const":
            known[number] = node[1]
        elif node[0] == "load":
            name, entry, _ = node[1]
            known[number] = inputs[name][entry]
        else:
            known[number] = FORMULAS[node[0]](*(known[i] for i in operands(node)))
    results: dict[str, Vector] = {n: [0.0] * size for n, size in program.signature.outputs.items()}
    for store in program.block.stores:
        value = known[store.value.id] if isinstance(store.value, Value) else store.value
        row = results[store.space]
        row[store.index] = row[store.index] + value if store.add else value
    return results
