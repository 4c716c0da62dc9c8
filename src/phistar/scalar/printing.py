# SPDX-License-Identifier: BSD-3-Clause
"""A scalar program as text: one line a node and a store, in the order in which they run.

n4 = q[2] + 0.25        an input's entry; in a loop v{k}[1] is one of the link's own part
n7 = keep[3]            a number kept at this link, keep(p)[3] at its parent, keep{i}[3] at a row
hand[3], hand(p)[3]     the same for what links hand to each other within one loop
table[0]                a constant of this link
tau[1] += n9            what is left behind
matrix{k, j}[1] = n9    row 1 of link k in column j; matrix{j, k}[1] its mirror image
"""

from __future__ import annotations

from collections.abc import Iterator

from phistar.scalar.graph import Graph, Scalar, Value
from phistar.scalar.program import (
    Body,
    Columns,
    Rolled,
    ScalarProgram,
    Signature,
    Straight,
    arithmetic,
)
from phistar.scalar.relations import AT

_FORMS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "neg": "-{}",
    "sqrt": "sqrt({})",
    "sin": "sin({})",
    "cos": "cos({})",
}


def to_text(program: ScalarProgram) -> str:
    """The listing of a program."""
    bill = program.count()
    listed = ", ".join(f"{op} {bill[op]}" for op in sorted(bill) if bill[op])
    head = [_signature(program.signature), f"{arithmetic(bill)} operations ({listed})", ""]
    lines = _loops(program) if isinstance(program, Rolled) else _straight(program)
    return "\n".join([*head, *lines])


def _straight(program: Straight) -> Iterator[str]:
    yield from _body(program.body, "")
    for product in program.products:
        filled = sum(map(len, product.right))
        shape = f"{product.rows} x {product.rows} at slot {product.left}"
        right = f"{len(product.right)} columns with {filled} numbers"
        yield f"{product.output} = -({shape}) ({right})"
    for repeat in program.repeats:
        yield f"for rows {repeat.rows.start} to {repeat.rows.stop - 1}:"
        yield from _body(repeat.body, "  ")


def _signature(signature: Signature) -> str:
    def side(sizes: object) -> str:
        return ", ".join(f"{name}[{size}]" for name, size in dict(sizes).items())  # type: ignore[call-overload]

    return f"{side(signature.inputs)} -> {side(signature.outputs)}"


def _loops(program: Rolled) -> Iterator[str]:
    links = program.links
    yield f"{len(links)} links, {program.slots} numbers kept at each, {program.hands} handed on"
    for c in dict.fromkeys(links.class_of):
        members = [k for k, other in enumerate(links.class_of) if other == c]
        row = len(links.table[members[0]])
        yield f"class {c}: links {', '.join(map(str, members))}; {row} constants each"
    for number, loop in enumerate(program.loops):
        yield f"loop {number}, {loop.direction.value}:"
        for c, body in loop.bodies.items():
            yield f"  class {c}:"
            yield from _body(body, "    ")
    if program.columns is not None:
        yield from _columns(program.columns)


def _columns(columns: Columns) -> Iterator[str]:
    begin = ", from zeros" if columns.fill else ""
    yield f"for each of {len(columns.link)} columns{begin}:"
    for number, walk in enumerate(columns.walks):
        way = "to the ancestors" if walk.path else walk.direction.value
        yield f"  walk {number}, {way}:"
        for (c, relation, entry), body in walk.bodies.items():
            place = f"at it, column {entry} of it" if relation == AT else relation
            yield f"    class {c}, {place}:"
            yield from _body(body, "      ", matrix=True)


def _body(body: Body, margin: str, matrix: bool = False) -> Iterator[str]:
    graph = body.graph
    live = body.live
    names = {number: f"n{number}" for number in live}
    for number in live:
        node = graph.nodes[number]
        if node[0] in ("const", "load"):
            names[number] = _leaf(graph, number)
    for number in live:
        op, *operands = graph.nodes[number]
        if op not in ("const", "load"):
            formula = _FORMS[op].format(*(names[i] for i in operands))
            yield f"{margin}{names[number]} = {formula}"
    for store in body.stores:
        place = _place(store.space, store.index, store.base)
        if matrix and store.space not in _KEPT:
            pair = "j, k" if store.turned else "k, j"
            place = f"{store.space}{{{pair}}}[{store.index}]"
        sign = ("(+)=" if store.begins else "+=") if store.add else "="
        yield f"{margin}{place} {sign} {_value(store.value, names)}"


def _leaf(graph: Graph, number: int) -> str:
    op, what = graph.nodes[number]
    if op == "const":
        return f"({what!r})" if what < 0 else repr(what)
    space, index, base = (*what, "")[:3]
    return _place(space, index, base)


_KEPT = {"work": "keep", "hand": "hand"}


def _place(space: str, index: object, base: str) -> str:
    if space == "table":
        return f"table[{index}]"
    if space in _KEPT:
        owner = {"parent": "(p)", "row": "{i}"}.get(base, "")
        return f"{_KEPT[space]}{owner}[{index}]"
    if base == "row":
        return f"{space}{{i}}[{index}]"
    return f"{space}{{k}}[{index}]" if base else f"{space}[{index}]"


def _value(x: Scalar, names: dict[int, str]) -> str:
    return names[x.id] if isinstance(x, Value) else repr(x)
