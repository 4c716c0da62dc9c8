# SPDX-License-Identifier: BSD-3-Clause
"""Between a robot's coordinates and one coordinate per joint of each body."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.model.model import Model

Array = NDArray[Any]


class JointMap:
    """Joint vectors (..., nv) in the robot's order, and (..., joints) in body order.

    Mimic joints share a coordinate of v, scaled; all others have their own.

    Attributes:
        places: (joints,) index into v of each joint coordinate.
        scales: (joints,) its displacement per unit of v.
        one_to_one: Whether every joint has a coordinate of its own.
        same: Whether both are the same numbers in the same order.
    """

    def __init__(self, model: Model) -> None:
        places: list[int] = []
        scales: list[float] = []
        for body in model.bodies:
            size = body.motion.nv
            places += range(body.v_slice.start, body.v_slice.start + size)
            scales += [body.scale] * size
        self.places = np.array(places, dtype=int)
        self.scales = np.array(scales)
        self.size = model.nv
        self.one_to_one = len(places) == model.nv
        self._scaled = bool((self.scales != 1).any())
        self.same = not self._scaled and places == list(range(model.nv))

    def spread(self, v: Array) -> Array:
        """(..., nv) -> (..., joints): velocities and accelerations of every body's joint."""
        return v if self.same else self._scale(v[..., self.places])

    def gather(self, tau: Array) -> Array:
        """(..., joints) -> (..., nv): generalised forces summed into the robot's coordinates."""
        if self.same:
            return tau
        tau = self._scale(tau)
        if self.one_to_one:
            result = np.empty((*tau.shape[:-1], self.size), dtype=tau.dtype)
            result[..., self.places] = tau
            return result
        result = np.zeros((*tau.shape[:-1], self.size), dtype=tau.dtype)
        for k, place in enumerate(self.places):
            result[..., place] += tau[..., k]
        return result

    def _scale(self, x: Array) -> Array:
        """In the precision of x."""
        return x * self.scales.astype(np.finfo(x.dtype).dtype) if self._scaled else x


@lru_cache(maxsize=64)
def joint_map(model: Model) -> JointMap:
    """The joint map of a model, made once."""
    return JointMap(model)
