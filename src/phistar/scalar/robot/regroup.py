# SPDX-License-Identifier: BSD-3-Clause
"""Inertia that a joint cannot feel, moved to the parent link: fewer numbers, the same motion."""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.model.components import GROUND
from phistar.scalar.robot.link_arrays import LinkArrays, rows_to_array

FlatMatrix3 = list[float]
"""A matrix (3, 3), row by row."""

_ZERO_MOMENTS = (0.0,) * 13
_TURNS, _SLIDES = 1, 2


def regroup_inertia(draft: LinkArrays, flat: bool) -> None:
    """Move what a joint cannot feel of a link's inertia to the parent; tips first.

    About a revolute axis that is a line of mass on it: m, h_z and J = diag(e, e, 0), with J_yy for
    e, or with E_zz, so that a flat body in the plane z = 0 is left. Of a prismatic link it is all
    rotational inertia.
    """
    count = len(draft.kinds)
    R, p, mass = draft.R.reshape(-1, 9).tolist(), draft.p.tolist(), draft.mass.tolist()
    h, J = draft.h.tolist(), draft.J.reshape(-1, 9).tolist()
    # What each link had when it was reached, and what it handed over; their sizes are for rounding.
    given: list[tuple[float, ...]] = [_ZERO_MOMENTS[1:]] * count
    taken: list[tuple[float, ...]] = [_ZERO_MOMENTS] * count
    moves = _how_links_move(draft)
    parents = draft.parents
    for k in range(count - 1, -1, -1):
        m, (hx, hy, hz), here = mass[k], h[k], J[k]
        taken[k] = (m, hx, hy, hz, *here)
        if not (move := moves[k]):
            continue
        if move == _TURNS:
            a, b, c, d, e, f, g, i, j = here
            line = (a + e + j) / 2 - j if flat else e
            mass[k], h[k] = 0.0, [hx, hy, 0.0]
            J[k] = [a - line, b, c, d, e - line, f, g, i, j]
            turned = _rotate_line_inertia(line, R[k])
        else:
            m, hz, J[k], turned = 0.0, 0.0, [0.0] * 9, _rotate_inertia(here, R[k])
        parent = parents[k]
        if parent != GROUND:
            given[k] = moved = _moments_about_parent(m, hz, turned, R[k], p[k])
            x, y, z, a, b, c, d, e, f, g, i, j = moved
            mass[parent] += m
            u, v, w = h[parent]
            h[parent] = [u + x, v + y, w + z]
            aa, bb, cc, dd, ee, ff, gg, ii, jj = J[parent]
            J[parent] = [aa + a, bb + b, cc + c, dd + d, ee + e, ff + f, gg + g, ii + i, jj + j]
    _record_scales(draft, rows_to_array(taken, 13), rows_to_array(given, 12))
    draft.mass, draft.h, draft.J = (
        np.array(mass),
        rows_to_array(h, 3),
        rows_to_array(J, 9).reshape(-1, 3, 3),
    )


def _how_links_move(draft: LinkArrays) -> list[int]:
    """``_TURNS`` or ``_SLIDES`` for links that move freely in one of these ways alone, else 0."""
    made = {
        id(kind): _TURNS if kind.turns_only else _SLIDES if kind.slides_only else 0
        for kind in {id(kind): kind for kind in draft.kinds}.values()
    }
    rows = zip(draft.kinds, draft.is_free, strict=True)
    return [made[id(kind)] if free else 0 for kind, free in rows]


def _record_scales(draft: LinkArrays, taken: Array, given: Array) -> None:
    """How large the moments were from which those of a link and of its parent were computed.

    Args:
        draft: The links.
        taken: (links, 13) mass, first and second moments with what children handed over.
        given: (links, 12) what was handed to the parent; zero if nothing was.
    """
    offset = np.maximum(np.abs(draft.body_p).max(axis=1), np.abs(draft.p).max(axis=1))
    reach = np.where(
        [kind.commutes_with_axis for kind in draft.kinds], np.abs(taken[:, 0]) * offset, 0.0
    )
    sizes = np.stack([np.abs(taken[:, 1:4]).max(axis=1), np.abs(taken[:, 4:]).max(axis=1)], axis=1)
    sizes = np.max([sizes, np.stack([reach, reach * offset], axis=1), draft.total_scales], axis=0)
    moved = np.stack([np.abs(given[:, :3]).max(axis=1), np.abs(given[:, 3:]).max(axis=1)], axis=1)
    own, every, handed = draft.own_scales.tolist(), sizes.tolist(), moved.tolist()
    parents, moves = draft.parents, _how_links_move(draft)
    slides = {id(kind): kind.slides_only for kind in {id(k): k for k in draft.kinds}.values()}
    sliding = [slides[id(kind)] for kind in draft.kinds]
    for k in range(len(own) - 1, -1, -1):
        parent, (first, second), (x, y) = parents[k], every[k], own[k]
        first, second = first if first > x else x, second if second > y else y
        every[k] = [first, second]
        if sliding[k]:
            own[k] = every[k]
        if parent != GROUND and moves[k]:
            (x, y), (u, v) = own[parent], handed[k]
            x, y = first if first > x else x, second if second > y else y
            own[parent] = [u if u > x else x, v if v > y else y]
    draft.own_scales, draft.total_scales = rows_to_array(own, 2), rows_to_array(every, 2)


def _rotate_line_inertia(e: float, R: FlatMatrix3) -> FlatMatrix3:
    """R diag(e, e, 0) R*."""
    a, b, _, c, d, _, f, g, _ = R
    ae, be, ce, de, fe, ge = a * e, b * e, c * e, d * e, f * e, g * e
    return [
        ae * a + be * b, ae * c + be * d, ae * f + be * g,
        ce * a + de * b, ce * c + de * d, ce * f + de * g,
        fe * a + ge * b, fe * c + ge * d, fe * f + ge * g,
    ]  # fmt: skip


def _rotate_inertia(J: FlatMatrix3, R: FlatMatrix3) -> FlatMatrix3:
    """R J R*."""
    rows = [R[0:3], R[3:6], R[6:9]]
    columns = [J[0::3], J[1::3], J[2::3]]
    left = [[r[0] * c[0] + r[1] * c[1] + r[2] * c[2] for c in columns] for r in rows]
    return [r[0] * c[0] + r[1] * c[1] + r[2] * c[2] for r in left for c in rows]


def _moments_about_parent(
    mass: float, hz: float, J: FlatMatrix3, R: FlatMatrix3, p: list[float]
) -> tuple[float, ...]:
    """First and second moments about the parent's origin, p away from where h = hz R z is."""
    x, y, z = p
    _, _, zx, _, _, zy, _, _, zz = R
    hx, hy, hz = zx * hz, zy * hz, zz * hz
    half = 0.5 * mass
    gx, gy, gz = hx + half * x, hy + half * y, hz + half * z
    xx, xy, xz = -x * gx, -x * gy, -x * gz
    yx, yy, yz = -y * gx, -y * gy, -y * gz
    tx, ty, tz = -z * gx, -z * gy, -z * gz
    twice = 2.0 * (xx + yy + tz)
    a, b, c, d, e, f, g, i, j = J
    return (
        hx + mass * x, hy + mass * y, hz + mass * z,
        a + (xx + xx - twice), b + (xy + yx), c + (xz + tx),
        d + (yx + xy), e + (yy + yy - twice), f + (yz + ty),
        g + (tx + xz), i + (ty + yz), j + (tz + tz - twice),
    )  # fmt: skip
