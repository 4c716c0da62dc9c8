# SPDX-License-Identifier: BSD-3-Clause
"""Warnings carry the line of the user's code."""

from pathlib import Path

import pytest

import phistar
from phistar.errors import PhistarWarning
from phistar.model import Model, ModelBuilder


def weightless() -> Model:
    """A pendulum whose last link has no mass."""
    builder = ModelBuilder("weightless")
    builder.link("ground")
    builder.link("a", 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))
    builder.joint("j1", "revolute", "ground", "a", axis=(0, 0, 1))
    builder.link("b")
    builder.joint("j2", "revolute", "a", "b", xyz=(1, 0, 0), axis=(0, 0, 1))
    return builder.build()


def test_warnings_carry_the_users_line(tmp_path: Path) -> None:
    """File and line of a warning are those of the call outside phistar, however deep it comes."""
    model = weightless()
    with pytest.warns(PhistarWarning) as caught:
        phistar.load(model)
    assert caught[0].filename == __file__
    script = tmp_path / "user.py"
    script.write_text("import phistar\n\nphistar.load(model)\n")
    with pytest.warns(PhistarWarning) as caught:
        exec(compile(script.read_text(), str(script), "exec"), {"model": model})
    assert (caught[0].filename, caught[0].lineno) == (str(script), 3)
