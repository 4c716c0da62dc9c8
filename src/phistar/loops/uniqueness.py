# SPDX-License-Identifier: BSD-3-Clause
"""Which parts of loop wrenches are determined.

Multipliers are determined up to self-stresses, the null space of L*. A component of a loop's wrench
Nλ is determined if it is zero for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from phistar.arrays import Array
from phistar.errors import UnknownNameError
from phistar.loops.rank import RANK_TOLERANCE
from phistar.loops.system import LoopSystem
from phistar.model.loop_kinds import wrench_columns

T = TypeVar("T")


class ByLoop(dict[str, T]):
    """Something of each active loop; another name is refused with those that there are."""

    def __missing__(self, name: str) -> NoReturn:
        raise UnknownNameError("active loop", name, self)


COMPONENTS = ("mx", "my", "mz", "fx", "fy", "fz")
"""Names of the entries of a wrench, [moment; force]."""


@dataclass(frozen=True)
class UniqueComponents:
    """Whether components of a wrench are determined: ``["fx"]``, ``.moment``, ``.force``.

    Attributes:
        values: (..., 6) booleans, [moment; force] in the axes of the successor frame.
    """

    values: Array

    def __getitem__(self, name: str) -> Array:
        """(...) booleans of ``"mx"``, ``"my"``, ``"mz"``, ``"fx"``, ``"fy"`` or ``"fz"``."""
        if name not in COMPONENTS:
            raise UnknownNameError("component", name, COMPONENTS)
        return np.asarray(self.values[..., COMPONENTS.index(name)])

    @property
    def moment(self) -> Array:
        """(..., 3)."""
        return np.asarray(self.values[..., :3])

    @property
    def force(self) -> Array:
        """(..., 3)."""
        return np.asarray(self.values[..., 3:])

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Names of those that are not determined in some sample."""
        fine: Array = np.all(self.values.reshape(-1, 6), axis=0)
        return tuple(name for name, good in zip(COMPONENTS, fine, strict=True) if not good)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)


@dataclass(frozen=True)
class Uniqueness:
    """What is determined of the loops.

    Attributes:
        loops: For each loop (...): all of its multipliers.
        components: For each loop joint: the components of its wrench.
    """

    loops: Mapping[str, Array]
    components: Mapping[str, UniqueComponents]


def uniqueness(system: LoopSystem, rows: Array, relative: Array, rank: int) -> Uniqueness:
    """What is determined at states.

    Args:
        system: The loops.
        rows: L (..., rows, nv).
        relative: (..., loop joints, 4, 4) poses of successor frames in predecessor frames.
        rank: Of L.
    """
    batch = rows.shape[:-2]
    if rank == system.count:
        every = ByLoop({loop.name: np.ones(batch, dtype=bool) for loop in system.loops})
        whole = UniqueComponents(np.ones((*batch, 6), dtype=bool))
        return Uniqueness(every, ByLoop({loop.name: whole for _, loop, _ in system.joints()}))
    # Stresses of unit length without units: moments, and forces times the mechanism's size.
    scaled = system.scaled(rows)
    wide = scaled.shape[-2] <= scaled.shape[-1]
    stress = np.linalg.svd(scaled, full_matrices=not wide)[0][..., rank:]
    size = np.sqrt((stress * stress).sum(axis=-1))
    loops = ByLoop(
        {
            loop.name: np.asarray((size[..., own] < RANK_TOLERANCE).all(axis=-1))
            for loop, own in zip(system.loops, system.slices, strict=True)
        }
    )
    units = np.array([1.0, 1.0, 1.0, *(3 * [system.size])])[:, None]
    components = ByLoop[UniqueComponents]()
    for number, loop, own in system.joints():
        N = np.swapaxes(wrench_columns(loop, relative[..., number, :, :]), -1, -2)
        wrench = units * (N @ (system.row_scale[own, None] * stress[..., own, :]))
        length = np.sqrt((wrench * wrench).sum(axis=-1))
        components[loop.name] = UniqueComponents(np.asarray(length < RANK_TOLERANCE))
    return Uniqueness(loops, components)
