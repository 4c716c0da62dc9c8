# SPDX-License-Identifier: BSD-3-Clause
"""Straight lines as parts of others."""

import numpy as np
import pytest

from phistar.errors import LoweringError
from phistar.scalar.graph import LEAF_OPS, Graph, Value, cos, guard, log, select, sin, sqrt
from phistar.scalar.interpret import run
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.program import BasicBlock, MatrixProduct, Signature, Store, Unrolled
from phistar.scalar.trace.inline import inline
from phistar.scalar.verify import OPERAND_COUNTS


def everything() -> Unrolled:
    """A line that has every operation, and adds to what it stored."""
    g = Graph()
    x, y, z = (g.load("x", i) for i in range(3))
    values = [x + y, x - y, x * y, x / (2.0 + sin(y)), -x, sqrt(1.0 + x * x), cos(z)]
    values += [log(2.0 + sin(x)), guard(2.0 + cos(x), 0.5), select(x, y, z, -z)]
    stores = [Store("y", i, "", value) for i, value in enumerate(values)]
    stores.append(Store("y", 0, "", z, add=True))
    return Unrolled(Signature({"x": 3}, {"y": len(values)}), BasicBlock(g, stores))


def test_every_operation() -> None:
    """The line inside another gives the interpreter's numbers; the test knows all operations."""
    program = everything()
    used = {program.block.graph.nodes[n][0] for n in program.block.live_nodes}
    assert used == set(OPERAND_COUNTS) - ({*LEAF_OPS} - used)
    g = Graph()
    moved: Vector = [g.load("u", 2) + 1.0, 2.0 * g.load("u", 0), g.load("u", 1)]
    results = inline(program, {"x": moved})["y"]
    stores = [Store("y", i, "", value) for i, value in enumerate(results)]
    outer = Unrolled(Signature({"u": 3}, {"y": len(results)}), BasicBlock(g, stores))
    u = np.random.default_rng(0).normal(size=(5, 3))
    known = run(program, {"x": np.stack([u[:, 2] + 1.0, 2.0 * u[:, 0], u[:, 1]], axis=1)})["y"]
    np.testing.assert_allclose(run(outer, {"u": u})["y"], known, rtol=1e-15, atol=1e-15)


def test_constants_fold() -> None:
    """Known inputs leave nothing for run time."""
    results = inline(everything(), {"x": [0.3, -0.2, 0.5]})["y"]
    assert not any(isinstance(x, Value) for x in results)
    known = run(everything(), {"x": np.array([[0.3, -0.2, 0.5]])})["y"][0]
    np.testing.assert_allclose(np.array(results, float), known, rtol=1e-15)


def test_lines_with_products_are_refused() -> None:
    """What comes after a line has no place in another."""
    program = Unrolled(
        Signature({"x": 1}, {"y": 1}), BasicBlock(), (MatrixProduct("y", 0, 1, [{}]),), 1
    )
    with pytest.raises(LoweringError, match="loops"):
        inline(program, {"x": [1.0]})
