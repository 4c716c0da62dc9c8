# SPDX-License-Identifier: BSD-3-Clause
"""Quantities of a robot over Dask arrays: lazy arrays in, lazy arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.robot import Robot
from phistar.scale.chunking import rows_per_task
from phistar.scale.packages import StoredArray, dask_array, is_dask_array, is_zarr_array
from phistar.scale.work import RESULT, Output, Quantity, Work, common_dtype


def map(robot: Robot, quantity: Quantity, *arrays: StoredArray, **options: object) -> StoredArray:
    """A quantity of a robot for every row of some arrays, as Dask arrays.

    Nothing is computed yet: ``compute()``, ``to_zarr()`` or any further Dask operation does, with
    threads, a ``LocalCluster`` or ``Client("tcp://...")`` as Dask is told. Tasks run on one thread
    and by final code: results are the same bits whatever the chunks and workers are.

    Args:
        robot: The robot; it travels to the workers as a few kB, and each compiles once.
        quantity: Name of a method (``"inverse_dynamics"``, ``"linearize"``, ``"simulate"``), a
            kernel of ``robot.compile``, or a function ``f(robot, *blocks)`` that is importable on
            the workers.
        arrays: The arguments, each (..., n): Dask arrays, whose chunks are kept, Zarr arrays or
            NumPy arrays, which are cut into chunks by the cost of the quantity. Leading axes are
            the same; a vector (n,) is the same for all rows.
        options: Further arguments by keyword. Arrays with leading axes have a row for each row.

    Returns:
        A Dask array (..., m), or a dict of them if the result has several arrays, by the names of
        its attributes; what is the same for all rows, such as times of ``simulate``, is a NumPy
        array.
    """
    mapped = {name: x for name, x in options.items() if _has_rows(x)}
    rest = {name: x for name, x in options.items() if name not in mapped}
    if not arrays and not mapped:
        raise ArgumentError("map takes one array at least, got none")
    given = [_with_rows(x) for x in (*arrays, *mapped.values())]
    work = Work(robot, quantity, len(arrays), tuple(mapped), rest)
    lead = _common_lead(work, given)
    fixed = [x.ndim == 1 for x in given]
    outputs, constant = work.outputs(work.example_rows(given))
    numbers = sum(x.shape[-1] for x in given) + sum(output.size for output in outputs)
    blocks = _in_chunks(given, fixed, lead, rows_per_task(work, numbers))
    packed = _packed(work, outputs, blocks, len(lead))
    found: dict[str, StoredArray] = {output.name: _part(packed, output, lead) for output in outputs}
    if set(found) == {RESULT} and not constant:
        return found[RESULT]
    return {**found, **constant}


def _has_rows(x: object) -> bool:
    return is_dask_array(x) or is_zarr_array(x) or (isinstance(x, np.ndarray) and x.ndim > 1)


def _with_rows(x: StoredArray) -> StoredArray:
    if is_dask_array(x) and not np.isfinite(x.shape).all():
        raise ArgumentError(
            f"an array has the shape {x.shape}, as Dask does not know how many rows were chosen; "
            "x.compute_chunk_sizes() counts them"
        )
    if isinstance(x, str | Path):
        raise ArgumentError(
            f"an array is {str(x)!r}, a path; open it first, zarr.open_array(path), or let "
            "scale.run read and write stores"
        )
    return x if is_dask_array(x) or is_zarr_array(x) else np.asarray(x)


def _common_lead(work: Work, arrays: Sequence[StoredArray]) -> tuple[int, ...]:
    leads = {tuple(x.shape[:-1]) for x in arrays if x.ndim > 1}
    if len(leads) != 1:
        shapes = ", ".join(str(tuple(x.shape)) for x in arrays)
        wanted = "the same leading axes" if leads else "leading axes, one row for each sample"
        raise ArgumentError(f"arrays of {work.name} have shapes {shapes}, expected {wanted}")
    return leads.pop()


def _in_chunks(
    arrays: Sequence[StoredArray], fixed: Sequence[bool], lead: tuple[int, ...], rows: int
) -> list[StoredArray]:
    """Dask arrays with the same chunks of rows; vectors as they are."""
    da = dask_array()
    told = next((x for x in arrays if is_dask_array(x) and x.ndim > 1), None)
    inner = int(np.prod(lead[1:]))
    chunks: tuple[int | tuple[int, ...], ...] = (
        (max(1, rows // max(1, inner)), *lead[1:]) if told is None else told.chunks[:-1]
    )
    found: list[StoredArray] = []
    for x, same in zip(arrays, fixed, strict=True):
        if same:
            found.append(np.asarray(x))
        elif is_dask_array(x):
            found.append(x.rechunk((*chunks, -1)))
        elif is_zarr_array(x):
            found.append(da.from_zarr(x).rechunk((*chunks, -1)))
        else:
            found.append(da.from_array(x, chunks=(*chunks, -1)))
    return found


def _packed(
    work: Work, outputs: Sequence[Output], blocks: Sequence[StoredArray], axes: int
) -> StoredArray:
    """(..., numbers) of all outputs side by side."""
    da = dask_array()
    rows = tuple(range(axes))
    arguments: list[StoredArray] = []
    vectors: dict[int, Array] = {}
    for place, block in enumerate(blocks):
        if is_dask_array(block):
            arguments += [block, (*rows, axes + 1 + place)]
        else:
            vectors[place] = block
    width = sum(output.size for output in outputs)
    return da.blockwise(
        _block,
        (*rows, axes),
        *arguments,
        work=work,
        outputs=list(outputs),
        vectors=vectors,
        new_axes={axes: width},
        concatenate=True,
        align_arrays=False,
        dtype=common_dtype(outputs),
        name=None,
        token=f"phistar-{work.name}",
    )


def _block(
    *blocks: Array, work: Work, outputs: Sequence[Output], vectors: Mapping[int, Array]
) -> Array:
    """All outputs for one chunk (..., numbers)."""
    lead = blocks[0].shape[:-1]
    rows = int(np.prod(lead))
    flat = iter([np.ascontiguousarray(block).reshape(rows, block.shape[-1]) for block in blocks])
    every = [
        np.broadcast_to(vectors[place], (rows, *vectors[place].shape))
        if place in vectors
        else next(flat)
        for place in range(len(blocks) + len(vectors))
    ]
    packed = work.packed(outputs, every)
    return packed.reshape(*lead, packed.shape[-1])


def _part(packed: StoredArray, output: Output, lead: tuple[int, ...]) -> StoredArray:
    """One output of packed rows, in its own shape and type."""
    part = packed[..., output.part].reshape(*lead, *output.shape)
    return part.astype(output.dtype)
