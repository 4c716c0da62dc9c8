# SPDX-License-Identifier: BSD-3-Clause
"""C loops after an unrolled program: products of matrices, and operations on each of their rows.

Both read numbers from the workspace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from phistar.backends.c.expressions import StatementWriter, wrap_statement
from phistar.backends.c.interface import Interface
from phistar.backends.c.tokens import IdentifierScope, array_definition, index_type
from phistar.scalar.program import MatrixProduct, ProductBand, RowLoop, Unrolled

_INDENT = " " * 4
_BLOCK_INDENT = " " * 8

_PRODUCT_TEMPLATE = """\
        for ({i} = 0; {i} < {rows}; ++{i}) {{
            for ({j} = 0; {j} < {columns}; ++{j}) {{
                {real} {total} = {zero};

                for ({e} = {first}[{j}]; {e} < {first}[{j} + 1]; ++{e}) {{
                    {total} += {work}[{left} + {width} * {i} + {inner}[{e}]]
                        * {work}[{offset} + {slot}[{e}]];
                }}
                {output}[{columns} * {i} + {j}] = -{total};
            }}
        }}"""

_BAND_TEMPLATE = """\
        for ({i} = 0; {i} < {rows}; ++{i}) {{
            for ({j} = 0; {j} < {columns}; ++{j}) {{
                {real} {total} = {zero};

                for ({e} = {first}[{j}]; {e} < {first}[{j} + 1]; ++{e}) {{
                    {total} += {work}[{left} + {width} * {i} + {inner}[{e}]]
                        * {work}[{offset} + {slot}[{e}]];
                }}
                {output}[{across} * {row}[{i}] + {column}[{j}]] = -{total};
            }}
        }}"""


def matrix_loops(program: Unrolled, face: Interface, offset: int) -> list[str]:
    """Lines of the function after the unrolled program.

    Args:
        program: The program.
        face: The function.
        offset: Entry of the workspace at which these numbers begin.
    """
    writer = _MatrixLoopWriter(face, offset)
    lines = [line for product in program.products for line in writer.product(product)]
    return lines + [line for loop in program.row_loops for line in writer.row_loop(loop)]


class _MatrixLoopWriter:
    def __init__(self, face: Interface, offset: int) -> None:
        self.face = face
        self.offset = offset
        self.outputs = {name: c for name, c, _ in face.outputs}

    def _names(self) -> IdentifierScope:
        return IdentifierScope([self.face.name, *self.face.arguments, self.face.work_name])

    def product(self, product: MatrixProduct) -> Iterator[str]:
        """Minus a matrix times another one, whose entries that are not zero are listed."""
        if product.bands:
            for band in product.bands:
                yield from self._band(product, band)
            yield from self._copies(product)
            return
        names = self._names()
        wanted = ("i", "j", "e", "first", "inner", "slot", "total")
        local = {name: names.unique_name(name) for name in wanted}
        columns = product.right_slots
        first = [0]
        for column in columns:
            first.append(first[-1] + len(column))
        # An array of nothing is not C.
        inner = [row for column in columns for row in column] or [0]
        slots = [slot for column in columns for slot in column.values()] or [0]
        output = self.outputs[product.output]
        yield f"\n{_INDENT}/* {output}: minus a product; the right matrix column by column */"
        yield f"{_INDENT}{{"
        yield _table(local["first"], first)
        yield _table(local["inner"], inner)
        yield _table(local["slot"], slots)
        yield f"{_BLOCK_INDENT}int {local['i']}, {local['j']}, {local['e']};\n"
        yield _PRODUCT_TEMPLATE.format(
            **local,
            rows=product.rows,
            width=product.inner,
            columns=len(columns),
            real=self.face.real.type,
            zero=self.face.real.literal(0.0),
            work=self.face.work_name,
            left=self.offset + product.left_slot,
            offset=self.offset,
            output=output,
        )
        yield from self._known(product)
        yield f"{_INDENT}}}"

    def _known(self, product: MatrixProduct) -> Iterator[str]:
        for entry, slot in product.known.items():
            yield f"{_BLOCK_INDENT}{self.outputs[product.output]}[{entry}] = {self._kept(slot)};\n"

    def _band(self, product: MatrixProduct, band: ProductBand) -> Iterator[str]:
        """Rows of a left matrix that are zero but for the same columns."""
        names = self._names()
        wanted = ("i", "j", "e", "row", "column", "first", "inner", "slot", "total")
        local = {name: names.unique_name(name) for name in wanted}
        places = {k: at for at, k in enumerate(band.inner)}
        columns, first = [], [0]
        inner: list[int] = []
        slots: list[int] = []
        for j, read in product.columns_of(band):
            columns.append(j)
            inner += [places[k] for k in read]
            slots += [product.right_slots[j][k] for k in read]
            first.append(len(inner))
        output = self.outputs[product.output]
        yield f"\n{_INDENT}/* {output}: some rows of minus a product */"
        yield f"{_INDENT}{{"
        yield _table(local["row"], list(band.rows))
        yield _table(local["column"], columns)
        yield _table(local["first"], first)
        # An array of nothing is not C.
        yield _table(local["inner"], inner or [0])
        yield _table(local["slot"], slots or [0])
        yield f"{_BLOCK_INDENT}int {local['i']}, {local['j']}, {local['e']};\n"
        yield _BAND_TEMPLATE.format(
            **local,
            rows=len(band.rows),
            columns=len(columns),
            width=len(band.inner),
            real=self.face.real.type,
            zero=self.face.real.literal(0.0),
            work=self.face.work_name,
            left=self.offset + band.left_slot,
            offset=self.offset,
            output=output,
            across=len(product.right_slots),
        )
        yield f"{_INDENT}}}"

    def _copies(self, product: MatrixProduct) -> Iterator[str]:
        """Entries that are known, or the same as others."""
        yield f"{_INDENT}{{"
        yield from self._known(product)
        if product.mirrored:
            names = self._names()
            i, to, source = (names.unique_name(name) for name in ("i", "to", "from"))
            output = self.outputs[product.output]
            yield _table(to, list(product.mirrored))
            yield _table(source, list(product.mirrored.values()))
            yield f"{_BLOCK_INDENT}int {i};\n"
            yield f"{_BLOCK_INDENT}for ({i} = 0; {i} < {len(product.mirrored)}; ++{i}) {{"
            yield f"{_BLOCK_INDENT}    {output}[{to}[{i}]] = {output}[{source}[{i}]];"
            yield f"{_BLOCK_INDENT}}}"
        yield f"{_INDENT}}}"

    def row_loop(self, loop: RowLoop) -> Iterator[str]:
        """The same line for each of some rows."""
        names = self._names()
        row = names.unique_name("row")
        written = {s.space for s in loop.block.stores if s.space != "work"}
        pointers = {name: names.unique_name(f"{self.outputs[name]}_row") for name in written}
        own = names.unique_name("own")

        def load(space: str, slot: int, base: str = "") -> tuple[str, str]:
            return (f"{own}[{slot}]" if base else self._kept(slot)), ""

        block = loop.block
        used = Counter(value.id for value in block.roots)
        writer = StatementWriter(block.graph, block.live_nodes, used, self.face.real, names, load)
        lines = [wrap_statement(text, _BLOCK_INDENT) for _, text in writer.statements()]
        for store in block.stores:
            array = own if store.space == "work" else pointers[store.space]
            sign = "+=" if store.add else "="
            value = writer.text(store.value)
            lines.append(f"{_BLOCK_INDENT}{array}[{store.index}] {sign} {value};")
        start, stop = loop.rows.start, loop.rows.stop
        real = self.face.real.type
        yield f"\n{_INDENT}{{\n{_INDENT}int {row};\n"
        yield f"{_INDENT}for ({row} = {start}; {row} < {stop}; ++{row}) {{"
        if any(f"{own}[" in line for line in lines):
            place = f"{self.face.work_name} + {self.offset} + {loop.stride} * ({row} - {start})"
            yield f"{_BLOCK_INDENT}{real} *const {own} = {place};"
        for name in self.outputs:
            if name in written:
                place = f"{self.outputs[name]} + {loop.row_width} * {row}"
                yield f"{_BLOCK_INDENT}{real} *const {pointers[name]} = {place};"
        yield from lines
        yield f"{_INDENT}}}\n{_INDENT}}}"

    def _kept(self, slot: int) -> str:
        return f"{self.face.work_name}[{self.offset + slot}]"


def _table(name: str, values: Sequence[int]) -> str:
    declaration = f"static const {index_type(values)} {name}[{len(values)}]"
    return array_definition(declaration, [str(x) for x in values], _BLOCK_INDENT)
