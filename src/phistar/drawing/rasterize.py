# SPDX-License-Identifier: BSD-3-Clause
"""Triangles as pixels, the nearest at each; matplotlib sorts whole triangles, which may cross."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from phistar.arrays import Array

FINENESS = 2
"""Rows and columns that a pixel is the mean of."""
MOST_CANDIDATES = 2_000_000
"""Pairs of a triangle and a point of its box that are looked at in one go: 200 MB."""
OPAQUE = 0.999


def picture(corners: Array, colours: Array, height: int, width: int) -> Array:
    """An image (height, width, 4) of uint8, rows upwards, transparent where nothing is.

    Args:
        corners: (m, 3, 3): x to the right and y upwards in pixels, and depth, larger is farther.
        colours: (m, 4) red, green, blue, opacity of the triangles.
        height, width: Of the image, in pixels.
    """
    corners = corners * (FINENESS, FINENESS, 1.0)
    shape = height * FINENESS, width * FINENESS
    solid = colours[:, 3] >= OPAQUE
    depth = np.full(shape[0] * shape[1], np.inf)
    layers = [_layer(corners[solid], colours[solid], shape, depth)]
    if not solid.all():
        layers.append(_layer(corners[~solid], colours[~solid], shape, depth))
    found = np.zeros((*shape, 4))
    for layer in layers:
        opacity = layer[..., 3:]
        over = np.concatenate([layer[..., :3] * opacity, opacity], axis=-1)
        found = over + (1.0 - opacity) * found
    mean = found.reshape(height, FINENESS, width, FINENESS, 4).mean(axis=(1, 3))
    mean[..., :3] /= np.where(mean[..., 3:] > 0.0, mean[..., 3:], 1.0)
    return np.asarray(np.round(255.0 * np.clip(mean, 0.0, 1.0)).astype(np.uint8))


def _layer(corners: Array, colours: Array, shape: tuple[int, int], depth: Array) -> Array:
    """Colours (height, width, 4) of the nearest triangles; ``depth`` (pixels,) becomes theirs."""
    owner = np.full(depth.shape, -1)
    for triangle, pixel, at in _covered(corners, shape):
        nearer = at < depth[pixel]
        triangle, pixel, at = triangle[nearer], pixel[nearer], at[nearer]
        order = np.argsort(-at, kind="stable")  # of equal pixels the last one stays, the nearest
        depth[pixel[order]] = at[order]
        owner[pixel[order]] = triangle[order]
    seen = np.concatenate([colours, np.zeros((1, 4))])[owner]
    return np.asarray(seen.reshape(*shape, 4))


def _covered(corners: Array, shape: tuple[int, int]) -> Iterator[tuple[Array, Array, Array]]:
    """Numbers of triangles, of pixels in them, and depths there, some million at a time."""
    plane = corners[..., :2]
    low = np.maximum(np.ceil(np.clip(plane.min(axis=1) - 0.5, -1.0, shape[::-1])), 0.0).astype(int)
    high = np.floor(np.clip(plane.max(axis=1) - 0.5, -1.0, shape[::-1])).astype(int)
    high = np.minimum(high, (shape[1] - 1, shape[0] - 1))
    area, shares = _shares(corners)
    columns, lines = (np.maximum(high - low + 1, 0) * (np.abs(area) > 1e-12)[:, None]).T
    count = columns * lines
    ends = np.cumsum(count)
    begin = 0
    while begin < len(count):
        passed = ends[begin - 1] if begin else 0
        end = max(int(np.searchsorted(ends, passed + MOST_CANDIDATES, side="right")), begin + 1)
        chosen = slice(begin, end)

        def spread(x: Array, chosen: slice = chosen) -> Array:
            return np.repeat(x[chosen], count[chosen])

        local = np.arange(passed, ends[end - 1]) - spread(ends - count)
        line, column = np.divmod(local, spread(columns))
        x, y = spread(low[:, 0]) + column, spread(low[:, 1]) + line
        of_b, of_c = (
            spread(start) + spread(by_x) * (x + 0.5) + spread(by_y) * (y + 0.5)
            for by_x, by_y, start in shares
        )
        inside = (of_b >= -1e-9) & (of_c >= -1e-9) & (of_b + of_c <= 1.0 + 1e-9)
        rows = spread(np.arange(len(count)))[inside]
        a, b, c = corners[rows, :, 2].T
        yield rows, (y * shape[1] + x)[inside], a + of_b[inside] * (b - a) + of_c[inside] * (c - a)
        begin = end


def _shares(corners: Array) -> tuple[Array, tuple[tuple[Array, ...], tuple[Array, ...]]]:
    """Twice the areas of triangles; the shares of their second and third corner at a point.

    A share is three numbers: by x, by y, and at (0, 0).
    """
    a = corners[:, 0]
    (bx, by), (cx, cy) = ((corners[:, k] - a)[:, :2].T for k in (1, 2))
    area = bx * cy - by * cx
    whole = np.where(area == 0.0, 1.0, area)
    slopes = ((cy / whole, -cx / whole), (-by / whole, bx / whole))
    second, third = ((u, w, -u * a[:, 0] - w * a[:, 1]) for u, w in slopes)
    return area, (second, third)
