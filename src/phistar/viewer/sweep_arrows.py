# SPDX-License-Identifier: BSD-3-Clause
"""Forward dynamics link by link as arrows: what each statement has computed so far.

Forces and motions are drawn at the origin of their link, the linear part and the angular part
apart; joint vectors (ε, ν) along the axes of their joint, H* of them. Each name has one scale for
all links; lengths go with the square root of values, so that those of light links are seen too.
"""

from __future__ import annotations

import html

import numpy as np

from phistar.arrays import Array
from phistar.explain.sweep_steps import SweepStep, sweep_steps
from phistar.sweeps.ir import Type
from phistar.viewer.view_state import ViewState

LINEAR = (0, 70, 200)
ANGULAR = (205, 85, 0)
LONGEST = 0.35
"""Length of the longest arrow of a name, in sizes of the robot."""
SHORTEST = 0.02
"""Length of arrows that are left out, in sizes of the robot."""


class SweepArrows:
    """A program at work at a state, without joint forces.

    Args:
        state: The state.
        size: Size of the robot [m].

    Attributes:
        state: The state.
        lines: The printed program.
        steps: Statements at links, in order.

    Raises:
        ArgumentError: The robot has reduced mimic joints.
    """

    def __init__(self, state: ViewState, size: float) -> None:
        work = sweep_steps(
            "forward_dynamics", state.model, state.q, v=state.v, tau=np.zeros(state.model.nv)
        )
        self.state, self.size = state, size
        self.lines, self.steps = work.lines, work.steps
        self._longest: dict[tuple[str, int], float] = {}
        for step in self.steps:
            vector = self._spatial(step)
            if vector is None:
                continue
            for half in (0, 1):
                length = float(np.linalg.norm(vector[3 * half : 3 * half + 3]))
                key = step.name, half
                self._longest[key] = max(self._longest.get(key, 0.0), length)

    def at(self, number: int) -> tuple[Array, Array]:
        """Arrows (n, 2, 3), begin and end, of linear and of angular parts after a step.

        The name that the step computes is shown at all links where its sweep has come by.
        """
        current = self.steps[number]
        done = {s.body: s for s in self.steps[: number + 1] if s.line == current.line}
        linear, angular = (
            [arrow for step in done.values() for arrow in self._arrows(step, half)]
            for half in (1, 0)
        )
        return np.reshape(linear, (-1, 2, 3)), np.reshape(angular, (-1, 2, 3))

    def _arrows(self, step: SweepStep, half: int) -> list[Array]:
        """The arrow of a half, unless there is none or it is too short to be seen."""
        vector, longest = self._spatial(step), self._longest.get((step.name, half), 0.0)
        if vector is None or not longest > 0.0:
            return []
        pose = self.state.poses[step.body]
        part = pose[:3, :3] @ vector[3 * half : 3 * half + 3] / longest
        length = float(np.sqrt(np.linalg.norm(part)))
        if LONGEST * length < SHORTEST:
            return []
        part = part / length
        return [np.array([pose[:3, 3], pose[:3, 3] + LONGEST * self.size * part])]

    def _spatial(self, step: SweepStep) -> Array | None:
        """The value as [angular; linear] (6,) in link axes, or None if it has no direction."""
        if step.type is Type.JOINT:
            return np.asarray(self.state.model.bodies[step.body].motion_map() @ step.value)
        return step.value if step.type in (Type.MOTION, Type.FORCE) else None

    def text(self, number: int) -> str:
        """The program in HTML with the line of a step lit, and its value."""
        step = self.steps[number]
        rows = []
        for line_number, line in enumerate(self.lines):
            lit = "background:#fd6;color:#000" if line_number == step.line else ""
            rows.append(f'<div style="white-space:pre;{lit}">{html.escape(line)}</div>')
        link = html.escape(self.state.model.bodies[step.body].link)
        value = np.array2string(np.asarray(step.value), precision=3, suppress_small=True)
        colours = " and ".join(
            f'<b style="color:rgb{colour}">{name}</b>'
            for name, colour in (("linear", LINEAR), ("angular", ANGULAR))
        )
        return (
            f'<div style="font:11px monospace;overflow-x:auto">{"".join(rows)}</div>'
            f'<p style="font-size:12px">at <b>{link}</b>: {html.escape(step.name)} = '
            f'<span style="font-family:monospace">{html.escape(value)}</span></p>'
            f'<p style="font-size:11px">Arrows: {colours} parts.</p>'
        )
