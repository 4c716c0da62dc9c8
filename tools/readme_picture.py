# SPDX-License-Identifier: BSD-3-Clause
"""The animated picture of the README: forward dynamics of a Panda link by link, then its motion.

``python -m tools.readme_picture`` writes ``docs/images/sweep.gif``. What it shows is computed: the
arrows are those of the viewer, the text is the printed program, the motion is simulated.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

import phistar
from phistar.drawing.figures import add_robot, figure, frame_cube
from phistar.drawing.scene import Scene
from phistar.viewer.sweep_arrows import ANGULAR, LINEAR, SweepArrows
from phistar.viewer.view_state import ViewState

TARGET = Path(__file__).parents[1] / "docs" / "images" / "sweep.gif"
SHOWN = ("V", "z", "ε", "ν", "α")
"""What the sweeps compute that is shown as arrows."""
WIDTH, HEIGHT, DOTS = 7.6, 4.0, 100
"""Inches, and dots of an inch."""
COLOURS = 96
LIT = (255, 221, 102)
SWATCH = 60
"""Height of a sample of each colour that must not be lost."""
STEP_MS, PICTURE_MS, REST_MS = 220, 70, 1500
SECONDS, PICTURES = 0.75, 20
START = (0.4, -0.5, 0.3, -2.2, 0.2, 1.9, 0.5)
RATES = (0.8, -0.6, 0.9, 0.7, -1.0, 0.8, 1.2)
SIZE = 1.1
"""Of the robot [m]."""
MIDDLE, REACH = (0.18, 0.05, 0.5), 0.46


@dataclass(frozen=True)
class Shot:
    """A picture of the animation: what is drawn, what is lit, and for how long [ms]."""

    state: ViewState
    caption: str
    milliseconds: int
    lit: int = -1
    arrows: tuple[Any, Any] = ((), ())


def sweep_at_work(robot: phistar.Robot) -> SweepArrows:
    """Forward dynamics at the state where the animation begins."""
    return SweepArrows(ViewState(robot.model, np.array(START), np.array(RATES)), SIZE)


def sweep_shots(work: SweepArrows) -> Iterator[Shot]:
    """A picture for each statement that has arrows, at each link."""
    for number, step in enumerate(work.steps):
        if step.name in SHOWN:
            link = work.state.model.bodies[step.body].link
            text = f"{step.name} at {link}"
            yield Shot(work.state, text, STEP_MS, step.line, work.at(number))


def motion_shots(robot: phistar.Robot, start: ViewState) -> Iterator[Shot]:
    """Pictures of the motion that follows."""
    sim = robot.simulate(start.q, start.v, dt=1e-3, duration=SECONDS)
    for k in np.linspace(0, len(sim.t) - 1, PICTURES).astype(int):
        state = ViewState(robot.model, sim.q[k], sim.v[k], float(sim.t[k]))
        last = k == len(sim.t) - 1
        yield Shot(state, f"and it moves: {sim.t[k]:.2f} s", REST_MS if last else PICTURE_MS)


def picture(scene: Scene, lines: tuple[str, ...], shot: Shot) -> Image.Image:
    """One picture."""
    page = figure(WIDTH, HEIGHT)
    page.set_layout_engine("none")
    page.set_dpi(DOTS)
    axes = page.add_axes((-0.06, -0.16, 0.64, 1.3), projection="3d")
    axes.set_axis_off()
    axes.view_init(elev=18, azim=-58)
    add_robot(axes, scene, shot.state.poses)
    frame_cube(axes, np.array(MIDDLE), REACH)
    for arrows, colour in zip(shot.arrows, (LINEAR, ANGULAR), strict=True):
        for begin, end in arrows:
            axes.quiver(
                *begin, *(end - begin), color=np.array(colour) / 255, linewidth=2.2,
                arrow_length_ratio=0.25, zorder=10,
            )  # fmt: skip
    _write(page, lines, shot)
    canvas = FigureCanvasAgg(page)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _write(page: Any, lines: tuple[str, ...], shot: Shot) -> None:
    """The program with its lit line, and the caption."""
    step = 0.86 / len(lines)
    for number, line in enumerate(lines):
        lit = {"facecolor": np.array(LIT) / 255, "edgecolor": "none", "pad": 1.5}
        page.text(
            0.56, 0.95 - step * number, line.rstrip(), family="monospace", fontsize=8.5, va="top",
            bbox=lit if number == shot.lit else None,
            weight="bold" if not line.startswith(" ") else "normal",
        )  # fmt: skip
    page.text(0.03, 0.05, shot.caption, fontsize=10, color="#333333")


def write(path: Path = TARGET) -> Path:
    """Draw all pictures and write the animation."""
    robot = phistar.load("panda")
    work = sweep_at_work(robot)
    plan = [*sweep_shots(work), *motion_shots(robot, work.state)]
    scene = robot.scene()
    frames = [picture(scene, work.lines, shot) for shot in plan]
    samples = frames[:: max(len(frames) // 6, 1)]
    width, height = frames[0].size
    swatches = [LINEAR, ANGULAR, LIT]
    sheet = Image.new("RGB", (width, height * len(samples) + SWATCH * len(swatches)))
    for number, frame in enumerate(samples):
        sheet.paste(frame, (0, height * number))
    for number, colour in enumerate(swatches):
        top = height * len(samples) + SWATCH * number
        sheet.paste(colour, (0, top, width, top + SWATCH))
    palette = sheet.quantize(COLOURS, method=Image.Quantize.MEDIANCUT)
    indexed = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    indexed[0].save(
        path,
        save_all=True,
        append_images=indexed[1:],
        duration=[shot.milliseconds for shot in plan],
        loop=0,
        optimize=True,
    )
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=TARGET)
    made = write(parser.parse_args().out)
    print(f"{made}: {made.stat().st_size / 1e6:.2f} MB")
