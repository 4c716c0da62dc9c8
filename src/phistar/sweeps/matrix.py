# SPDX-License-Identifier: BSD-3-Clause
"""The matrix of an operator on a robot: requests planned, counted, and run in NumPy.

plan(expr, request, model, frames)     the cheapest program, with its cost
evaluate(plan, q, inputs)              numbers, for a batch
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.algebra.ir import Expr
from phistar.algebra.spaces import TASK_MOTION
from phistar.errors import ArgumentError
from phistar.model.configuration import configuration
from phistar.model.model import Model
from phistar.model.parts import GROUND
from phistar.spatial import motion_transform, pose_inverse
from phistar.sweeps.column_costs import column_cost
from phistar.sweeps.columns import ColumnMachine
from phistar.sweeps.costs import Cost
from phistar.sweeps.requests import (
    Apply,
    Block,
    Col,
    Diag,
    Form,
    Full,
    Links,
    Part,
    Request,
    Row,
    forms,
    transposed,
)
from phistar.sweeps.support import Blocks, Support, members, subset

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Plan:
    """A program for a request on a robot.

    Attributes:
        form: The program.
        request: What it is asked for: the request, or its transpose if the form is transposed.
        model: The robot.
        frames: Names of the frames that B speaks of.
        rows, columns: Blocks of the form's codomain and domain.
        support: What is computed where.
    """

    form: Form
    request: Request
    model: Model
    frames: tuple[str, ...]
    rows: Blocks
    columns: Blocks
    support: Support

    @property
    def name(self) -> str:
        """``"columns"`` or ``"walks"``, with ``"*"`` for those of the adjoint."""
        return self.form.name + ("*" if self.form.transposed else "")

    def wanted(self, part: Part) -> Iterator[tuple[int, int]]:
        """For each row of blocks, the columns that a part is asked for."""
        return _wanted(self.request, part, self.rows, self.columns)

    @property
    def cost(self) -> Cost:
        """What it costs for one sample."""
        asked = [(part, dict(self.wanted(part))) for part in self.form.parts]
        return column_cost(self.support, self.model, self.rows, self.columns, asked)


def plan(expr: Expr, request: Request, model: Model, frames: tuple[str, ...] = ()) -> Plan:
    """The cheapest program for a request about an operator.

    Args:
        expr: The operator.
        request: What is wanted of its matrix.
        model: The robot.
        frames: Names of the frames that B speaks of.

    Raises:
        LoweringError: There is no program.
        ArgumentError: The request names a block that does not exist.
    """
    return min(plans(expr, request, model, frames), key=lambda each: each.cost.total)


def plans(
    expr: Expr, request: Request, model: Model, frames: tuple[str, ...] = ()
) -> tuple[Plan, ...]:
    """Every program for a request: the same numbers by different routes."""
    return tuple(plan_of(form, request, model, frames) for form in _forms(expr, _kind(request)))


@lru_cache(maxsize=256)
def _forms(expr: Expr, kind: Request) -> tuple[Form, ...]:
    return forms(expr, kind)


def _kind(request: Request) -> Request:
    """The request without its blocks, on which programs do not depend."""
    if isinstance(request, Block):
        return Block(0, 0)
    if isinstance(request, Row):
        return Row(0)
    return Col(0) if isinstance(request, Col) else request


def plan_of(form: Form, request: Request, model: Model, frames: tuple[str, ...]) -> Plan:
    """A program for a request on a robot."""
    request = transposed(request) if form.transposed else request
    rows = Blocks.of(form.codomain, model, frames)
    columns = Blocks.of(form.domain, model, frames)
    _check_blocks(request, rows, columns)
    asked: dict[tuple[int, int], int] = {}
    for part in form.parts:
        for row, chosen in _wanted(request, part, rows, columns):
            place = (part.stream, rows.links[row])
            if rows.links[row] != GROUND:
                asked[place] = asked.get(place, 0) | chosen
    everything = 0
    for chosen in asked.values():
        everything |= chosen
    applied = isinstance(request, Apply)
    argument = "" if applied else form.argument
    sources = {} if applied else columns.sources(everything)
    support = Support(form.schedule, model, argument, sources, asked)
    return Plan(form, request, model, frames, rows, columns, support)


def _check_blocks(request: Request, rows: Blocks, columns: Blocks) -> None:
    for name, blocks in (("row", rows), ("column", columns)):
        for number in listed(getattr(request, name, ())):
            if not 0 <= number < len(blocks.sizes):
                have = f"there are {len(blocks.sizes)}, counted from 0"
                raise ArgumentError(f"no {name} of blocks {number}: {have}")


def listed(links: Links) -> tuple[int, ...]:
    """The numbers that a request names."""
    return (links,) if isinstance(links, int) else links


def _wanted(
    request: Request, part: Part, rows: Blocks, columns: Blocks
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
        yield from ((row, subset(listed(request.column))) for row in count)
    elif isinstance(request, Block):
        first, second = listed(request.row), listed(request.column)
        asked = dict.fromkeys(first, subset(second))
        if part.kind == "mirror":
            for row in second:
                asked[row] = asked.get(row, 0) | subset(first)
        yield from asked.items()


def evaluate(plan: Plan, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> Any:
    """What a plan gives.

    Args:
        plan: The plan.
        q: (..., nq).
        inputs: Vectors by name, as for ``sweeps.interpret.run``; for ``Apply`` also what the
            operator is applied to, under its name in ``requests.ARGUMENTS``.

    Returns:
        Blocks put together, in the order of bodies and of frames, those of joints as large as their
        degrees of freedom, others 6: (..., rows, columns), for ``Apply`` (..., rows), for ``Diag``
        a list of blocks (..., size, size).
    """
    q = configuration(plan.model, q)
    machine = ColumnMachine(plan.support, plan.model, q, inputs, plan.frames, plan.columns)
    machine.run()
    reader = _Reader(plan, machine)
    if isinstance(plan.request, Apply):
        return reader.canvas(range(len(plan.rows.sizes)), (), 1)[..., 0]
    if isinstance(plan.request, Diag):
        blocks = reader.diagonal()
        return [np.swapaxes(b, -1, -2) for b in blocks] if plan.form.transposed else blocks
    rows = listed(getattr(plan.request, "row", tuple(range(len(plan.rows.sizes)))))
    columns = listed(getattr(plan.request, "column", tuple(range(len(plan.columns.sizes)))))
    result = reader.canvas(rows, columns)
    return np.swapaxes(result, -1, -2) if plan.form.transposed else result


class _Reader:
    """Puts the rows of the parts together."""

    def __init__(self, plan: Plan, machine: ColumnMachine) -> None:
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

    def rows(self) -> Iterator[tuple[Part, int, int, Array]]:
        """(part, row, columns, block): what each part gives for each row of blocks."""
        support, machine = self.plan.support, self.machine
        for part in self.plan.form.parts:
            for row, asked in self.plan.wanted(part):
                link = self.plan.rows.links[row]
                if link == GROUND:
                    continue
                chosen = asked & support.needed[part.stream][link]
                if not chosen:
                    continue
                value = np.atleast_2d(machine.at(part.stream, link, chosen))
                value = self._picked(value, row)
                yield part, row, chosen, np.swapaxes(value, -1, -2)

    def _picked(self, value: Array, row: int) -> Array:
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

    def canvas(self, rows: Any, columns: Any, width: int | None = None) -> Array:
        """The matrix of some rows and columns of blocks."""
        places, height = _places(rows, self.plan.rows)
        across, total = _places(columns, self.plan.columns)
        result = np.zeros((*self.batch, height, total if width is None else width), self.dtype)
        for part, row, chosen, block in self.rows():
            if row in places:
                own = self._spots(across, chosen) if width is None else (slice(None), slice(None))
                result[..., places[row], own[0]] += block[..., own[1]]
            if part.kind != "plain" and width is None:
                self._mirror(result, part, row, chosen, block, (places, across))
        return result

    def _spots(self, across: dict[int, slice], chosen: int) -> tuple[Array, Array]:
        """Where chosen columns go, and where they come from, as far as they are wanted."""
        kept = [c for c in members(chosen) if c in across]
        target = [np.arange(across[c].start, across[c].stop) for c in kept]
        source = self.machine.places(chosen, subset(kept))
        return np.concatenate([np.zeros(0, dtype=int), *target]), source

    def _mirror(
        self, result: Array, part: Part, row: int, chosen: int, block: Array, places: Any
    ) -> None:
        """The adjoint of a row of blocks, as far as it is wanted."""
        down, across = places
        if row not in across or (part.kind == "half" and not isinstance(self.plan.request, Full)):
            return
        if part.kind == "half":
            chosen, whole = chosen & ~(1 << row), chosen
            block = block[..., self.machine.places(whole, chosen)]
        target, source = self._spots(down, chosen)
        turned = np.swapaxes(block[..., source], -1, -2)
        result[..., target, across[row]] += turned


def _places(blocks: Any, space: Blocks) -> tuple[dict[int, slice], int]:
    """Where blocks lie when they are put together in the given order, and their size."""
    result, end = {}, 0
    for block in blocks:
        result[block] = slice(end, end + space.sizes[block])
        end += space.sizes[block]
    return result, end
