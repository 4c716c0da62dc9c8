# SPDX-License-Identifier: BSD-3-Clause
"""What is known of a robot's active loops, and their rows at states.

L = Γ*φ*H* + C has a block of rows per loop, in the order of ``model.loops``; rows of loop joints
are in the axes of the successor frame. Lv = 0 and Lv̇ = -L̇v on the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from phistar.arrays import Array, as_vectors
from phistar.compile import traced_results
from phistar.errors import ArgumentError
from phistar.loops.long_chains import chain_results, long_chains
from phistar.model.components import Coupling, Loop, LoopJoint
from phistar.model.kinematic_loops import active_loops, loop_ends, loop_label
from phistar.model.loop_kinds import LOOP_KINDS, LowerPair, wrench_columns
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model

_LINEAR = ("m", "m/s")


@dataclass(frozen=True)
class LoopSystem:
    """The active loops of a robot.

    Attributes:
        loops: In the order of the model.
        slices: Rows of each.
        tree: The robot without its loops.
        size: Length of the longest chain of a loop [m]: rows in metres are compared with it.
        is_length: (rows,) booleans: rows in metres, not radians.
        row_scale: (rows,) makes rows dimensionless.
        column_scale: (nv,) makes coordinates dimensionless.
        holonomic: (rows,) booleans: rows that constrain the configuration, too.
    """

    loops: tuple[Loop, ...]
    slices: tuple[slice, ...]
    tree: Model
    size: float
    is_length: Array
    row_scale: Array
    column_scale: Array
    holonomic: Array

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.row_scale)

    @cached_property
    def row_names(self) -> tuple[str, ...]:
        """``loop[i]`` of each row."""
        return tuple(
            loop.name if isinstance(loop, Coupling) else f"{loop.name}[{i}]"
            for loop, rows in zip(self.loops, self.slices, strict=True)
            for i in range(rows.stop - rows.start)
        )

    def joints(self) -> Iterator[tuple[int, LoopJoint, slice]]:
        """Loop joints with their number among loop joints, and their rows."""
        number = 0
        for loop, rows in zip(self.loops, self.slices, strict=True):
            if isinstance(loop, LoopJoint):
                yield number, loop, rows
                number += 1

    def couplings(self) -> Iterator[tuple[Coupling, slice]]:
        """Couplings with their rows."""
        for loop, rows in zip(self.loops, self.slices, strict=True):
            if isinstance(loop, Coupling):
                yield loop, rows

    @cached_property
    def alike(self) -> tuple[tuple[LoopJoint, list[int], list[int]], ...]:
        """Loop joints that differ in their frames alone: one of them, all numbers, all rows."""
        found: dict[tuple[object, ...], tuple[LoopJoint, list[int], list[int]]] = {}
        for number, loop, rows in self.joints():
            key = (loop.kind, loop.axis, loop.size)
            _, numbers, places = found.setdefault(key, (loop, [], []))
            numbers.append(number)
            places += range(rows.start, rows.stop)
        return tuple(found.values())

    def label(self, row: int) -> str:
        """The loop of a row, for messages."""
        for loop, rows in zip(self.loops, self.slices, strict=True):
            if rows.start <= row < rows.stop:
                return loop_label(loop)
        raise AssertionError(f"no row {row}")

    def by_loop(self, values: Array) -> dict[str, Array]:
        """Parts of an array (..., rows) by loop."""
        return {
            loop.name: values[..., rows] for loop, rows in zip(self.loops, self.slices, strict=True)
        }

    def scaled(self, rows: Array) -> Array:
        """L without units."""
        return np.asarray(self.row_scale[:, None] * rows * self.column_scale)


@cached_on_model
def loop_system(model: Model) -> LoopSystem:
    """The active loops of a robot, maybe none."""
    loops = active_loops(model.loops)
    size = _size(model, loops)
    slices, found, holonomic, first = [], [], [], 0
    for loop in loops:
        own, conditions = _lengths(model, loop)
        slices.append(slice(first, first + len(own)))
        found += own
        holonomic += conditions
        first += len(own)
    units = [unit for name in model.joint_names for unit in model.joints[name].joint_kind.v_units]
    columns = np.array([size if unit in _LINEAR else 1.0 for unit in units])
    lengths = np.array(found, dtype=bool)
    return LoopSystem(
        loops,
        tuple(slices),
        model.without_loops(),
        size,
        lengths,
        np.where(lengths, 1.0 / size, 1.0),
        columns,
        np.array(holonomic, dtype=bool),
    )


def _size(model: Model, loops: tuple[Loop, ...]) -> float:
    """Length of the longest chain from one end of a loop to the other [m]; 1 if all are zero."""
    lengths = [0.0]
    for loop in loops:
        if isinstance(loop, LoopJoint):
            first, second = loop_ends(model, loop)
            one, two = model.ancestors(first.body), model.ancestors(second.body)
            path = set(one) ^ set(two)
            offsets = [model.bodies[k].placement[:3, 3] for k in path]
            offsets += [end.pose[:3, 3] for end in (first, second)]
            lengths.append(float(sum(np.sqrt(x @ x) for x in offsets)) + loop.size)
    return max(lengths) or 1.0


def _lengths(model: Model, loop: Loop) -> tuple[list[bool], list[bool]]:
    """Which rows of a loop are in metres, and which constrain the configuration, too."""
    if isinstance(loop, Coupling):
        (unit,) = model.joints[loop.joint].joint_kind.q_units
        return [unit in _LINEAR], [True]
    kind = LOOP_KINDS[loop.kind]
    angular = kind.angular_rows if isinstance(kind, LowerPair) else 0
    return [False] * angular + [True] * (kind.rows - angular), list(kind.holonomic)


@dataclass(frozen=True)
class RowsAtStates:
    """Rows of the active loops at configurations.

    Attributes:
        relative: (..., loop joints, 4, 4) pose of each successor frame in its predecessor frame.
        L: (..., rows, nv).
        find_error: Works out ``error``, which many do not need.
    """

    relative: Array
    L: Array
    find_error: Callable[[], Array] = field(repr=False)

    @cached_property
    def error(self) -> Array:
        """(..., rows) how far open each loop is [rad, m]; zero for rows on velocities alone."""
        return self.find_error()


@dataclass(frozen=True)
class LoopMotion(RowsAtStates):
    """The same with ``rate`` = Lv and ``bias`` = L̇v, each (..., rows)."""

    rate: Array
    bias: Array

    def of_samples(self, chosen: Array) -> LoopMotion:
        """Those of chosen samples, of (B, ...) states."""
        relative, L, rate, bias = (x[chosen] for x in (self.relative, self.L, self.rate, self.bias))
        return LoopMotion(relative, L, lambda: self.error[chosen], rate, bias)


def rows_at(model: Model, q: Array) -> RowsAtStates:
    """Rows at checked configurations (..., nq)."""
    system = loop_system(model)
    if not system.loops:
        return RowsAtStates(*_nothing(model, q))
    found = _results(model, "loop_rows", q)
    relative = found["poses"]
    return RowsAtStates(relative, found["rows"], partial(_errors, model, system, q, relative))


def motion_at(model: Model, q: Array, v: Array) -> LoopMotion:
    """Rows and rates at checked states (..., nq), (..., nv)."""
    system = loop_system(model)
    if not system.loops:
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        return LoopMotion(*_nothing(model, q), np.zeros((*batch, 0)), np.zeros((*batch, 0)))
    found = _results(model, "loop_motion", q, v)
    relative = found["poses"]
    find_error = partial(_errors, model, system, q, relative)
    return LoopMotion(relative, found["rows"], find_error, found["rate"], found["bias"])


def _results(model: Model, name: str, q: Array, *velocity: Array) -> Mapping[str, Array]:
    """What a program of rows gives, with whole poses; of long chains without a program."""
    chains = long_chains(model)
    if chains is not None:
        return chain_results(chains, model, q, *velocity)
    found = traced_results(model, (name,), q, *velocity)
    return {**found, "poses": _poses(found["poses"])}


def tangents_at(
    model: Model, q: Array, v: Array, vdot: Array, multipliers: Array
) -> Mapping[str, Array]:
    """``rate_q``, ``acceleration_q``, ``acceleration_v`` (..., rows, nv), ``force_q``."""
    return traced_results(model, ("loop_tangents",), q, v, vdot, multipliers)


def _nothing(model: Model, q: Array) -> tuple[Array, Array, Callable[[], Array]]:
    batch = q.shape[:-1]
    none = np.zeros((*batch, 0))
    return np.zeros((*batch, 0, 4, 4)), np.zeros((*batch, 0, model.nv)), lambda: none


def _poses(rows: Array) -> Array:
    """(..., 3, 4) as (..., 4, 4)."""
    result = np.zeros((*rows.shape[:-2], 4, 4), rows.dtype)
    result[..., :3, :] = rows
    result[..., 3, 3] = 1.0
    return result


def _errors(model: Model, system: LoopSystem, q: Array, relative: Array) -> Array:
    batch = np.broadcast_shapes(q.shape[:-1], relative.shape[:-3])
    result = np.zeros((*batch, system.count), np.result_type(q, relative))
    for loop, numbers, places in system.alike:
        found = LOOP_KINDS[loop.kind].error(loop, relative[..., numbers, :, :])
        result[..., places] = as_vectors(found)
    for coupling, rows in system.couplings():
        result[..., rows.start] = _coupling_error(model, coupling, q)
    return result


def _coupling_error(model: Model, loop: Coupling, q: Array) -> Array:
    """y - y₀ - f(x - x₀), (...)."""
    y0, x0 = loop.references
    constant = loop.coefficients[0] if loop.coefficients else 0.0
    if not loop.source:
        return np.asarray(coordinate(model, loop.joint, q) - y0 - constant)
    at = coordinate(model, loop.source, q) - x0
    total = np.zeros_like(at)
    for c in reversed(loop.coefficients):
        total = total * at + c
    return np.asarray(coordinate(model, loop.joint, q) - y0 - total)


def coordinate(model: Model, joint: str, q: Array) -> Array:
    """The coordinate (...) of a joint with one, which may mimic another."""
    body = model.bodies[model.joints[joint].bodies[0]]
    return np.asarray(body.scale * q[..., body.q_slice.start] + body.offset)


def loop_wrenches(system: LoopSystem, relative: Array, multipliers: Array) -> dict[str, Array]:
    """Wrenches (..., 6) [moment; force] of loop joints on their successors, at F₂ in its axes."""
    found = {}
    for number, loop, rows in system.joints():
        N = wrench_columns(loop, relative[..., number, :, :])
        found[loop.name] = (np.swapaxes(N, -1, -2) @ multipliers[..., rows, None])[..., 0]
    return found


def refuse_complex(*arrays: Array) -> None:
    """Raise for complex numbers, whose derivative would get lost."""
    if any(x.dtype.kind == "c" for x in arrays):
        raise ArgumentError(
            "complex numbers cannot go through loops, whose rows are chosen by size; "
            "use linearize, jvp or vjp for derivatives"
        )
