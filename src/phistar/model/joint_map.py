# SPDX-License-Identifier: BSD-3-Clause
"""Between a robot's coordinates and one coordinate per joint of each body."""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.spatial.any_namespace import namespace


class JointMap:
    """Joint vectors (..., nv) in the robot's order, and (..., joints) in body order.

    Mimic joints share a coordinate of v, scaled; all others have their own. Vectors may be arrays
    of any namespace (``spatial.any_namespace``).

    Attributes:
        v_indices: (joints,) index into v of each joint coordinate.
        scales: (joints,) its displacement per unit of v.
        one_to_one: Whether every joint has a coordinate of its own.
        is_identity: Whether both are the same numbers in the same order.
    """

    def __init__(self, model: Model) -> None:
        indices: list[int] = []
        scales: list[float] = []
        for body in model.bodies:
            size = body.joint_kind.nv
            indices += range(body.v_slice.start, body.v_slice.start + size)
            scales += [body.scale] * size
        self.v_indices = np.array(indices, dtype=np.int32)
        self.scales = np.array(scales)
        self.size = model.nv
        self.one_to_one = len(indices) == model.nv
        self._scaled = bool((self.scales != 1).any())
        self._joints_of_v = np.argsort(self.v_indices, kind="stable").astype(np.int32)
        self.is_identity = not self._scaled and indices == list(range(model.nv))

    def spread(self, v: Array) -> Array:
        """(..., nv) -> (..., joints): velocities and accelerations of every body's joint."""
        return v if self.is_identity else self._scale(v[..., self.v_indices])

    def gather(self, tau: Array) -> Array:
        """(..., joints) -> (..., nv): generalised forces summed into the robot's coordinates."""
        if self.is_identity:
            return tau
        tau = self._scale(tau)
        if self.one_to_one:
            return tau[..., self._joints_of_v]
        columns: dict[int, Array] = {}
        for k, index in enumerate(self.v_indices):
            own = tau[..., k]
            columns[index] = columns[index] + own if index in columns else own
        return namespace(tau).stack([columns[i] for i in range(self.size)], axis=-1)

    def _scale(self, x: Array) -> Array:
        """In the precision of x."""
        return x * self.scales.astype(np.finfo(x.dtype).dtype) if self._scaled else x


@cached_on_model
def joint_map(model: Model) -> JointMap:
    """The joint map of a model, cached."""
    return JointMap(model)
