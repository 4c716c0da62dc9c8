# SPDX-License-Identifier: BSD-3-Clause
"""Compiled quantities of robots with loops: what their programs give as NaN is an error by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from phistar.arguments import checked_state
from phistar.compile.on_loops import ON_LOOPS
from phistar.errors import NotFiniteError
from phistar.kernels import RobotKernel
from phistar.loops.assembly import usual_rank
from phistar.loops.constrained_dynamics import require_on_loops, warn_where_singular
from phistar.loops.system import motion_at
from phistar.model.configuration import Coordinates


class LoopKernel(RobotKernel):
    """As ``RobotKernel``; programs about motion on the loops have results there only."""

    def __call__(self, q: Coordinates, **inputs: Coordinates) -> Any:
        """Run; see ``RobotKernel``.

        Raises:
            LoopOpenError, LoopVelocityError: A state is not on the loops.
        """
        try:
            return super().__call__(q, **inputs)
        except NotFiniteError:
            if self._kernel.request.name in ON_LOOPS.values():
                self._require_on_loops(q, inputs["v"])
            raise

    def _require_on_loops(self, q: Coordinates, v: Coordinates) -> None:
        at, rate = checked_state(self.model, q=q, v=v)
        precision = max(float(np.finfo(x.dtype).eps) for x in (at, rate))
        at, rate = at.astype(float), rate.astype(float)
        rows = motion_at(self.model, at, rate)
        purpose = f"compile({self.name!r})"
        require_on_loops(self.model, rows, rate, purpose, precision)
        if rank := usual_rank(self.model):
            warn_where_singular(self.model, rows.L, purpose, rank)
