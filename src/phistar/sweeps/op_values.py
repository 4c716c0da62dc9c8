# SPDX-License-Identifier: BSD-3-Clause
"""The operations of ``sweeps.ops`` in NumPy: one line of linear algebra at one link.

Each takes the link and the operands, arrays with batch axes in front. The operands of a shift
belong to the child (inward) or to the parent (outward); the link is the child in both cases, since
the joint that is crossed is its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phistar.arrays import Array
from phistar.model.components import Body
from phistar.model.model import Model
from phistar.model.numpy_kinematics import ground_mass_point
from phistar.spatial import crf, crf_apply, crm_apply, force_transform, skew

_ANGULAR, _LINEAR = slice(0, 3), slice(3, 6)


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


def times(matrix: Array, vector: Array) -> Array:
    """A matrix times a vector."""
    if matrix.ndim > 2 and matrix.shape[-3] == 1 and vector.ndim > 1:
        # One matrix for all vectors of the last batch axis: a product of two matrices.
        return np.asarray(vector @ adjoint(matrix[..., 0, :, :]))
    return np.asarray((matrix @ vector[..., None])[..., 0])


def adjoint(matrix: Array) -> Array:
    """A matrix transposed."""
    return np.swapaxes(matrix, -1, -2)


def project(link: LinkState, x: Array) -> Array:
    """H x."""
    return times(link.H, x)


def expand(link: LinkState, x: Array) -> Array:
    """H* x."""
    return times(link.H.T, x)


def multiply(link: LinkState, matrix: Array, x: Array) -> Array:
    """A matrix times a vector, whatever they are."""
    return times(matrix, x)


def multiply_adjoint(link: LinkState, matrix: Array, x: Array) -> Array:
    """The adjoint of a matrix times a vector."""
    return times(adjoint(matrix), x)


def rotor_product(link: LinkState, x: Array) -> Array:
    """A x."""
    return np.asarray(link.armature * x)


def solve_joint_inertia(link: LinkState, d: Array, x: Array) -> Array:
    """D⁻¹ x."""
    return np.asarray(np.linalg.solve(d, x[..., None])[..., 0])


def gyroscopic(link: LinkState, v: Array) -> Array:
    """M̂ = ½(crf[V] M - M crm[V] - Q[MV]) without what cancels in it: its right half is zero."""
    inertia = link.rigid_inertia
    J, h = inertia[:3, :3], inertia[:3, 3:]
    E = np.eye(3) * np.trace(J) / 2 - J
    moment = E @ skew(v[..., :3]) - skew(times(J, v[..., :3])) - h @ skew(v[..., 3:])
    force = -skew(times(inertia, v)[..., 3:])
    left = np.concatenate([moment, force], axis=-2)
    return np.concatenate([left, np.zeros_like(left)], axis=-1)


def joint_block(link: LinkState, p: Array) -> Array:
    """P H*."""
    return np.asarray(p @ link.H.T)


def joint_inertia(link: LinkState, u: Array) -> Array:
    """D = H U + A; not a number where it is but rounding."""
    found = np.asarray(link.H @ u + np.diag(link.armature))
    if link.min_pivots is None or not len(found):
        return found
    diagonal = np.diagonal(found, axis1=-2, axis2=-1).real
    small = np.asarray((diagonal <= np.array(link.min_pivots)).any(axis=-1))
    return np.where(small[..., None, None], np.nan, found)


def gain(link: LinkState, u: Array, d: Array) -> Array:
    """U D⁻¹."""
    return adjoint(np.linalg.solve(d, adjoint(u)))


def articulated_downdate(link: LinkState, p: Array, u: Array, g: Array) -> Array:
    """P - G U*."""
    return np.asarray(p - g @ adjoint(u))


def project_across(link: LinkState, s: Array, g: Array) -> Array:
    """S - G H S."""
    return np.asarray(s - g @ (link.H @ s))


def inertia_rate(link: LinkState, x: Array, s: Array) -> Array:
    """crf[x] S - S crm[x], which is crf[x] S and its transpose."""
    half = crf(x) @ s
    return np.asarray(half + adjoint(half))


def _congruence(a: Array, s: Array) -> Array:
    return np.asarray(a @ s @ adjoint(a))


def congruence_across(link: LinkState, s: Array, g: Array) -> Array:
    """(I - G H) S (I - G H)*."""
    return _congruence(np.eye(6) - g @ link.H, s)


def compliance_update(link: LinkState, s: Array, g: Array, d: Array) -> Array:
    """(I - G H)* S (I - G H) + H* D⁻¹ H."""
    H = link.H
    across = np.eye(6) - g @ H
    own = H.T @ np.linalg.solve(d, np.broadcast_to(H, (*d.shape[:-2], *H.shape)))
    return np.asarray(adjoint(across) @ s @ across + own)


def bias_gain(link: LinkState, n: Array, s: Array, g: Array, d: Array) -> Array:
    """N* H* D⁻¹ - S* G."""
    own = adjoint(np.linalg.solve(d, link.H @ n))
    return np.asarray(own - adjoint(s) @ g)


def transfer_update(link: LinkState, s: Array, b: Array) -> Array:
    """S + H* B*."""
    return np.asarray(s + link.H.T @ adjoint(b))


def cross_motion(link: LinkState, x: Array, y: Array) -> Array:
    """x × y."""
    return crm_apply(x, y)


def cross_force(link: LinkState, x: Array, f: Array) -> Array:
    """x ×* f."""
    return crf_apply(x, f)


# -- numbers


def link_energy(link: LinkState, x: Array) -> Array:
    """½ x* M x."""
    return dot(link, x, times(link.rigid_inertia, x)) / 2


def rotor_energy(link: LinkState, x: Array) -> Array:
    """½ x* A x."""
    return dot(link, x, rotor_product(link, x)) / 2


def dot(link: LinkState, x: Array, y: Array) -> Array:
    """x* y, as one entry."""
    return np.asarray((x * y).sum(axis=-1, keepdims=True))


def unchanged(link: LinkState, x: Array) -> Array:
    """x: what is added up over the links as it is."""
    return x


# -- weighted points


def point_in(link: LinkState, x: Array) -> Array:
    """[R h + m p; m]."""
    return times(link.transform, x)


def plane_out(link: LinkState, y: Array) -> Array:
    """[R* n; n · p + d]."""
    return times(adjoint(link.transform), y)


def to_world(link: LinkState, x: Array, y: Array, z: Array, motion: Array) -> Array:
    """[R w; R v + p × R w] of the pose with rows x, y, z."""
    rows = np.stack(np.broadcast_arrays(x, y, z), axis=-2)
    turned = [times(rows[..., :3], half) for half in (motion[..., :3], motion[..., 3:])]
    return np.concatenate([turned[0], turned[1] + np.cross(rows[..., 3], turned[0])], axis=-1)


def weigh(ground: GroundState, x: Array) -> Array:
    """-g · h, as one entry."""
    return np.asarray(-(x[..., :3] * ground.gravity).sum(axis=-1, keepdims=True))


def center(ground: GroundState, x: Array) -> Array:
    """h / m of all links."""
    return np.asarray(x[..., :3] / ground.mass)


def moving_center(ground: GroundState, x: Array) -> Array:
    """h / m of the links that move."""
    return np.asarray(x[..., :3] / ground.moving_mass)


# -- shifts


def shift_in(link: LinkState, x: Array) -> Array:
    """φ x."""
    return times(link.phi, x)


def shift_out(link: LinkState, x: Array) -> Array:
    """φ* x."""
    return times(adjoint(link.phi), x)


def congruence_in(link: LinkState, s: Array) -> Array:
    """φ S φ*."""
    return _congruence(link.phi, s)


def congruence_out(link: LinkState, s: Array) -> Array:
    """φ* S φ."""
    return np.asarray(adjoint(link.phi) @ s @ link.phi)


def similarity_out(link: LinkState, s: Array) -> Array:
    """φ* S φ*⁻¹."""
    outward = adjoint(link.phi)
    # A rigid motion is undone by its blocks transposed, also where q left its manifold.
    back = np.zeros_like(outward)
    for rows, columns in ((_ANGULAR, _ANGULAR), (_LINEAR, _ANGULAR), (_LINEAR, _LINEAR)):
        back[..., rows, columns] = adjoint(outward[..., rows, columns])
    return np.asarray(outward @ s @ back)


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
