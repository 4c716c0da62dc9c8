# SPDX-License-Identifier: BSD-3-Clause
"""Rows for derivatives of traced quantities, made of their own programs, of any order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from phistar.compile.requests import Shape, Traced
from phistar.model.model import Model

if TYPE_CHECKING:
    from phistar.scalar.program import Unrolled

CONFIGURATIONS = ("q", "q0", "q1")
"""Inputs of traced quantities that are configurations: nv directions, not nq."""


def derivative_row(row: Traced) -> Traced:
    """The results of a quantity and their derivatives with respect to each input.

    Those are called ``result_argument`` and are the shape of the result, with one more axis. It is
    not in the table of rows: ``compile_request(TRACED[name].derivative)`` is its kernel.
    """

    def shape(model: Model, *choices: object) -> Mapping[str, Shape]:
        from phistar.scalar.trace.differentiated import derivative_name

        results = row.shapes(model, *choices)
        widths = _widths(model, row, choices)
        changes = {
            derivative_name(result, name): (*own, width)
            for result, own in results.items()
            for name, width in widths.items()
        }
        return {**results, **changes}

    def trace(model: Model, *choices: object) -> Unrolled:
        from phistar.scalar.trace.differentiated import differentiated

        return differentiated(model, row.trace(model, *choices))

    return Traced(
        f"{row.name}'",
        row.inputs,
        shape,
        trace,
        row.work,
        choices=row.choices,
        defined=f"{row.name}, differentiated operation by operation",
    )


def _widths(model: Model, row: Traced, choices: tuple[object, ...]) -> dict[str, int]:
    """How many directions each input has."""
    sizes = input_sizes(model, row, choices)
    return {name: model.nv if name in CONFIGURATIONS else size for name, size in sizes.items()}


_SIZES = {"dt": 1, "damping": 1}


def input_sizes(model: Model, row: Traced, choices: tuple[object, ...]) -> dict[str, int]:
    """Numbers of a sample in each input: nq, nv or one."""
    del choices
    return {
        name: model.nq if name in CONFIGURATIONS else _SIZES.get(name, model.nv)
        for name in row.inputs
    }
