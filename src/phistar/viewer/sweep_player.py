# SPDX-License-Identifier: BSD-3-Clause
"""The sweep: forward dynamics link by link, as arrows on the robot beside the printed program.

Forces and motions are drawn at the origin of their link: the linear part in one colour, the angular
part in another. Each name has one scale for all links, so that its arrows can be compared.
"""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from phistar.arrays import Array
from phistar.explain.sweep_steps import SweepStep, SweepSteps, sweep_steps
from phistar.model.model import Model
from phistar.sweeps.ir import Type
from phistar.viewer.view_state import ViewState

LINEAR = (40, 120, 220)
ANGULAR = (220, 130, 30)
SHOWN = (Type.MOTION, Type.FORCE)


class SweepPlayer:
    """Arrows and the lit line of a step.

    Args:
        server: The server.
        model: The robot.
        size: Its size [m]: the longest arrow is a quarter of it.
    """

    def __init__(self, server: Any, model: Model, size: float) -> None:
        self.server, self.model, self.size = server, model, size
        self.work: SweepSteps | None = None
        self.scales: dict[tuple[str, int], float] = {}
        self.state: ViewState | None = None

    def prepare(self, state: ViewState) -> int:
        """Work out all steps at a state without joint forces; their number."""
        model = self.model
        self.state = state
        self.work = sweep_steps("forward_dynamics", model, state.q, v=state.v, tau=0.0 * state.v)
        self.scales = {}
        for step in self.work.steps:
            for half in (0, 1) if step.type in SHOWN else ():
                key = step.name, half
                length = float(np.linalg.norm(step.value[3 * half : 3 * half + 3]))
                self.scales[key] = max(self.scales.get(key, 0.0), length)
        return len(self.work.steps)

    def show(self, number: int) -> str:
        """Draw a step; the program in HTML with its line lit."""
        assert self.work is not None
        step = self.work.steps[number]
        self._draw(self.work.steps[: number + 1], step)
        return program_html(self.work.lines, step, self.model)

    def clear(self) -> None:
        """Take the arrows away."""
        for name in ("linear", "angular"):
            self.server.scene.add_arrows(
                f"/sweep/{name}", np.zeros((1, 2, 3)), LINEAR, visible=False
            )

    def _draw(self, done: tuple[SweepStep, ...], current: SweepStep) -> None:
        """The current name at all links where this pass has computed it."""
        assert self.state is not None
        found = {step.body: step for step in done if step.line == current.line}
        if current.type not in SHOWN:
            self.clear()
            return
        for half, name, colour in ((1, "linear", LINEAR), (0, "angular", ANGULAR)):
            arrows = np.array([self._arrow(step, half) for step in found.values()])
            self.server.scene.add_arrows(
                f"/sweep/{name}", arrows, colour, shaft_radius=0.006 * self.size,
                head_radius=0.014 * self.size, head_length=0.03 * self.size,
            )  # fmt: skip

    def _arrow(self, step: SweepStep, half: int) -> Array:
        assert self.state is not None
        pose = self.state.poses[step.body]
        vector = pose[:3, :3] @ step.value[3 * half : 3 * half + 3]
        longest = self.scales[step.name, half] or 1.0
        return np.array([pose[:3, 3], pose[:3, 3] + 0.25 * self.size * vector / longest])


def program_html(lines: tuple[str, ...], step: SweepStep, model: Model) -> str:
    """The program with the line of a step lit, and the value at its link."""
    rows = []
    for number, line in enumerate(lines):
        lit = "background:#fd6;color:#000" if number == step.line else ""
        rows.append(f'<div style="white-space:pre;{lit}">{html.escape(line)}</div>')
    link = html.escape(model.bodies[step.body].link)
    value = np.array2string(np.asarray(step.value), precision=3, suppress_small=True)
    note = f"<p>at <b>{link}</b>: {html.escape(step.name)} = {html.escape(value)}</p>"
    return f'<div style="font:11px monospace;overflow-x:auto">{"".join(rows)}</div>{note}'
