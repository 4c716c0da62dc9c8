# SPDX-License-Identifier: BSD-3-Clause
"""Loops that hold frames wherever they are, or move joints and frames as they are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np

from phistar.arrays import Array
from phistar.loops.system import LoopMotion, RowsAtStates, loop_system
from phistar.model.components import Coupling
from phistar.model.loop_kinds import LOOP_KINDS
from phistar.model.model import Model
from phistar.spatial import pose_inverse, pose_product

Motion = Callable[[float], tuple[Array, Array, Array]]
"""Position (B,) or pose (B, 4, 4), velocity and acceleration (B, rows) of a drive at a time."""
Rows = TypeVar("Rows", bound=RowsAtStates)


@dataclass(frozen=True)
class Held:
    """Loops that are not just kept closed.

    Attributes:
        loops: Names of those that hold frames wherever they are.
        drives: Of those that move as they are told: velocity and acceleration (..., rows).
        positions: Of those that are told where, too: coordinates (...) or poses (..., 4, 4).
        rank: Number of independent rows, if that is known better than from the loops alone.
    """

    loops: frozenset[str] = frozenset()
    drives: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    positions: Mapping[str, Array] = field(default_factory=dict)
    rank: int | None = None

    @property
    def anywhere(self) -> frozenset[str]:
        """Names of loops whose place does not matter."""
        return self.loops - self.positions.keys()

    def driven(self, model: Model, rows: LoopMotion) -> LoopMotion:
        """Rows relative to the motion that is prescribed: errors, rates and their bias.

        Rows of a joint are its velocity, those of a frame its velocity in its own axes: what is
        told of both is taken off.
        """
        rows = self.placed(model, rows)
        if not self.drives:
            return rows
        batch = np.broadcast_shapes(
            rows.rate.shape[:-1], *(x.shape[:-1] for pair in self.drives.values() for x in pair)
        )
        rate, bias = (np.array(np.broadcast_to(x, (*batch, x.shape[-1])))
                      for x in (rows.rate, rows.bias))  # fmt: skip
        for loop, own in zip(loop_system(model).loops, loop_system(model).slices, strict=True):
            if loop.name in self.drives:
                velocity, acceleration = self.drives[loop.name]
                rate[..., own] -= velocity
                bias[..., own] -= acceleration
        return replace(rows, rate=rate, bias=bias)

    def placed(self, model: Model, rows: Rows) -> Rows:
        """Rows whose errors are relative to the places that are told, zero if there is none."""
        if not self.loops:
            return rows
        return replace(rows, find_error=partial(self._errors, model, rows))

    def _errors(self, model: Model, rows: RowsAtStates) -> Array:
        system, error = loop_system(model), rows.error
        batch = np.broadcast_shapes(
            error.shape[:-1],
            *(self.positions[x.name].shape[: -2 if not isinstance(x, Coupling) else None]
              for x in system.loops if x.name in self.positions),
        )  # fmt: skip
        error = np.array(np.broadcast_to(error, (*batch, system.count)))
        for loop, own in zip(system.loops, system.slices, strict=True):
            if loop.name in self.anywhere:
                error[..., own] = 0.0
        for coupling, own in system.couplings():
            if coupling.name in self.positions:
                error[..., own.start] -= self.positions[coupling.name]
        for number, joint, own in system.joints():
            if joint.name in self.positions and joint.kind == "distance":
                told = LOOP_KINDS[joint.kind].error(joint, self.positions[joint.name])
                error[..., own] -= told  # the distance is that of the poses
            elif joint.name in self.positions:
                place = pose_inverse(self.positions[joint.name])
                left = pose_product(place, rows.relative[..., number, :, :])
                error[..., own] = LOOP_KINDS[joint.kind].error(joint, left)
        return error

    def at_knots(self, chosen: slice | Array) -> Held:
        """The same for some entries of the first axis of what is told."""
        drives = {name: (v[chosen], a[chosen]) for name, (v, a) in self.drives.items()}
        places = {name: x[chosen] for name, x in self.positions.items()}
        return replace(self, drives=drives, positions=places)

    def of_batch(self, batch: tuple[int, ...]) -> Held:
        """The same with one axis in place of those of a batch."""
        axes = len(batch)

        def flat(told: Array) -> Array:
            core = told.shape[axes:]
            return np.broadcast_to(told, (*batch, *core)).reshape(-1, *core)

        drives = {name: (flat(v), flat(a)) for name, (v, a) in self.drives.items()}
        places = {name: flat(x) for name, x in self.positions.items()}
        return replace(self, drives=drives, positions=places)


NOT_HELD = Held()


@dataclass(frozen=True)
class Drives:
    """Motion of loops that is prescribed in time.

    Attributes:
        motions: By loop.
        rank: Number of independent rows.
        samples: Numbers, in the batch of the motions, of the samples that move; None: all.
    """

    motions: Mapping[str, Motion]
    rank: int
    samples: Array | None = None

    def of_samples(self, chosen: Array) -> Drives:
        """The same for some samples, by number."""
        return replace(self, samples=chosen if self.samples is None else self.samples[chosen])

    def at(self, t: float | Array) -> Held:
        """What is told at a time, for (B, ...) states; at times (n,) for (n, B, ...) states."""
        if np.ndim(t):
            found = [self.at(float(each)) for each in np.asarray(t)]
            drives, places = {}, {}
            for name in self.motions:
                pairs = [held.drives[name] for held in found]
                drives[name] = (np.stack([v for v, _ in pairs]), np.stack([a for _, a in pairs]))
                places[name] = np.stack([held.positions[name] for held in found])
            return Held(frozenset(self.motions), drives, places, self.rank)
        told = {
            name: tuple(self._of_samples(x) for x in motion(float(t)))
            for name, motion in self.motions.items()
        }
        return Held(
            frozenset(told),
            {name: (v, a) for name, (_, v, a) in told.items()},
            {name: place for name, (place, _, _) in told.items()},
            self.rank,
        )

    def _of_samples(self, told: Array) -> Array:
        """What is told of the samples that move; one for all stays one."""
        return told if self.samples is None or len(told) == 1 else told[self.samples]
