# SPDX-License-Identifier: BSD-3-Clause
"""The operations of ``sweeps.ops`` on arrays: one line of linear algebra at one link.

Each takes the link and the operands, arrays with batch axes in front. The operands of a shift
belong to the child (inward) or to the parent (outward); the link is the child in both cases, since
the joint that is crossed is its own.

Written over the namespace of the operands (``spatial.any_namespace``): the interpreter runs them in
NumPy link by link, ``backends.jax`` on many links side by side, whose numbers then have a leading
axis like the operands. Those of classical accelerations, for scalar programs alone, are NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from phistar.arrays import Array
from phistar.model.components import Body
from phistar.model.model import Model
from phistar.model.numpy_kinematics import ground_mass_point
from phistar.spatial import force_transform, skew
from phistar.spatial.any_namespace import (
    blocks,
    crf,
    crf_apply,
    crm_apply,
    cross,
    namespace,
    solve_positive,
)
from phistar.spatial.any_namespace import skew as skew_matrix


@dataclass(frozen=True, eq=False)
class LinkState:
    """A link at a configuration.

    Attributes:
        body: The link with its joint.
        transform: Its pose in its parent's frame, (..., 4, 4).
        H: The joint axes as rows, (d, 6); none if the joint is locked.
        armature: Rotor inertia of the joint, (d,).
        rigid_inertia: M, (6, 6).
        min_pivots: Entries of D on the diagonal that are not above these are rounding.
    """

    body: Body
    transform: Array
    H: Array
    armature: Array
    rigid_inertia: Array
    min_pivots: Sequence[float] | None = None

    @cached_property
    def phi(self) -> Array:
        """φ(parent, link), (..., 6, 6)."""
        return force_transform(self.transform)


@dataclass(frozen=True)
class GroundState:
    """The robot as a whole.

    Attributes:
        mass: Of all links; not a number if there is none.
        moving_mass: The same of those that are not welded to the ground.
        gravity: (3,).
        point: (4,) first moment and mass of those that are.
    """

    mass: float
    moving_mass: float
    gravity: Array
    point: Array

    @classmethod
    def of(cls, model: Model) -> GroundState:
        """That of a model."""
        moving, point = float(model.inertias[:, 0].sum()), ground_mass_point(model)
        mass = moving + float(point[3])
        return cls(mass or math.nan, moving or math.nan, model.gravity, point)


class OneLink(Protocol):
    """What an operation reads of a link, or of many side by side; see ``LinkState``."""

    @property
    def transform(self) -> Array:
        """Pose in the parent's frame."""

    @property
    def phi(self) -> Array:
        """φ(parent, link)."""

    @property
    def H(self) -> Array:
        """Joint axes as rows."""

    @property
    def armature(self) -> Array:
        """Rotor inertia."""

    @property
    def rigid_inertia(self) -> Array:
        """M."""

    @property
    def min_pivots(self) -> Sequence[float] | Array | None:
        """Below which D is rounding."""


def times(matrix: Array, vector: Array) -> Array:
    """A matrix times a vector."""
    if matrix.ndim > 2 and matrix.shape[-3] == 1 and vector.ndim > 1:
        # One matrix for all vectors of the last batch axis: a product of two matrices.
        return vector @ adjoint(matrix[..., 0, :, :])
    return (matrix @ vector[..., None])[..., 0]


def adjoint(matrix: Array) -> Array:
    """A matrix transposed."""
    return matrix.swapaxes(-1, -2)


def _identity(size: int, like: Array) -> Array:
    found: Array = namespace(like).eye(size, dtype=like.dtype)
    return found


def project(link: OneLink, x: Array) -> Array:
    """H x."""
    return times(link.H, x)


def expand(link: OneLink, x: Array) -> Array:
    """H* x."""
    return times(adjoint(link.H), x)


def multiply(link: OneLink, matrix: Array, x: Array) -> Array:
    """A matrix times a vector, whatever they are."""
    return times(matrix, x)


def multiply_adjoint(link: OneLink, matrix: Array, x: Array) -> Array:
    """The adjoint of a matrix times a vector."""
    return times(adjoint(matrix), x)


def rotor_product(link: OneLink, x: Array) -> Array:
    """A x."""
    return link.armature * x


def solve_joint_inertia(link: OneLink, d: Array, x: Array) -> Array:
    """D⁻¹ x."""
    return solve_positive(d, x[..., None])[..., 0]


def gyroscopic(link: OneLink, v: Array) -> Array:
    """M̂ = ½(crf[V] M - M crm[V] - Q[MV]) without what cancels in it: its right half is zero."""
    xp, inertia = namespace(v), link.rigid_inertia
    J, h = inertia[..., :3, :3], inertia[..., :3, 3:]
    trace = J.trace(axis1=-2, axis2=-1)[..., None, None]
    E = _identity(3, J) * trace / 2 - J
    spun = skew_matrix(times(J, v[..., :3]))
    moment = E @ skew_matrix(v[..., :3]) - spun - h @ skew_matrix(v[..., 3:])
    force = -skew_matrix(times(inertia, v)[..., 3:])
    left = xp.concatenate([moment, force], axis=-2)
    found: Array = xp.concatenate([left, xp.zeros_like(left)], axis=-1)
    return found


def joint_block(link: OneLink, p: Array) -> Array:
    """P H*."""
    return p @ adjoint(link.H)


def joint_inertia(link: OneLink, u: Array) -> Array:
    """D = H U + A; not a number where it is but rounding."""
    xp, size = namespace(u), link.armature.shape[-1]
    found: Array = link.H @ u + _identity(size, link.armature) * link.armature[..., None]
    if link.min_pivots is None or not size:
        return found
    diagonal = xp.diagonal(found, axis1=-2, axis2=-1).real
    small = xp.asarray((diagonal <= xp.asarray(link.min_pivots)).any(axis=-1))
    return xp.where(small[..., None, None], np.nan, found)


def gain(link: OneLink, u: Array, d: Array) -> Array:
    """U D⁻¹."""
    return adjoint(solve_positive(d, adjoint(u)))


def articulated_downdate(link: OneLink, p: Array, u: Array, g: Array) -> Array:
    """P - G U*."""
    found: Array = p - g @ adjoint(u)
    return found


def project_across(link: OneLink, s: Array, g: Array) -> Array:
    """S - G H S."""
    found: Array = s - g @ (link.H @ s)
    return found


def inertia_rate(link: OneLink, x: Array, s: Array) -> Array:
    """crf[x] S - S crm[x], which is crf[x] S and its transpose."""
    half = crf(x) @ s
    return half + adjoint(half)


def _congruence(a: Array, s: Array) -> Array:
    return a @ s @ adjoint(a)


def congruence_across(link: OneLink, s: Array, g: Array) -> Array:
    """(I - G H) S (I - G H)*."""
    return _congruence(_identity(6, s) - g @ link.H, s)


def compliance_update(link: OneLink, s: Array, g: Array, d: Array) -> Array:
    """(I - G H)* S (I - G H) + H* D⁻¹ H."""
    H = link.H
    across = _identity(6, s) - g @ H
    rows = namespace(d).broadcast_to(H, (*d.shape[:-2], *H.shape[-2:]))
    found: Array = adjoint(across) @ s @ across + adjoint(H) @ solve_positive(d, rows)
    return found


def bias_gain(link: OneLink, n: Array, s: Array, g: Array, d: Array) -> Array:
    """N* H* D⁻¹ - S* G."""
    own = adjoint(solve_positive(d, link.H @ n))
    found: Array = own - adjoint(s) @ g
    return found


def transfer_update(link: OneLink, s: Array, b: Array) -> Array:
    """S + H* B*."""
    found: Array = s + adjoint(link.H) @ adjoint(b)
    return found


def cross_motion(link: OneLink, x: Array, y: Array) -> Array:
    """x × y."""
    return crm_apply(x, y)


def cross_force(link: OneLink, x: Array, f: Array) -> Array:
    """x ×* f."""
    return crf_apply(x, f)


# -- numbers


def link_energy(link: OneLink, x: Array) -> Array:
    """½ x* M x."""
    return dot(link, x, times(link.rigid_inertia, x)) / 2


def rotor_energy(link: OneLink, x: Array) -> Array:
    """½ x* A x."""
    return dot(link, x, rotor_product(link, x)) / 2


def dot(link: OneLink, x: Array, y: Array) -> Array:
    """x* y, as one entry."""
    found: Array = (x * y).sum(axis=-1, keepdims=True)
    return found


def unchanged(link: OneLink, x: Array) -> Array:
    """x: what is added up over the links as it is."""
    return x


# -- weighted points


def point_in(link: OneLink, x: Array) -> Array:
    """[R h + m p; m]."""
    return times(link.transform, x)


def plane_out(link: OneLink, y: Array) -> Array:
    """[R* n; n · p + d]."""
    return times(adjoint(link.transform), y)


def to_world(link: OneLink, x: Array, y: Array, z: Array, motion: Array) -> Array:
    """[R w; R v + p × R w] of the pose with rows x, y, z."""
    xp = namespace(motion)
    rows = xp.stack(xp.broadcast_arrays(x, y, z), axis=-2)
    turned = [times(rows[..., :3], half) for half in (motion[..., :3], motion[..., 3:])]
    place, turn = xp.broadcast_arrays(rows[..., 3], turned[0])
    found: Array = xp.concatenate([turned[0], turned[1] + cross(place, turn)], axis=-1)
    return found


def weigh(ground: GroundState, x: Array) -> Array:
    """-g · h, as one entry."""
    found: Array = -(x[..., :3] * ground.gravity).sum(axis=-1, keepdims=True)
    return found


def center(ground: GroundState, x: Array) -> Array:
    """h / m of all links."""
    return x[..., :3] / ground.mass


def moving_center(ground: GroundState, x: Array) -> Array:
    """h / m of the links that move."""
    return x[..., :3] / ground.moving_mass


# -- shifts


def shift_in(link: OneLink, x: Array) -> Array:
    """φ x."""
    return times(link.phi, x)


def shift_out(link: OneLink, x: Array) -> Array:
    """φ* x."""
    return times(adjoint(link.phi), x)


def congruence_in(link: OneLink, s: Array) -> Array:
    """φ S φ*."""
    return _congruence(link.phi, s)


def congruence_out(link: OneLink, s: Array) -> Array:
    """φ* S φ."""
    return adjoint(link.phi) @ s @ link.phi


def similarity_out(link: OneLink, s: Array) -> Array:
    """φ* S φ*⁻¹."""
    # A rigid motion is undone by its blocks transposed, also where q left its manifold: those of
    # φ* are the blocks of φ, transposed back.
    phi = link.phi
    turn, moved, last = phi[..., :3, :3], phi[..., :3, 3:], phi[..., 3:, 3:]
    back = blocks(((turn, namespace(phi).zeros_like(turn)), (moved, last)))
    return adjoint(phi) @ s @ back


# -- classical accelerations


def shift_out_classical(link: LinkState, a: Array, u: Array) -> Array:
    """R* of α and of a + U p: the offset p turns with the parent."""
    R, p = link.transform[..., :3, :3], link.transform[..., :3, 3]
    halves = np.broadcast_arrays(a[..., :3], a[..., 3:] + times(u, p))
    return np.concatenate([times(adjoint(R), half) for half in halves], axis=-1)


def joint_bias(link: LinkState, carried: Array, relative: Array) -> Array:
    """What a joint's rate adds: ω × ω_rel and 2 ω × v_rel + ω_rel × v_rel, ω the parent's."""
    w, angular, linear = carried[..., :3], relative[..., :3], relative[..., 3:]
    sliding = np.cross(2 * w + angular, linear)
    return np.concatenate([np.cross(w, angular), sliding], axis=-1)


def angular_acceleration_matrix(link: LinkState, motion: Array, acceleration: Array) -> Array:
    """α~ + ω~ω~."""
    w = skew(motion[..., :3])
    return np.asarray(skew(acceleration[..., :3]) + w @ w)


def rigid_force(link: LinkState, acceleration: Array, u: Array) -> Array:
    """m a + U h, and h × a with the moment of U E, E the second moments of mass."""
    inertia, a = link.rigid_inertia, acceleration[..., 3:]
    J, mass = inertia[:3, :3], inertia[5, 5]
    h = np.array([inertia[2, 4], inertia[0, 5], inertia[1, 3]])
    E = np.eye(3) * np.trace(J) / 2 - J
    turned = u @ E
    moment = [turned[..., k, j] - turned[..., j, k] for j, k in ((1, 2), (2, 0), (0, 1))]
    force = mass * a + times(u, h)
    return np.concatenate([np.stack(moment, axis=-1) + np.cross(h, a), force], axis=-1)
