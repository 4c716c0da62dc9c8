# SPDX-License-Identifier: BSD-3-Clause
"""Matrices and vectors of one robot that are wanted together, as one kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.backends.base import OPTIONAL, Way
from phistar.backends.batch import inexact
from phistar.backends.llvm.kernel import Kernel
from phistar.backends.llvm.memory import pool
from phistar.backends.llvm.recipe import fingerprint
from phistar.backends.llvm.rows import REALS, as_rows
from phistar.backends.llvm.tiers import Tiers, policy
from phistar.backends.llvm.ways import way_into
from phistar.model.model import Model
from phistar.scalar.assembly import to_assembly
from phistar.scalar.lower import Options
from phistar.sweeps.requests import Assembly

Array = NDArray[Any]
_DOUBLE = np.dtype(np.float64)

SMALL = 100
"""Links times rows up to which the kernel is compiled on the spot."""
LARGEST = 2500
"""Links times rows up to which a straight line is worth its size."""


class Together:
    """An assembly for one robot; a kernel for each precision."""

    def __init__(self, assembly: Assembly, model: Model, options: Options) -> None:
        self.assembly = assembly
        self.model = model
        self.options = options
        self.size = sum(body.motion.nv for body in model.bodies)
        self.way: Way | None = None
        self._known: Kernel | None = None
        self._tiers: dict[str, Tiers] = {}

    @property
    def weight(self) -> int:
        """Links times rows."""
        return len(self.model.bodies) * self.size

    def tiers(self, real: str = "double") -> Tiers:
        """The kernels for a precision."""
        if real not in self._tiers:
            assembly = self.assembly
            if real == "float" and assembly.matrices:
                # Walks in common axes lose a digit more on long robots.
                assembly = replace(assembly, split=None)
            schedules = [f.schedule for forms in self.assembly.matrices.values() for f in forms]
            wanted = (*self.assembly.matrices, *self.assembly.products.items())
            if self.assembly.split is not None:
                schedules.append(self.assembly.split.schedule)
            programs = [(s.program.nodes, s.program.definitions) for s in schedules]
            self._tiers[real] = Tiers(
                fingerprint(self.assembly.vectors, self.model, self.options, wanted, programs),
                real,
                f"{self.model.name}: {', '.join(self.assembly.outputs)}",
                None,
                lambda: to_assembly(assembly, self.model, frozenset(OPTIONAL), self.options),
            )
        return self._tiers[real]

    def kernel(self, real: str) -> Kernel | None:
        """What is ready: small ones are compiled on the spot, others by a thread."""
        tiers = self.tiers(real)
        return tiers.kernel if self.weight <= SMALL and policy() != "rolled" else tiers.ready

    def _tails(self, kernel: Kernel) -> dict[str, tuple[int, ...]]:
        """Shape of each output for one sample."""
        matrices, n = set(self.assembly.outputs), self.size
        return {x: (n, n) if x in matrices else (n,) for x in kernel.call.signature.outputs}

    def __call__(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array] | None:
        """See ``base.Assembled``."""
        if any(name in inputs for name in OPTIONAL):
            return None
        arrays = {"q": inexact(q), **{name: inexact(x) for name, x in inputs.items()}}
        dtype = np.result_type(*arrays.values())
        kernel = self.kernel(REALS[dtype]) if dtype in REALS else None
        if kernel is None:
            return None
        if kernel is not self._known and dtype == _DOUBLE:
            self._known, self.way = kernel, way_into(kernel, self._tails(kernel))
        batch, lines = as_rows(arrays, dict.fromkeys(arrays, 1))
        rows = [lines[name] for name in kernel.call.signature.inputs]
        sizes = kernel.call.signature.outputs
        count = math.prod(batch)
        results = {name: pool.empty((count, size), dtype) for name, size in sizes.items()}
        if count:
            kernel.call(rows, list(results.values()), fresh=True)
        tails = self._tails(kernel)
        return {name: x.reshape(*batch, *tails[name]) for name, x in results.items()}
