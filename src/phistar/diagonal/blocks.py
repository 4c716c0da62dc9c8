# SPDX-License-Identifier: BSD-3-Clause
"""Block-diagonal matrices over the joints of a robot: one small block a joint, alike ones stacked.

Blocks of equal size lie in one array (..., count, d, d), so that a robot with many joints of one
axis takes a few array operations, whatever their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.model.joint_map import joint_map
from phistar.model.model import Model

Array = NDArray[Any]


@dataclass(frozen=True)
class Blocks:
    """A block-diagonal matrix.

    Attributes:
        places: For each size: (count, d) indices into the robot's coordinates.
        values: For each size: (..., count, d, d).
        size: Number of coordinates.
    """

    places: tuple[Array, ...]
    values: tuple[Array, ...]
    size: int

    @classmethod
    def of(cls, model: Model, blocks: Sequence[Array]) -> Blocks:
        """From the blocks (..., d, d) of the bodies' joints, in body order."""
        ends = np.cumsum([0, *(block.shape[-1] for block in blocks)])
        own = [joint_map(model).places[a:b] for a, b in pairwise(ends)]
        sizes = sorted({len(place) for place in own} - {0})
        chosen = [[k for k, place in enumerate(own) if len(place) == size] for size in sizes]
        return cls(
            tuple(np.array([own[k] for k in group]) for group in chosen),
            tuple(np.stack([blocks[k] for k in group], axis=-3) for group in chosen),
            model.nv,
        )

    def map(self, function: Callable[..., Array], *others: Blocks) -> Blocks:
        """A function of the blocks, and of those of others, one by one."""
        rows = zip(self.values, *(other.values for other in others), strict=True)
        return Blocks(self.places, tuple(function(*row) for row in rows), self.size)

    @property
    def T(self) -> Blocks:
        """The adjoint."""
        return self.map(lambda block: np.swapaxes(block, -1, -2))

    def __matmul__(self, x: Array) -> Array:
        """Times a joint vector (..., nv)."""
        return self._joined(x, lambda block, part: block @ part)

    def solve(self, x: Array) -> Array:
        """The inverse times a joint vector (..., nv)."""
        return self._joined(x, np.linalg.solve)

    def _joined(self, x: Array, each: Callable[[Array, Array], Array]) -> Array:
        pairs = zip(self.places, self.values, strict=True)
        parts = [each(block, x[..., place][..., None])[..., 0] for place, block in pairs]
        batch = np.broadcast_shapes(x.shape[:-1], *(part.shape[:-2] for part in parts))
        result = np.empty((*batch, self.size), dtype=np.result_type(x, *parts))
        for place, part in zip(self.places, parts, strict=True):
            result[..., place] = part
        return result

    def dense(self) -> Array:
        """(..., nv, nv)."""
        batch = np.broadcast_shapes(*(block.shape[:-3] for block in self.values))
        result = np.zeros((*batch, self.size, self.size), dtype=np.result_type(0.0, *self.values))
        for place, block in zip(self.places, self.values, strict=True):
            result[..., place[:, :, None], place[:, None, :]] = block
        return result
