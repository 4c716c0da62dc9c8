# SPDX-License-Identifier: BSD-3-Clause
"""Results whose structural zeros need not be written again and again, and whether that pays."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from phistar.backends import RobotProgram
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.nonzero_runs import written_lines
from phistar.backends.policy import UNROLLED, decide_kept_zeros, this_machine
from phistar.compile.part_rows import PATTERNS, entry_pattern
from phistar.model.joint_map import joint_map
from phistar.model.model import Model

KEPT_ZEROS: Mapping[str, Mapping[str, str]] = {
    "mass_matrix": {"mass_matrix": "related"},
    "linearize_inverse": {f"tau_{name}": kind for name, kind in PATTERNS.items()},
}
"""Quantities, their matrices over the joints, and what is zero in these (``entry_pattern``)."""


def kept_zeros(
    program: RobotProgram, name: str, real: str = "double", samples: float = math.inf
) -> tuple[bool, str]:
    """Whether code that leaves lines of zeros as they are is worth having, and why.

    Args:
        program: What computes all of a quantity on a robot.
        name: The quantity, one of ``KEPT_ZEROS``.
        real: ``"double"`` or ``"float"``.
        samples: In a batch.
    """
    model, width = program.model, this_machine(real).lanes
    if not joint_map(model).is_identity or program.decision.shape != UNROLLED:
        return False, "results that keep zeros: unrolled code for every joint by itself has them"
    if samples < width:
        few = f"{samples} samples, a block of samples side by side has {width}"
        return False, f"results that keep zeros are written in full: {few}"
    patterns = [entry_pattern(model, kind) for kind in KEPT_ZEROS[name].values()]
    written = sum(_count_written(model, pattern.places, width) for pattern in patterns)
    lines = len(patterns) * model.nv**2
    return decide_kept_zeros(lines, lines - written, Lanes(width, real).bytes)


def _count_written(model: Model, places: np.ndarray, width: int) -> int:
    """Lines of a matrix that a block of samples writes, of as many as the matrix has entries."""
    zeros = np.flatnonzero(places.ravel() < 0).tolist()
    return sum(1 for _ in written_lines(zeros, model.nv**2, width))
