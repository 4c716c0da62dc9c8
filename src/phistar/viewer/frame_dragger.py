# SPDX-License-Identifier: BSD-3-Clause
"""A gizmo at a chosen frame: where it is pulled, inverse kinematics follows inside the limits."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from phistar.arrays import Array
from phistar.errors import LoopOpenError, PhistarError
from phistar.inverse_kinematics.inverse_kinematics_mixin import SolvesInverseKinematics
from phistar.inverse_kinematics.solution import REASONS
from phistar.inverse_kinematics.targets import Pose, Position, Target
from phistar.model.components import GROUND
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.spatial import quat_to_rotation, wxyz_to_xyzw
from phistar.viewer.loop_closing import on_the_loops
from phistar.viewer.view_state import ViewState, place
from phistar.viewer.web_server import WORLD, Handle, Server

NO_FRAME = "none"
ITERATIONS_WHILE_DRAGGED = 15
RESTARTS_AT_THE_END = 10
TOLERANCE = 1e-4
"""Residual [rad and m] at which a frame is where it was pulled to."""
POSE_FREEDOM = 6


class _Solver(SolvesInverseKinematics):
    """Inverse kinematics of a model."""

    def __init__(self, model: Model) -> None:
        self.model = model


class FrameDragger:
    """A list of frames, a gizmo at the chosen one, and a line that says how it went.

    Args:
        server: The server.
        model: The robot.
        size: Its size [m].
        lock: Held while something changes.
        state: Gives the shown state.
        moved: Called with a configuration (nq,) that reaches for the gizmo.
    """

    def __init__(
        self,
        server: Server,
        model: Model,
        size: float,
        lock: threading.RLock,
        state: Callable[[], ViewState],
        moved: Callable[[Array], None],
    ) -> None:
        self._model, self._lock, self._state, self._moved = model, lock, state, moved
        self._loops = bool(active_loops(model.loops))
        self._solver = _Solver(model.without_loops())
        self._frame = NO_FRAME
        self._following = False
        joints = (model.joints[name] for name in model.joint_names)
        self._fixed = tuple(joint.name for joint in joints if joint.kind == "free")
        gui = server.gui
        names = [frame.name for frame in model.frames.values() if frame.body != GROUND]
        with gui.add_folder("drag a frame", expand_by_default=False):
            self._choice = gui.add_dropdown("frame", (NO_FRAME, *names), initial_value=NO_FRAME)
            self._turned = gui.add_checkbox(
                "turn it too", initial_value=model.nv - 6 * len(self._fixed) >= POSE_FREEDOM
            )
            self._status = gui.add_text("inverse kinematics", "choose a frame", disabled=True)
        self._gizmo = server.scene.add_transform_controls(
            f"{WORLD}/drag", scale=0.2 * size, visible=False, depth_test=False
        )
        self._choice.on_update(lambda _: self._choose())
        self._gizmo.on_update(self._dragged)

    @property
    def status(self) -> str:
        """How the last search went."""
        return str(self._status.value)

    def _choose(self) -> None:
        with self._lock:
            self._frame = str(self._choice.value)
            chosen = self._frame != NO_FRAME
            self._gizmo.visible = chosen
            self._status.value = "pull the arrows and rings" if chosen else "choose a frame"
            self.follow(self._state())

    def follow(self, state: ViewState) -> None:
        """Put the gizmo where its frame is."""
        if self._frame == NO_FRAME:
            return
        frame = self._model.frames[self._frame]
        self._following = True
        try:
            place(self._gizmo, state.pose(frame.body, frame.body_pose))
        finally:
            self._following = False

    def _dragged(self, event: Handle) -> None:
        if event.phase == "end":
            self._release()
        else:
            self._pull(restarts=0)

    def _release(self) -> None:
        """Search thoroughly, then show where the frame really is."""
        with self._lock:
            self._pull(restarts=RESTARTS_AT_THE_END)
            self.follow(self._state())

    def _pull(self, restarts: int) -> None:
        with self._lock:
            if self._following or self._frame == NO_FRAME:
                return
            try:
                found = self._solver.inverse_kinematics(
                    {self._frame: self._target()},
                    self._state().q,
                    fixed=self._fixed,
                    tolerance=TOLERANCE,
                    max_iterations=100 if restarts else ITERATIONS_WHILE_DRAGGED,
                    restarts=restarts,
                )
            except PhistarError as error:
                self._status.value = str(error)
                return
            if self._loops:
                self._close(found.q)
                return
            self._moved(found.q)
            left = float(found.residuals[self._frame])
            why = REASONS[int(found.reason_codes)]
            self._status.value = why if found.success else f"{why}: {left:.2g} left"

    def _close(self, q: Array) -> None:
        """What the tree would do, back on the loops."""
        try:
            self._moved(on_the_loops(self._model, q))
        except LoopOpenError as error:
            self._status.value = f"{error.loop} cannot be closed there"
            return
        frame = self._model.frames[self._frame]
        reached = self._state().pose(frame.body, frame.body_pose)[:3, 3]
        left = float(np.linalg.norm(reached - np.asarray(self._gizmo.position)))
        near = left <= TOLERANCE
        self._status.value = "reached" if near else f"on the loops: {1e3 * left:.2g} mm left"

    def _target(self) -> Target:
        """Where the gizmo is."""
        position = np.asarray(self._gizmo.position, dtype=float)
        if not self._turned.value:
            return Position(position)
        pose = np.eye(4)
        pose[:3, :3] = quat_to_rotation(wxyz_to_xyzw(np.asarray(self._gizmo.wxyz, dtype=float)))
        pose[:3, 3] = position
        return Pose(pose)
