# SPDX-License-Identifier: BSD-3-Clause
"""Figures: robots as they stand, motions over time. The only module that imports matplotlib.

Figures belong to no window: save them by ``figure.savefig``, or let a notebook show them.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from phistar.arrays import Array
from phistar.drawing.rasterize import picture
from phistar.drawing.scene import Scene
from phistar.errors import MissingExtraError
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.model.numpy_kinematics import body_poses, frame_pose

Figure = Any
"""A figure of matplotlib, or its axes; typed only where it is installed."""
COLOURS = 10
"""Of curves; then they begin again with another stroke."""
LINE_STYLES = ("-", "--", ":", "-.")
MAX_LEGEND_LINES = COLOURS * len(LINE_STYLES)
"""Largest number of lines in a legend, as many as can be told apart."""
LEGEND_ROWS = 18
"""Lines in a column of a legend."""
_LIGHT = np.array([0.4, -0.5, 0.77])


class Motion(Protocol):
    """What a figure needs of a simulation."""

    @property
    def t(self) -> Array:
        """(N + 1,) times [s]."""

    @property
    def q(self) -> Array:
        """(N + 1, ..., nq) configurations."""

    @property
    def v(self) -> Array:
        """(N + 1, ..., nv) velocities."""

    @property
    def model(self) -> Model:
        """The robot."""

    @property
    def scheme(self) -> str:
        """Name of the scheme."""

    @property
    def variables(self) -> str:
        """The variable that was stepped."""

    def energy(self) -> Array:
        """(N + 1, ...) [J]."""


def figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches; no window is opened.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "examples", "Drawing a plot") from None

    class NotebookFigure(Figure):  # type: ignore[misc]
        """A figure that notebooks show, also where ``pyplot`` is not imported."""

        def _repr_png_(self) -> bytes:
            picture = io.BytesIO()
            self.savefig(picture, format="png")
            return picture.getvalue()

    return NotebookFigure(figsize=(width, height), layout="constrained")


def suffixes() -> tuple[str, ...]:
    """Suffixes of the pictures that can be written; .png first."""
    known = sorted(f".{name}" for name in figure(1.0, 1.0).canvas.get_supported_filetypes())
    return tuple(sorted(known, key=lambda ending: ending != ".png"))


def motion_figure(sim: Motion) -> Figure:
    """Joint coordinates by unit, the norm of v, and energy less its first value, over time.

    Of a batch the first sample is drawn strongly, the others faintly.
    """
    groups = _coordinates(sim.model)
    columns = {unit: -(-len(curves) // LEGEND_ROWS) for unit, curves in groups.items()}
    heights = [max(2.0, 0.18 * min(len(x), LEGEND_ROWS) + 0.2) for x in groups.values()]
    heights = [*([4.0] if len(groups) == 1 else heights), 1.5, 1.5]
    page = figure(7.5 + 1.5 * max(columns.values(), default=0), 0.8 + sum(heights))
    *uppers, middle, lower = page.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    (uppers or [middle])[0].set_title(
        _plain(f"{sim.model.name}, {sim.scheme} in (q, {sim.variables})")
    )
    batch = sim.q.reshape(len(sim.t), -1, sim.q.shape[-1])
    for axes, (unit, curves) in zip(uppers, groups.items(), strict=True):
        for number, (label, entry) in enumerate(curves):
            stroke = LINE_STYLES[number // COLOURS % len(LINE_STYLES)]
            style = {"color": f"C{number % COLOURS}", "linestyle": stroke}
            axes.plot(sim.t, batch[:, 1:, entry], **style, alpha=0.3, linewidth=0.7)
            axes.plot(sim.t, batch[:, 0, entry], **style, label=_plain(label))
        axes.set_ylabel(f"q [{unit}]" if unit else "quaternions")
        if len(curves) <= MAX_LEGEND_LINES:
            place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "ncols": columns[unit]}
            axes.legend(fontsize="x-small", **place)
    _plot_samples(middle, sim.t, np.linalg.norm(sim.v, axis=-1))
    units = {"rad": "rad/s", "m": "m/s"}
    middle.set_ylabel(f"|v| [{', '.join(units[unit] for unit in groups if unit in units)}]")
    energy = sim.energy()
    _plot_samples(lower, sim.t, energy - energy[0])
    lower.set_ylabel("energy gained [J]")
    lower.set_xlabel("time [s]")
    return page


def _coordinates(model: Model) -> dict[str, list[tuple[str, int]]]:
    """Labels and entries of q by their unit; quaternions have none."""
    groups: dict[str, list[tuple[str, int]]] = {}
    for name in model.joint_names:
        joint = model.joints[name]
        for k, unit in enumerate(joint.joint_kind.q_units):
            index = f".{k}" if joint.joint_kind.nq > 1 else ""
            groups.setdefault(unit, []).append((f"{name}{index}", joint.q_slice.start + k))
    return groups


def _plot_samples(axes: Figure, t: Array, values: Array) -> None:
    """Values (N, ...) over time."""
    flat = values.reshape(len(t), -1)
    axes.plot(t, flat[:, 1:], color="0.5", alpha=0.5, linewidth=0.7)
    axes.plot(t, flat[:, 0], color="0.1")


def pose_figure(scene: Scene, q: Array, frames: Sequence[str] = ()) -> Figure:
    """A robot at a configuration (nq,), shaded, with the axes of some frames."""
    page = figure(6.0, 6.0)
    axes = page.add_subplot(projection="3d")
    poses = body_poses(scene.model, q)
    add_robot(axes, scene, poses)
    low, high = scene.bounds(poses[None])
    frame_cube(axes, (low + high) / 2, max(float((high - low).max()) / 2, 1e-3))
    size = 0.12 * float((high - low).max())
    for name in frames:
        at = frame_pose(scene.model, q, name)
        for axis, colour in enumerate(("tab:red", "tab:green", "tab:blue")):
            ends = np.stack([at[:3, 3], at[:3, 3] + size * at[:3, axis]], axis=-1)
            axes.plot(*ends, color=colour)
        paper = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1.0}
        axes.text(*at[:3, 3], _plain(name), fontsize="small", bbox=paper)
    axes.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]", title=_plain(scene.model.name))
    return page


def add_robot(axes: Figure, scene: Scene, poses: Array) -> None:
    """Draw the surfaces of a robot into axes in space, its bodies at poses (bodies, 4, 4)."""
    corners, colours = [], []
    for part in scene.parts:
        at = np.eye(4) if part.body == GROUND else poses[part.body]
        surface = part.surface.moved(at)
        corners.append(surface.vertices[surface.faces])
        colours.append(_shaded(corners[-1], part.rgba))
    if corners:
        axes.add_artist(_solid(np.concatenate(corners), np.concatenate(colours)))


def _solid(corners: Array, colours: Array) -> Figure:
    """An artist for axes in space: triangles (m, 3, 3), the nearest one at each pixel."""
    from matplotlib.artist import Artist, allow_rasterization

    def draw(self: Any, renderer: Any) -> None:
        axes = self.axes
        low = np.floor(axes.bbox.min).astype(int)
        width, height = np.ceil(axes.bbox.max).astype(int) - low
        ends = np.concatenate([corners, np.ones((*corners.shape[:2], 1))], axis=-1) @ axes.M.T
        seen = ends[..., :3] / ends[..., 3:]
        plane = axes.transData.transform(seen[..., :2].reshape(-1, 2)).reshape(-1, 3, 2) - low
        pixels = np.concatenate([plane, seen[..., 2:]], axis=-1)
        renderer.draw_image(renderer.new_gc(), *low, picture(pixels, colours, height, width))

    rasterized: Any = allow_rasterization
    kind: Any = type("Solid", (Artist,), {"draw": rasterized(draw)})
    made = kind()
    made.set(zorder=1.5, rasterized=True, in_layout=False)
    return made


def _shaded(corners: Array, rgba: Sequence[float]) -> Array:
    """Colours (m, 4) of triangles (m, 3, 3) in the light."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normal, axis=-1, keepdims=True)
    facing = np.abs((normal / np.where(length > 0.0, length, 1.0)) @ _LIGHT)
    colours = np.tile(np.asarray(rgba, dtype=float), (len(corners), 1))
    colours[:, :3] *= (0.45 + 0.55 * np.clip(facing, 0.0, 1.0))[:, None]
    return colours


def frame_cube(axes: Figure, center: Array, half: float) -> None:
    """Limits of the same length along x, y and z."""
    for axis, middle in zip("xyz", center, strict=True):
        getattr(axes, f"set_{axis}lim")(middle - half, middle + half)
    axes.set_box_aspect((1.0, 1.0, 1.0))


def _plain(text: str) -> str:
    """Text escaped so that it is neither a formula nor hidden from the legend."""
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return shown.replace("$", r"\$").lstrip("_")
