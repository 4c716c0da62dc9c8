# SPDX-License-Identifier: BSD-3-Clause
"""Robots in a browser; a mixin of ``Robot``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from phistar.arrays import Array
from phistar.model.configuration import Coordinates, configuration
from phistar.model.model import Model

if TYPE_CHECKING:
    from phistar.drawing.figures import Motion
    from phistar.drawing.scene import Scene
    from phistar.viewer.viewer import Viewer


class Viewable:
    """A robot that a browser can show."""

    model: Model

    if TYPE_CHECKING:

        @property
        def home(self) -> Array:
            """Configuration (nq,) to start with."""

        def scene(self, mesh_folders: Sequence[str | Path] = ()) -> Scene:
            """Surfaces of all links."""

    def view(
        self,
        q: Coordinates | None = None,
        *,
        motion: Motion | None = None,
        port: int | None = None,
        mesh_folders: Sequence[str | Path] = (),
    ) -> Viewer:
        """Show the robot in a browser: open ``viewer.url``.

        It has a slider for each joint, gizmos for a free base and ball joints, one to drag any
        frame by inverse kinematics, overlays (frames, centres of mass, ellipsoids of rigid and
        articulated inertia), the mass matrix, D, diagonal rates and eigenvalues of the shown
        state, and forward dynamics step by step. The server listens on
        this machine only and ends with the process, or by ``viewer.close()``.

        Args:
            q: (nq,) where it starts; ``home`` by default. Of a batch (n, nq) the first 16 are
                shown, all but the first as ghosts.
            motion: A ``Simulation`` to play.
            port: The port, 8571 by default; the next free one is taken if it is in use.
            mesh_folders: Folders in which meshes are looked for, besides that of the robot's file.

        Returns:
            The viewer: ``viewer.show(q)`` moves the robot, ``viewer.q`` is where it is.

        Raises:
            MissingExtraError: viser is not installed (the extra ``viewer``).
        """
        from phistar.viewer.viewer import Viewer

        at = self.home if q is None else configuration(self.model, q)
        return Viewer(self.scene(mesh_folders), at, port, motion)
