# SPDX-License-Identifier: BSD-3-Clause
"""Hinges that move no inertia: D(k) = H P H* is singular, so forward dynamics does not exist.

The articulated-body recursion is run once at a generic configuration, and only where it can matter:
a body whose own inertia along its joint is positive has D > 0 whatever hangs on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.errors import Problem, SingularHingeWarning
from phistar.model.configuration import random_configuration
from phistar.model.kinematics import body_velocities
from phistar.model.model import Model
from phistar.model.parts import GROUND, Body
from phistar.spatial import force_transform, inertia_matrix

Array = NDArray[Any]

TOLERANCE = 1e-13
"""D is called zero below this fraction of the inertia that moves with the joint, locked."""


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
        parts = []
        if any(angular):
            parts.append(f"rotation about ({_numbers(angular)})")
        if any(linear):
            parts.append(f"translation along ({_numbers(linear)})")
        return (
            f"link '{self.link}' (joint '{self.joint}') has D = 0: the joint moves no inertia in "
            f"{' with '.join(parts)}. Give the link a mass and inertia, the joint an armature, or "
            "weld the joint."
        )


def _numbers(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.3g}" for value in values)


def singular_hinges(model: Model) -> tuple[SingularHinge, ...]:
    """Every joint direction with D = 0 at a generic configuration, in joint order."""
    wanted = _below(model, _suspects(model))
    if not wanted:
        return ()
    q = random_configuration(model, np.random.default_rng(0))
    articulated = {k: inertia_matrix(model.bodies[k].inertia) for k in wanted}
    composite = {k: articulated[k].copy() for k in wanted}
    found: list[tuple[int, Array]] = []
    for k in reversed(wanted):
        body = model.bodies[k]
        follows = model.joints[body.joint].mimic is not None
        null, outgoing = _articulate(body, articulated[k], composite[k], follows)
        found += [(k, column) for column in null.T]
        if body.parent in articulated:
            shift = force_transform(body.transform(q))
            articulated[body.parent] += shift @ outgoing @ shift.T
            composite[body.parent] += shift @ composite[k] @ shift.T
    followed = {joint.mimic.joint for joint in model.joints.values() if joint.mimic}
    if followed:
        found = [f for f in found if not _follower_resists(model, q, *f, followed)]
    return tuple(_hinge(model.bodies[k], column) for k, column in reversed(found))


def _suspects(model: Model) -> list[int]:
    """Bodies whose own inertia does not resist every motion of their joint."""
    own = inertia_matrix(model.inertias)
    scale = np.trace(own, axis1=-2, axis2=-1)
    suspects = []
    simple = [b for b in model.bodies if b.motion.nv == 1]
    if simple:
        index = np.array([b.index for b in simple])
        h = np.array([b.motion.motion_map()[:, 0] for b in simple])
        d = np.einsum("ki,kij,kj->k", h, own[index], h) + [b.armature[0] for b in simple]
        suspects += index[d <= 1e-9 * scale[index]].tolist()
    for body in model.bodies:
        if body.motion.nv > 1:
            h = body.motion.motion_map()
            d = h.T @ own[body.index] @ h + np.diag(body.armature)
            if np.linalg.eigvalsh(d)[0] <= 1e-9 * scale[body.index]:
                suspects.append(body.index)
    return sorted(suspects)


def _below(model: Model, suspects: list[int]) -> list[int]:
    """The suspects and all their descendants, parents first."""
    if not suspects:
        return []
    wanted = np.zeros(len(model.bodies), dtype=bool)
    wanted[suspects] = True
    for body in model.bodies[suspects[0] :]:
        if body.parent != GROUND and wanted[body.parent]:
            wanted[body.index] = True
    return np.flatnonzero(wanted).tolist()


def _articulate(body: Body, p: Array, composite: Array, follows: bool) -> tuple[Array, Array]:
    """Null directions of D in joint coordinates (nv, m), and P+ as the parent feels it.

    A follower (mimic) has no coordinate to be free in: its parent feels it as if it were locked.
    """
    if follows:
        return np.zeros((body.motion.nv, 0)), p
    h = body.motion.motion_map()
    d = h.T @ p @ h + np.diag(body.armature)
    # What the joint would move with everything beyond it locked: the measure of rounding in D.
    locked = h.T @ composite @ h + np.diag(body.armature)
    size = np.diag(locked) + 1e-3 * TOLERANCE * np.trace(composite) / 6.0
    weight = 1.0 / np.sqrt(np.where(size > 0.0, size, 1.0))
    values, vectors = np.linalg.eigh(weight[:, None] * d * weight)
    flat = values <= TOLERANCE
    null = weight[:, None] * vectors[:, flat]
    kept = weight[:, None] * vectors[:, ~flat]
    u = p @ h @ kept
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
    return bool(energy.sum() > TOLERANCE * reach.sum())


def _hinge(body: Body, column: Array) -> SingularHinge:
    direction = body.motion.motion_map() @ column
    direction = direction / np.abs(direction).max()
    direction[np.abs(direction) < 1e-12] = 0.0
    return SingularHinge(body.joint, body.link, tuple(float(x) for x in direction))


def singular_problems(model: Model) -> list[Problem]:
    """One warning per singular hinge, for a load report."""
    return [
        Problem(
            "warning",
            "singular-hinge",
            model.joints[hinge.joint].where,
            str(hinge),
            "Kinematics and inverse dynamics work; forward dynamics will refuse.",
            SingularHingeWarning,
        )
        for hinge in singular_hinges(model)
    ]
