# SPDX-License-Identifier: BSD-3-Clause
"""Block-diagonal matrices over the joints of a robot: one small block per joint, equal sizes
stacked.

Blocks of equal size are one array (..., count, d, d), so that a robot with many joints of one axis
takes a few array operations, whatever their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from phistar.arrays import Array, DType
from phistar.model.joint_map import joint_map
from phistar.model.model import Model


@dataclass(frozen=True)
class BlockDiagonal:
    """A block-diagonal matrix.

    Attributes:
        v_indices: For each size: (count, d) indices into the robot's coordinates.
        values: For each size: (..., count, d, d).
        size: Number of coordinates.
    """

    v_indices: tuple[Array, ...]
    values: tuple[Array, ...]
    size: int

    @classmethod
    def of(cls, model: Model, blocks: Sequence[Array], dtype: DType) -> BlockDiagonal:
        """From the blocks (..., d, d) of the bodies' joints, in body order."""
        ends = np.cumsum([0, *(block.shape[-1] for block in blocks)])
        by_body = [joint_map(model).v_indices[a:b] for a, b in pairwise(ends)]
        sizes = sorted({len(indices) for indices in by_body} - {0})
        chosen = [[k for k, index in enumerate(by_body) if len(index) == size] for size in sizes]
        return cls(
            tuple(np.array([by_body[k] for k in group]) for group in chosen),
            tuple(np.stack([blocks[k] for k in group], axis=-3).astype(dtype) for group in chosen),
            model.nv,
        )

    def map(self, function: Callable[..., Array], *others: BlockDiagonal) -> BlockDiagonal:
        """A function of the blocks, and of those of others, one by one."""
        rows = zip(self.values, *(other.values for other in others), strict=True)
        return BlockDiagonal(self.v_indices, tuple(function(*row) for row in rows), self.size)

    @property
    def T(self) -> BlockDiagonal:
        """The adjoint."""
        return self.map(lambda block: np.swapaxes(block, -1, -2))

    def __matmul__(self, x: Array) -> Array:
        """Times a joint vector (..., nv)."""
        return self._joined(x, lambda block, vector: block @ vector)

    def solve(self, x: Array) -> Array:
        """The inverse times a joint vector (..., nv)."""
        return self._joined(x, np.linalg.solve)

    def _joined(self, x: Array, each: Callable[[Array, Array], Array]) -> Array:
        pairs = zip(self.v_indices, self.values, strict=True)
        products = [each(block, x[..., indices][..., None])[..., 0] for indices, block in pairs]
        batch = np.broadcast_shapes(x.shape[:-1], *(product.shape[:-2] for product in products))
        result = np.empty((*batch, self.size), dtype=np.result_type(x, *products))
        for indices, product in zip(self.v_indices, products, strict=True):
            result[..., indices] = product
        return result

    def dense(self) -> Array:
        """(..., nv, nv)."""
        batch = np.broadcast_shapes(*(block.shape[:-3] for block in self.values))
        result = np.zeros((*batch, self.size, self.size), dtype=np.result_type(0.0, *self.values))
        for indices, block in zip(self.v_indices, self.values, strict=True):
            result[..., indices[:, :, None], indices[:, None, :]] = block
        return result
