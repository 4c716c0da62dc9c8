# SPDX-License-Identifier: BSD-3-Clause
"""The README's animation: small, and what the tool of the repository draws."""

import numpy as np
from PIL import Image

import phistar
from tests.helpers import ROOT
from tools import readme_picture

MEGABYTE = 1_000_000


def test_the_picture_is_there_and_small() -> None:
    """The README shows it; it moves."""
    target = readme_picture.TARGET
    assert f"]({target.relative_to(ROOT)})" in (ROOT / "README.md").read_text("utf-8")
    assert target.stat().st_size < MEGABYTE
    with Image.open(target) as image:
        assert image.is_animated


def test_the_stored_pictures_are_those_of_the_tool() -> None:
    """One of the sweep is drawn again: its pixels are the stored ones, but for few colours."""
    robot = phistar.load("panda")
    work = readme_picture.sweep_at_work(robot)
    shots = list(readme_picture.sweep_shots(work))
    number = next(k for k, shot in enumerate(shots) if shot.caption == "α at panda_link4")
    drawn = np.asarray(readme_picture.picture(robot.scene(), work.lines, shots[number]), float)
    with Image.open(readme_picture.TARGET) as image:
        assert image.n_frames == len(shots) + readme_picture.PICTURES
        image.seek(number)
        stored = np.asarray(image.convert("RGB"), float)
        image.seek(number - 1)
        other = np.asarray(image.convert("RGB"), float)
    assert stored.shape == drawn.shape
    far = (np.abs(stored - drawn).max(axis=-1) > 60).mean()
    far_from_other = (np.abs(other - drawn).max(axis=-1) > 60).mean()
    assert far < 1e-3 < 2e-3 < far_from_other
