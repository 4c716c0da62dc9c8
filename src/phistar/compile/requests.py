# SPDX-License-Identifier: BSD-3-Clause
"""Requests: what is asked of a robot, before any robot is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from phistar.algebra.ir import Expr
from phistar.algorithms.programs import OutputBundle
from phistar.arrays import Array
from phistar.backends.policy import Work
from phistar.model.model import Model
from phistar.sweeps.matrix_requests import Full
from phistar.sweeps.matrix_requests import Request as MatrixPart

if TYPE_CHECKING:
    from phistar.scalar.program import Unrolled

Shape = tuple[int, ...]
RESULT_OUTPUT = "result"
"""What tracers call their result if there is one."""
Outputs = tuple[tuple[str, Expr], ...]
"""Expressions by name, in order."""

FULL = Full()

SCHEDULES = ("sequential", "parallel")
"""Ways to run recursions: link after link, or in O(log N) rounds (``sweeps.parallel``)."""


@dataclass(frozen=True)
class Vectors:
    """Vectors by name.

    Attributes:
        name: For people.
        vectors: Expressions.
        simplify: Look for the cheapest equal form even where the one given could be computed as it
            stands. Programs of the catalogue are what their names say, so they are not touched.
        regroup_inertia: Whether it is about the motion of the whole robot, see
            ``REGROUPABLE_PROGRAMS``.
        schedule: One of ``SCHEDULES``.
    """

    name: str
    vectors: Outputs
    simplify: bool = False
    regroup_inertia: bool = False
    schedule: str = "sequential"


@dataclass(frozen=True)
class MatrixOf:
    """The matrix of an operator, or a part of it.

    Attributes:
        name: For people.
        operator: An expression.
        part: Which part.
        regroup_inertia: As for ``Vectors``.
    """

    name: str
    operator: Expr
    part: MatrixPart = FULL
    regroup_inertia: bool = False


@dataclass(frozen=True, eq=False)
class Bundle:
    """Vectors and matrices over the joints that are wanted together; about the whole robot.

    Attributes:
        name: For people.
        vectors: Expressions.
        wanted: Its row in the catalogue.
    """

    name: str
    vectors: Outputs
    wanted: OutputBundle
    regroup_inertia: bool = True


@dataclass(frozen=True)
class Traced:
    """A quantity whose scalar program is traced for a robot directly.

    Attributes:
        name: As the method of ``Robot``.
        inputs: Names of what it reads, in the order of the entry's arguments.
        shape: Robot and choices -> the shape of the result for one sample; of several results by
            name.
        trace: Robot and choices -> the program.
        work: Robot and choices -> what decides whether and when it is compiled; None: there is no
            such program on this robot.
        choices: What a user may choose by keyword, and the defaults; ``frame`` has none.
        defined: What it is, in symbols or words, for people.
        program: Name of the program of the catalogue that it is derived from; none: it is traced
            by hand.
        admit: Robot and inputs (samples, size) by name -> inputs near them for which it has
            results, for tests; none: it has them everywhere.
        otherwise: Robot and choices -> the choices with which samples are done again whose results
            are not numbers, because the quicker program does not have them everywhere; None: it
            has what there is.
        trace_single: The same in single precision, where another one is better; None: it is not.
    """

    name: str
    inputs: tuple[str, ...]
    shape: Callable[..., Shape | Mapping[str, Shape]]
    trace: Callable[..., Unrolled]
    work: Callable[..., Work | None]
    choices: Mapping[str, object] = field(default_factory=dict, hash=False)
    defined: str = ""
    program: str = ""
    admit: Callable[[Model, Mapping[str, Array]], Mapping[str, Array]] | None = None
    otherwise: Callable[..., tuple[object, ...] | None] | None = None
    trace_single: Callable[..., Unrolled] | None = None

    @cached_property
    def derivative(self) -> Traced:
        """Its results and their derivatives; see ``compile.derivative_rows``."""
        from phistar.compile.derivative_rows import derivative_row

        return derivative_row(self)

    def everywhere(self, model: Model, *choices: object) -> tuple[object, ...]:
        """The choices of the program that has all results there are."""
        found = None if self.otherwise is None else self.otherwise(model, *choices)
        return choices if found is None else found

    def shapes(self, model: Model, *choices: object) -> Mapping[str, Shape]:
        """Of all results for one sample, by name."""
        found = self.shape(model, *choices)
        return found if isinstance(found, Mapping) else {RESULT_OUTPUT: found}


Request = Vectors | MatrixOf | Bundle | Traced
