# SPDX-License-Identifier: BSD-3-Clause
"""Numbers from kernels: machine code if it is at hand, else the sweeps in NumPy."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from math import inf, prod
from typing import Any

import numpy as np

from phistar import backends
from phistar.algebra.ir import Expr
from phistar.arrays import Array
from phistar.backends import Executable
from phistar.compile.pipeline import compile_request, kernel, matrix_plan
from phistar.compile.request_table import matrix_row
from phistar.compile.requests import FULL, MatrixOf
from phistar.compile.traced import TRACED
from phistar.derive import derive
from phistar.errors import LoweringError
from phistar.memory_limits import UNCHECKED_BYTES, refuse_large
from phistar.model.model import Model
from phistar.model.model_cache import Entry, entries
from phistar.model.singular import require_finite_results
from phistar.model.wrenches import ProgramInputs, Wrenches
from phistar.sweeps.column_support import BlockPartition
from phistar.sweeps.inner_products import DualPair, InnerProductTerm, inner_product_terms
from phistar.sweeps.matrix_plans import evaluate
from phistar.sweeps.matrix_requests import Apply, Diag, Full
from phistar.sweeps.matrix_requests import Request as MatrixPart

RequestKey = tuple[str, *tuple[object, ...]]
"""Name of a traced quantity and the choices that a user made: ``("jacobian", "hand", "local")``.
Entries of a robot have the same keys."""


def matrix_request(operator: Expr | str, model: Model, part: MatrixPart = FULL) -> MatrixOf:
    """The request for an operator's matrix; a name is one of ``MATRICES``."""
    if not isinstance(operator, str):
        return MatrixOf("matrix", operator, part)
    return replace(matrix_row(operator, model.turning_rotors), part=part)


def matrix_executable(
    operator: Expr | str, model: Model, frames: Sequence[str] = (), part: MatrixPart = FULL
) -> Executable | None:
    """What the default backend has for an operator's matrix or a part, if it has anything."""
    return compile_request(matrix_request(operator, model, part)).build(model, frames)


def matrix(
    operator: Expr | str,
    part: MatrixPart,
    model: Model,
    q: Array,
    inputs: ProgramInputs | None = None,
    frames: Sequence[str] = (),
    out: Array | None = None,
) -> Any:
    """The matrix of an operator, or a part of it, joints in body order.

    Args:
        operator: An expression, or the name of one in ``MATRICES``.
        part: What is wanted of it, e.g. ``Full()``.
        model: The robot.
        q: (..., nq), checked.
        inputs: Vectors that the expression names; ``f_ext`` may be wrenches on frames.
        frames: Names of the frames that B selects.
        out: Where a whole matrix goes if machine code gives it: plain, of its shape and dtype.

    Returns:
        What ``sweeps.matrix_plans.evaluate`` says.
    """
    wanted = matrix_request(operator, model, part)
    return evaluate_matrix(wanted, model, q, inputs or {}, frames, out=out)


def evaluate_matrix(
    wanted: MatrixOf,
    model: Model,
    q: Array,
    given: ProgramInputs,
    frames: Sequence[str] = (),
    backend: str | None = None,
    out: Array | None = None,
) -> Any:
    """The same for a request, by the default backend unless another one is named."""
    part = wanted.part
    if isinstance(part, Full):
        _refuse_large(wanted.operator, model, q, given, frames)
    code = compile_request(wanted).build(model, frames, backend=backend)
    found = None
    if code is not None:
        found = code.try_run({"q": q, **given}, _as_matrix(out))
    if found is None:
        return _by_sweeps(wanted, model, q, given, frames)
    ((result,), finite) = found[0].values(), found[1]
    axes = 1 if isinstance(part, Diag) else 2
    if not finite:
        require_finite_results(model, np.asarray(q), {"the matrix": result}, result.ndim - axes)
    return _diagonal_blocks(result, wanted, model, frames) if isinstance(part, Diag) else result


def _as_matrix(out: Array | None) -> dict[str, Array] | None:
    """An array by the name that programs of matrices have for their result."""
    if out is None:
        return None
    from phistar.scalar.lower_matrix import MATRIX_OUTPUT

    return {MATRIX_OUTPUT: out}


def _diagonal_blocks(
    rows: Array, wanted: MatrixOf, model: Model, frames: Sequence[str]
) -> list[Array]:
    """The blocks on the diagonal of a matrix that stand one after the other."""
    spaces = (wanted.operator.codomain, wanted.operator.domain)
    heights, widths = (BlockPartition.of(each, model, tuple(frames)).sizes for each in spaces)
    shapes = list(zip(heights, widths, strict=True))
    ends = accumulate(map(prod, shapes))
    return [
        rows[..., end - prod(shape) : end].reshape(*rows.shape[:-1], *shape)
        for shape, end in zip(shapes, ends, strict=True)
    ]


def _by_sweeps(
    wanted: MatrixOf,
    model: Model,
    q: Array,
    inputs: ProgramInputs,
    frames: Sequence[str],
) -> Array | list[Array]:
    plan = matrix_plan(wanted.operator, wanted.part, model, tuple(frames))
    found = evaluate(plan, q, backends.with_link_forces(model, q, inputs))
    blocks = found if isinstance(found, list) else [found]
    if not all(np.isfinite(block).all() for block in blocks):
        axes = blocks[0].ndim - (1 if isinstance(wanted.part, Apply) else 2)
        named = {f"block {i} of the matrix": block for i, block in enumerate(blocks)}
        require_finite_results(model, np.asarray(q), named, axes)
    return found


def _refuse_large(
    expr: Expr, model: Model, q: Array, inputs: ProgramInputs, frames: Sequence[str]
) -> None:
    """Raise before any work if matrices would not fit into memory."""
    bodies = len(model.bodies)
    shapes = [np.shape(x) for x in inputs.values() if not isinstance(x, Wrenches)]
    batches = [shape[:-2] if shape[-2:] == (bodies, 6) else shape[:-1] for shape in shapes]
    batches += [x.batch for x in inputs.values() if isinstance(x, Wrenches)]
    samples = prod(np.broadcast_shapes(np.shape(q)[:-1], *batches))
    one = samples * np.result_type(np.asarray(q), np.float32).itemsize
    if one * (6 * max(bodies, len(frames))) ** 2 <= UNCHECKED_BYTES:
        return
    spaces = (expr.codomain, expr.domain)
    rows, columns = (sum(BlockPartition.of(each, model, tuple(frames)).sizes) for each in spaces)
    what = f"matrices ({samples}, {rows}, {columns}) of robot '{model.name}'"
    cure = "apply the operator to vectors, ask for parts of its matrix, or take smaller batches"
    refuse_large(what, one * rows * columns, cure)


def evaluate_bundle(
    name: str, model: Model, q: Array, inputs: ProgramInputs, backend: str | None = None
) -> dict[str, Array] | None:
    """Vectors and matrices of a bundle at once, joints in body order, if that is possible."""
    code = kernel(name, model).build(model, backend=backend)
    if code is None:
        return None
    found = code.try_run({"q": q, **inputs})
    if found is None:
        return None
    results, finite = found
    if not finite:
        vector = next(iter(kernel(name, model).draft.outputs))
        require_finite_results(model, q, results, results[vector].ndim - 1)
    return results


def run_traced(model: Model, key: RequestKey, *arrays: Array) -> Array | None:
    """The only result (..., size) of a traced quantity by machine code, if that is at hand.

    Args:
        model: The robot.
        key: What is asked.
        arrays: Checked inputs in the order of the row; their batches broadcast.
    """
    found = run_traced_results(model, key, *arrays)
    return None if found is None else next(iter(found.values()))


def run_traced_results(model: Model, key: RequestKey, *arrays: Array) -> dict[str, Array] | None:
    """The results of a traced quantity by name, if machine code is at hand; None if not.

    Also None where a result is not finite: what answers instead says why.
    """
    code = traced_executable(model, key)
    if code is None:
        return None
    inputs = TRACED[key[0]].inputs
    found = code.try_run(dict(zip(inputs, arrays, strict=True)))
    if found is None or not found[1]:
        return None
    keep_entry(model, key, code, inputs)
    return found[0]


def traced_results(model: Model, key: RequestKey, *arrays: Array) -> dict[str, Array]:
    """The results of a traced quantity by name: by machine code if at hand, else in NumPy.

    For quantities that have no other definition. Arrays of any dtype, complex ones too; results may
    be infinite or NaN where inputs are.
    """
    found = run_traced_results(model, key, *arrays)
    return numpy_results(model, key, *arrays) if found is None else found


def numpy_results(model: Model, key: RequestKey, *arrays: Array) -> dict[str, Array]:
    """The same by the NumPy code of the program."""
    row = TRACED[key[0]]
    code = compile_request(row).build(model, backend="numpy", choices=tuple(key[1:]))
    assert code is not None, f"there is no {key[0]} of robot '{model.name}'"
    results = code.try_run(dict(zip(row.inputs, arrays, strict=True)))
    assert results is not None
    return results[0]


def traced_executable(model: Model, key: RequestKey) -> Executable | None:
    """What runs a traced quantity, if it is machine code."""
    if backends.default() != "llvm":
        return None
    return compile_request(TRACED[key[0]]).build(model, choices=tuple(key[1:]))


def run_loops(model: Model, key: RequestKey, program: str, q: Array) -> dict[str, Array] | None:
    """The outputs of a looped program that reads q alone, on robots too large to unroll it for.

    Args:
        model: The robot.
        key: The quantity that would be unrolled.
        program: A program of the catalogue that says the same.
        q: Checked.

    Returns:
        None if there may be an unrolled program, on other backends and if a result is not finite.
    """
    if backends.default() != "llvm" or not model.bodies:
        return None
    if traced_executable(model, key) is not None or TRACED[key[0]].work(model, *key[1:]) is None:
        return None
    found, finite = kernel(program).executable(model).run(q, {})
    return found if finite else None


def chained_entry(
    model: Model,
    bundle: str | RequestKey,
    key: RequestKey,
    order: Sequence[str],
    names: Mapping[str, str],
) -> Entry | None:
    """The entry to two programs, of which the second reads what the first one gives.

    Args:
        model: A robot whose coordinates are in the order of its bodies.
        bundle: Vectors and matrices of the catalogue, or a traced quantity that has such.
        key: A traced quantity.
        order: What both read from outside, in the order of the entry's arguments.
        names: Names of the second one's outputs in the result, where they differ.

    Returns:
        None unless both are compiled.
    """
    if backends.default() != "llvm":
        return None
    from phistar.backends.llvm.run.entry import make_chained_entry
    from phistar.backends.to_llvm import MachineCode

    if isinstance(bundle, str):
        first = kernel(bundle, model).build(model)
    else:
        first = traced_executable(model, bundle)
    second = traced_executable(model, key)
    if not (isinstance(first, MachineCode) and isinstance(second, MachineCode)):
        return None
    ahead, behind = first.tiers_if_ready(), second.tiers_if_ready()
    if ahead is None or behind is None:
        return None
    return make_chained_entry(ahead, behind, order, second.program.sample_shapes, names)


def finish_compilations() -> None:
    """Wait until all code that is being compiled in the background is there."""
    if backends.default() == "llvm":
        from phistar.backends.llvm.run.tiers import compile_queue

        compile_queue.finish()


def keep_entry(model: Model, key: Hashable, code: Executable, order: Sequence[str]) -> None:
    """Keep the entry of a request, as soon as there is one."""
    table = entries(model)
    if key not in table:
        found = code.entry(order)
        if found is not None:
            table[key] = found


@lru_cache(maxsize=64)
def cheapest_inner_products(expr: Expr) -> tuple[InnerProductTerm, ...]:
    """A number as a sum of products of vectors, cut where that is cheapest."""

    def cost(pair: DualPair) -> float:
        try:
            return derive({"left": pair[0], "right": pair[1]}).chosen.cost.total
        except LoweringError:
            return inf

    return inner_product_terms(expr, cost)
