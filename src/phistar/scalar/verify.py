# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a scalar program is one: a fault here is ours, never the user's.

Nodes are known operations on earlier nodes; loads find something that is there; every entry of an
output is written once, or stored first and then added to; what is kept at a link was left there by
an earlier step of the walk. In walks for a column, what is left from others does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from phistar.scalar.graph import FORWARD, TABLE, WORK, Node, Place, Value
from phistar.scalar.program import (
    BasicBlock,
    ColumnLoop,
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

OPERAND_COUNTS = {
    "const": 0, "load": 0, "neg": 1, "sqrt": 1, "sin": 1, "cos": 1, "log": 1,
    "add": 2, "sub": 2, "mul": 2, "div": 2, "guard": 2, "select": 4,
}  # fmt: skip
"""How many nodes each operation uses."""


class VerifyError(AssertionError):
    """A scalar program that is not well formed: a fault of the compiler."""


def verify(program: ScalarProgram) -> None:
    """Raise unless a program is well formed.

    Raises:
        VerifyError: It is not; the message names the block and the node or store.
    """
    if isinstance(program, Unrolled):
        _verify_unrolled(program)
    else:
        _LoopedVerifier(program).verify()


# -- what holds in every block


def _verify_graph(where: str, body: BasicBlock) -> None:
    graph = body.graph
    for number, node in enumerate(graph.nodes):
        fault = _node_fault(number, node)
        if fault:
            raise VerifyError(f"{where}, node {number} {node}: {fault}")
    for store in body.stores:
        value = store.value
        if isinstance(value, Value):
            if value.graph is not graph or not 0 <= value.id < len(graph.nodes):
                raise VerifyError(
                    f"{where}, {_store_text(store)}: its value is a node of another graph"
                )
        elif not isinstance(value, float):
            raise VerifyError(f"{where}, {_store_text(store)}: {value!r} is no number")


def _node_fault(number: int, node: Node) -> str:
    """What is wrong with a node, or nothing."""
    op, *operands = node
    expected = OPERAND_COUNTS.get(op)
    if expected is None:
        return f"unknown operation {op!r}"
    if expected:
        if len(operands) != expected:
            return f"{len(operands)} operands, expected {expected}"
        for i in operands:
            if not (isinstance(i, int) and 0 <= i < number):
                return "an operand does not come before it"
    elif op == "const":
        if len(operands) != 1 or not isinstance(operands[0], float):
            return "not one float"
    elif len(operands) != 1 or not isinstance(operands[0], Place):
        return "not one place"
    return ""


def _store_text(store: Store) -> str:
    kind = "add to" if store.add else "store to"
    return f"{kind} {store.space}[{store.index}]" + (f" of {store.base}" if store.base else "")


def _is_entry(index: object, size: int) -> bool:
    return isinstance(index, int) and 0 <= index < size


class _Outputs:
    """Which entries of the outputs are there."""

    def __init__(self, program: ScalarProgram) -> None:
        self._written = {n: [False] * size for n, size in program.signature.outputs.items()}
        for name, start in program.ground_start.items() if isinstance(program, Looped) else ():
            if len(start) != program.signature.outputs.get(name):
                raise VerifyError(f"output {name}: it begins with another number of entries")
            self._written[name] = [True] * len(start)
        columns = program.column_loop if isinstance(program, Looped) else None
        self._filled = columns is not None and columns.zero_fill

    def write(self, where: str, store: Store, entry: int) -> None:
        """Note one."""
        written = self._written.get(store.space)
        if written is None:
            raise VerifyError(f"{where}, {_store_text(store)}: there is no such output")
        if not _is_entry(entry, len(written)):
            raise VerifyError(f"{where}, {_store_text(store)}: entry {entry} of {len(written)}")
        if store.add and not written[entry]:
            raise VerifyError(
                f"{where}, {_store_text(store)}: entry {entry} is added to, not stored yet"
            )
        if not store.add and written[entry]:
            raise VerifyError(f"{where}, {_store_text(store)}: entry {entry} is stored twice")
        written[entry] = True

    def finish(self) -> None:
        """Every entry must be there."""
        for name, written in self._written.items() if not self._filled else ():
            if not all(written):
                raise VerifyError(f"output {name}: entry {written.index(False)} is never stored")


# -- unrolled programs


def _verify_unrolled(program: Unrolled) -> None:
    body, where = program.block, "straight line"
    _verify_graph(where, body)
    inputs = program.signature.inputs
    for number, place in body.loads:
        if place.base or not _is_entry(place.entry, inputs.get(place.space, 0)):
            raise VerifyError(f"{where}, node {number} {body.graph.nodes[number]}: no such input")
    outputs = _Outputs(program)
    kept: set[int] = set()
    for store in body.stores:
        if store.base:
            raise VerifyError(f"{where}, {_store_text(store)}: a straight line counts from the row")
        if store.space == WORK and _is_entry(store.index, program.slots) and not store.add:
            kept.add(store.index)
        else:
            outputs.write(where, store, store.index)
    for product in program.products:
        _verify_product(product, kept, outputs)
    for number, repeat in enumerate(program.row_loops):
        _verify_row_loop(f"repeat {number}", repeat, program, kept, outputs)
    outputs.finish()


def _verify_product(product: MatrixProduct, kept: set[int], outputs: _Outputs) -> None:
    where = f"product {product.output}"
    read = _read_by_product(where, product) | set(product.known.values())
    _verify_given_entries(where, product)
    if not read <= kept:
        raise VerifyError(f"{where}: nothing was left in slot {min(read - kept)}")
    for entry in range(product.rows * len(product.right_slots)):
        outputs.write(where, Store(product.output, entry, "", 0.0), entry)


def _read_by_product(where: str, product: MatrixProduct) -> set[int]:
    """Slots of the numbers that are multiplied, each an entry of its matrix."""
    read: set[int] = set()
    if sorted(i for band in product.all_bands for i in band.rows) != list(range(product.rows)):
        raise VerifyError(f"{where}: bands are not all rows of the left matrix, each once")
    for band in product.all_bands:
        if not all(_is_entry(k, product.inner) for k in band.inner):
            raise VerifyError(f"{where}: a band has columns that the left matrix does not have")
        read.update(range(band.left_slot, band.left_slot + len(band.rows) * len(band.inner)))
    for column in product.right_slots:
        if not all(_is_entry(row, product.inner) for row in column):
            raise VerifyError(f"{where}: a column has rows that the left matrix does not have")
        read.update(column.values())
    return read


def _verify_given_entries(where: str, product: MatrixProduct) -> None:
    """Entries that are known, or copies of others, are not multiplied."""
    for entry in product.known:
        row, j = divmod(entry, len(product.right_slots))
        if not _is_entry(row, product.rows) or product.right_slots[j]:
            raise VerifyError(f"{where}: entry {entry} is known, and multiplied or not there")
    for entry, other in product.mirrored.items():
        copies = other in product.mirrored or other in product.known
        if copies or not _is_entry(other, product.rows * len(product.right_slots)):
            raise VerifyError(f"{where}: entry {entry} is that at {other}, which is not multiplied")


def _verify_row_loop(
    where: str, repeat: RowLoop, program: Unrolled, kept: set[int], outputs: _Outputs
) -> None:
    _verify_graph(where, repeat.block)
    loads = list(repeat.block.loads)
    for row in repeat.rows:
        for number, place in loads:
            slot = repeat.slot(place.entry, row) if place.base else place.entry
            if place.space != WORK or place.base not in ("", "row") or slot not in kept:
                node = repeat.block.graph.nodes[number]
                raise VerifyError(
                    f"{where}, row {row}, node {number} {node}: nothing is kept there"
                )
        for store in repeat.block.stores:
            if store.base != "row" or store.add:
                raise VerifyError(f"{where}, {_store_text(store)}: not an entry of the row")
            if store.space == WORK:
                slot = repeat.slot(store.index, row)
                if not _is_entry(slot, program.slots):
                    raise VerifyError(f"{where}, {_store_text(store)}: there is no such slot")
                kept.add(slot)
            else:
                if not _is_entry(store.index, repeat.row_width):
                    raise VerifyError(f"{where}, {_store_text(store)}: no entry of the row")
                outputs.write(where, store, row * repeat.row_width + store.index)


# -- loops


class _LoopedVerifier:
    """All loops, link by link, with numbers left out."""

    def __init__(self, program: Looped) -> None:
        self.program = program
        self.links = program.links
        self.inputs = program.signature.inputs
        self.outputs = _Outputs(program)
        self.kept = [[False] * program.slots for _ in range(len(program.links))]
        self.handed: dict[tuple[int, int], int] = {}
        self.first = {way: first_visited_siblings(self.links.parent, way) for way in Direction}
        self.hands = self.links.forward_places
        self.way = Direction.OUTWARD

    def verify(self) -> None:
        """Walk."""
        _verify_links(self.links)
        for i, loop in enumerate(self.program.sweeps):
            for c, body in loop.blocks.items():
                _verify_graph(f"loop {i}, class {c}", body)
            live = {c: body.live_nodes for c, body in loop.blocks.items()}
            self.way = loop.direction
            self.handed.clear()
            order = range(len(self.links))
            for k in order if loop.direction is Direction.OUTWARD else reversed(order):
                c = self.links.class_of[k]
                if c in loop.blocks:
                    self._body(f"loop {i}, class {c}, link {k}", loop.blocks[c], live[c], k)
        if self.program.column_loop is not None:
            self._columns(self.program.column_loop)
        self.outputs.finish()

    def _columns(self, columns: ColumnLoop) -> None:
        bodies = [(i, v, b) for i, w in enumerate(columns.sweeps) for v, b in w.blocks.items()]
        for i, variant, body in bodies:
            _verify_graph(f"walk {i}, {variant}", body)
        live = {id(body): body.live_nodes for _, _, body in bodies}
        own = {s.index for _, _, b in bodies for s in b.stores if s.space == WORK}
        kinship = AncestorRelations(self.links.parent)
        for number, (c, entry) in enumerate(zip(columns.link, columns.entry, strict=True)):
            self.handed.clear()
            for kept in self.kept:
                for slot in own:
                    kept[slot] = False
            place = partial(columns.output_entry, column=number)
            for i, walk in enumerate(columns.sweeps):
                self.way = walk.direction
                for k in walk.order(c, self.links):
                    variant = (self.links.class_of[k], kinship(k, c), entry if k == c else 0)
                    if variant in walk.blocks:
                        where = f"walk {i}, {variant}, column {number}, link {k}"
                        body = walk.blocks[variant]
                        self._body(where, body, live[id(body)], k, place)

    def _body(
        self,
        where: str,
        body: BasicBlock,
        live: list[int],
        k: int,
        matrix_entry: Callable[[Store, int], int] | None = None,
    ) -> None:
        for number, place in body.graph.loads(live):
            fault = self._unreadable(place, k)
            if fault:
                raise VerifyError(f"{where}, node {number} {body.graph.nodes[number]}: {fault}")
        for store in body.stores:
            if store.space in (WORK, FORWARD):
                self._keep(where, store, k)
            else:
                bases = (
                    ("v", "body", "plane", "ground")
                    if matrix_entry is None
                    else ("v", "body", "frame")
                )
                if store.base not in bases or (store.transposed and matrix_entry is None):
                    raise VerifyError(
                        f"{where}, {_store_text(store)}: not counted from a link's part"
                    )
                entry = entry_start(self.links, store.base, k) + store.index
                entry = entry if matrix_entry is None else matrix_entry(store, entry)
                self.outputs.write(where, store, entry)

    def _unreadable(self, place: Place, k: int) -> str:
        space, index, base = place
        if not base:
            return "a load in a loop says what it is counted from"
        if space == TABLE:
            if base == "link" and _is_entry(index, len(self.links.table[k])):
                return ""
            return f"the link's row has {len(self.links.table[k])} numbers"
        if space in (WORK, FORWARD):
            return self._unkept(space, index, base, k)
        if space not in self.inputs:
            return "no such input"
        if base not in ("q", "v", "body") or (base == "q") != (space == "q"):
            return f"not counted from a link's part: {base!r}"
        if not isinstance(index, int) or index < 0:
            return f"no entry: {index!r}"
        size = self.inputs[space]
        entry = entry_start(self.links, base, k) + index
        return "" if 0 <= entry < size else f"entry {entry} of {size}"

    def _seat(self, base: str, k: int) -> int | None:
        """The link at which a number is kept."""
        seat = {"link": k, "parent": self.links.parent[k]}.get(base, -1)
        return seat if seat >= 0 else None

    def _unkept(self, space: str, slot: int, base: str, k: int) -> str:
        seat = self._seat(base, k)
        if seat is None:
            return f"there is no {base!r}"
        size = self._size(space)
        if not _is_entry(slot, size):
            return f"there are {size} slots"
        return "" if self._is_there(space, seat, slot) else f"nothing was left there (link {seat})"

    def _size(self, space: str) -> int:
        return self.program.slots if space == WORK else self.program.forward_slots

    def _is_there(self, space: str, seat: int, slot: int) -> bool:
        """Whether the number of a link is there, and not that of another in the same place."""
        if space == WORK:
            return self.kept[seat][slot]
        return self.handed.get((self.hands[self.way][seat], slot)) == seat

    def _keep(self, where: str, store: Store, k: int) -> None:
        seat = self._seat(store.base, k)
        if seat is None or not _is_entry(store.index, self._size(store.space)):
            raise VerifyError(f"{where}, {_store_text(store)}: there is no such slot")
        adds = store.add and not (store.first_child_stores and self.first[self.way][k])
        if adds and not self._is_there(store.space, seat, store.index):
            raise VerifyError(f"{where}, {_store_text(store)}: nothing to add to (link {seat})")
        if store.first_child_stores and store.base != "parent":
            raise VerifyError(f"{where}, {_store_text(store)}: only sums over children are begun")
        if store.space == WORK:
            self.kept[seat][store.index] = True
        else:
            self.handed[self.hands[self.way][seat], store.index] = seat


def _verify_links(links: LinkTable) -> None:
    sizes = {len(x) for x in (links.class_of, links.parent, links.q, links.v, links.table)}
    if sizes != {len(links)}:
        raise VerifyError(f"lists over the links have different lengths: {sorted(sizes)}")
    rows: dict[int, int] = {}
    roots: dict[int, bool] = {}
    for k, c in enumerate(links.class_of):
        if not -1 <= links.parent[k] < k:
            raise VerifyError(f"link {k}: its parent {links.parent[k]} does not come before it")
        if links.q[k] < 0 or links.v[k] < 0:
            raise VerifyError(f"link {k}: its coordinates begin before the first")
        if rows.setdefault(c, len(links.table[k])) != len(links.table[k]):
            raise VerifyError(
                f"link {k}: its row of the table is not as long as others of class {c}"
            )
        if roots.setdefault(c, links.parent[k] < 0) != (links.parent[k] < 0):
            raise VerifyError(f"link {k}: class {c} has links on the ground and others")
