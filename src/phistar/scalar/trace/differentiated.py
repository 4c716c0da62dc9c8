# SPDX-License-Identifier: BSD-3-Clause
"""Unrolled programs differentiated, operation by operation: their results and all derivatives.

For quantities that have no derivative of their own in the catalogue. Derivatives with respect to a
configuration are along tangent steps, as everywhere (``derivatives``): entry k says what changes as
the robot moves to ``integrate(q, ε e_k)``. What a number does not depend on costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from phistar.errors import LoweringError
from phistar.model.model import Model
from phistar.scalar.graph import Graph, Scalar, Value, cos, operands, select, sin
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.program import BasicBlock, Store, Unrolled
from phistar.scalar.robot.joint_transforms import GRAPH_OPS
from phistar.scalar.trace.inline import FORMULAS

Tangent = dict[int, Scalar]
"""How a number changes along each direction, by number; along those left out it does not."""


def derivative_name(result: str, argument: str) -> str:
    """What the derivative of a result with respect to an argument is called."""
    return f"{result}_{argument}"


def differentiated(model: Model, program: Unrolled) -> Unrolled:
    """A program's outputs, and the derivatives of each with respect to each input.

    Args:
        model: The robot.
        program: A line without loops after it.

    Returns:
        A program with outputs ``result`` and ``result_argument``: rows of numbers, those of one
        entry of the result one after the other.

    Raises:
        LoweringError: It has loops or products of matrices after it.
    """
    if program.row_loops or program.products:
        raise LoweringError("a line with loops after it has no derivative line")
    signature = program.signature
    graph = Graph()
    numbers: dict[str, Vector] = {}
    tangents: dict[str, list[Tangent]] = {}
    starts: dict[str, tuple[int, int]] = {}
    first = 0
    for name, size in signature.inputs.items():
        numbers[name] = [graph.load(name, i) for i in range(size)]
        if name in signature.configurations:
            tangents[name] = _steps(model, numbers[name], first)
            width = model.nv
        else:
            tangents[name] = [{first + i: 1.0} for i in range(size)]
            width = size
        starts[name] = (first, width)
        first += width
    values, changes = _run(program, numbers, tangents)
    body = BasicBlock(graph)
    outputs: dict[str, int] = {}
    for name, row in values.items():
        outputs[name] = len(row)
        body.stores += [Store(name, i, "", x) for i, x in enumerate(row)]
    for name, row in values.items():
        for argument, (start, width) in starts.items():
            own = derivative_name(name, argument)
            if own in outputs:
                # Of a derivative: what it differentiates is among its own outputs.
                continue
            outputs[own] = len(row) * width
            body.stores += [
                Store(own, i * width + k, "", changes[name][i].get(start + k, 0.0))
                for i in range(len(row))
                for k in range(width)
            ]
    return Unrolled(replace(signature, outputs=outputs), body, short_lived=program.short_lived)


def _steps(model: Model, q: Vector, first: int) -> list[Tangent]:
    """How the numbers of a configuration change along tangent steps."""
    found: list[Tangent] = [{} for _ in q]
    for joint in (model.joints[name] for name in model.joint_names):
        kind, own = joint.joint_kind, q[joint.q_slice]
        for k in range(kind.nv):
            unit: Vector = [float(i == k) for i in range(kind.nv)]
            for i, rate in enumerate(kind.coordinate_rates(own, unit, GRAPH_OPS)):
                if isinstance(rate, Value) or rate != 0.0:
                    found[joint.q_slice.start + i][first + joint.v_slice.start + k] = rate
    return found


def _run(
    program: Unrolled, numbers: Mapping[str, Vector], tangents: Mapping[str, Sequence[Tangent]]
) -> tuple[dict[str, Vector], dict[str, list[Tangent]]]:
    """All outputs and their changes."""
    nodes = program.block.graph.nodes
    known: dict[int, Scalar] = {}
    moves: dict[int, Tangent] = {}
    for number in program.block.live_nodes:
        node = nodes[number]
        if node[0] == "const":
            known[number], moves[number] = node[1], {}
        elif node[0] == "load":
            name, entry, _ = node[1]
            known[number], moves[number] = numbers[name][entry], tangents[name][entry]
        else:
            parts = operands(node)
            given = [known[i] for i in parts]
            known[number] = FORMULAS[node[0]](*given)
            moves[number] = _CHANGES[node[0]](known[number], given, [moves[i] for i in parts])
    sizes = program.signature.outputs
    values: dict[str, Vector] = {name: [0.0] * size for name, size in sizes.items()}
    changes: dict[str, list[Tangent]] = {
        name: [{} for _ in range(size)] for name, size in sizes.items()
    }
    for store in program.block.stores:
        stored = store.value
        if isinstance(stored, Value):
            value, move = known[stored.id], moves[stored.id]
        else:
            value, move = stored, {}
        row, own = values[store.space], changes[store.space]
        if store.add:
            value, move = row[store.index] + value, _sum(own[store.index], move)
        row[store.index], own[store.index] = value, move
    return values, changes


# -- rules: the result, its operands and their changes give its change


def _sum(a: Tangent, b: Tangent) -> Tangent:
    if not a or not b:
        return a or b
    return {**a, **{k: a[k] + x if k in a else x for k, x in b.items()}}


def _scaled(factor: Scalar, a: Tangent) -> Tangent:
    return {k: factor * x for k, x in a.items()}


def _minus(a: Tangent) -> Tangent:
    return {k: -x for k, x in a.items()}


def _quotient(result: Scalar, given: Sequence[Scalar], moved: Sequence[Tangent]) -> Tangent:
    above = _sum(moved[0], _scaled(-result, moved[1]))
    return {k: x / given[1] for k, x in above.items()}


def _selected(result: Scalar, given: Sequence[Scalar], moved: Sequence[Tangent]) -> Tangent:
    a, b = given[:2]
    one, other = moved[2:]
    keys = dict.fromkeys((*one, *other))
    return {k: select(a, b, one.get(k, 0.0), other.get(k, 0.0)) for k in keys}


_Rule = Callable[[Scalar, Sequence[Scalar], Sequence[Tangent]], Tangent]
_CHANGES: dict[str, _Rule] = {
    "add": lambda y, x, d: _sum(d[0], d[1]),
    "sub": lambda y, x, d: _sum(d[0], _minus(d[1])),
    "mul": lambda y, x, d: _sum(_scaled(x[1], d[0]), _scaled(x[0], d[1])),
    "div": _quotient,
    "neg": lambda y, x, d: _minus(d[0]),
    "sqrt": lambda y, x, d: {k: 0.5 * each / y for k, each in d[0].items()},
    "sin": lambda y, x, d: _scaled(cos(x[0]), d[0]),
    "cos": lambda y, x, d: _scaled(-sin(x[0]), d[0]),
    "log": lambda y, x, d: {k: each / x[0] for k, each in d[0].items()},
    "guard": lambda y, x, d: d[0],
    "select": _selected,
}
"""What each operation adds. A guard lets its number through; where it does not, the result itself
is not a number, and with it the sample."""
