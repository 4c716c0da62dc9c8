# SPDX-License-Identifier: BSD-3-Clause
"""Sliders for the joints of a robot, with limits and units; free and ball joints have gizmos."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from phistar.arrays import Array
from phistar.model.components import Joint
from phistar.model.configuration import normalized_configuration
from phistar.model.model import Model
from phistar.spatial import quat_to_rotation, rotation_to_quat, wxyz_to_xyzw
from phistar.viewer.view_state import ViewState, place
from phistar.viewer.web_server import Handle, Server

UNLIMITED = {"rad": math.pi, "m": 2.0}
"""Range of sliders of coordinates without limits, by unit."""
FASTEST = 3.0
"""Range of the sliders of velocities [rad/s, m/s]."""
STEPS = 400
QUATERNION = 4
"""Coordinates of a joint that turns in all ways and does not move otherwise."""


class JointControls:
    """Sliders that set q and v, and follow them.

    Args:
        server: The server.
        state: Where they start.
        size: Size of the robot [m].
        changed: Called with (q, v) when somebody moves one.
    """

    def __init__(
        self,
        server: Server,
        state: ViewState,
        size: float,
        changed: Callable[[Array, Array], None],
    ) -> None:
        model = state.model
        self.model, self.size, self.changed = model, size, changed
        self.q, self.v = state.q.copy(), state.v.copy()
        self._following = False
        self._sliders: list[tuple[int, Handle]] = []
        self._gizmos: list[tuple[Joint, Handle]] = []
        with server.gui.add_folder("joints"):
            for name in model.joint_names:
                self._add_joint(server, model.joints[name])
        with server.gui.add_folder("velocities", expand_by_default=False):
            self._speeds = [self._add_speed(server, k, label) for k, label in _speed_labels(model)]
        self.follow(state)

    def _add_joint(self, server: Server, joint: Joint) -> None:
        kind = joint.joint_kind
        if kind.quaternion is None:
            for k, unit in enumerate(kind.q_units):
                suffix = f" {kind.coordinate_names[k]}" if kind.nq > 1 else ""
                self._add_slider(server, joint, k, f"{joint.name}{suffix} [{unit}]", unit)
            return
        turns_only = kind.nq == QUATERNION
        gizmo = server.scene.add_transform_controls(
            f"/gizmo/{joint.name}",
            scale=0.2 * self.size,
            disable_axes=turns_only,
            disable_sliders=turns_only,
        )
        gizmo.on_update(lambda _, joint=joint, gizmo=gizmo: self._pulled(joint, gizmo))
        self._gizmos.append((joint, gizmo))

    def _add_slider(self, server: Server, joint: Joint, k: int, label: str, unit: str) -> None:
        index = joint.q_slice.start + k
        span = UNLIMITED.get(unit, 1.0)
        low, high = joint.limits.lower[k], joint.limits.upper[k]
        low = low if math.isfinite(low) else min(-span, self.q[index] - span)
        high = high if math.isfinite(high) else max(span, self.q[index] + span)
        value = float(np.clip(self.q[index], low, high))
        step = (high - low) / STEPS or 1.0
        slider = server.gui.add_slider(label, low, high, step, value)
        slider.on_update(lambda _, index=index, slider=slider: self._slid(index, slider))
        self._sliders.append((index, slider))

    def _add_speed(self, server: Server, index: int, label: str) -> tuple[int, Handle]:
        slider = server.gui.add_slider(label, -FASTEST, FASTEST, FASTEST / 100, 0.0)
        slider.on_update(lambda _, index=index, slider=slider: self._sped(index, slider))
        return index, slider

    def _slid(self, index: int, slider: Handle) -> None:
        if not self._following:
            self.q[index] = slider.value
            self._tell()

    def _sped(self, index: int, slider: Handle) -> None:
        if not self._following:
            self.v[index] = slider.value
            self._tell()

    def _pulled(self, joint: Joint, gizmo: Handle) -> None:
        if self._following:
            return
        body = self.model.bodies[joint.bodies[-1]]
        state = ViewState(self.model, self.q, self.v)
        joint_frame = state.pose(body.parent, body.placement)
        turn = joint_frame[:3, :3].T @ quat_to_rotation(wxyz_to_xyzw(np.asarray(gizmo.wxyz)))
        position = joint_frame[:3, :3].T @ (np.asarray(gizmo.position) - joint_frame[:3, 3])
        coordinates = np.concatenate([position, rotation_to_quat(turn)])
        self.q[joint.q_slice] = coordinates[-joint.joint_kind.nq :]
        self.q = normalized_configuration(self.model, self.q)
        self._tell(gizmo)

    def _tell(self, held: Handle = None) -> None:
        """Say where the robot is now; gizmos follow, but for the one that somebody holds."""
        self._place_gizmos(ViewState(self.model, self.q, self.v), held)
        self.changed(self.q.copy(), self.v.copy())

    def _place_gizmos(self, state: ViewState, held: Handle = None) -> None:
        for joint, gizmo in self._gizmos:
            if gizmo is not held:
                place(gizmo, state.poses[joint.bodies[-1]])

    def follow(self, state: ViewState) -> None:
        """Move the controls to a state without telling anybody."""
        self._following = True
        try:
            self.q, self.v = state.q.copy(), state.v.copy()
            for index, slider in self._sliders:
                slider.value = float(np.clip(self.q[index], slider.min, slider.max))
            for index, slider in self._speeds:
                slider.value = float(np.clip(self.v[index], slider.min, slider.max))
            self._place_gizmos(state)
        finally:
            self._following = False


def _speed_labels(model: Model) -> list[tuple[int, str]]:
    """Index and label of each entry of v."""
    rows: list[tuple[int, str]] = []
    for name in model.joint_names:
        joint = model.joints[name]
        units = joint.joint_kind.v_units
        for k, unit in enumerate(units):
            number = f" {k}" if len(units) > 1 else ""
            rows.append((joint.v_slice.start + k, f"{name}{number} [{unit}]"))
    return rows
