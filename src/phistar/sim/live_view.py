# SPDX-License-Identifier: BSD-3-Clause
"""A simulator in a browser while it steps: poses, ghosts, contacts; a part of ``Simulator``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from phistar.arrays import Array
from phistar.drawing.drawing_mixin import MOST_COPIES
from phistar.drawing.shape_triangles import Triangles, box, height_map, plane
from phistar.model.model import Model
from phistar.sim.batch_state import BatchState
from phistar.sim.contact_pairs import Ground, Pair, file_surfaces, ground_surfaces
from phistar.sim.contact_report import Contacts
from phistar.sim.surfaces import Box, GroundPart, HeightField
from phistar.spatial import rotation_between

if TYPE_CHECKING:
    from phistar.viewer.motion_player import LivePicture
    from phistar.viewer.viewer import Viewer


class ShownLive(ABC):
    """A simulator that browsers follow."""

    _robot: Any
    _model: Model
    _options: Any
    _state: BatchState
    _time: Array
    _pairs: tuple[Pair, ...]
    _viewers: tuple[Callable[[LivePicture], None], ...] = ()

    @abstractmethod
    def _contacts_at(self, state: BatchState) -> Contacts: ...

    def view(self, *, port: int | None = None, mesh_folders: Sequence[str | Path] = ()) -> Viewer:
        """Show the batch in a browser while it steps: open ``viewer.url``.

        Contact forces are arrows, one as long as the robot being its weight; gaps
        below 10 cm are written beside what may touch. Of a batch the first 16 samples are drawn,
        all but the first as ghosts. ``step`` takes a few microseconds more and does not wait.

        Args:
            port: The port, 8571 by default; the next free one is taken if it is in use.
            mesh_folders: Folders in which meshes are looked for, besides that of the robot's file.

        Raises:
            MissingExtraError: viser is not installed (the extra ``viewer``).
        """
        from phistar.viewer.viewer import Viewer

        surfaces = self._robot.scene(mesh_folders)
        viewer = Viewer(surfaces, self._state.q[0].copy(), port)
        follow = viewer.follow(ground_triangles(self._model, self._options.ground))
        self._viewers = (*self._viewers, follow)
        self._tell_viewers()
        return viewer

    def _tell_viewers(self) -> None:
        """Give a picture of this moment to all who follow."""
        if not self._viewers:
            return
        from phistar.viewer.motion_player import LivePicture

        state = self._state
        first = BatchState(state.q[:1].copy(), state.v[:1].copy(), state.impulses[:1].copy())
        picture = LivePicture(
            float(self._time[0]),
            state.q[:MOST_COPIES].copy(),
            first.v[0],
            partial(self._contacts_at, first) if self._pairs else None,
        )
        for follow in self._viewers:
            follow(picture)


def ground_triangles(model: Model, ground: Ground) -> list[Triangles]:
    """Surfaces of the ground, but for those of the robot's file, which are drawn with it."""
    if ground is True and file_surfaces(model):
        return []
    return [_triangles(part) for part in ground_surfaces(model, ground)]


def _triangles(part: GroundPart) -> Triangles:
    if isinstance(part, Box):
        return box(*np.asarray(part.size)).moved(np.asarray(part.pose))
    if isinstance(part, HeightField):
        return height_map(np.asarray(part.heights), part.spacing, part.origin)
    pose = np.eye(4)
    normal = np.asarray(part.normal)
    pose[:3, :3] = rotation_between(np.array([0.0, 0.0, 1.0]), normal)
    pose[:3, 3] = part.offset * normal
    return plane().moved(pose)
