# SPDX-License-Identifier: BSD-3-Clause
"""The matrix of an operator on a robot: requests planned, counted, and run in NumPy.

cheapest_plan(expr, request, model, frames)     the cheapest program, with its cost
evaluate(plan, q, inputs)                       numbers, for a batch
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phistar.algebra.ir import Expr
from phistar.algebra.spaces import TASK_MOTION
from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.components import GROUND
from phistar.model.configuration import normalized_configuration
from phistar.model.model import Model
from phistar.spatial import motion_transform, pose_inverse
from phistar.sweeps.column_support import BlockPartition, ColumnSupport, bit_set, set_bits
from phistar.sweeps.interpret_columns import ColumnInterpreter, Index, as_index
from phistar.sweeps.matrix_costs import matrix_cost
from phistar.sweeps.matrix_requests import (
    Apply,
    Block,
    BlockIndices,
    Col,
    Diag,
    Full,
    MatrixForm,
    MatrixTerm,
    Request,
    Row,
    matrix_forms,
    transpose_request,
)
from phistar.sweeps.op_costs import OperationCount

_Slices = dict[int, slice]
"""Where blocks lie, by their numbers."""


@dataclass(frozen=True, eq=False)
class MatrixPlan:
    """A program for a request on a robot.

    Attributes:
        form: The program.
        request: What it is asked for: the request, or its transpose if the form is transposed.
        model: The robot.
        frames: Names of the frames that B selects.
        rows, columns: Blocks of the form's codomain and domain.
        support: What is computed where.
    """

    form: MatrixForm
    request: Request
    model: Model
    frames: tuple[str, ...]
    rows: BlockPartition
    columns: BlockPartition
    support: ColumnSupport

    @property
    def name(self) -> str:
        """``"columns"`` or ``"propagation"``, with ``"*"`` for those of the adjoint."""
        return self.form.name + ("*" if self.form.transposed else "")

    def wanted_columns(self, part: MatrixTerm) -> Iterator[tuple[int, int]]:
        """For each row of blocks, the columns that a part is asked for."""
        return _wanted_columns(self.request, part, self.rows, self.columns)

    @property
    def cost(self) -> OperationCount:
        """What it costs for one sample."""
        asked = [(part, dict(self.wanted_columns(part))) for part in self.form.parts]
        return matrix_cost(self.support, self.model, self.rows, self.columns, asked)


def cheapest_plan(
    expr: Expr, request: Request, model: Model, frames: tuple[str, ...] = ()
) -> MatrixPlan:
    """The cheapest program for a request about an operator.

    Args:
        expr: The operator.
        request: What is wanted of its matrix.
        model: The robot.
        frames: Names of the frames that B selects.

    Raises:
        LoweringError: There is no program.
        ArgumentError: The request names a block that does not exist.
    """
    return cheapest_of(matrix_forms(expr, without_indices(request)), request, model, frames)


def cheapest_of(
    forms: Iterable[MatrixForm], request: Request, model: Model, frames: tuple[str, ...] = ()
) -> MatrixPlan:
    """The cheapest of some programs for a request; arguments as for ``cheapest_plan``."""
    plans = (plan_for_form(form, request, model, frames) for form in forms)
    return min(plans, key=lambda each: each.cost.total)


def all_plans(
    expr: Expr, request: Request, model: Model, frames: tuple[str, ...] = ()
) -> tuple[MatrixPlan, ...]:
    """Every program for a request: the same numbers by different routes."""
    return tuple(
        plan_for_form(form, request, model, frames)
        for form in matrix_forms(expr, without_indices(request))
    )


def without_indices(request: Request) -> Request:
    """The request without its blocks, on which programs do not depend."""
    if isinstance(request, Block):
        return Block(0, 0)
    if isinstance(request, Row):
        return Row(0)
    return Col(0) if isinstance(request, Col) else request


def plan_for_form(
    form: MatrixForm, request: Request, model: Model, frames: tuple[str, ...]
) -> MatrixPlan:
    """A program for a request on a robot."""
    request = transpose_request(request) if form.transposed else request
    rows = BlockPartition.of(form.codomain, model, frames)
    columns = BlockPartition.of(form.domain, model, frames)
    _check_blocks(request, rows, columns)
    asked: dict[tuple[int, int], int] = {}
    for part in form.parts:
        for row, chosen in _wanted_columns(request, part, rows, columns):
            place = (part.stream, rows.links[row])
            if rows.links[row] != GROUND:
                asked[place] = asked.get(place, 0) | chosen
    everything = 0
    for chosen in asked.values():
        everything |= chosen
    applied = isinstance(request, Apply)
    argument = "" if applied else form.argument
    sources = {} if applied else columns.sources(everything)
    support = ColumnSupport(form.schedule, model, argument, sources, asked)
    return MatrixPlan(form, request, model, frames, rows, columns, support)


def _check_blocks(request: Request, rows: BlockPartition, columns: BlockPartition) -> None:
    for name, blocks in (("row", rows), ("column", columns)):
        for number in as_tuple(getattr(request, name, ())):
            if not 0 <= number < len(blocks.sizes):
                have = f"there are {len(blocks.sizes)}, counted from 0"
                raise ArgumentError(f"no {name} of blocks {number}: {have}")


def as_tuple(links: BlockIndices) -> tuple[int, ...]:
    """The numbers that a request names."""
    return (links,) if isinstance(links, int) else links


def _wanted_columns(
    request: Request, part: MatrixTerm, rows: BlockPartition, columns: BlockPartition
) -> Iterator[tuple[int, int]]:
    count = range(len(rows.sizes))
    if isinstance(request, Apply):
        yield from ((row, 1) for row in count)
    elif isinstance(request, Full):
        for row in count:
            before = (1 << row) - 1 if part.kind == "half" else 0
            yield row, columns.all & ~before
    elif isinstance(request, Diag):
        yield from ((row, 1 << row) for row in count)
    elif isinstance(request, Col):
        yield from ((row, bit_set(as_tuple(request.column))) for row in count)
    elif isinstance(request, Block):
        first, second = as_tuple(request.row), as_tuple(request.column)
        asked = dict.fromkeys(first, bit_set(second))
        if part.kind == "mirror":
            for row in second:
                asked[row] = asked.get(row, 0) | bit_set(first)
        yield from asked.items()


def evaluate(
    plan: MatrixPlan, q: ArrayLike, inputs: Mapping[str, ArrayLike]
) -> Array | list[Array]:
    """What a plan gives.

    Args:
        plan: The plan.
        q: (..., nq).
        inputs: Vectors by name, as for ``sweeps.interpret.run``; for ``Apply`` also what the
            operator is applied to, under its name in ``lower.ARGUMENTS``.

    Returns:
        Blocks put together, in the order of bodies and of frames, those of joints as large as their
        degrees of freedom, others 6: (..., rows, columns), for ``Apply`` (..., rows), for ``Diag``
        a list of blocks (..., size, size).
    """
    q = normalized_configuration(plan.model, q)
    machine = ColumnInterpreter(plan.support, plan.model, q, inputs, plan.frames, plan.columns)
    machine.run()
    reader = _MatrixAssembler(plan, machine)
    if isinstance(plan.request, Apply):
        return reader.assemble(range(len(plan.rows.sizes)), (), 1)[..., 0]
    if isinstance(plan.request, Diag):
        blocks = reader.diagonal()
        return [np.swapaxes(b, -1, -2) for b in blocks] if plan.form.transposed else blocks
    rows = as_tuple(getattr(plan.request, "row", tuple(range(len(plan.rows.sizes)))))
    columns = as_tuple(getattr(plan.request, "column", tuple(range(len(plan.columns.sizes)))))
    result = reader.assemble(rows, columns)
    return np.swapaxes(result, -1, -2) if plan.form.transposed else result


class _MatrixAssembler:
    """Puts the rows of the parts together."""

    def __init__(self, plan: MatrixPlan, machine: ColumnInterpreter) -> None:
        self.plan = plan
        self.machine = machine
        batches = [machine.batch[:-1]]
        dtypes = [machine.transforms[0].dtype] if machine.transforms else [np.dtype(float)]
        for part in plan.form.parts:
            for link in plan.rows.links:
                value = machine.values.get((part.stream, link))
                if value is not None:
                    batches.append(value.shape[:-2])
                    dtypes.append(value.dtype)
        self.batch = np.broadcast_shapes(*batches)
        self.dtype = np.result_type(*dtypes)

    def rows(self) -> Iterator[tuple[MatrixTerm, int, int, Array]]:
        """(part, row, columns, block): what each part gives for each row of blocks."""
        support, machine = self.plan.support, self.machine
        for part in self.plan.form.parts:
            for row, asked in self.plan.wanted_columns(part):
                link = self.plan.rows.links[row]
                if link == GROUND:
                    continue
                chosen = asked & support.needed[part.stream][link]
                if not chosen:
                    continue
                value = np.atleast_2d(machine.columns_at(part.stream, link, chosen))
                value = self._at_frames(value, row)
                yield part, row, chosen, np.swapaxes(value, -1, -2)

    def _at_frames(self, value: Array, row: int) -> Array:
        """Motions of a link as those of the frame that the row stands for."""
        if self.plan.form.codomain is not TASK_MOTION:
            return value
        seat = self.plan.model.frame(self.plan.frames[row]).body_pose
        return np.asarray(value @ motion_transform(pose_inverse(seat)).T)

    def diagonal(self) -> list[Array]:
        """Diagonal blocks."""
        result = [np.zeros((*self.batch, d, d), self.dtype) for d in self.plan.rows.sizes]
        for part, row, _, block in self.rows():
            result[row] += block
            if part.kind == "mirror":
                result[row] += np.swapaxes(block, -1, -2)
        return result

    def assemble(
        self, rows: Sequence[int], columns: Sequence[int], width: int | None = None
    ) -> Array:
        """The matrix of some rows and columns of blocks."""
        places, height = _block_slices(rows, self.plan.rows)
        across, total = _block_slices(columns, self.plan.columns)
        result = np.zeros((*self.batch, height, total if width is None else width), self.dtype)
        for part, row, chosen, block in self.rows():
            if row in places:
                own = (
                    self._target_and_source(across, chosen)
                    if width is None
                    else (slice(None), slice(None))
                )
                result[..., places[row], own[0]] += block[..., own[1]]
            if part.kind != "plain" and width is None:
                self._mirror(result, part, row, chosen, block, (places, across))
        return result

    def _target_and_source(self, across: _Slices, chosen: int) -> tuple[Index, Index]:
        """Where chosen columns go, and where they come from, as far as they are wanted."""
        kept = [c for c in set_bits(chosen) if c in across]
        target = [np.arange(across[c].start, across[c].stop) for c in kept]
        source = self.machine.column_positions(chosen, bit_set(kept))
        return as_index(np.concatenate([np.zeros(0, dtype=int), *target])), source

    def _mirror(
        self,
        result: Array,
        part: MatrixTerm,
        row: int,
        chosen: int,
        block: Array,
        places: tuple[_Slices, _Slices],
    ) -> None:
        """The adjoint of a row of blocks, as far as it is wanted."""
        down, across = places
        if row not in across or (part.kind == "half" and not isinstance(self.plan.request, Full)):
            return
        if part.kind == "half":
            chosen, whole = chosen & ~(1 << row), chosen
            block = block[..., self.machine.column_positions(whole, chosen)]
        target, source = self._target_and_source(down, chosen)
        turned = np.swapaxes(block[..., source], -1, -2)
        result[..., target, across[row]] += turned


def _block_slices(blocks: Sequence[int], space: BlockPartition) -> tuple[_Slices, int]:
    """Where blocks lie when they are put together in the given order, and their size."""
    result, end = {}, 0
    for block in blocks:
        result[block] = slice(end, end + space.sizes[block])
        end += space.sizes[block]
    return result, end
