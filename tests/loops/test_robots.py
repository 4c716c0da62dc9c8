# SPDX-License-Identifier: BSD-3-Clause
"""Robots with loops of ../shared/robots: they assemble, and all routes agree."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.errors import RedundantWrenchWarning
from phistar.loops.routes import ROUTES
from phistar.model.kinematic_loops import active_loops
from phistar.robot import Robot
from tests.helpers import SHARED, needs_shared
from tests.loops.mechanisms import error


def with_equalities() -> list[Path]:
    """Files that may have loops."""
    found = []
    for suffix in ("xml", "urdf"):
        for path in (SHARED / "robots").rglob(f"*.{suffix}"):
            text = path.read_text(errors="ignore")
            if "<equality" in text or "loop_joint" in text:
                found.append(path)
    return sorted(found)


FILES = with_equalities()
ROUNDED = ("toddlerbot",)
"""Robots whose redundant rows contradict each other by the rounding of their files."""


def load(path: Path) -> Robot | None:
    """A robot with active loops, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            robot = phistar.load(str(path))
        except phistar.errors.PhistarError:
            return None
    return robot if active_loops(robot.model.loops) else None


@needs_shared
def test_routes_agree_on_every_robot_with_loops() -> None:
    """From the neutral pose onto the loops, then six ways to one acceleration; relative 1e-8."""
    seen = 0
    for path in FILES:
        robot = load(path)
        if robot is None or robot.nv > 100:
            continue
        seen += 1
        rng = np.random.default_rng(0)
        q, v = robot.project(robot.assemble(robot.neutral()), rng.normal(size=robot.nv))
        tau = rng.normal(size=robot.nv)
        rounded = any(name in path.name for name in ROUNDED)
        limit = 1e-5 if rounded else 1e-8
        expected = robot.forward_dynamics(q, v, tau, method="null")
        for method in ROUTES:
            if method in ("range", "proximal", "join") and robot.singular_hinges:
                continue
            if method == "proximal" and rounded:
                continue  # it refuses: Δ of gears with tiny inertias spans twelve decades
            found = robot.forward_dynamics(q, v, tau, method=method)
            # The proximal way ends where its rows are met, not where v̇ is.
            allowed = max(limit, 1e-6) if method == "proximal" else limit
            assert error(found, expected) < allowed, (path.name, method)
        if rounded:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RedundantWrenchWarning)
                vdot = robot.forward_dynamics(q, v, tau)
                assert robot.reaction_forces(q, v, vdot, tau=tau), path.name
        assert robot.mobility(q).degrees_of_freedom == len(robot.minimal(q).independent)
    assert seen >= 20


def test_there_are_files_to_look_at() -> None:
    """The search above finds something where the robots are."""
    if not (SHARED / "robots").is_dir():
        pytest.skip("needs the reference robots in ../shared")
    assert len(FILES) >= 20
