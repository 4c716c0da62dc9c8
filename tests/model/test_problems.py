# SPDX-License-Identifier: BSD-3-Clause
"""Doubtful and impossible numbers in a robot: what is refused, what is only reported."""

from typing import Any

import numpy as np
import pytest

from phistar.errors import ModelError
from phistar.model import Model, ModelBuilder
from phistar.model.problems import MAX_MAGNITUDE, MAX_PLAUSIBLE_MASS_KG


def _build(link: dict[str, Any] | None = None, joint: dict[str, Any] | None = None) -> Model:
    sound = {"mass": 1.0, "com": (0, 0, 0.1), "inertia": (0.1, 0.1, 0.1)}
    builder = ModelBuilder("probe")
    builder.link("base")
    builder.link("rod", **{**sound, **(link or {})})
    builder.joint("pivot", "revolute", "base", "rod", **(joint or {}))
    return builder.build()


def test_a_sound_robot_has_no_problems() -> None:
    """The probe itself is clean, so the tests below see only what they break."""
    assert _build().problems == ()


@pytest.mark.parametrize(
    ("link", "code"),
    [
        ({"mass": -1.0}, "inertia-negative-mass"),
        ({"mass": np.nan}, "inertia-not-finite"),
        ({"mass": MAX_MAGNITUDE * 10}, "mass-huge"),
        ({"com": (0, np.inf, 0)}, "com-not-finite"),
        ({"com": (0, 1e300, 0)}, "inertia-huge"),
        ({"inertia": (1e308, 1e308, 1e308)}, "inertia-huge"),
        ({"inertia": [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]}, "inertia-not-symmetric"),
        ({"inertia": (0.1, 0.1, -0.1)}, "inertia-negative-moment"),
        ({"inertia": (0.1, 0.1, -1e-6)}, "inertia-negative-moment"),
        ({"inertia": [[1, 2, 0], [2, 1, 0], [0, 0, 1]]}, "inertia-negative-moment"),
        ({"com": (0, 0, 9), "inertia": (-1e-3, 1e-3, 1e-3)}, "inertia-negative-moment"),
    ],
)
def test_impossible_links_are_refused(link: dict[str, Any], code: str) -> None:
    """Each impossible number is an error that names the link."""
    with pytest.raises(ModelError, match='"rod"') as caught:
        _build(link)
    assert code in [problem.code for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("link", "code"),
    [
        ({"mass": MAX_PLAUSIBLE_MASS_KG * 2, "inertia": (1e6, 1e6, 1e6)}, "mass-huge"),
        ({"inertia": (1.0, 1.0, 3.0)}, "inertia-triangle-inequality"),
        ({"inertia": (0.1, 0.1, 0.0)}, "inertia-not-positive-definite"),
        (
            {"com": (0.5, 0, 0.5), "inertia": [[0.5, 0, 0.6], [0, 0.5, 0], [0.6, 0, 0.5]]},
            "inertia-negative-moment",
        ),
        ({"inertia": (0, 0, 0)}, "inertia-mass-without-inertia"),
        ({"mass": 0.0}, "inertia-inertia-without-mass"),
    ],
)
def test_doubtful_links_are_reported(link: dict[str, Any], code: str) -> None:
    """Each doubtful number is a warning that names the link and a cure; the robot is built."""
    found = {problem.code: problem for problem in _build(link).problems}
    assert found[code].severity == "warning"
    assert "rod" in found[code].what
    assert found[code].cure


@pytest.mark.parametrize(
    ("joint", "code"),
    [
        ({"lower": 1.0, "upper": -1.0}, "limit-order"),
        ({"lower": np.nan}, "limit-nan"),
        ({"armature": -0.1}, "negative-armature"),
        ({"damping": np.inf}, "damping-not-finite"),
        ({"xyz": (1e300, 0, 0)}, "origin-huge"),
    ],
)
def test_impossible_joints_are_refused(joint: dict[str, Any], code: str) -> None:
    """Each impossible number is an error that names the joint."""
    with pytest.raises(ModelError, match='"pivot"') as caught:
        _build(joint=joint)
    assert code in [problem.code for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("joint", "code"),
    [
        ({"damping": -1.0}, "negative-damping"),
        ({"friction": -1.0}, "negative-friction"),
        ({"effort": -1.0}, "limit-negative"),
    ],
)
def test_doubtful_joints_are_reported(joint: dict[str, Any], code: str) -> None:
    """Each doubtful number is a warning that names the joint."""
    (problem,) = _build(joint=joint).problems
    assert (problem.severity, problem.code) == ("warning", code)
    assert "pivot" in problem.what


@pytest.mark.parametrize(
    "inertia",
    [
        (-2.4e-35, 0.0, 2.4e-35),
        (-5.4e-20, -5.4e-20, 0.0),
        [[1e-18, 1.1e-18, 0], [1.1e-18, 1e-18, 0], [0, 0, 1e-18]],
    ],
)
def test_rounding_in_place_of_an_inertia_says_nothing(inertia: Any) -> None:
    """Moments as real files have them where zero is meant (iCub): far below any body's."""
    assert _build({"inertia": inertia}).problems == ()


def test_a_zero_moment_is_not_called_negative_for_its_rounding() -> None:
    """The eigenvalue -7e-17 of a rank-one inertia is zero; the message does not quote the noise."""
    (problem,) = _build({"inertia": 1e-6 * np.ones((3, 3))}).problems
    assert (problem.severity, problem.code) == ("warning", "inertia-not-positive-definite")
    assert "e-2" not in problem.what
    assert "zero" in problem.what
