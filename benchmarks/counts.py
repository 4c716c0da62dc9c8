# SPDX-License-Identifier: BSD-3-Clause
"""Operations on a sample: additions, subtractions and multiplications of the code that runs.

Divisions, signs, sines and cosines are not counted, as in the figures to compare with.
"""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path

import phistar
from benchmarks import cases
from phistar import Robot, backends
from phistar.backends.policy import (
    BundleWork,
    Decision,
    Machine,
    MatrixWork,
    decide,
    this_machine,
)
from phistar.backends.to_llvm import MachineCode
from phistar.compile import (
    cheapest_equivalent,
    kernel,
)
from phistar.scalar.lower import LoweringOptions, to_unrolled
from phistar.scalar.lower_matrix import to_unrolled_matrix
from phistar.scalar.program import count_arithmetic

SNAP = 1e-10
"""Constants this close to 0, 1 and -1 became that in the figures to compare with."""


@dataclass(frozen=True)
class Count:
    """Operations of a program on a robot.

    Attributes:
        robot, quantity: What it computes.
        operations: Additions, subtractions, multiplications; None if nothing was counted.
        shape: ``"straight"``, ``"rolled"`` (loops over links) or ``"numpy"`` (no machine code).
    """

    robot: str
    quantity: str
    operations: int | None
    shape: str


def count(name: str, quantity: str) -> Count:
    """Of the code that a method runs on a robot of ``cases.ROBOTS``, in double precision."""
    code = _code(cases.robot(name), quantity)
    if code is None:
        return Count(name, quantity, None, "numpy")
    final = code.tiers().wait_for_final()
    return Count(name, quantity, final.operations, final.shape)


def decision(cell: cases.Cell) -> Decision:
    """How a cell is computed by default; runs wait for the final shape."""
    robot = cases.robot(cell.robot)
    code = _code(robot, cell.quantity)
    if code is None and cell.quantity in cases.DERIVATIVES:
        return decide(BundleWork(robot.nv), len(robot.model.bodies))
    if code is None:
        return decide(MatrixWork(robot.nv, robot.nv**2), len(robot.model.bodies))
    real = "double" if cell.real == "float64" else "float"
    final = code.tiers(real=real).wait_for_final()
    host = Machine(this_machine(real).lanes, cell.threads)
    bodies, operations = len(robot.model.bodies), final.operations
    return decide(code.program.work, bodies, cell.batch, machine=host, operations=operations)


def _code(robot: Robot, quantity: str) -> MachineCode | None:
    """What runs, if it is machine code."""
    found = kernel(cheapest_equivalent(quantity), robot.model).build(robot.model)
    return found if isinstance(found, MachineCode) else None


# -- next to figures of others

FIGURES = {
    "panda, 9 joints": (714, 1371, 501, 1697),
    "anymal": (776, 1100, 210, 464),
    "anymal, free base": (1517, 3037, 648, 4426),
    "talos, free base": (5341, 11266, 5744, 40638),
}
"""Fewest operations known for the first four quantities, in the order of ``cases.QUANTITIES``."""

_FILES = {
    "panda, 9 joints": ("panda_description/urdf/panda.urdf", False),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", False),
    "anymal, free base": ("anymal_b_simple_description/robots/anymal.urdf", True),
    "talos, free base": ("talos_data/robots/talos_full_v2.urdf", True),
}

_TRACED = 30_000
"""Operations above which counting takes too long to be done here."""


@dataclass(frozen=True)
class Figure:
    """Operations next to the fewest known: as the file has it, and with constants snapped."""

    robot: str
    quantity: str
    operations: int
    snapped: int
    known: int


def figures() -> list[Figure]:
    """For the robots of the package example-robot-data, if it is there."""
    folder = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"
    found = []
    for name, (file, free) in _FILES.items():
        if (folder / file).is_file():
            robot = phistar.load(folder / file, floating_base=free)
            for quantity, known in zip(cases.QUANTITIES, FIGURES[name], strict=False):
                if known <= _TRACED:
                    plain, snapped = (_straight(robot, quantity, s) for s in (None, SNAP))
                    found.append(Figure(name, quantity, plain, snapped, known))
    return found


def _straight(robot: Robot, quantity: str, snap: float | None) -> int:
    """Operations of the straight line."""
    options = (
        LoweringOptions(regroup=True) if snap is None else LoweringOptions(regroup=True, snap=snap)
    )
    absent = frozenset(backends.OPTIONAL_INPUTS)
    if quantity in cases.VECTORS:
        program = to_unrolled(
            kernel(cheapest_equivalent(quantity)).schedule,
            robot.model,
            absent=absent,
            options=options,
        )
    else:
        draft = kernel(quantity).draft
        (wanted,) = draft.forms.values()
        program = to_unrolled_matrix(
            wanted, robot.model, absent=absent, options=options, factors=draft.factors
        )
    return count_arithmetic(program.count())
