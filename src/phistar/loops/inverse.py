# SPDX-License-Identifier: BSD-3-Clause
"""Inverse dynamics with loops: efforts of actuators that give a motion, statics, internal forces.

Joint forces τ give a motion v̇ that keeps the loops if X*τ = X*τ_ID, where τ_ID are those of the
tree and X spans the motions that keep the loops. With actuators B this is X*Bu = X*τ_ID.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from phistar import dynamics
from phistar.arguments import checked_state, names_in
from phistar.arrays import Array
from phistar.errors import (
    LoopVelocityError,
    UnderactuatedError,
    UnknownNameError,
    first_index,
    sample_text,
)
from phistar.joint_physics.passive_forces import force_parts, passive_force_unchecked
from phistar.loops.apart import each_its_way
from phistar.loops.constrained_dynamics import (
    NOT_HELD,
    Held,
    LoopWrenches,
    coordinate_names,
    describe_motion,
    present_rank,
    require_on_loops,
)
from phistar.loops.rank import RANK_TOLERANCE, Factored, factored
from phistar.loops.system import (
    LoopMotion,
    LoopSystem,
    loop_system,
    loop_wrenches,
    motion_at,
    refuse_complex,
)
from phistar.loops.uniqueness import UniqueComponents, uniqueness
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import Passive
from phistar.model.model import Model
from phistar.model.wrenches import Wrenches, check_batch, check_numbers
from phistar.reprs import one_line_repr

ACCELERATION_TOLERANCE = 1e-6
"""Fraction of the size of L̇v and ‖L‖‖v̇‖ from which accelerations open a loop."""
RESIDUAL_TOLERANCE = 1e-8
"""Fraction of the size of the forces from which something is missing."""


@one_line_repr
@dataclass(frozen=True)
class ConstrainedInverse:
    """Efforts that give a motion on the loops.

    Attributes:
        effort: (..., actuators) least-norm efforts, in the order of ``actuated``.
        tau: (..., nv) the same as joint forces, zero elsewhere.
        wrenches: For each loop joint (..., 6) on the successor, at its frame, in its axes; of least
            norm where not determined.
        joint_forces: (..., nv) L*λ.
        unique: For each loop whether its wrench is determined at these efforts.
        residual: (..., nv - rank) forces along the free motions that no actuator gives.
        internal: (..., actuators, k) efforts that squeeze without moving, columns; zero where a
            sample of a batch has fewer than others.
        actuated: Names of the coordinates that were taken as actuated.
        unique_components: For each loop joint which components of its wrench are determined at
            these efforts, (..., 6) booleans.
    """

    effort: Array
    tau: Array = field(repr=False)
    wrenches: Mapping[str, Array] = field(repr=False)
    joint_forces: Array = field(repr=False)
    unique: Mapping[str, Array] = field(repr=False)
    residual: Array = field(repr=False)
    internal: Array = field(repr=False)
    actuated: tuple[str, ...]
    unique_components: Mapping[str, UniqueComponents] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class KnownMotion:
    """A motion on the loops, and the joint forces that the tree needs for it.

    Attributes:
        q, v, tau: As given, double; ``tau`` zero where it was not.
        dtype: Of the user's arrays together.
        rows: Rows and rates there.
        rank: How many are independent.
        factor: Of the rows.
        wanted: (..., nv) inverse dynamics of the tree.
    """

    q: Array
    v: Array
    tau: Array
    dtype: np.dtype[np.generic]
    rows: LoopMotion
    rank: int
    factor: Factored
    wanted: Array


def known_motion(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    vdot: Coordinates,
    wrenches: Wrenches | None,
    held: Held,
    what: str,
    tau: Coordinates | None = None,
) -> KnownMotion:
    """Check a user's motion, which has to be on the loops, and what the tree needs for it.

    Args:
        model: The robot with its loops.
        q, v, vdot, tau: A user's arrays.
        wrenches: On frames.
        held: What constraints of one call hold and drive.
        what: Who asks, for errors.
    """
    given = {"q": q, "v": v, "vdot": vdot} | ({} if tau is None else {"tau": tau})
    arrays = checked_state(model, **given)
    named = dict(zip(given, arrays, strict=True))
    check_batch(model, named, wrenches)
    check_numbers(model, named, wrenches)
    refuse_complex(*arrays)
    precision = max(np.finfo(x.dtype).eps for x in arrays)
    at, rate, push, *rest = (np.asarray(x, dtype=float) for x in arrays)
    rows = held.driven(model, motion_at(model, at, rate))
    require_on_loops(model, rows, rate, what, precision, told=bool(held.drives))
    _require_consistent(model, rows, push, precision, what)
    rank = present_rank(model, rows.L, what, held.rank)
    wanted = dynamics.inverse_dynamics(loop_system(model).tree, at, rate, push, wrenches)
    return KnownMotion(
        at,
        rate,
        rest[0] if rest else np.zeros(model.nv),
        np.result_type(*arrays, np.float32),
        rows,
        rank,
        factored(rows.L, rank),
        wanted,
    )


@each_its_way
def constrained_inverse_dynamics(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    vdot: Coordinates,
    actuated: Sequence[str] | None = None,
    wrenches: Wrenches | None = None,
    *,
    allow_residual: bool = False,
    held: Held = NOT_HELD,
    passive: Passive = False,
) -> ConstrainedInverse:
    """Efforts of actuators that give the accelerations ``vdot``; see ``Robot``."""
    motion = known_motion(model, q, v, vdot, wrenches, held, "constrained_inverse_dynamics")
    system, rows, dtype, factor = loop_system(model), motion.rows, motion.dtype, motion.factor
    entries = actuated_entries(model, actuated)
    names = tuple(coordinate_names(model)[k] for k in entries)
    wanted = motion.wanted
    if parts := force_parts(model, passive):
        wanted = wanted - passive_force_unchecked(model, motion.q, motion.v, parts)
    Xt = np.swapaxes(factor.X, -1, -2)
    right = (Xt @ wanted[..., None])[..., 0]
    drive = Xt[..., entries]
    driven = _driven_motions(system, factor.X, entries)
    effort, residual, internal = _least_norm(drive, right, driven)
    if not allow_residual:
        _require_driven(model, factor.X, drive, right, residual)
    tau = np.zeros_like(wanted)
    tau[..., entries] = effort
    multipliers = factor.multipliers(wanted - tau)
    joint_forces = (np.swapaxes(rows.L, -1, -2) @ multipliers[..., None])[..., 0]
    found = loop_wrenches(system, rows.relative, multipliers)
    unique = uniqueness(system, rows.L, rows.relative, motion.rank)
    return ConstrainedInverse(
        effort.astype(dtype),
        tau.astype(dtype),
        LoopWrenches({name: x.astype(dtype) for name, x in found.items()}, unique.components),
        joint_forces.astype(dtype),
        unique.loops,
        residual.astype(dtype),
        internal.astype(dtype),
        names,
        unique.components,
    )


def actuated_entries(model: Model, actuated: Sequence[str] | None) -> Array:
    """Numbers in v of actuated coordinates.

    Args:
        model: The robot.
        actuated: Names of joints, or of coordinates ``joint[i]``. Default: the joints that the file
            gives motors (of followers their leaders); all where it says nothing.
    """
    names = coordinate_names(model)
    if actuated is None:
        driven = [model.joints[name].v_slice for name in model.actuated]
        chosen = {k for own in driven for k in range(own.start, own.stop)}
        return np.array(sorted(chosen), dtype=int) if driven else np.arange(model.nv)
    found: list[int] = []
    for name in names_in("actuated", actuated):
        if name in names:
            found.append(names.index(name))
        elif name in model.joint_names:
            own = model.joints[name].v_slice
            found += range(own.start, own.stop)
        else:
            raise UnknownNameError("independent joint", name, model.joint_names, model.name)
    return np.array(found, dtype=int)


def _driven_motions(system: LoopSystem, X: Array, entries: Array) -> Array:
    """How many motions (...) the actuators can drive: the rank of X*B, decided without units.

    In coordinates without units the columns of a basis of the motions are orthonormal, so that what
    an actuator feels of them compares with one: at a dead centre it feels none.
    """
    if not X.shape[-1] or not len(entries):
        return np.zeros(X.shape[:-2], dtype=int)
    basis = np.linalg.qr(X / system.column_scale[:, None])[0]
    felt = np.linalg.svd(basis[..., entries, :], compute_uv=False)
    return np.asarray((felt > RANK_TOLERANCE).sum(axis=-1))


def _least_norm(drive: Array, right: Array, driven: Array) -> tuple[Array, Array, Array]:
    """The shortest u with X*Bu nearest to the right side, what is left, and the null space.

    Args:
        drive: X*B.
        right: (..., nv - rank).
        driven: (...) its rank. The null space has zeros where it is smaller than of others.
    """
    actuators = drive.shape[-1]
    batch = right.shape[:-1]
    if not drive.shape[-2] or not actuators:
        squeeze = np.broadcast_to(np.eye(actuators), (*batch, actuators, actuators))
        return np.zeros((*batch, actuators)), np.array(right), squeeze
    U, S, Vt = np.linalg.svd(drive)
    kept = np.arange(S.shape[-1]) < driven[..., None]
    count = int(driven.min(initial=S.shape[-1]))
    inner = (np.swapaxes(U, -1, -2) @ right[..., None])[..., 0][..., : S.shape[-1]]
    inner = np.where(kept, inner / np.where(kept, S, 1.0), 0.0)
    V = np.swapaxes(Vt, -1, -2)
    effort = (V[..., : S.shape[-1]] @ inner[..., None])[..., 0]
    residual = right - (drive @ effort[..., None])[..., 0]
    free = np.arange(count, actuators) >= driven[..., None]
    return effort, residual, V[..., count:] * free[..., None, :]


def _require_driven(model: Model, X: Array, drive: Array, right: Array, residual: Array) -> None:
    size = np.abs(right).max(axis=-1, initial=0.0)
    missing = np.abs(residual).max(axis=-1, initial=0.0)
    bad = np.asarray(missing > RESIDUAL_TOLERANCE * np.maximum(size, 1e-9))
    if not bad.any():
        return
    sample = first_index(bad)
    along = residual[sample]
    amount = float(np.sqrt((along * along).sum()))
    motion = np.broadcast_to(X, (*residual.shape[:-1], *X.shape[-2:]))[sample] @ along
    motion = motion / np.abs(motion).max()
    names = coordinate_names(model)
    raise UnderactuatedError(
        model.name,
        {name: float(x) for name, x in zip(names, motion, strict=True)},
        amount,
        f"constrained_inverse_dynamics of robot '{model.name}'{sample_text(sample)}: the actuators "
        f"cannot drive {describe_motion(model, motion)}: a force of {amount:.3g} along it is "
        "missing; name more joints in actuated=, ask for another acceleration, or pass "
        "allow_residual=True",
        bad,
    )


def _require_consistent(
    model: Model, rows: LoopMotion, vdot: Array, precision: float, what: str
) -> None:
    system = loop_system(model)
    if not system.count:
        return
    moved = (rows.L @ vdot[..., None])[..., 0]
    left = system.row_scale * (moved + rows.bias)
    size = np.abs(system.scaled(rows.L)).max(axis=(-1, -2)) * np.abs(
        vdot / system.column_scale
    ).max(axis=-1)
    size = size + np.abs(system.row_scale * rows.bias).max(axis=-1)
    off = np.abs(left).max(axis=-1)
    slack = max(ACCELERATION_TOLERANCE, 1e3 * precision)
    bad = np.asarray(~(off <= slack * size + 1e-12))
    if bad.any():
        sample = first_index(bad)
        row = int(np.argmax(np.abs(left[sample])))
        raise LoopVelocityError(
            model.name,
            what,
            system.label(row),
            "accelerations",
            float((moved + rows.bias)[sample][row]),
            bad,
            "accelerations on the loops are X v̇_R + x̄ of robot.minimal(q), or what "
            "forward_dynamics gives",
        )
