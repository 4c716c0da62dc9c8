# SPDX-License-Identifier: BSD-3-Clause
"""Hinges that move no inertia: D(k) = H P H* is singular, so forward dynamics does not exist.

The articulated-body recursion is run once at a generic configuration, and only where it can matter:
a body whose own inertia along its joint is positive has D > 0 whatever it carries. Where it does
not, D may vanish in some configurations only: then a result is not finite, and the recursion is run
again there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.errors import (
    NotFiniteError,
    Problem,
    SingularConfigurationError,
    SingularHingeWarning,
    first_index,
)
from phistar.model.components import GROUND, Body
from phistar.model.configuration import random_configuration
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.model.numpy_kinematics import body_velocities
from phistar.spatial import force_transform, inertia_matrix

SINGULAR_TOLERANCE = 1e-13
"""D counts as zero below this fraction of the inertia that moves with the joint, locked."""


PIVOT_TOLERANCE = 256 * float(np.finfo(float).eps)
"""The same for machine code, which tests D alone.

D is a difference of inertias that are rounded to ε times the inertia with all joints beyond it
locked, so that below some hundred ε of it hardly a digit of D is right.
"""


@dataclass(frozen=True)
class SingularHinge:
    """A joint direction along which nothing resists acceleration.

    Attributes:
        joint, link: Names of the joint and of the link it carries.
        direction: (6,) relative motion [angular; linear] in the child's axes.
    """

    joint: str
    link: str
    direction: tuple[float, ...]

    def __str__(self) -> str:
        angular, linear = self.direction[:3], self.direction[3:]
        motions = []
        if any(angular):
            motions.append(f"rotation about ({_numbers(angular)})")
        if any(linear):
            motions.append(f"translation along ({_numbers(linear)})")
        return (
            f"link '{self.link}' (joint '{self.joint}') has D = 0: the joint moves no inertia in "
            f"{' with '.join(motions)}. Give the link a mass and inertia, the joint an armature, "
            "or weld the joint."
        )


def _numbers(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.3g}" for value in values)


def singular_hinges(
    model: Model, at: Array | None = None, tolerance: float = SINGULAR_TOLERANCE
) -> tuple[SingularHinge, ...]:
    """Every joint direction with D = 0, in joint order.

    Args:
        model: The robot.
        at: (nq,) a configuration; by default a generic one, at which D vanishes only if it does
            everywhere.
        tolerance: D counts as zero below this fraction of the inertia that moves with the joint.
    """
    bodies = _with_descendants(model, _suspects(model))
    if not bodies:
        return ()
    q = random_configuration(model, np.random.default_rng(0)) if at is None else at
    articulated = {k: inertia_matrix(model.bodies[k].inertia) for k in bodies}
    composite = {k: articulated[k].copy() for k in bodies}
    nulls: list[tuple[int, Array]] = []
    for k in reversed(bodies):
        body = model.bodies[k]
        follows = model.joints[body.joint].mimic is not None
        null, outgoing = _articulate(body, articulated[k], composite[k], follows, tolerance)
        nulls += [(k, column) for column in null.T]
        if body.parent in articulated:
            shift = force_transform(body.transform(q))
            articulated[body.parent] += shift @ outgoing @ shift.T
            composite[body.parent] += shift @ composite[k] @ shift.T
    followed = {joint.mimic.joint for joint in model.joints.values() if joint.mimic}
    if followed:
        nulls = [f for f in nulls if not _follower_resists(model, q, *f, followed)]
    return tuple(_hinge(model.bodies[k], column) for k, column in reversed(nulls))


@cached_on_model
def _suspects(model: Model) -> list[int]:
    return bodies_without_own_inertia(model)


@cached_on_model
def pivot_thresholds(model: Model) -> dict[int, tuple[float, ...]]:
    """Value below which D is rounding, per joint velocity, for bodies where it may be that small.

    Every other body has enough inertia of its own, and its code needs no test.
    """
    chosen = bodies_without_own_inertia(model)
    bodies = _with_descendants(model, chosen)
    if not bodies:
        return {}
    q = random_configuration(model, np.random.default_rng(0))
    composite = {k: inertia_matrix(model.bodies[k].inertia) for k in bodies}
    for k in reversed(bodies):
        body = model.bodies[k]
        if body.parent in composite:
            shift = force_transform(body.transform(q))
            composite[body.parent] = composite[body.parent] + shift @ composite[k] @ shift.T
    thresholds = {}
    for k in chosen:
        h = model.bodies[k].joint_kind.motion_map()
        moved_inertia = np.diag(h.T @ composite[k] @ h) + np.array(model.bodies[k].armature)
        thresholds[k] = tuple(_power_of_two(PIVOT_TOLERANCE * x) for x in moved_inertia)
    return thresholds


def _power_of_two(x: float) -> float:
    """One nearby: a constant of the code must not depend on the rounding of x.

    The factor keeps round numbers, such as an inertia of 0.5, away from where the answer changes.
    """
    return math.ldexp(1.0, math.frexp(1.37 * x)[1]) if x > 0.0 else 0.0


def bodies_without_own_inertia(model: Model) -> list[int]:
    """Bodies whose own inertia does not resist every motion of their joint."""
    spatial = inertia_matrix(model.inertias)
    scale = np.trace(spatial, axis1=-2, axis2=-1)
    bodies = []
    simple = [b for b in model.bodies if b.joint_kind.nv == 1]
    if simple:
        index = np.array([b.index for b in simple])
        kinds = {id(b.joint_kind): b.joint_kind for b in simple}
        maps = {key: motion.motion_map()[:, 0] for key, motion in kinds.items()}
        h = np.array([maps[id(b.joint_kind)] for b in simple])
        d = np.einsum("ki,kij,kj->k", h, spatial[index], h) + [b.armature[0] for b in simple]
        bodies += index[d <= 1e-9 * scale[index]].tolist()
    for body in model.bodies:
        if body.joint_kind.nv > 1:
            h = body.joint_kind.motion_map()
            d = h.T @ spatial[body.index] @ h + np.diag(body.armature)
            if np.linalg.eigvalsh(d)[0] <= 1e-9 * scale[body.index]:
                bodies.append(body.index)
    return sorted(bodies)


def _with_descendants(model: Model, chosen: list[int]) -> list[int]:
    """Some bodies and all their descendants, parents first."""
    if not chosen:
        return []
    is_chosen = np.zeros(len(model.bodies), dtype=bool)
    is_chosen[chosen] = True
    for body in model.bodies[chosen[0] :]:
        if body.parent != GROUND and is_chosen[body.parent]:
            is_chosen[body.index] = True
    return np.flatnonzero(is_chosen).tolist()


def _articulate(
    body: Body, p: Array, composite: Array, follows: bool, tolerance: float
) -> tuple[Array, Array]:
    """Null directions of D in joint coordinates (nv, m), and P+ that acts on the parent.

    A follower (mimic) has no coordinate of its own: it acts on its parent as if locked.
    """
    if follows:
        return np.zeros((body.joint_kind.nv, 0)), p
    h = body.joint_kind.motion_map()
    d = h.T @ p @ h + np.diag(body.armature)
    # Inertia with everything beyond the joint locked: the scale of rounding in D.
    locked = h.T @ composite @ h + np.diag(body.armature)
    size = np.diag(locked) + 1e-3 * SINGULAR_TOLERANCE * np.trace(composite) / 6.0
    weight = 1.0 / np.sqrt(np.where(size > 0.0, size, 1.0))
    values, vectors = np.linalg.eigh(weight[:, None] * d * weight)
    flat = values <= tolerance
    null = weight[:, None] * vectors[:, flat]
    basis = weight[:, None] * vectors[:, ~flat]
    u = p @ h @ basis
    return null, p - (u / values[~flat]) @ u.T


def _follower_resists(model: Model, q: Array, k: int, column: Array, followed: set[str]) -> bool:
    """Whether a joint's mimic followers have inertia of their own that resists it."""
    body = model.bodies[k]
    if body.joint not in followed:
        return False
    v = np.zeros(model.nv)
    v[body.v_slice] = column
    velocities = body_velocities(model, q, v)
    matrices = inertia_matrix(model.inertias)
    energy = np.einsum("ki,kij,kj->k", velocities, matrices, velocities)
    same = [b for b in model.bodies if b.v_slice == body.v_slice and b.armature]
    energy = np.append(energy, [b.scale**2 * b.armature[0] * column[0] ** 2 for b in same])
    reach = np.trace(matrices, axis1=-2, axis2=-1) * (velocities**2).sum(axis=-1)
    return bool(energy.sum() > SINGULAR_TOLERANCE * reach.sum())


def _hinge(body: Body, column: Array) -> SingularHinge:
    direction = body.joint_kind.motion_map() @ column
    direction = direction / np.abs(direction).max()
    direction[np.abs(direction) < 1e-12] = 0.0
    return SingularHinge(body.joint, body.link, tuple(float(x) for x in direction))


def require_pivots(model: Model, q: Array, blocks: Sequence[Array]) -> None:
    """Raise if D (..., d, d) of a body is only rounding.

    Args:
        model: The robot.
        q: (..., nq), finite.
        blocks: D of each body.

    Raises:
        SingularConfigurationError: A joint moves no inertia there.
    """
    for k, least in pivot_thresholds(model).items():
        diagonal = np.diagonal(blocks[k], axis1=-2, axis2=-1)
        coarser = np.finfo(diagonal.dtype).eps / np.finfo(float).eps
        tiny = (diagonal.real <= coarser * np.array(least)).any(axis=-1)
        if tiny.any():
            require_finite_results(model, q, {"D": np.where(tiny, np.nan, 0.0)}, tiny.ndim)


def require_finite_results(model: Model, q: Array, results: Mapping[str, Array], axes: int) -> None:
    """Raise if a result is not finite although its inputs are.

    Args:
        model: The robot.
        q: (..., nq) that broadcasts with the batch.
        results: By name, with the axes of the batch first.
        axes: Number of batch axes.

    Raises:
        SingularConfigurationError: A joint moves no inertia there.
        NotFiniteError: Numbers leave their range.
    """
    bad: Array = np.zeros((), dtype=bool)
    first = ""
    for name, result in results.items():
        wrong = ~np.isfinite(result)
        wrong = np.asarray(wrong.any(axis=tuple(range(axes, wrong.ndim))))
        first = first or (name if wrong.any() else "")
        bad = np.asarray(bad | wrong)
    if not bad.any():
        return
    index = first_index(bad)
    configuration = np.broadcast_to(q, (*bad.shape, model.nq))[index]
    if np.isfinite(configuration).all():
        # Generous: something is wrong already, and machine code has its own threshold.
        rounding = max(float(np.finfo(result.dtype).eps) for result in results.values())
        hinges = singular_hinges(model, configuration.real.astype(float), 16 * 256 * rounding)
        if hinges:
            raise SingularConfigurationError(hinges, bad)
    where = f" for sample {list(index)}" if index else ""
    raise NotFiniteError(
        f"{first} of robot '{model.name}' is not finite{where}: its arguments are, but "
        "intermediate numbers overflow; are they in SI units and radians?",
        bad,
    )


def singular_problems(model: Model) -> list[Problem]:
    """One warning per singular hinge, for a load report.

    None where loops are active: they may give such a hinge inertia, and forward dynamics says where
    they do not.
    """
    if active_loops(model.loops):
        return []
    return [
        Problem(
            "warning",
            "singular-hinge",
            model.joints[hinge.joint].where,
            str(hinge),
            "Kinematics and inverse dynamics work; forward dynamics will raise.",
            SingularHingeWarning,
        )
        for hinge in singular_hinges(model)
    ]
