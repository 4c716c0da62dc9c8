# SPDX-License-Identifier: BSD-3-Clause
"""The compiler: an ordered list of named passes from operator expressions to something that runs.

A schedule does not depend on the robot, so it is made once per expression and kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.algebra.ir import Expr
from phistar.algebra.symbols import mass_matrix
from phistar.algorithms.equations_of_motion import PROGRAMS
from phistar.errors import UnknownNameError
from phistar.model.model import Model
from phistar.sweeps.interpret import run
from phistar.sweeps.lower import lower
from phistar.sweeps.matrix import MatrixProgram, lower_matrix, run_matrix
from phistar.sweeps.printing import to_text
from phistar.sweeps.schedule import Schedule, schedule

Array = NDArray[Any]


@dataclass(frozen=True)
class Kernel:
    """A compiled program: outputs by name, ready to run on any robot."""

    name: str
    outputs: tuple[tuple[str, Expr], ...]
    schedule: Schedule

    def __call__(
        self,
        model: Model,
        q: ArrayLike,
        inputs: Mapping[str, ArrayLike],
        frames: Sequence[str] = (),
        locked: Set[int] = frozenset(),
    ) -> dict[str, Array]:
        """Run on a robot; see ``sweeps.interpret.run`` for the arguments."""
        return run(self.schedule, model, q, inputs, frames, locked)

    @property
    def sweeps(self) -> str:
        """The passes as text."""
        return to_text(self.schedule)


@lru_cache(maxsize=256)
def compile_outputs(name: str, outputs: tuple[tuple[str, Expr], ...]) -> Kernel:
    """Compile vector expressions: lower to streams, schedule into passes."""
    program = lower(dict(outputs))
    return Kernel(name, outputs, schedule(program))


def kernel(name: str) -> Kernel:
    """The kernel of a program of the catalogue.

    Raises:
        UnknownNameError: No such program.
    """
    if name not in PROGRAMS:
        raise UnknownNameError("program", name, PROGRAMS)
    return compile_outputs(name, tuple(PROGRAMS[name].items()))


@lru_cache(maxsize=1)
def _mass_matrix_program() -> MatrixProgram:
    return lower_matrix(mass_matrix)


def mass_matrix_kernel(model: Model, q: ArrayLike) -> Array:
    """The mass matrix (..., joints, joints) by composite bodies, joints in body order."""
    return run_matrix(_mass_matrix_program(), model, q)


class JointMap:
    """Between a robot's coordinates and one coordinate per joint of each body.

    Mimic joints share a coordinate of v, scaled; all others have their own.
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

    def spread(self, v: Array) -> Array:
        """(..., nv) -> (..., joints): velocities and accelerations of every body's joint."""
        return np.asarray(v[..., self.places] * self.scales)

    def gather(self, tau: Array) -> Array:
        """(..., joints) -> (..., nv): generalised forces summed into the robot's coordinates."""
        if self.one_to_one:
            result = np.empty((*tau.shape[:-1], self.size), dtype=tau.dtype)
            result[..., self.places] = tau * self.scales
            return result
        result = np.zeros((*tau.shape[:-1], self.size), dtype=tau.dtype)
        for k, (place, scale) in enumerate(zip(self.places, self.scales, strict=True)):
            result[..., place] += scale * tau[..., k]
        return result


@lru_cache(maxsize=64)
def joint_map(model: Model) -> JointMap:
    """The joint map of a model, made once."""
    return JointMap(model)
