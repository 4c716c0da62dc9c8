# SPDX-License-Identifier: BSD-3-Clause
"""The sweep in the viewer: a button, a slider over the steps, arrows, the printed program."""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Callable

import numpy as np

from phistar.errors import PhistarError
from phistar.viewer.sweep_arrows import ANGULAR, LINEAR, SweepArrows
from phistar.viewer.view_state import ViewState
from phistar.viewer.web_server import WORLD, Handle, Server, padded

SECONDS_OF_A_STEP = 0.35
"""Time of a statement at a link, while the sweep is played."""


class SweepPlayer:
    """Walks through forward dynamics at the state that is shown.

    Args:
        server: The server.
        size: Size of the robot [m].
        lock: Held while something changes.
        state: Gives the shown state.
    """

    def __init__(
        self, server: Server, size: float, lock: threading.RLock, state: Callable[[], ViewState]
    ) -> None:
        self._server, self._size, self._lock, self._state = server, size, lock, state
        self._work: SweepArrows | None = None
        self._playing, self._last = False, 0.0
        gui = server.gui
        with gui.add_folder("the sweep", expand_by_default=False):
            button = gui.add_button("walk through forward dynamics")
            button.on_click(lambda _: self.begin())
            pause = gui.add_button("pause / go on")
            pause.on_click(lambda _: self.toggle())
            self._step = gui.add_slider("step", 0, 1, 1, 0, disabled=True)
            self._step.on_update(lambda _: self._show())
            self._text = gui.add_html("")

    def begin(self) -> None:
        """Work out all steps at the shown state, and start with the first."""
        with self._lock:
            try:
                self._work = SweepArrows(self._state(), self._size)
            except PhistarError as error:
                self._text.content = padded(html.escape(str(error)))
                return
            self._step.max = max(len(self._work.steps) - 1, 1)
            self._step.disabled = False
            self._step.value = 0
            self._playing, self._last = True, time.monotonic()
            self._show()

    def toggle(self) -> None:
        """Pause, or go on."""
        with self._lock:
            self._playing = not self._playing and self._work is not None

    def tick(self) -> None:
        """Go on to the next step when it is time for it."""
        if not self._playing or time.monotonic() - self._last < SECONDS_OF_A_STEP:
            return
        self._last = time.monotonic()
        following = int(self._step.value) + 1
        if following > self._step.max:
            self._playing = False
            return
        self._step.value = following
        self._show()

    def leave(self) -> None:
        """The robot moved: what the sweep shows is over."""
        if self._work is not None:
            self._work, self._playing = None, False
            self._step.disabled = True
            self._text.content = padded("The robot moved: walk through it again.")
            self._draw(np.empty((0, 2, 3)), np.empty((0, 2, 3)))

    def _show(self) -> None:
        with self._lock:
            if self._work is not None:
                number = min(int(self._step.value), len(self._work.steps) - 1)
                self._text.content = padded(self._work.text(number))
                self._draw(*self._work.at(number))

    def _draw(self, linear: Handle, angular: Handle) -> None:
        for name, arrows, colour in (("linear", linear, LINEAR), ("angular", angular, ANGULAR)):
            draw_arrows(self._server, f"{WORLD}/sweep/{name}", arrows, colour, self._size)


def draw_arrows(
    server: Server, name: str, arrows: Handle, colour: tuple[int, int, int], size: float
) -> None:
    """Arrows (n, 2, 3) of a scene, in place of those that had their name."""
    server.scene.add_arrows(
        name,
        arrows if len(arrows) else np.zeros((1, 2, 3)),
        colour,
        shaft_radius=0.006 * size,
        head_radius=0.014 * size,
        head_length=0.03 * size,
        visible=len(arrows) > 0,
    )
