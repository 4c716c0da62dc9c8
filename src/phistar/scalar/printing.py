# SPDX-License-Identifier: BSD-3-Clause
"""A scalar program as text: one line a node and a store, in the order in which they run.

n4 = q[2] + 0.25        an input's entry; in a loop v{k}[1] is one of the link's own part
n7 = keep[3]            a number kept at this link, keep(p)[3] at its parent, keep{i}[3] at a row
forward[3], forward(p)[3]  the same for what links forward to each other within one loop
table[0]                a constant of this link
tau[1] += n9            what is left behind
matrix{k, j}[1] = n9    row 1 of link k in column j; matrix{j, k}[1] its mirror image
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phistar.scalar.graph import FORWARD, TABLE, WORK, Graph, Scalar, Value
from phistar.scalar.program import (
    BasicBlock,
    ColumnLoop,
    Looped,
    ScalarProgram,
    Signature,
    Unrolled,
    consecutive_runs,
    count_arithmetic,
)
from phistar.scalar.robot.link_relations import AT

_OP_TEXT = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "guard": "{} if > {}",
    "select": "{2} if {0} > {1} else {3}",
    "neg": "-{}",
    "sqrt": "sqrt({})",
    "sin": "sin({})",
    "cos": "cos({})",
    "log": "log({})",
}


def to_text(program: ScalarProgram) -> str:
    """The listing of a program."""
    bill = program.count()
    listed = ", ".join(f"{op} {bill[op]}" for op in sorted(bill) if bill[op])
    head = [_signature(program.signature), f"{count_arithmetic(bill)} operations ({listed})", ""]
    lines = _looped_lines(program) if isinstance(program, Looped) else _unrolled_lines(program)
    return "\n".join([*head, *lines])


def _unrolled_lines(program: Unrolled) -> Iterator[str]:
    yield from _block_lines(program.block, "")
    for product in program.products:
        filled = sum(map(len, product.right_slots))
        kept = "in bands" if product.bands else f"at slot {product.left_slot}"
        shape = f"{product.rows} x {product.inner} {kept}"
        right_slots = f"{len(product.right_slots)} columns with {filled} numbers"
        yield f"{product.output} = -({shape}) ({right_slots})"
        for band in product.bands:
            rows, inner = _few(band.rows), _few(band.inner)
            yield f"    rows {rows} at slot {band.left_slot}, by columns {inner}"
        for entry, slot in product.known.items():
            yield f"{product.output}[{entry}] = slot {slot}"
        if product.mirrored:
            yield f"    {len(product.mirrored)} entries are those across the diagonal"
    for repeat in program.row_loops:
        what = "rounds" if repeat.in_order else "rows"
        yield f"for {what} {repeat.rows.start} to {repeat.rows.stop - 1}:"
        yield from _block_lines(repeat.block, "  ")


def _few(numbers: Sequence[int]) -> str:
    """Numbers in order, as runs."""
    runs = consecutive_runs(numbers)
    return ", ".join(f"{a}" if b == a + 1 else f"{a} to {b - 1}" for a, b in runs)


def _signature(signature: Signature) -> str:
    def side(sizes: object) -> str:
        return ", ".join(f"{name}[{size}]" for name, size in dict(sizes).items())  # type: ignore[call-overload]

    return f"{side(signature.inputs)} -> {side(signature.outputs)}"


def _looped_lines(program: Looped) -> Iterator[str]:
    links = program.links
    stored = f"{program.slots} numbers stored at each, {program.forward_slots} forwarded"
    yield f"{len(links)} links, {stored}"
    for c in dict.fromkeys(links.class_of):
        members = [k for k, other in enumerate(links.class_of) if other == c]
        row = len(links.table[members[0]])
        yield f"class {c}: links {', '.join(map(str, members))}; {row} constants each"
    for number, loop in enumerate(program.sweeps):
        yield f"loop {number}, {loop.direction.value}:"
        for c, body in loop.blocks.items():
            yield f"  class {c}:"
            yield from _block_lines(body, "    ")
    if program.column_loop is not None:
        yield from _column_loop_lines(program.column_loop)


def _column_loop_lines(columns: ColumnLoop) -> Iterator[str]:
    begin = ", from zeros" if columns.zero_fill else ""
    yield f"for each of {len(columns.link)} columns{begin}:"
    for number, walk in enumerate(columns.sweeps):
        way = "to the ancestors" if walk.is_ancestor_path else walk.direction.value
        yield f"  walk {number}, {way}:"
        for (c, relation, entry), body in walk.blocks.items():
            place = f"at it, column {entry} of it" if relation == AT else relation
            yield f"    class {c}, {place}:"
            yield from _block_lines(body, "      ", matrix=True)


def _block_lines(body: BasicBlock, margin: str, matrix: bool = False) -> Iterator[str]:
    graph = body.graph
    live = body.live_nodes
    names = {number: f"n{number}" for number in live}
    for number in live:
        node = graph.nodes[number]
        if node[0] in ("const", "load"):
            names[number] = _leaf(graph, number)
    for number in live:
        op, *operands = graph.nodes[number]
        if op not in ("const", "load"):
            formula = _OP_TEXT[op].format(*(names[i] for i in operands))
            yield f"{margin}{names[number]} = {formula}"
    for store in body.stores:
        place = _reference(store.space, store.index, store.base)
        if matrix and store.space not in _SLOT_SPACES:
            pair = "j, k" if store.transposed else "k, j"
            place = f"{store.space}{{{pair}}}[{store.index}]"
        sign = ("(+)=" if store.first_child_stores else "+=") if store.add else "="
        yield f"{margin}{place} {sign} {_value(store.value, names)}"


def _leaf(graph: Graph, number: int) -> str:
    op, what = graph.nodes[number]
    if op == "const":
        return f"({what!r})" if what < 0 else repr(what)
    return _reference(*what)


_SLOT_SPACES = {WORK: "keep", FORWARD: "forward"}


def _reference(space: str, index: object, base: str) -> str:
    if space == TABLE:
        return f"table[{index}]"
    if space in _SLOT_SPACES:
        owner = {"parent": "(p)", "row": "{i}"}.get(base, "")
        return f"{_SLOT_SPACES[space]}{owner}[{index}]"
    if base == "row":
        return f"{space}{{i}}[{index}]"
    return f"{space}{{k}}[{index}]" if base else f"{space}[{index}]"


def _value(x: Scalar, names: dict[int, str]) -> str:
    return names[x.id] if isinstance(x, Value) else repr(x)
