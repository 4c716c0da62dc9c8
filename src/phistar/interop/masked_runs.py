# SPDX-License-Identifier: BSD-3-Clause
"""Programs on NumPy arrays, where samples without a result become not a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from phistar import backends
from phistar.arrays import Array
from phistar.backends import Executable, RobotProgram
from phistar.model.configuration import quaternion_starts, quaternion_tolerances
from phistar.model.model import Model

if TYPE_CHECKING:
    from phistar.backends.to_llvm import MachineCode

_CONFIGURATIONS = ("q", "q0", "q1")


def run_masked(
    code: Executable | None, program: RobotProgram, model: Model, arrays: Mapping[str, Array]
) -> dict[str, Array] | None:
    """Outputs by name.

    Args:
        code: What runs the program; None, or while it is compiled: NumPy does.
        program: The program.
        model: The robot.
        arrays: Inputs (..., size) by name.

    Returns:
        None if the program is one of machine code alone and too large to be compiled.
    """
    found = None if code is None else code.try_run(arrays)
    if found is None:
        made = backends.get("numpy").build(program)
        with np.errstate(all="ignore"):
            found = None if made is None else made.try_run(arrays)
    if found is None and isinstance(code, _with_tiers()):
        # It is being compiled, and NumPy has no code for it.
        code.tiers().wait_for_final()
        found = code.try_run(arrays)
    if found is None:
        return None
    results, fine = found
    return results if fine else _masked(model, arrays, results, program.sample_shapes)


def _with_tiers() -> type[MachineCode]:
    from phistar.backends.to_llvm import MachineCode

    return MachineCode


def _masked(
    model: Model,
    arrays: Mapping[str, Array],
    results: dict[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
) -> dict[str, Array]:
    """Results in which samples are not numbers if anything of them is not."""
    bad: Array = np.zeros((), dtype=bool)
    for name, x in arrays.items():
        bad = bad | ~np.isfinite(x).all(axis=-1)
        if name in _CONFIGURATIONS:
            bad = bad | _off_unit(model, x)
    for name, x in results.items():
        own = len(shapes[name])
        bad = bad | ~np.isfinite(x).all(axis=tuple(range(x.ndim - own, x.ndim)))
    masked = {}
    for name, x in results.items():
        where = bad.reshape(bad.shape + (1,) * len(shapes[name]))
        masked[name] = np.where(where, np.array(np.nan, x.dtype), x)
    return masked


def _off_unit(model: Model, q: Array) -> Array:
    """Samples (...) with a quaternion that is too long or too short."""
    bad: Array = np.zeros(q.shape[:-1], dtype=bool)
    most = quaternion_tolerances(q.dtype)[1]
    for _, start in quaternion_starts(model):
        quaternion = q[..., start : start + 4]
        with np.errstate(all="ignore"):
            bad = bad | ~(np.abs((quaternion * quaternion).sum(axis=-1) - 1.0) <= most)
    return bad
