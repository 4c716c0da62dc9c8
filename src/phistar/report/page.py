# SPDX-License-Identifier: BSD-3-Clause
"""The page of a report: one file that needs nothing else and asks for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from phistar.drawing.drawing_mixin import finite_pictures
from phistar.drawing.web_page import web_page
from phistar.errors import ArgumentError
from phistar.report.figures_of_speed import operations_table, times_table
from phistar.report.model_card import model_card
from phistar.report.motion_section import motion_section
from phistar.reprs import html_document, html_page_inside
from phistar.robot import Robot
from phistar.sim import Simulation


def report_html(
    robot: Robot,
    sim: Simulation | None = None,
    *,
    mesh_folders: Sequence[str | Path] = (),
    timings: bool = True,
) -> str:
    """A robot, and a motion of it, as a page.

    Args:
        robot: The robot.
        sim: A motion of it.
        mesh_folders: Folders in which meshes are looked for, besides that of the robot's file.
        timings: Whether programs are compiled and timed on this machine.

    Raises:
        ArgumentError: The motion is of another robot, or not finite.
        MissingExtraError: A motion is drawn by matplotlib, and that is not installed.
    """
    if sim is not None and sim.model.joint_names != robot.joint_names:
        raise ArgumentError(f"the motion is of '{sim.model.name}', expected one of '{robot.name}'")
    t, q = (np.zeros(1), robot.home[None, None]) if sim is None else finite_pictures(sim)
    drawing = web_page(robot.scene(mesh_folders), t, q, robot.name, plays=False)
    sections = {
        "": html_page_inside(drawing, height=420),
        "The robot": model_card(robot),
        **({} if sim is None else {"The motion": motion_section(robot, sim)}),
        "Operations": operations_table(robot),
        **({"Times on this machine": times_table(robot)} if timings else {}),
    }
    body = "".join(
        (f"<h2>{title}</h2>" if title else "") + content for title, content in sections.items()
    )
    return html_document(robot.name, body)


def write_report(
    robot: Robot,
    path: str | Path,
    sim: Simulation | None = None,
    *,
    mesh_folders: Sequence[str | Path] = (),
    timings: bool = True,
) -> Path:
    """Write the page of ``report_html`` and return its path."""
    target = Path(path)
    text = report_html(robot, sim, mesh_folders=mesh_folders, timings=timings)
    target.write_text(text, encoding="utf-8")
    return target
