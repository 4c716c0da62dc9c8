# SPDX-License-Identifier: BSD-3-Clause
"""Text as the commands write it."""

import math

import numpy as np
import pytest

from phistar.cli.terminal import axis_text, clean, did_you_mean, number, problem_text, vector
from phistar.errors import Problem, kind_of, pluralize, with_article


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 关节1 é", "plain 关节1 é"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\udce9", "\\udce9"),
    ],
)
def test_clean_disarms_control_characters(text: str, shown: str) -> None:
    """Letters of all scripts stay, whatever steers a terminal is spelt out."""
    assert clean(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (-0.0, "0"), (2.89731, "2.897"), (1e-9, "1e-09"), (math.inf, "-"), (87.0, "87")],
)
def test_number(value: float, shown: str) -> None:
    """Four digits; no limit is a dash; no negative zero."""
    assert number(value) == shown


@pytest.mark.parametrize(
    ("axis", "shown"),
    [
        ((0.0, 0.0, 1.0), "z"),
        ((-1.0, 0.0, 0.0), "-x"),
        ((0.0, 1.0, 1e-17), "y"),
        ((0.6, 0.0, 0.8), "0.6 0 0.8"),
        ((0.0, 1e-6, 1.0), "0 1e-06 1"),
    ],
)
def test_axis_text(axis: tuple[float, float, float], shown: str) -> None:
    """Axes of the frame have letters; a slightly tilted axis is not called z."""
    assert axis_text(axis) == shown


def test_small_words() -> None:
    """Plurals, vectors, and suggestions."""
    assert [pluralize(n, "link") for n in (0, 1, 2)] == ["0 links", "1 link", "2 links"]
    assert vector((0.0, 1.5, -9.81)) == "(0, 1.5, -9.81)"
    assert did_you_mean("pnda", ["panda", "ur5"]) == "did you mean panda?"
    assert did_you_mean("zzz", ["panda", "ur5"]) == "have: panda, ur5"


@pytest.mark.parametrize("where", ["a.urdf:3", ""])
def test_problem_text(where: str) -> None:
    """Where, severity, what, cure and code, in this order and on one line."""
    problem = Problem("warning", "some-code", where, 'link "a\nb" is odd.', "Mend it.")
    line = problem_text(problem, "file.urdf").plain
    place = where or "file.urdf"
    assert line == f'{place}: warning: link "a\\nb" is odd. Mend it. [some-code]'


def test_articles_go_by_sound() -> None:
    """What was given has the article that one would say."""
    given = ([], 1, None, np.zeros(2), "text")
    assert [kind_of(x) for x in given] == ["a list", "an int", "None", "an ndarray", "a str"]
    assert [with_article(x) for x in ("SX", "Scene", "ellipsoid")] == [
        "an SX",
        "a Scene",
        "an ellipsoid",
    ]
