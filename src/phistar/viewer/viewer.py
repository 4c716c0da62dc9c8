# SPDX-License-Identifier: BSD-3-Clause
"""A viewer: a robot in a browser, with sliders, a play bar, overlays, the algebra of its state."""

from __future__ import annotations

import html
import threading
import time
from types import TracebackType
from typing import Any

import numpy as np

from phistar.arrays import Array
from phistar.drawing.drawing_mixin import pictures
from phistar.drawing.figures import Motion
from phistar.drawing.scene import Scene
from phistar.energies import kinetic_energy, potential_energy
from phistar.errors import ArgumentError, PhistarError
from phistar.model.configuration import Coordinates, configuration, tangent
from phistar.model.numpy_kinematics import body_poses
from phistar.viewer.algebra_panels import PANELS
from phistar.viewer.joint_controls import JointControls
from phistar.viewer.overlays import OVERLAYS
from phistar.viewer.robot_nodes import RobotNodes
from phistar.viewer.sweep_player import SweepPlayer
from phistar.viewer.view_state import ViewState
from phistar.viewer.web_server import (
    DEFAULT_PORT,
    HOST,
    curve,
    free_port,
    start_server,
    stop_server,
)

FRAMES_PER_SECOND = 30.0
SECONDS_OF_A_SWEEP = 0.35
"""Time of a statement at a link, while the sweep is played."""


class Viewer:
    """A robot in a browser, at ``viewer.url``.

    ``viewer.show(q)`` moves it, ``viewer.q`` is where it is (sliders move it too),
    ``viewer.play(sim)`` shows a motion. The server listens on this machine only and stops with
    ``viewer.close()``, at the end of a ``with`` block, or with the process.

    Args:
        surfaces: What is drawn.
        q: (nq,) where it starts.
        port: The port; the next free one is taken if it is in use.
    """

    def __init__(self, surfaces: Scene, q: Array, port: int = DEFAULT_PORT) -> None:
        self.model = surfaces.model
        self.port = free_port(port)
        self._lock = threading.RLock()
        self._scene = surfaces
        low, high = surfaces.bounds(body_poses(self.model, q)[None])
        self._size = max(float(np.linalg.norm(high - low)), 1e-3)
        self._server = start_server(self.port, self.model.name)
        self._state = ViewState(self.model, q, np.zeros(self.model.nv))
        self._ended = threading.Event()
        self._ghosts: list[RobotNodes] = []
        self._motion: tuple[Array, Array, Array] | None = None
        self._playing = False
        self._bar: Any = None
        self._place_camera(low, high)
        self._robot = RobotNodes(self._server, surfaces, "/robot")
        self._controls = JointControls(self._server, self.model, q, self._moved)
        self._add_overlays()
        self._add_panels()
        self._add_sweep()
        self._draw()
        threading.Thread(target=self._run, name="phistar viewer", daemon=True).start()

    # -- what a user calls

    @property
    def url(self) -> str:
        """Address to open in a browser."""
        return f"http://{HOST}:{self.port}"

    @property
    def q(self) -> Array:
        """(nq,) the shown configuration."""
        return self._state.q.copy()

    @property
    def v(self) -> Array:
        """(nv,) the shown velocity."""
        return self._state.v.copy()

    def show(self, q: Coordinates, v: Coordinates | None = None) -> None:
        """Show a configuration (nq,), and a velocity (nv,) for what depends on it."""
        at = configuration(self.model, q)
        rate = np.zeros(self.model.nv) if v is None else tangent(self.model, v)
        if at.ndim != 1 or rate.ndim != 1:
            raise ArgumentError(f"q has shape {at.shape}, expected one configuration (nq,)")
        self._set(ViewState(self.model, at, rate))

    def play(self, motion: Motion) -> None:
        """Show a motion, with a play bar; samples of a batch after the first are ghosts."""
        if motion.model.joint_names != self.model.joint_names or motion.model.nq != self.model.nq:
            raise ArgumentError(
                f"the motion is of '{motion.model.name}', expected one of '{self.model.name}'"
            )
        t, q = pictures(motion, FRAMES_PER_SECOND)
        if not np.isfinite(q[:, 0]).all():
            raise ArgumentError(
                "the motion has numbers that are not finite; show a sample that is (sim.ok)"
            )
        v = motion.v.reshape(len(motion.t), -1, self.model.nv)[:, 0]
        knots = np.searchsorted(motion.t, t)
        with self._lock:
            self._motion = t, q, v[knots]
            for number in range(len(self._ghosts), q.shape[1] - 1):
                root = f"/ghosts/{number}"
                self._ghosts.append(RobotNodes(self._server, self._scene, root, ghost=True))
            for number, ghost in enumerate(self._ghosts):
                ghost.visible = number < q.shape[1] - 1
            self._add_play_bar(t, q, v[knots])
        self._show_picture(0)

    def wait(self) -> None:
        """Block until the viewer is closed, or the user presses Ctrl-C."""
        try:
            self._ended.wait()
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop the server."""
        with self._lock:
            if self._ended.is_set():
                return
            self._ended.set()
        stop_server(self._server)

    def __enter__(self) -> Viewer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        end = "closed" if self._ended.is_set() else self.url
        return f"<Viewer of '{self.model.name}': {end}>"

    # -- state

    def _moved(self, q: Array, v: Array) -> None:
        """Somebody moved a slider or the gizmo."""
        with self._lock:
            self._playing = False
            self._state = ViewState(self.model, q, v)
            self._draw()

    def _set(self, state: ViewState) -> None:
        with self._lock:
            self._state = state
            self._controls.follow(state.q, state.v)
            self._draw()

    def _draw(self) -> None:
        """Everything that is visible, at the current state."""
        self._robot.show(self._state)
        for overlay in self._overlays.values():
            if overlay.visible:
                overlay.show(self._state)
        for title, (box, part) in self._panels.items():
            if box.value:
                part.content = panel_html(title, self._state)

    def _place_camera(self, low: Array, high: Array) -> None:
        scene, center = self._server.scene, (low + high) / 2
        edge = 2.0 * max(self._size, 0.5)
        scene.add_grid(
            "/grid", width=edge, height=edge, cell_size=edge / 20, section_size=edge / 4,
            position=(float(center[0]), float(center[1]), min(float(low[2]), 0.0)),
        )  # fmt: skip
        camera = self._server.initial_camera
        camera.position = tuple(center + self._size * np.array([0.9, 0.7, 0.5]))
        camera.look_at = tuple(center)

    # -- what is on the right side

    def _add_overlays(self) -> None:
        gui = self._server.gui
        self._overlays = {
            name: make(self._server, self.model, self._size) for name, make in OVERLAYS.items()
        }
        with gui.add_folder("show", expand_by_default=False):
            for name, overlay in self._overlays.items():
                box = gui.add_checkbox(name, initial_value=False)
                box.on_update(lambda _, box=box, overlay=overlay: self._toggle(overlay, box.value))

    def _toggle(self, overlay: Any, visible: bool) -> None:
        with self._lock:
            overlay.visible = visible
            if visible:
                overlay.show(self._state)

    def _add_panels(self) -> None:
        gui = self._server.gui
        self._panels: dict[str, tuple[Any, Any]] = {}
        with gui.add_folder("algebra", expand_by_default=False):
            for title in PANELS:
                box = gui.add_checkbox(title, initial_value=False)
                part = gui.add_html("", visible=False)
                self._panels[title] = box, part
                box.on_update(lambda _, box=box, part=part: self._open(box.value, part))

    def _open(self, visible: bool, part: Any) -> None:
        with self._lock:
            part.visible = visible
            self._draw()

    def _add_sweep(self) -> None:
        gui = self._server.gui
        self._sweep = SweepPlayer(self._server, self.model, self._size)
        self._sweeping = False
        with gui.add_folder("the sweep", expand_by_default=False):
            button = gui.add_button("walk through forward dynamics")
            button.on_click(lambda _: self._begin_sweep())
            self._sweep_step = gui.add_slider("step", 0, 1, 1, 0, disabled=True)
            self._sweep_step.on_update(lambda _: self._show_step())
            self._sweep_text = gui.add_html("")

    def _begin_sweep(self) -> None:
        with self._lock:
            try:
                count = self._sweep.prepare(self._state)
            except PhistarError as error:
                self._sweep_text.content = f"<p>{html.escape(str(error))}</p>"
                return
            self._sweep_step.max = max(count - 1, 1)
            self._sweep_step.disabled = False
            self._sweep_step.value = 0
            self._sweeping = True
            self._show_step()

    def _show_step(self) -> None:
        with self._lock:
            if self._sweep.work is not None:
                self._sweep_text.content = self._sweep.show(int(self._sweep_step.value))

    # -- motions

    def _add_play_bar(self, t: Array, q: Array, v: Array) -> None:
        gui = self._server.gui
        if self._bar is not None:
            self._bar.remove()
        self._bar = gui.add_folder("motion", order=-1)
        with self._bar:
            self._play_button = gui.add_button("play / pause")
            self._play_button.on_click(lambda _: self._toggle_playing())
            self._picture = gui.add_slider("picture", 0, max(len(t) - 1, 1), 1, 0)
            self._picture.on_update(lambda _: self._show_picture(int(self._picture.value)))
            self._clock = gui.add_text("time", f"{t[0]:.3f} s", disabled=True)
            kinetic = kinetic_energy(self.model, q[:, 0], v)
            potential = potential_energy(self.model, q[:, 0])
            data = (t, kinetic, potential - potential[0], kinetic + potential - potential[0])
            lines = (
                curve("t [s]", "#000"), curve("kinetic [J]", "#27c"),
                curve("potential, gained", "#c72"), curve("total", "#393"),
            )  # fmt: skip
            gui.add_uplot(tuple(np.asarray(x, dtype=float) for x in data), lines, aspect=1.6)

    def _toggle_playing(self) -> None:
        self._playing = not self._playing

    def _show_picture(self, number: int) -> None:
        with self._lock:
            if self._motion is None:
                return
            t, q, v = self._motion
            number = min(number, len(t) - 1)
            self._clock.value = f"{t[number]:.3f} s"
            self._set(ViewState(self.model, q[number, 0], v[number], float(t[number])))
            for ghost, at in zip(self._ghosts, q[number, 1:], strict=False):
                if np.isfinite(at).all():
                    ghost.show(ViewState(self.model, at, self._state.v))

    def _run(self) -> None:
        """What happens by itself: pictures of a motion, steps of the sweep."""
        last = time.monotonic()
        while not self._ended.wait(1.0 / FRAMES_PER_SECOND):
            with self._lock:
                if self._ended.is_set():
                    return
                if self._playing and self._motion is not None:
                    following = (int(self._picture.value) + 1) % len(self._motion[0])
                    self._picture.value = following
                    self._show_picture(following)
                if self._sweeping and time.monotonic() - last > SECONDS_OF_A_SWEEP:
                    last = time.monotonic()
                    self._advance_sweep()

    def _advance_sweep(self) -> None:
        step = int(self._sweep_step.value) + 1
        if step > self._sweep_step.max:
            self._sweeping = False
            return
        self._sweep_step.value = step
        self._show_step()


def panel_html(title: str, state: ViewState) -> str:
    """A panel, or why this robot has none here."""
    try:
        return PANELS[title](state)
    except PhistarError as error:
        return f"<p>{html.escape(str(error))}</p>"
