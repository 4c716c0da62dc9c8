# SPDX-License-Identifier: BSD-3-Clause
"""Small arms with a geometry that is known."""

import warnings

import numpy as np

import phistar
from phistar.errors import InertiaWarning
from phistar.model.builder import ModelBuilder

POINT = 1.7
"""Mass of the points [kg]."""


def serial(name: str, *links: dict[str, object]) -> phistar.Robot:
    """A chain; a link is the arguments of its joint, with mass, com and inertia."""
    builder = ModelBuilder(name)
    builder.link("base")
    parent = "base"
    for k, link in enumerate(links):
        body = {key: link.pop(key) for key in ("mass", "com", "inertia") if key in link}
        builder.link(f"link{k}", **body)  # type: ignore[arg-type]
        builder.joint(f"joint{k}", parent=parent, child=f"link{k}", **link)  # type: ignore[arg-type]
        parent = f"link{k}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InertiaWarning)  # points have none
        return phistar.load(builder.build())


def gantry() -> phistar.Robot:
    """Three slides in oblique directions: a constant mass matrix."""
    solid = {"kind": "prismatic", "inertia": (1.0, 1.0, 1.0)}
    return serial(
        "gantry",
        {**solid, "axis": (1, 2, 3), "mass": 2.0},
        {**solid, "axis": (0, 1, 0.3), "mass": 1.5, "com": (0.1, 0.2, 0.3)},
        {**solid, "axis": (0, 0, 1), "mass": 1.0, "rpy": (0.3, 0.4, 0.5)},
    )


def polar(inertia: float = 0.0) -> phistar.Robot:
    """A mass that slides along an arm that turns: the plane in polar coordinates, if a point."""
    return serial(
        "polar",
        {"kind": "revolute", "axis": (0, 0, 1)},
        {
            "kind": "prismatic",
            "axis": (1, 0, 0),
            "mass": POINT,
            "inertia": (inertia,) * 3,
            "lower": 0.3,
            "upper": 2.0,
        },
    )


def spherical_pendulum(length: float = 0.8) -> phistar.Robot:
    """A point on two crossed axes: a sphere."""
    return serial(
        "sphere",
        {"kind": "revolute", "axis": (0, 0, 1)},
        {"kind": "revolute", "axis": (0, 1, 0), "mass": POINT, "com": (length, 0, 0)},
    )


def elbow() -> phistar.Robot:
    """Two parallel axes."""
    solid = {"kind": "revolute", "axis": (0, 0, 1), "inertia": (0.1, 0.1, 0.1)}
    return serial(
        "elbow",
        {**solid, "mass": 1.0, "com": (0.5, 0, 0)},
        {**solid, "mass": 1.7, "com": (0.4, 0, 0), "xyz": (1, 0, 0)},
    )


def places(robot: phistar.Robot, count: int = 4) -> np.ndarray:
    """Random configurations."""
    return robot.random_configuration(5, count)
