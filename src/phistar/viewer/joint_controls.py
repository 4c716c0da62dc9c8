# SPDX-License-Identifier: BSD-3-Clause
"""Sliders for the joints of a robot, with limits and units; free and ball joints have gizmos."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from phistar.arrays import Array
from phistar.errors import LoopOpenError
from phistar.model.components import Joint
from phistar.model.configuration import normalized_configuration
from phistar.model.model import Model
from phistar.spatial import quat_to_rotation, rotation_to_quat, wxyz_to_xyzw
from phistar.viewer.loop_closing import on_the_loops, velocity_on_the_loops
from phistar.viewer.view_state import ViewState, place
from phistar.viewer.web_server import WORLD, Handle, Server

UNLIMITED = {"rad": math.pi, "m": 2.0}
"""Range of sliders of coordinates without limits, by unit."""
FASTEST = 3.0
"""Range of the sliders of velocities [rad/s, m/s]."""
FEWEST_STEPS = 300
"""Of a slider; its steps are powers of ten, so that the numbers beside it are short."""
FEWEST_DECIMALS = 3
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
            self._status = server.gui.add_text("loops", "", visible=False, disabled=True)
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
            f"{WORLD}/gizmo/{joint.name}",
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
        step = round_step(high - low)
        low, high = shortened(low, high, step)
        slider = server.gui.add_slider(label, low, high, step, low)
        slider.on_update(lambda _, slider=slider: self._slid(joint, index, slider))
        self._sliders.append((index, slider))

    def _add_speed(self, server: Server, index: int, label: str) -> tuple[int, Handle]:
        slider = server.gui.add_slider(label, -FASTEST, FASTEST, FASTEST / 100, 0.0)
        slider.on_update(lambda _, index=index, slider=slider: self._sped(index, slider))
        return index, slider

    def _slid(self, joint: Joint, index: int, slider: Handle) -> None:
        if not self._following:
            q = self.q.copy()
            q[index] = slider.value
            self._go(q, joint.name)

    def _sped(self, index: int, slider: Handle) -> None:
        if not self._following:
            v = self.v.copy()
            v[index] = slider.value
            self.v = velocity_on_the_loops(self.model, self.q, v, index)
            self._tell()

    def _go(self, q: Array, moved: str, held: Handle = None) -> None:
        """To a configuration, or where the loops let it come to from there."""
        try:
            self.q = on_the_loops(self.model, q, moved)
        except LoopOpenError as error:
            self._say(f"{error.loop} cannot be closed there")
        else:
            self._say("")
            self.v = velocity_on_the_loops(self.model, self.q, self.v)
        self._tell(held)

    def _say(self, text: str) -> None:
        if self._status.value != text:
            self._status.value, self._status.visible = text, bool(text)

    def _pulled(self, joint: Joint, gizmo: Handle) -> None:
        if self._following:
            return
        body = self.model.bodies[joint.bodies[-1]]
        state = ViewState(self.model, self.q, self.v)
        joint_frame = state.pose(body.parent, body.placement)
        turn = joint_frame[:3, :3].T @ quat_to_rotation(wxyz_to_xyzw(np.asarray(gizmo.wxyz)))
        position = joint_frame[:3, :3].T @ (np.asarray(gizmo.position) - joint_frame[:3, 3])
        coordinates = np.concatenate([position, rotation_to_quat(turn)])
        q = self.q.copy()
        q[joint.q_slice] = coordinates[-joint.joint_kind.nq :]
        self._go(normalized_configuration(self.model, q), joint.name, gizmo)

    def _tell(self, held: Handle = None) -> None:
        """Say where the robot is now; all controls follow, but for the gizmo somebody holds."""
        self.follow(ViewState(self.model, self.q, self.v), held)
        self.changed(self.q.copy(), self.v.copy())

    def _place_gizmos(self, state: ViewState, held: Handle = None) -> None:
        for joint, gizmo in self._gizmos:
            if gizmo is not held:
                place(gizmo, state.poses[joint.bodies[-1]])

    def follow(self, state: ViewState, held: Handle = None) -> None:
        """Move the controls to a state without telling anybody."""
        self._following = True
        try:
            self.q, self.v = state.q.copy(), state.v.copy()
            for values, sliders in ((self.q, self._sliders), (self.v, self._speeds)):
                for index, slider in sliders:
                    value = round(float(values[index]), decimals(slider.step))
                    value = min(max(value, slider.min), slider.max)
                    if slider.value != value:
                        slider.value = value
            self._place_gizmos(state, held)
        finally:
            self._following = False


def round_step(span: float) -> float:
    """A power of ten of which a slider over some range has enough."""
    return 10.0 ** math.floor(math.log10(span / FEWEST_STEPS)) if span > 0.0 else 1.0


def decimals(step: float) -> int:
    """Decimals of a number that is shown beside a slider."""
    return max(FEWEST_DECIMALS, -math.floor(math.log10(step) + 0.5))


def shortened(low: float, high: float, step: float) -> tuple[float, float]:
    """Ends of a slider inside a range, with as many decimals as its numbers."""
    count = decimals(step)
    size = 10.0**count
    ends = (
        round(math.ceil(low * size - 1e-6) / size, count),
        round(math.floor(high * size + 1e-6) / size, count),
    )
    return ends if ends[0] < ends[1] else (low, high)


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
