# SPDX-License-Identifier: BSD-3-Clause
"""Contacts of a robot: forces as arrows, gaps as labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from phistar.arrays import Array
from phistar.viewer.sweep_player import draw_arrows
from phistar.viewer.web_server import WORLD, Handle, Server

FORCE = (200, 30, 120)
LONGEST = 1.0
"""Length of an arrow of the robot's weight, in sizes of the robot."""
LARGEST_GAP = 0.1
"""Gaps that are written [m]; wider ones are of no interest."""
MOST_LABELS = 24
"""Pairs whose gaps are written, the closest first."""


class Touching(Protocol):
    """Pairs that may touch, of one robot or more; as ``phistar.sim`` reports them."""

    @property
    def names(self) -> tuple[str, ...]:
        """What touches, of each pair."""

    @property
    def gap(self) -> Array:
        """(robots, pairs) [m]."""

    @property
    def force(self) -> Array:
        """(robots, pairs, 3) on what touches [N]."""

    @property
    def position(self) -> Array:
        """(robots, pairs, 3) [m]."""


class ContactArrows:
    """Arrows of forces on what touches, and how far the closest pairs are apart.

    Args:
        server: The server.
        size: Size of the robot [m].
        weight: Its weight [N].
    """

    def __init__(self, server: Server, size: float, weight: float) -> None:
        self._server, self._size, self._weight = server, size, max(weight, 1e-12)
        self._labels: dict[int, Handle] = {}
        self.visible = True

    def show(self, contacts: Touching) -> None:
        """The contacts of the first robot."""
        if not self.visible:
            return
        position, force = contacts.position[0], contacts.force[0]
        scale = LONGEST * self._size / self._weight
        moving = np.linalg.norm(force, axis=-1) > 0.0
        ends = np.stack([position, position + scale * force], axis=1)[moving]
        draw_arrows(self._server, f"{WORLD}/contacts/forces", ends, FORCE, self._size)
        texts = dict(gap_texts(contacts.names, contacts.gap[0]))
        for pair in texts.keys() - self._labels.keys():
            name = f"{WORLD}/contacts/gaps/{pair}"
            self._labels[pair] = self._server.scene.add_label(name, "", font_screen_scale=0.7)
        for pair, label in self._labels.items():
            label.visible = pair in texts
            if label.visible:
                label.text, label.position = texts[pair], position[pair]

    def hide(self) -> None:
        """Take everything away."""
        draw_arrows(
            self._server, f"{WORLD}/contacts/forces", np.empty((0, 2, 3)), FORCE, self._size
        )
        for label in self._labels.values():
            label.visible = False


def gap_texts(names: Sequence[str], gaps: Array) -> list[tuple[int, str]]:
    """Pairs and what is written at them: name and gap of the closest ones that are near."""
    order = np.argsort(gaps, kind="stable")[:MOST_LABELS]
    return [
        (int(k), f"{names[k]} {round(1e3 * float(gaps[k]), 1) + 0.0:.1f} mm")
        for k in order
        if gaps[k] < LARGEST_GAP
    ]
