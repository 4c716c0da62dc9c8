# SPDX-License-Identifier: BSD-3-Clause
"""Pictures and pages of a robot; a mixin of ``Robot``.

What draws is imported when something is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.configuration import Coordinates, configuration
from phistar.model.model import Model

if TYPE_CHECKING:
    from phistar.drawing.figures import Figure, Motion
    from phistar.drawing.scene import Scene
    from phistar.loaders.load_report import LoadReport

FRAMES_PER_SECOND = 30.0
"""Pictures of a motion that a page keeps for a second of it."""
MOST_COPIES = 16
"""Samples of a batch that a page draws."""
MOST_NUMBERS = 20_000_000
"""Numbers of poses that a page may hold; 100 MB."""


class Drawn:
    """Pictures of a robot."""

    model: Model

    if TYPE_CHECKING:

        @property
        def home(self) -> Array:
            """Configuration (nq,) to start with."""

        load_report: LoadReport

    def scene(self, mesh_folders: Sequence[str | Path] = ()) -> Scene:
        """Surfaces of all links: what ``plot`` and ``save_html`` draw.

        Args:
            mesh_folders: Folders in which meshes are looked for, besides that of the robot's file.
        """
        from phistar.drawing.scene import scene

        return scene(self.model, self.load_report.folder, mesh_folders)

    def plot(
        self,
        q: Coordinates | None = None,
        path: str | Path | None = None,
        *,
        frames: Sequence[str] = (),
        mesh_folders: Sequence[str | Path] = (),
    ) -> Figure:
        """A picture of the robot by matplotlib, no window and no browser needed.

        Args:
            q: (nq,) configuration; ``home`` by default.
            path: File to write, e.g. ``"robot.png"``.
            frames: Names of frames whose axes are drawn: x red, y green, z blue.
            mesh_folders: Folders in which meshes are looked for, besides that of the robot's file.

        Returns:
            matplotlib's figure.

        Raises:
            MissingExtraError: matplotlib is not installed.
            UnknownNameError: No such frame.
        """
        from phistar.drawing.figures import pose_figure

        at = self.home if q is None else configuration(self.model, q)
        if at.ndim != 1:
            raise ArgumentError(f"q has shape {at.shape}, expected one configuration (nq,) to draw")
        page = pose_figure(self.scene(mesh_folders), at, frames)
        if path is not None:
            page.savefig(path)
        return page

    def save_html(
        self,
        path: str | Path,
        motion: Motion | Coordinates | None = None,
        *,
        fps: float = FRAMES_PER_SECOND,
        mesh_folders: Sequence[str | Path] = (),
    ) -> Path:
        """Write the robot and its motion as one page for a browser.

        The page needs no server, no other file and no network. Drag to turn, right-drag to shift,
        scroll to zoom.

        Args:
            path: The page, e.g. ``"robot.html"``.
            motion: A ``Simulation``, or a configuration (nq,); ``home`` by default. Of a batch the
                first 16 samples are drawn, all but the first as ghosts.
            fps: Pictures for a second of the motion [1/s].
            mesh_folders: Folders in which meshes are looked for, besides that of the robot's file.

        Returns:
            The path.

        Raises:
            ArgumentError: The motion is of another robot, not one configuration, or so long that
                the page would hold more than 20 million numbers.
        """
        from phistar.drawing.web_page import web_page

        t, q = self._shown(motion, fps)
        numbers = 7 * q.shape[0] * q.shape[1] * len(self.model.bodies)
        if numbers > MOST_NUMBERS:
            raise ArgumentError(
                f"a page of {q.shape[0]} pictures would hold {numbers:.2g} numbers, more than "
                f"{MOST_NUMBERS:.2g}; a smaller fps= keeps fewer"
            )
        text = web_page(self.scene(mesh_folders), t, q, self.model.name)
        target = Path(path)
        target.write_text(text, encoding="utf-8")
        return target

    def _shown(self, motion: Motion | Coordinates | None, fps: float) -> tuple[Array, Array]:
        """Times (N,) and configurations (N, copies, nq) of what is to be shown."""
        if motion is not None and hasattr(motion, "model") and hasattr(motion, "t"):
            return pictures(self._own(cast("Motion", motion)), fps)
        q = self.home if motion is None else configuration(self.model, motion)
        if q.ndim != 1:
            raise ArgumentError(
                f"q has shape {q.shape}, expected one configuration or a Simulation"
            )
        return np.zeros(1), q[None, None]

    def _own(self, motion: Motion) -> Motion:
        """A motion, if it is one of this robot."""
        other, model = motion.model, self.model
        if other.joint_names != model.joint_names or other.nq != model.nq:
            raise ArgumentError(
                f"the motion is of '{other.name}' with {other.nq} coordinates, "
                f"expected one of '{model.name}' with {model.nq}"
            )
        return motion


def finite_pictures(motion: Motion, fps: float = FRAMES_PER_SECOND) -> tuple[Array, Array]:
    """As ``pictures``, of a motion whose first sample is finite to the end.

    Raises:
        ArgumentError: It is not.
    """
    count = len(motion.t)
    lost = np.zeros(count, dtype=bool)
    for values in (motion.q, motion.v):
        lost |= ~np.isfinite(values.reshape(count, -1, values.shape[-1])[:, 0]).all(axis=-1)
    if lost.any():
        raise ArgumentError(
            f"the motion has numbers that are not finite, from {motion.t[lost][0]:.6g} s on; show "
            "a sample that is (sim.ok)"
        )
    return pictures(motion, fps)


def pictures(motion: Motion, fps: float = FRAMES_PER_SECOND) -> tuple[Array, Array]:
    """Times (N,) and configurations (N, copies, nq) at the knots nearest to the pictures' times."""
    if not 0.0 < fps < np.inf:
        raise ArgumentError(f"fps is {fps}, expected a positive number of pictures a second")
    t = motion.t
    times = np.linspace(t[0], t[-1], max(round((t[-1] - t[0]) * fps), 1) + 1)
    right = np.clip(np.searchsorted(t, times), 0, len(t) - 1)
    left = np.maximum(right - 1, 0)
    knots = np.unique(np.where(times - t[left] < t[right] - times, left, right))
    batch = motion.q.reshape(len(t), -1, motion.q.shape[-1])
    return t[knots], batch[knots, :MOST_COPIES]
