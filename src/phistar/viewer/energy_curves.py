# SPDX-License-Identifier: BSD-3-Clause
"""Energy over time as curves that grow while a robot moves, and how much of it comes or goes."""

from __future__ import annotations

import math
import time

import numpy as np

from phistar.arrays import Array
from phistar.energies import kinetic_energy, potential_energy
from phistar.model.model import Model
from phistar.viewer.web_server import Server, curve, padded

SECONDS_BETWEEN = 0.1
"""Curves are drawn no more often than this."""
UNITS = {"J": 1.0, "mJ": 1e-3, "µJ": 1e-6, "nJ": 1e-9, "pJ": 1e-12}
"""Units of a change of energy by name [J]: a scheme that keeps energy drifts by very little."""
WIDTH_OF_NUMBERS = 62
"""Pixels beside a plot, for numbers such as -1,000."""
SHORTEST_SPAN = 2.0**-6
"""Of an axis of time [s]."""

Span = tuple[float, float]


class EnergyCurves:
    """Two plots: kinetic, potential and total energy; what the total gained since the start.

    Args:
        server: The server, at the folder in which the plots are to be.
        model: The robot.
    """

    def __init__(self, server: Server, model: Model) -> None:
        self._model, self._last = model, 0.0
        self._span: Span = (0.0, 1.0)
        empty = np.zeros(2)
        self._energies = server.gui.add_uplot(
            (np.arange(2.0), empty, empty, empty),
            (
                curve("t [s]", "#000"),
                curve("kinetic [J]", "#27c"),
                curve("potential, gained", "#c72"),
                curve("total, gained", "#393"),
            ),
            scales=_scales(self._span),
            axes=_AXES,
            aspect=1.6,
        )
        # A plot whose labels change loses its scale, so the unit is not in one.
        self._title = server.gui.add_html("")
        self._drift = server.gui.add_uplot(
            (np.arange(2.0), empty, empty),
            (curve("t [s]", "#000"), curve("total, gained", "#933"), curve("0", "#888")),
            scales=_scales(self._span),
            axes=_AXES,
            aspect=2.2,
        )
        self._rows = np.zeros((4, 0))

    @property
    def rows(self) -> Array:
        """(4, n) times, kinetic, potential and total energy, the last two less their first."""
        return self._rows

    def start(self, t: Array, q: Array, v: Array, span: Span) -> None:
        """Curves of states at times (n,): q (n, nq), v (n, nv); the axis shows times ``span``."""
        kinetic = kinetic_energy(self._model, q, v)
        potential = potential_energy(self._model, q)
        gained = potential - potential[0]
        self._rows = np.stack([t, kinetic, gained, kinetic - kinetic[0] + gained]).astype(float)
        if span != self._span:
            # viser's own choice goes astray when curves grow faster than the browser draws.
            self._span = span
            self._energies.scales = self._drift.scales = _scales(span)

    def show(self, count: int, *, now: bool = False) -> None:
        """Draw the first ``count`` states, unless that has been done a moment ago."""
        if not now and time.monotonic() - self._last < SECONDS_BETWEEN:
            return
        self._last = time.monotonic()
        shown = self._rows[:, : max(count, 2)]
        if shown.shape[1] > 1:
            unit = drift_unit(shown[3])
            self._energies.data = tuple(shown)
            self._title.content = padded(f"change of the total energy [{unit}]")
            self._drift.data = (shown[0], shown[3] / UNITS[unit], 0.0 * shown[0])


def drift_unit(drift: Array) -> str:
    """The largest unit in which some of the drift is a tenth at least; axes have three decimals."""
    largest = float(np.abs(drift).max(initial=0.0))
    return next((name for name, size in UNITS.items() if largest >= 0.1 * size), "J")


def growing_span(t: Array) -> Span:
    """An axis for times (n,) of which more will come: the next power of two [s]."""
    begin, length = float(t[0]), float(t[-1] - t[0])
    return begin, begin + 2.0 ** math.ceil(math.log2(max(length, SHORTEST_SPAN)))


_AXES: tuple[dict[str, object], ...] = ({}, {"size": WIDTH_OF_NUMBERS})


def _scales(span: Span) -> dict[str, object]:
    return {"x": {"time": False, "range": span}, "y": {}}
