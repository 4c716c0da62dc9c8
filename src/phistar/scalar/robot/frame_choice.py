# SPDX-License-Identifier: BSD-3-Clause
"""Which frames links have: axes to z, origins on common normals, x along them."""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.model.components import GROUND
from phistar.model.joints.kind import Z_AXIS, AxisKind
from phistar.model.model import Model
from phistar.scalar.robot.link_arrays import LinkArrays, identity_rotations, rows_to_array
from phistar.scalar.robot.rounding import ROUNDING_TOLERANCE, snap_to_zero
from phistar.spatial import rotation_between
from phistar.spatial.reproducible_math import atan2, lengths
from phistar.spatial.reproducible_products import product

Vector3 = tuple[float, float, float]
_ZERO_OFFSET: Vector3 = (0.0, 0.0, 0.0)
_PARALLEL_SINE = 1.0273e-2
"""Sine below which two axes count as parallel when frames are chosen, and length [m] below which a
direction is not used; any choice is exact. Nobody writes such numbers into a file, nor
``_MIN_SLIDE_COSINE``: what is compared is never equal to them up to rounding."""
_MIN_SLIDE_COSINE = 0.4871
"""Cosine above which an origin can be slid to the height of the parent's."""


def rotations_to_z(model: Model, draft: LinkArrays) -> Array:
    """Turns (links, 3, 3) that make every joint's axis z."""
    T = identity_rotations(len(model.bodies))
    kinds = [body.joint_kind for body in model.bodies]
    turned = [k for k, kind in enumerate(kinds) if isinstance(kind, AxisKind)]
    axes = [kind.axis for kind in kinds if isinstance(kind, AxisKind)]
    T[turned] = rotation_between(Z_AXIS, np.reshape(axes, (-1, 3)))
    return T


def axis_slides(draft: LinkArrays) -> Array:
    """Shifts (links, 3): a prismatic link's origin to its parent's, others to the common normal."""
    found: list[Vector3] = []
    rows = zip(draft.R.tolist(), draft.p.tolist(), draft.parents, draft.kinds, strict=True)
    for R, p, parent, kind in rows:
        (ax, bx, cx), (ay, by, cy), (az, bz, cz) = R
        dx, dy, dz = found[parent] if parent != GROUND else _ZERO_OFFSET
        x, y, z = p[0] - dx, p[1] - dy, p[2] - dz
        if kind.slides_only:
            back = ax * x + ay * y + az * z, bx * x + by * y + bz * z, cx * x + cy * y + cz * z
            found.append((-back[0], -back[1], -back[2]))
        elif kind.commutes_with_axis:
            across = cx * cx + cy * cy
            normal = parent != GROUND and draft.kinds[parent].has_axis
            if normal and across > _PARALLEL_SINE**2:
                along = -(x * cx + y * cy) / across
            elif abs(cz) > _MIN_SLIDE_COSINE:
                along = -z / cz
            else:
                along = -(x * cx + y * cy + z * cz)
            found.append((0.0, 0.0, along))
        else:
            found.append(_ZERO_OFFSET)
    return rows_to_array(found, 3)


def x_alignments(draft: LinkArrays, snap: float | None) -> Array:
    """Turns (links, 3, 3) about z: x along the normal to the first child's axis, or to the mass.

    With ``snap``, links that are at right angles to their neighbours keep their x.
    """
    x, y = _common_normals(draft)
    size = lengths(np.stack([x, y], axis=-1))
    slid = np.array([kind.commutes_with_axis for kind in draft.kinds])
    turned = np.flatnonzero(slid & (size >= _PARALLEL_SINE))
    c, s = x[turned] / size[turned], y[turned] / size[turned]
    turns = identity_rotations(len(size))
    turns[turned, 0, 0] = turns[turned, 1, 1] = c
    turns[turned, 0, 1], turns[turned, 1, 0] = -s, s
    if snap is None:
        return turns
    T = identity_rotations(len(size))
    for k in turned.tolist():
        if not _keeps_x_axis(draft, k, T, snap):
            T[k] = turns[k]
    return T


def _keeps_x_axis(draft: LinkArrays, k: int, T: Array, snap: float) -> bool:
    """Whether a link is at right angles to its parent, which has been turned, and its children."""
    parent, children = draft.parents[k], draft.children[k]
    own = draft.R[k] if parent == GROUND else product(T[parent].T, draft.R[k])
    return bool(children) and _are_right_angles(
        np.concatenate([own[None], draft.R[children]]), snap
    )


def _are_right_angles(rotations: Array, snap: float) -> bool:
    """Whether all axes are at right angles."""
    size = np.abs(rotations)
    return bool(np.all((size < snap) | (np.abs(size - 1.0) < snap)))


def _common_normals(draft: LinkArrays) -> tuple[Array, Array]:
    """Along x and y of each link: the normal to its first child's axis, or where its mass is."""
    first = np.full(len(draft.kinds), GROUND)
    for k in range(len(draft.kinds) - 1, -1, -1):
        if draft.kinds[k].has_axis and draft.parents[k] != GROUND:
            first[draft.parents[k]] = k
    z, p = draft.R[first, :, 2], draft.p[first]
    x, y = _xy_components(z, 1.0)
    oblique = lengths(np.stack([x, y], axis=-1)) > _PARALLEL_SINE
    here = np.where((first != GROUND)[:, None], p, draft.h)
    tip_x, tip_y = _xy_components(here, np.abs(here).max(axis=1))
    oblique &= first != GROUND
    return np.where(oblique, -y, tip_x), np.where(oblique, x, tip_y)


def _xy_components(x: Array, scale: Array | float) -> tuple[Array, Array]:
    """The parts of vectors across z; rounding must not turn them away from an axis."""
    least = ROUNDING_TOLERANCE * scale
    return snap_to_zero(x[:, 0], least), snap_to_zero(x[:, 1], least)


def move_twist_to_joint(draft: LinkArrays, snap: float | None) -> None:
    """R = Rz(a) Rx(b) Rz(e): the last turn goes into the joint's own angle.

    With ``snap``, links that are at right angles to their neighbours stay as they are.
    """
    chosen = [k for k, kind in enumerate(draft.kinds) if kind.turns_about_axis]
    if snap is not None:
        near = {k: draft.R[[k, *draft.children[k]]] for k in chosen if draft.children[k]}
        chosen = [k for k in chosen if k not in near or not _are_right_angles(near[k], snap)]
    R = draft.R[chosen]
    xx, xy, yx, yy, cb = R[:, 0, 0], R[:, 0, 1], R[:, 1, 0], R[:, 1, 1], R[:, 2, 2]
    x, y = _xy_components(R[:, :2, 2], 1.0)
    lean = lengths(np.stack([x, y], axis=-1))
    leans = lean > ROUNDING_TOLERANCE
    some = np.where(leans, lean, 1.0)
    ca, sa = np.where(leans, -y / some, 1.0), np.where(leans, x / some, 0.0)
    back = (ca < -_PARALLEL_SINE) | ((sa < 0.0) & (ca < _PARALLEL_SINE))
    ca, sa, lean = (np.where(back, -each, each) for each in (ca, sa, lean))
    sb = np.where(np.abs(lean) > ROUNDING_TOLERANCE, lean, 0.0)
    draft.angle[chosen] = atan2(-(ca * xy + sa * yy), ca * xx + sa * yx)
    rows = [ca, -sa * cb, sa * sb, sa, ca * cb, -ca * sb, np.zeros_like(cb), sb, cb]
    draft.R = draft.R.copy()
    draft.R[chosen] = np.stack(rows, axis=-1).reshape(-1, 3, 3)
