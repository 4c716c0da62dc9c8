# SPDX-License-Identifier: BSD-3-Clause
"""Triangles as pixels: what is covered, what is nearest, what shines through."""

import numpy as np
import pytest

from phistar.drawing import rasterize
from phistar.drawing.rasterize import picture

RED, BLUE, GLASS = (1.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0), (0.0, 1.0, 0.0, 0.5)


def square(low: float, high: float, depth: float | tuple[float, float]) -> np.ndarray:
    """Two triangles; a depth at the left side and one at the right."""
    left, right = np.broadcast_to(depth, 2)
    a, b = (low, low, left), (high, low, right)
    c, d = (high, high, right), (low, high, left)
    return np.array([[a, b, c], [c, d, a]])


def test_area_of_a_triangle() -> None:
    """The sum of opacities is the area; points run clockwise or not; what is outside is cut off."""
    corners = np.array([[(2.0, 3.0, 0.0), (38.0, 7.0, 0.0), (11.0, 29.0, 0.0)]])
    area = 0.5 * (36.0 * 26.0 - 4.0 * 9.0)
    for order in ([0, 1, 2], [2, 1, 0]):
        seen = picture(corners[:, order], np.array([RED]), 30, 40)
        assert seen[..., 3].sum() / 255.0 == pytest.approx(area, rel=0.01)
    far = picture(corners - (20.0, 0.0, 0.0), np.array([RED]), 30, 40)
    assert 0.0 < far[..., 3].sum() / 255.0 < area
    assert not picture(corners - (100.0, 0.0, 0.0), np.array([RED]), 30, 40).any()


def test_squares_that_cross() -> None:
    """Each is in front on its side, in whatever order they come; a seam has no hole."""
    corners = np.concatenate([square(0.0, 20.0, (0.0, 1.0)), square(0.0, 20.0, (1.0, 0.0))])
    colours = np.array([RED, RED, BLUE, BLUE])
    for order in (slice(None), slice(None, None, -1)):
        seen = picture(corners[order], colours[order], 20, 20)
        assert (seen[..., 3] == 255).all()
        assert (seen[:, :10] == (255, 0, 0, 255)).all()
        assert (seen[:, 10:] == (0, 0, 255, 255)).all()


def test_glass() -> None:
    """In front it mixes with what is behind, behind it is not seen, alone it is half there."""
    colours = np.array([RED, RED, GLASS, GLASS])
    both = [np.concatenate([square(2.0, 8.0, 1.0), square(0.0, 10.0, z)]) for z in (0.0, 2.0)]
    front, behind = (picture(corners, colours, 10, 10) for corners in both)
    np.testing.assert_allclose(front[5, 5], (128, 128, 0, 255), atol=1)
    np.testing.assert_allclose(behind[5, 5], (255, 0, 0, 255), atol=1)
    for seen in (front, behind):
        np.testing.assert_allclose(seen[0, 0], (0, 255, 0, 128), atol=1)


def test_pieces_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triangles are taken some at a time; the picture is the same."""
    rng = np.random.default_rng(0)
    corners = rng.uniform(0.0, 30.0, size=(50, 3, 3))
    colours = np.concatenate([rng.uniform(size=(50, 3)), np.ones((50, 1))], axis=-1)
    whole = picture(corners, colours, 30, 30)
    monkeypatch.setattr(rasterize, "MOST_CANDIDATES", 1000)
    assert np.array_equal(picture(corners, colours, 30, 30), whole)
