# SPDX-License-Identifier: BSD-3-Clause
"""The step of inverse kinematics as a row of traced quantities, and its calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from phistar.arrays import Array
from phistar.backends.policy import TracedWork
from phistar.compile import Traced, add_traced, numpy_results, traced_executable
from phistar.model.model import Model
from phistar.model.target_rows import TargetRows

if TYPE_CHECKING:
    from phistar.scalar.program import Unrolled

StepKey = tuple[str, tuple[str, ...], tuple[TargetRows, ...] | None, tuple[str, ...], bool]
"""Name, frames, targets, joints that do not move, and whether limits are kept."""


def _rows(
    frames: tuple[str, ...], targets: tuple[TargetRows, ...] | None
) -> tuple[TargetRows, ...]:
    """What is wanted: poses of the frames, unless it is said."""
    return tuple(TargetRows("pose", frame) for frame in frames) if targets is None else targets


def _trace(
    model: Model,
    frames: tuple[str, ...],
    targets: tuple[TargetRows, ...] | None,
    fixed: tuple[str, ...],
    limited: bool,
) -> Unrolled:
    from phistar.scalar.trace.target_programs import target_step

    return target_step(model, _rows(frames, targets), fixed, limited)


def _shapes(
    model: Model, frames: tuple[str, ...], targets: tuple[TargetRows, ...] | None, *_: object
) -> Mapping[str, tuple[int, ...]]:
    from phistar.scalar.trace.target_programs import row_counts

    rows = _rows(frames, targets)
    levels = len({row.priority for row in rows})
    return {
        "q_next": (model.nq,),
        "errors": (sum(row_counts(model, rows)),),
        "squares": (len(rows),),
        "merit": (levels,),
        "length": (1,),
    }


def _work(
    model: Model, frames: tuple[str, ...], targets: tuple[TargetRows, ...] | None, *_: object
) -> TracedWork | None:
    """The paths to all frames; all links where it is about the whole robot."""
    rows = _rows(frames, targets)
    paths = [
        len(model.ancestors(model.frame(row.frame).body)) if row.frame else len(model.bodies)
        for row in rows
    ]
    return TracedWork(sum(paths), len(rows)) if model.nv and rows else None


STEP = add_traced(
    Traced(
        "inverse_kinematics_step",
        ("q", "goals", "scales", "mu"),
        _shapes,
        _trace,
        _work,
        choices={"frames": None, "targets": None, "fixed": (), "limited": True},
        defined="q ⊕ A*(A A* + λ)⁻¹ e inside the limits, A = -∂e/∂q of the errors e of targets",
    )
)


def take_step(
    model: Model, key: StepKey, q: Array, goals: Array, scales: Array, mu: Array
) -> dict[str, Array]:
    """Steps of samples; whatever one of them gives, the others do not notice.

    Args:
        model: The robot.
        key: Which program.
        q: (samples, nq).
        goals: (samples, numbers).
        scales: (samples, groups).
        mu: (samples, 1).
    """
    code = traced_executable(model, key)
    found = None
    if code is not None:
        found = code.try_run({"q": q, "goals": goals, "scales": scales, "mu": mu})
    return numpy_results(model, key, q, goals, scales, mu) if found is None else found[0]
