# SPDX-License-Identifier: BSD-3-Clause
"""Motions in the viewer: a play bar, ghosts of a batch, energies that grow with time.

A motion is recorded, such as a ``Simulation``, or happens at this moment in a simulator, whose
pictures are drawn as they come.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.drawing.drawing_mixin import finite_pictures
from phistar.drawing.figures import Motion
from phistar.drawing.scene import Scene
from phistar.errors import ArgumentError
from phistar.model.model import Model
from phistar.viewer.contact_arrows import ContactArrows, Touching
from phistar.viewer.energy_curves import SHORTEST_SPAN, EnergyCurves, growing_span
from phistar.viewer.robot_nodes import RobotNodes
from phistar.viewer.view_state import ViewState
from phistar.viewer.web_server import WORLD, Handle, Server

FRAMES_PER_SECOND = 30.0
MOST_LIVE_POINTS = 600
"""States of a simulator that its curves show, the last ones."""


@dataclass(frozen=True, eq=False)
class ShownMotion:
    """A recorded motion at the times of its pictures.

    Attributes:
        t: (n,) times [s].
        q: (n, copies, nq).
        v: (n, nv) of the first robot.
    """

    t: Array
    q: Array
    v: Array


@dataclass(frozen=True, eq=False)
class LivePicture:
    """A moment of a simulator.

    Attributes:
        t: Time [s].
        q: (copies, nq).
        v: (nv,) of the first robot.
        contacts: Finds what touches; None: nothing may touch.
    """

    t: float
    q: Array
    v: Array
    contacts: Callable[[], Touching] | None = None


class Ghosts:
    """Samples of a batch after the first, drawn transparent.

    Args:
        server: The server.
        surfaces: What is drawn.
    """

    def __init__(self, server: Server, surfaces: Scene) -> None:
        self._server, self._surfaces = server, surfaces
        self._robots: list[RobotNodes] = []

    def show(self, q: Array) -> None:
        """Robots at configurations (copies, nq); what is not finite is not drawn."""
        for number in range(len(self._robots), len(q)):
            root = f"{WORLD}/ghosts/{number}"
            self._robots.append(RobotNodes(self._server, self._surfaces, root, ghost=True))
        model = self._surfaces.model
        for number, robot in enumerate(self._robots):
            drawn = number < len(q) and bool(np.isfinite(q[number]).all())
            if robot.visible != drawn:
                robot.visible = drawn
            if drawn:
                robot.show(ViewState(model, q[number], np.zeros(model.nv)))


class MotionPlayer:
    """Plays what was recorded, or follows what happens.

    Args:
        server: The server.
        surfaces: What is drawn.
        contacts: Draws contacts.
        lock: Held while something changes.
        show: Called with each state of the first robot.
    """

    def __init__(
        self,
        server: Server,
        surfaces: Scene,
        contacts: ContactArrows,
        lock: threading.RLock,
        show: Callable[[ViewState], None],
    ) -> None:
        self._server, self._model = server, surfaces.model
        self._contacts, self._lock, self._show = contacts, lock, show
        self._ghosts = Ghosts(server, surfaces)
        self._motion: ShownMotion | None = None
        self._playing = False
        self._bar: Handle = None
        self._curves: EnergyCurves | None = None
        self._news: LivePicture | None = None
        self._history: list[LivePicture] = []

    # -- a recorded motion

    def load(self, motion: ShownMotion) -> None:
        """Show a motion and a play bar for it."""
        t, gui = motion.t, self._server.gui
        with self._lock:
            self._motion = motion
            with self._new_bar("motion"):
                gui.add_button("play / pause").on_click(lambda _: self.toggle())
                self._picture = gui.add_slider("picture", 0, max(len(t) - 1, 1), 1, 0)
                self._picture.on_update(lambda _: self.go_to(int(self._picture.value)))
                self._clock = gui.add_text("time", f"{t[0]:.3f} s", disabled=True)
                self._curves = EnergyCurves(self._server, self._model)
            span = float(t[0]), max(float(t[-1]), float(t[0]) + SHORTEST_SPAN)
            self._curves.start(t, motion.q[:, 0], motion.v, span)
            self._contacts.hide()
        self.go_to(0)

    def show_ghosts(self, q: Array) -> None:
        """Other robots at configurations (copies, nq), in place of those that were shown."""
        with self._lock:
            self._ghosts.show(q)

    def toggle(self) -> None:
        """Play, or pause."""
        self._playing = not self._playing

    def pause(self) -> None:
        """Stop playing."""
        self._playing = False

    def go_to(self, number: int) -> None:
        """Show a picture of the motion."""
        with self._lock:
            if self._motion is None or self._curves is None:
                return
            t, q, v = self._motion.t, self._motion.q, self._motion.v
            number = min(number, len(t) - 1)
            self._clock.value = f"{t[number]:.3f} s"
            self._show(ViewState(self._model, q[number, 0], v[number], float(t[number])))
            self._ghosts.show(q[number, 1:])
            self._curves.show(number + 1, now=not self._playing)

    def _new_bar(self, title: str) -> Handle:
        if self._bar is not None:
            self._bar.remove()
        self._bar = self._server.gui.add_folder(title, order=-1)
        return self._bar

    # -- a simulator

    def follow(self) -> Callable[[LivePicture], None]:
        """Make room for a simulator; what is returned takes its pictures."""
        gui = self._server.gui
        with self._lock:
            self._motion, self._playing = None, False
            with self._new_bar("simulator"):
                self._clock = gui.add_text("time", "", disabled=True)
                box = gui.add_checkbox("contact forces and gaps", initial_value=True)
                self._curves = EnergyCurves(self._server, self._model)
            box.on_update(lambda _: self._show_contacts(box.value))
        return self._take

    def _take(self, picture: LivePicture) -> None:
        """Keep a picture for the next moment at which one is drawn; called by the simulator."""
        self._news = picture

    def _show_contacts(self, visible: bool) -> None:
        with self._lock:
            self._contacts.visible = visible
            if not visible:
                self._contacts.hide()
            elif self._history:
                self._draw_contacts(self._history[-1])

    def _draw_contacts(self, picture: LivePicture) -> None:
        if picture.contacts is not None:
            self._contacts.show(picture.contacts())

    def _draw(self, picture: LivePicture) -> None:
        """Robot, ghosts, contacts and curves at a moment of a simulator."""
        if self._history and picture.t < self._history[-1].t:
            self._history.clear()
        self._history = [*self._history[1 - MOST_LIVE_POINTS :], picture]
        self._clock.value = f"{picture.t:.3f} s"
        self._show(ViewState(self._model, picture.q[0], picture.v, picture.t))
        self._ghosts.show(picture.q[1:])
        self._draw_contacts(picture)
        if self._curves is not None and len(self._history) > 1:
            t, q, v = (
                np.array([getattr(x, name) for x in self._history]) for name in ("t", "q", "v")
            )
            self._curves.start(t, q[:, 0], v, growing_span(t))
            self._curves.show(len(t))

    # -- time

    def tick(self) -> None:
        """What happens by itself: the next picture, or what a simulator has done."""
        news, self._news = self._news, None
        if news is not None:
            self._draw(news)
        elif self._playing and self._motion is not None:
            following = (int(self._picture.value) + 1) % len(self._motion.t)
            self._picture.value = following
            self.go_to(following)


def shown_motion(motion: Motion, model: Model) -> ShownMotion:
    """A motion of a robot as it is shown.

    Raises:
        ArgumentError: It is of another robot, or its first sample is not finite.
    """
    other = motion.model
    if other.joint_names != model.joint_names or other.nq != model.nq:
        raise ArgumentError(f"the motion is of '{other.name}', expected one of '{model.name}'")
    t, q = finite_pictures(motion, FRAMES_PER_SECOND)
    v = motion.v.reshape(len(motion.t), -1, model.nv)[:, 0]
    return ShownMotion(t, q, v[np.searchsorted(motion.t, t)])
