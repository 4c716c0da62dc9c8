# SPDX-License-Identifier: BSD-3-Clause
"""How a robot with loops can move: degrees of freedom, redundant rows, singular configurations."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from phistar.arguments import checked_state
from phistar.arrays import Array
from phistar.errors import ArgumentError, pluralize
from phistar.loops.assembly import USUAL_RANK_TOLERANCE, usual_rank
from phistar.loops.constrained_dynamics import (
    SINGULAR_TOLERANCE,
    describe_motion,
    require_closed,
)
from phistar.loops.minimal import minimal
from phistar.loops.rank import factored, rank_of, self_stress, singular_values
from phistar.loops.system import loop_system, rows_at
from phistar.model.components import Body, Coupling, LoopJoint
from phistar.model.configuration import Coordinates
from phistar.model.kinematic_loops import loop_ends
from phistar.model.model import Model

IDLE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Mobility:
    """How a robot can move at a configuration on its loops; ``print`` it.

    Attributes:
        degrees_of_freedom: nv less the rank at regular configurations.
        rank: Number of independent rows there.
        rows: Number of rows.
        redundant: Rows that follow from others.
        self_stress: (rows, redundant) multipliers that load the loops without joint forces.
        singular: Whether the rank is lower here than elsewhere.
        singular_motion: The motion that is possible here only, (nv,); None if regular.
        idle: Names of links that can move with everything else at rest, e.g. rods between balls.
        independent: Names of independent coordinates.
        grubler: What counting rows alone would give.
    """

    degrees_of_freedom: int
    rank: int
    rows: int
    redundant: int
    self_stress: Array = field(repr=False)
    singular: bool
    singular_motion: Array | None = field(repr=False)
    idle: tuple[str, ...]
    independent: tuple[str, ...]
    grubler: int
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text


def mobility(model: Model, q: Coordinates) -> Mobility:
    """How a robot can move near a configuration (nq,) on its loops."""
    (at,) = checked_state(model, q=q)
    if at.ndim != 1:
        raise ArgumentError(f"mobility is about one configuration, got q of shape {at.shape}")
    precision, at = float(np.finfo(at.dtype).eps), at.astype(float)
    system = loop_system(model)
    rows = rows_at(model, at)
    require_closed(model, rows, "mobility", precision)
    rank = max(usual_rank(model), int(rank_of(system, rows.L, USUAL_RANK_TOLERANCE)))
    motion = None
    singular = False
    if rank:
        values = singular_values(system, rows.L)
        singular = bool(values[rank - 1] < SINGULAR_TOLERANCE * values[0])
        if singular:
            V = np.linalg.svd(system.scaled(rows.L))[2]
            motion = V[rank - 1] * system.column_scale
            motion = motion / np.abs(motion).max()
    stress = self_stress(system, rows.L, rank) if system.count else np.zeros((0, 0))
    idle = _idle_links(model, factored(rows.L, rank).X) if rank else ()
    independent = minimal(model, at, reports=False).independent
    dof = model.nv - rank
    grubler = model.nv - system.count
    text = _sentence(model, dof, rank, motion, idle, independent)
    return Mobility(
        dof, rank, system.count, system.count - rank, stress, singular, motion, idle, independent,
        grubler, text,
    )  # fmt: skip


def _idle_links(model: Model, X: Array) -> tuple[str, ...]:
    """Links that can move alone: their joint's own velocities span motions that keep the loops."""
    if not X.shape[-1]:
        return ()
    Q = np.linalg.qr(X)[0]
    found = []
    for body in _ends_of_chains(model):
        own = np.zeros((model.nv, body.v_slice.stop - body.v_slice.start))
        own[body.v_slice] = np.eye(own.shape[1])
        # Cosines of the angles between the joint's motions and those that keep the loops.
        cosines = np.linalg.svd(Q.T @ own, compute_uv=False)
        if (cosines > 1.0 - IDLE_TOLERANCE).any():
            found.append(body.link)
    return tuple(found)


def _ends_of_chains(model: Model) -> list[Body]:
    """Bodies that a loop holds and that carry no other."""
    parents = {body.parent for body in model.bodies}
    held: set[int] = set()
    for loop in loop_system(model).loops:
        if isinstance(loop, LoopJoint):
            held |= {end.body for end in loop_ends(model, loop)}
    return [body for body in model.bodies if body.index in held - parents]


def _sentence(
    model: Model,
    dof: int,
    rank: int,
    motion: Array | None,
    idle: tuple[str, ...],
    independent: tuple[str, ...],
) -> str:
    system = loop_system(model)
    joints = sum(isinstance(loop, LoopJoint) for loop in system.loops)
    couplings = sum(isinstance(loop, Coupling) for loop in system.loops)
    parts = [pluralize(joints, "loop")] if joints or not couplings else []
    parts += [pluralize(couplings, "coupling")] if couplings else []
    text = (
        f"'{model.name}' has {pluralize(dof, 'degree')} of freedom: {model.nv} coordinates, "
        f"{' and '.join(parts)} with {pluralize(system.count, 'row')} of rank {rank}"
    )
    if rank < system.count:
        text += f" ({system.count - rank} redundant; counting rows gives {model.nv - system.count})"
    text += "."
    if independent:
        shown = ", ".join(independent[:8]) + (", …" if len(independent) > 8 else "")
        text += f" Independent: {shown}."
    if idle:
        text += f" Idle: {', '.join(idle)} can move alone."
    if motion is not None:
        text += f" Singular here: also {describe_motion(model, motion)}."
    return text


PASSAGE_RATIO = 1e-2
"""σ_r/σ₁ below which a passage near a singular configuration is an event."""


@dataclass(frozen=True)
class LoopEvent:
    """A passage near a singular configuration.

    Attributes:
        t: Time of the nearest knot [s].
        sample: Index of the sample, () where there is no batch.
        ratio: σ_r/σ₁ there.
        motion: The motion that is possible there besides.
    """

    t: float
    sample: tuple[int, ...]
    ratio: float
    motion: str

    def __str__(self) -> str:
        where = f" in sample {list(self.sample)}" if self.sample else ""
        return (
            f"t = {self.t:.6g} s{where}: near a singular configuration "
            f"(σ_r/σ₁ = {self.ratio:.1e}), where {self.motion} is possible too"
        )


def singular_passages(
    model: Model, t: Array, q: Array, rank: int | None = None
) -> tuple[LoopEvent, ...]:
    """Local minima of σ_r/σ₁ along motions (N, ..., nq) that are small."""
    system, rank = loop_system(model), usual_rank(model) if rank is None else rank
    if not rank:
        return ()
    rows = rows_at(model, q.astype(float)).L
    fine = np.asarray(np.isfinite(rows).all(axis=(-1, -2)))
    values = singular_values(system, np.where(fine[..., None, None], rows, 1.0))
    ratio: Array = np.where(
        fine, values[..., rank - 1] / np.maximum(values[..., 0], 1e-300), np.inf
    )
    padded: Array = np.pad(ratio, [(1, 1)] + [(0, 0)] * (ratio.ndim - 1), constant_values=np.inf)
    lowest = (ratio <= padded[:-2]) & (ratio < padded[2:]) & (ratio < PASSAGE_RATIO)
    found = []
    for index in np.argwhere(lowest):
        k, sample = int(index[0]), tuple(int(i) for i in index[1:])
        V = np.linalg.svd(system.scaled(rows[k, *sample]))[2]
        motion = describe_motion(model, V[rank - 1] * system.column_scale)
        found.append(LoopEvent(float(t[k]), sample, float(ratio[k, *sample]), motion))
    return tuple(found)
