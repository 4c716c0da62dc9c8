# SPDX-License-Identifier: BSD-3-Clause
"""Robots and motions as notebooks show them: a table of joints, and the robot itself, drawn."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from phistar.arrays import Array
from phistar.drawing.scene import MissingShapeWarning, Scene, scene
from phistar.drawing.web_page import web_page
from phistar.errors import pluralize
from phistar.model.components import Joint
from phistar.model.model import Model
from phistar.reprs import html_card, html_page_inside, html_table

MOST_ROWS = 60
"""Joints that a table lists."""
MOST_CHARACTERS = 3_000_000
"""Size of a drawing up to which it is part of a notebook."""


def robot_card(title: str, model: Model, folder: Path | None, q: Array) -> str:
    """A robot: its joints, and a drawing at a configuration (nq,)."""
    names = model.joint_names
    rows = [_joint_row(model.joints[name]) for name in names[:MOST_ROWS]]
    if len(names) > MOST_ROWS:
        rows.append((f"... and {len(names) - MOST_ROWS} more", "", "", "", ""))
    head = ("joint", "kind", "from", "to", "limits")
    surfaces, missing = _quiet_scene(model, folder)
    drawing = _drawing(surfaces, np.zeros(1), q[None, None], missing)
    return html_card(title, drawing, html_table(head, rows))


def motion_card(title: str, model: Model, t: Array, q: Array) -> str:
    """A motion: times (N,) and configurations (N, copies, nq), drawn."""
    surfaces, missing = _quiet_scene(model, None)
    return html_card(title, _drawing(surfaces, t, q, missing))


def _quiet_scene(model: Model, folder: Path | None) -> tuple[Scene, Sequence[str]]:
    """The surfaces, and what of them is missing: said in the card rather than by a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingShapeWarning)
        found = scene(model, folder)
    return found, found.missing


def _drawing(surfaces: Scene, t: Array, q: Array, missing: Sequence[str]) -> str:
    page = web_page(surfaces, t, q, surfaces.model.name, plays=False)
    if len(page) > MOST_CHARACTERS:
        size = f"{len(page) / 1e6:.0f} MB"
        return f"<p>Its drawing has {size} and is left out: save_html writes it.</p>"
    note = ""
    if missing:
        what = pluralize(len(missing), "mesh file")
        note = f"<p>{what} could not be read; boxes are drawn instead.</p>"
    return html_page_inside(page) + note


def _joint_row(joint: Joint) -> tuple[str, str, str, str, str]:
    ends = zip(joint.limits.lower, joint.limits.upper, joint.joint_kind.q_units, strict=False)
    shown = [f"{low:.4g} … {high:.4g} {unit}" for low, high, unit in ends if _limited(low, high)]
    return joint.name, joint.kind, joint.parent, joint.child, ", ".join(shown)


def _limited(low: float, high: float) -> bool:
    return math.isfinite(low) or math.isfinite(high)
