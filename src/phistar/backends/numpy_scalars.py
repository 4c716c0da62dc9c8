# SPDX-License-Identifier: BSD-3-Clause
"""An unrolled program of scalar operations as Python source for NumPy, one statement per operation.

Arrays are (..., size); every number is an array (...) over the batch, in the dtype of the inputs,
complex ones too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from phistar.arrays import Array
from phistar.backends.base import Executable
from phistar.backends.batch_axes import all_finite, all_valid, as_inexact, copy_into_out
from phistar.backends.robot_programs import TracedProgram
from phistar.model.configuration import normalized_configuration
from phistar.model.wrenches import ProgramInputs, Wrenches
from phistar.scalar.graph import WORK, Place, Value
from phistar.scalar.program import (
    BasicBlock,
    MatrixProduct,
    RowLoop,
    ScalarProgram,
    Store,
    Unrolled,
)

_FORMULAS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "neg": "-{}",
    "sqrt": "np.sqrt({})",
    "sin": "np.sin({})",
    "cos": "np.cos({})",
    "log": "np.log({})",
    "guard": "np.where(np.real({0}) > np.real({1}), {0}, np.nan)",
    "select": "np.where(np.real({0}) > np.real({1}), {2}, {3})",
}


def scalar_source(program: Unrolled) -> str:
    """The source of a program."""
    return "\n".join(_lines(program))


def _lines(program: Unrolled) -> Iterator[str]:
    signature = program.signature
    arrays = {name: f"x{i}" for i, name in enumerate(signature.inputs)}
    results = {name: f"y{i}" for i, name in enumerate(signature.outputs)}
    yield f"def run({', '.join(arrays.values())}):"
    yield f'    """{", ".join(signature.inputs)} -> {", ".join(signature.outputs)}."""'
    batches = "".join(f"{x}.shape[:-1], " for x in arrays.values())
    yield f"    batch = np.broadcast_shapes({batches.rstrip()[:-1]})"
    yield f"    dtype = np.result_type({', '.join(arrays.values())})"
    for name, size in signature.outputs.items():
        yield f"    {results[name]} = np.zeros((*batch, {size}), dtype)  # {name}"
    if program.slots:
        results[WORK] = "kept"
        yield f"    kept = np.zeros((*batch, {program.slots}), dtype)"

    def read(place: Place) -> str:
        return f"{arrays[place.space]}[..., {place.entry}]"

    def write(store: Store) -> str:
        return f"{results[store.space]}[..., {store.index}] {'+=' if store.add else '='}"

    yield from _block_lines(program.block, "    ", read, write)
    for product in program.products:
        yield from _product_lines(product, results[product.output])
    for repeat in program.row_loops:
        yield from _row_loop_lines(repeat, results)
    yield f"    return {', '.join(results[name] for name in signature.outputs)},"


def _block_lines(
    block: BasicBlock, margin: str, read: Callable[[Place], str], write: Callable[[Store], str]
) -> Iterator[str]:
    """Statements of a block."""
    names: dict[int, str] = {}
    for number in block.live_nodes:
        op, *rest = block.graph.nodes[number]
        if op == "const":
            names[number] = f"({rest[0]!r})" if rest[0] < 0 else repr(rest[0])
        elif op == "load":
            names[number] = read(rest[0])
        else:
            names[number] = f"n{number}"
            yield f"{margin}n{number} = {_FORMULAS[op].format(*(names[i] for i in rest))}"
    for store in block.stores:
        value = names[store.value.id] if isinstance(store.value, Value) else repr(store.value)
        yield f"{margin}{write(store)} {value}"


def _row_loop_lines(repeat: RowLoop, results: Mapping[str, str]) -> Iterator[str]:
    """The same statements for each of some rows."""
    own = f" + {repeat.stride} * (row - {repeat.rows.start})" if repeat.stride else ""

    def read(place: Place) -> str:
        return f"kept[..., {place.entry}{own if place.base else ''}]"

    def write(store: Store) -> str:
        if store.space == WORK:
            return f"kept[..., {store.index}{own}] ="
        return f"{results[store.space]}[..., {repeat.row_width} * row + {store.index}] ="

    yield f"    for row in range({repeat.rows.start}, {repeat.rows.stop}):"
    yield from _block_lines(repeat.block, "        ", read, write)


def _product_lines(product: MatrixProduct, result: str) -> Iterator[str]:
    """Minus the left matrix times the right one, whose numbers that are not zero are kept."""
    rows, inner, columns = product.rows, product.inner, len(product.right_slots)
    filled = [
        (k, j, slot) for j, column in enumerate(product.right_slots) for k, slot in column.items()
    ]
    yield f"    left = np.zeros((*batch, {rows}, {inner}), dtype)"
    for band in product.all_bands:
        shape = len(band.rows), len(band.inner)
        taken = f"kept[..., {band.left_slot}:{band.left_slot + shape[0] * shape[1]}]"
        places = f"{[[i] for i in band.rows]}, {list(band.inner)}"
        yield f"    left[..., {places}] = {taken}.reshape((*batch, *{shape}))"
    yield f"    right = np.zeros((*batch, {inner}, {columns}), dtype)"
    if filled:
        k, j, slots = zip(*filled, strict=True)
        yield f"    right[..., {list(k)}, {list(j)}] = kept[..., {list(slots)}]"
    yield "    product = left @ right"
    yield f"    {result}[...] = -product.reshape({result}.shape)"
    if product.known:
        entries, kept = list(product.known), list(product.known.values())
        yield f"    {result}[..., {entries}] = kept[..., {kept}]"
    if product.mirrored:
        entries, others = list(product.mirrored), list(product.mirrored.values())
        yield f"    {result}[..., {entries}] = {result}[..., {others}]"


class NumpyScalarCode(Executable):
    """A traced program for one robot, as NumPy source."""

    def __init__(self, program: TracedProgram) -> None:
        self._program = program
        self._scalars = program.everywhere.unrolled()
        self._source = scalar_source(self._scalars)
        made: dict[str, Callable[..., tuple[Array, ...]]] = {}
        exec(compile(self._source, f"<{program.title}>", "exec"), {"np": np}, made)
        self._run = made["run"]

    @property
    def source(self) -> str:
        """See ``base.Executable``."""
        return self._source

    @property
    def scalars(self) -> ScalarProgram:
        """See ``base.Executable``."""
        return self._scalars

    def try_run(
        self, inputs: ProgramInputs, out: Mapping[str, Array] | None = None
    ) -> tuple[dict[str, Array], bool] | None:
        """See ``base.Executable``."""
        model, signature = self._program.model, self._scalars.signature
        given = {n: x for n, x in inputs.items() if not isinstance(x, Wrenches)}
        arrays = [
            normalized_configuration(model, given[name])
            if name in signature.configurations
            else as_inexact(given[name])
            for name in signature.inputs
        ]
        with np.errstate(all="ignore"):
            rows = self._run(*arrays)
        shapes = self._program.sample_shapes
        found = {
            name: x.reshape((*x.shape[:-1], *shapes[name]))
            for name, x in zip(signature.outputs, rows, strict=True)
        }
        moved = [given[name] for name in signature.configurations if name in signature.inputs]
        values = [*arrays, *found.values()]
        valid = all(all_valid(model, q, values) for q in moved) if moved else all_finite(values)
        return copy_into_out(out, found), valid
