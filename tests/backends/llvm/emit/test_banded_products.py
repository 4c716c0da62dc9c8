# SPDX-License-Identifier: BSD-3-Clause
"""Products of bands in tiles, for registers of each width."""

import numpy as np
import pytest

from phistar.backends.llvm.emit.banded_products import column_runs, tiles_of
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.backends.llvm.run.machine_kernel import emit_module
from phistar.scalar.graph import Graph
from phistar.scalar.interpret import run
from phistar.scalar.program import (
    BasicBlock,
    MatrixProduct,
    ProductBand,
    Signature,
    Store,
    Unrolled,
)

ROWS = 12


def _program() -> Unrolled:
    """A base of five rows, and a branch of seven: the branch reads all, the base its own.

    On the right, the rows of the branch are zero in the first five columns but one, which is known;
    the last column is empty.
    """
    graph = Graph()
    base, branch = range(5), range(5, ROWS)
    size = len(base) ** 2 + len(branch) * ROWS
    stores = [Store("work", i, "", graph.load("x", i)) for i in range(size)]

    def keep(value: float) -> int:
        stores.append(Store("work", len(stores), "", value * graph.load("x", len(stores) % size)))
        return len(stores) - 1

    blocks = {(k, j): keep(0.25 * k - j) for k in base for j in range(1, ROWS - 1)}
    blocks |= {(k, j): keep(0.5 + j * k) for k in branch for j in range(5, ROWS - 1)}
    columns = [{k: blocks[k, j] for k in range(ROWS) if (k, j) in blocks} for j in range(ROWS)]
    known = {3 * ROWS: keep(2.0)}
    bands = [ProductBand(base, base, 0), ProductBand(branch, range(ROWS), len(base) ** 2)]
    mirrored = {7 * ROWS + 2: 2 * ROWS + 7}
    product = MatrixProduct("y", 0, ROWS, columns, 0, known, bands, mirrored)
    signature = Signature({"x": size}, {"y": ROWS * ROWS})
    return Unrolled(signature, BasicBlock(graph, stores), (product,), len(stores))


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_against_the_interpreter(width: int) -> None:
    """Whatever the width, and more lanes than samples in the last block: 1e-14 of the largest."""
    program = _program()
    lanes = Lanes(width) if width > 1 else Lanes(1, "double", 8)
    text, room = emit_module(program, lanes)
    call = KernelCaller(jit.load(text), program.signature, lanes, room)
    x = np.random.default_rng(0).normal(size=(11, program.signature.inputs["x"]))
    found = np.full((11, ROWS * ROWS), np.nan)
    assert call([x], [found])
    expected = run(program, {"x": x})["y"]
    assert np.abs(found - expected).max() <= 1e-14 * np.abs(expected).max()
    assert (found[:, ROWS - 1 :: ROWS] == 0.0).all()


@pytest.mark.parametrize("width", [2, 4, 8])
def test_tiles_fit_into_registers(width: int) -> None:
    """All entries have a tile; its sums, a column of numbers and one more are held at once."""
    program = _program()
    (product,) = program.products
    lanes = Lanes(width)
    registers = 32 if lanes.bytes == 64 else 16
    seen = set()
    for (rows, columns), tiles in tiles_of(product, lanes).items():
        assert rows * columns + rows + 1 <= registers
        for tile in tiles:
            seen |= {(tile.row + r, tile.column + c) for r in range(rows) for c in range(columns)}
    assert seen == {(i, j) for i in range(ROWS) for j in range(ROWS)}
    runs = column_runs(product, 4)
    assert [j for each in runs for j in each.columns] == list(range(ROWS))
    assert max(len(each.columns) for each in runs) == 4
