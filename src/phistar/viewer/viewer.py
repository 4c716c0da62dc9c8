# SPDX-License-Identifier: BSD-3-Clause
"""A viewer: a robot in a browser, with sliders, a play bar, overlays, the algebra of its state."""

from __future__ import annotations

import html
import threading
from collections.abc import Callable, Sequence
from types import TracebackType

import numpy as np

from phistar.arrays import Array
from phistar.drawing.drawing_mixin import MOST_COPIES
from phistar.drawing.figures import Motion
from phistar.drawing.scene import Scene
from phistar.drawing.shape_triangles import Triangles
from phistar.errors import ArgumentError, PhistarError
from phistar.model.configuration import Coordinates, configuration, tangent
from phistar.model.numpy_kinematics import body_poses
from phistar.viewer.algebra_panels import PANELS
from phistar.viewer.contact_arrows import ContactArrows
from phistar.viewer.frame_dragger import FrameDragger
from phistar.viewer.joint_controls import JointControls
from phistar.viewer.motion_player import FRAMES_PER_SECOND, LivePicture, MotionPlayer, shown_motion
from phistar.viewer.overlays import LEGEND, OVERLAYS
from phistar.viewer.robot_nodes import RobotNodes
from phistar.viewer.sweep_player import SweepPlayer
from phistar.viewer.view_state import ViewState
from phistar.viewer.web_server import (
    DEFAULT_PORT,
    HOST,
    WORLD,
    Handle,
    free_port,
    padded,
    start_server,
    stop_server,
)

GROUND_COLOUR = (170, 175, 180)
FREE_TO_GO = 0.4
"""How far a robot may go before it is followed, in its own sizes."""


class Viewer:
    """A robot in a browser, at ``viewer.url``.

    ``viewer.show(q)`` moves it, ``viewer.q`` is where it is (sliders move it too),
    ``viewer.play(sim)`` shows a motion. The server listens on this machine only and stops with
    ``viewer.close()``, at the end of a ``with`` block, or with the process.

    Args:
        surfaces: What is drawn.
        q: (nq,) where it starts; or (n, nq), all but the first as ghosts.
        port: The port, 8571 by default; the next free one is taken if it is in use.
        motion: A motion to play.

    Raises:
        ArgumentError: The motion is of another robot or not finite.
        MissingExtraError: viser is not installed (the extra ``viewer``).
    """

    def __init__(
        self, surfaces: Scene, q: Array, port: int | None = None, motion: Motion | None = None
    ) -> None:
        self.model = surfaces.model
        shown = None if motion is None else shown_motion(motion, self.model)
        self.port = free_port(DEFAULT_PORT if port is None else port)
        self._lock = threading.RLock()
        q, ghosts = _first_and_others(q if shown is None else shown.q[0])
        low, high = surfaces.bounds(body_poses(self.model, q)[None])
        self._size = max(float(np.linalg.norm(high - low)), 1e-3)
        self._server = start_server(self.port, self.model.name)
        self._state = ViewState(self.model, q, np.zeros(self.model.nv))
        self._first_place = self._followed = _place(self._state)
        self._ended = threading.Event()
        self._world = self._server.scene.add_frame(WORLD, show_axes=False)
        self._place_camera(low, high)
        self._robot = RobotNodes(self._server, surfaces, f"{WORLD}/robot")
        self._controls = JointControls(self._server, self._state, self._size, self._moved)
        self._dragger = FrameDragger(
            self._server, self.model, self._size, self._lock, self._shown, self._dragged
        )
        self._add_overlays()
        self._add_panels()
        self._sweep = SweepPlayer(self._server, self._size, self._lock, self._shown)
        weight = sum(float(body.inertia[0]) for body in self.model.bodies) * np.linalg.norm(
            self.model.gravity
        )
        contacts = ContactArrows(self._server, self._size, float(weight))
        self._player = MotionPlayer(self._server, surfaces, contacts, self._lock, self._set)
        self._draw()
        self._player.show_ghosts(ghosts)
        if shown is not None:
            self._player.load(shown)
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
        """Show a configuration (nq,), and a velocity (nv,) for what depends on it.

        Of a batch (n, nq) the first 16 are shown, all but the first as ghosts; the velocity is that
        of the first.
        """
        at, ghosts = _first_and_others(configuration(self.model, q))
        rate = np.zeros(self.model.nv) if v is None else tangent(self.model, v)
        if rate.ndim != 1:
            raise ArgumentError(f"v has shape {rate.shape}, expected (nv,)")
        self._set(ViewState(self.model, at, rate))
        self._player.show_ghosts(ghosts)

    def play(self, motion: Motion) -> None:
        """Show a motion, with a play bar; samples of a batch after the first are ghosts."""
        self._player.load(shown_motion(motion, self.model))

    def follow(self, ground: Sequence[Triangles] = ()) -> Callable[[LivePicture], None]:
        """Make room for a simulator; what is returned takes its pictures as they come.

        Args:
            ground: Surfaces that it stands on.
        """
        for number, surface in enumerate(ground):
            self._server.scene.add_mesh_simple(
                f"{WORLD}/ground/{number}",
                surface.vertices.astype("float32"),
                surface.faces.astype("uint32"),
                color=GROUND_COLOUR,
                opacity=0.5,
                side="double",
            )
        return self._player.follow()

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

    def _shown(self) -> ViewState:
        return self._state

    def _moved(self, q: Array, v: Array) -> None:
        """Somebody moved a slider or the gizmo of a base."""
        with self._lock:
            self._player.pause()
            self._state = ViewState(self.model, q, v)
            self._sweep.leave()
            self._draw()
            self._dragger.follow(self._state)

    def _dragged(self, q: Array) -> None:
        """Somebody pulled at a frame: the robot and the sliders follow, its gizmo stays."""
        with self._lock:
            self._player.pause()
            self._state = ViewState(self.model, q, self._state.v)
            self._sweep.leave()
            self._controls.follow(self._state)
            self._draw()

    def _set(self, state: ViewState) -> None:
        """A state that nobody chose by hand; a robot that goes far stays in sight."""
        with self._lock:
            self._state = state
            self._sweep.leave()
            self._controls.follow(state)
            self._dragger.follow(state)
            self._draw()
            self._follow(_place(state))

    def _follow(self, place: Array) -> None:
        """Shift the world where the robot is too far from where cameras look.

        Cameras belong to the browsers: what these say of them is late, so that none is moved.
        """
        gone = place - self._followed
        distance = float(np.linalg.norm(gone))
        if distance > FREE_TO_GO * self._size:
            self._followed = place - FREE_TO_GO * self._size / distance * gone
            self._world.position = self._first_place - self._followed

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
            f"{WORLD}/grid", width=edge, height=edge, cell_size=edge / 20, section_size=edge / 4,
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
            inside = gui.add_checkbox("see through", initial_value=False)
            inside.on_update(lambda _: self._robot.see_through(inside.value))
            gui.add_html(padded(f'<p style="font-size:11px">{LEGEND}</p>'))

    def _toggle(self, overlay: Handle, visible: bool) -> None:
        with self._lock:
            overlay.visible = visible
            if visible:
                overlay.show(self._state)

    def _add_panels(self) -> None:
        gui = self._server.gui
        self._panels: dict[str, tuple[Handle, Handle]] = {}
        with gui.add_folder("algebra", expand_by_default=False):
            for title in PANELS:
                box = gui.add_checkbox(title, initial_value=False)
                part = gui.add_html("", visible=False)
                self._panels[title] = box, part
                box.on_update(lambda _, box=box, part=part: self._open(box.value, part))

    def _open(self, visible: bool, part: Handle) -> None:
        with self._lock:
            part.visible = visible
            self._draw()

    def _run(self) -> None:
        """What happens by itself: pictures of a motion, steps of the sweep."""
        while not self._ended.wait(1.0 / FRAMES_PER_SECOND):
            with self._lock:
                if self._ended.is_set():
                    return
                self._player.tick()
                self._sweep.tick()


def _place(state: ViewState) -> Array:
    """Where a robot is: its first body."""
    return np.asarray(state.poses[0, :3, 3] if len(state.poses) else np.zeros(3))


def _first_and_others(q: Array) -> tuple[Array, Array]:
    """A configuration (nq,) and those that are drawn beside it (ghosts, nq)."""
    if q.ndim not in (1, 2) or not len(q):
        raise ArgumentError(f"q has shape {q.shape}, expected (nq,) or a batch (n, nq)")
    batch = q[None] if q.ndim == 1 else q[:MOST_COPIES]
    return batch[0], batch[1:]


def panel_html(title: str, state: ViewState) -> str:
    """A panel, or why this robot has none here."""
    try:
        return padded(PANELS[title](state))
    except PhistarError as error:
        return padded(f'<p style="font-size:11px">{html.escape(str(error))}</p>')
