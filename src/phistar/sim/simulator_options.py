# SPDX-License-Identifier: BSD-3-Clause
"""What a simulator of many robots is made of, checked, and the state that it is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phistar.arguments import require_count, require_number, require_time
from phistar.arrays import Array
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.joint_physics import Passive
from phistar.reprs import one_line_repr
from phistar.scalar.trace.unilateral_rows import StepRows
from phistar.sim.contact_pairs import Ground, SelfContact
from phistar.sim.scheme_choice import AUTO
from phistar.sim.schemes import IMPLICIT, SCHEMES, SEMI_IMPLICIT

ON_ERROR = ("raise", "freeze")
ROW_SCHEMES = (AUTO, SEMI_IMPLICIT.name, IMPLICIT.name)
"""Names of the step with contacts and joint physics: v first, springs and damping at its end."""


@one_line_repr
@dataclass(frozen=True)
class SimulatorState:
    """The state of a batch.

    Attributes:
        q: (batch, nq).
        v: (batch, nv).
        time: (batch,) since the last reset [s].
        frozen: (batch,) booleans: samples that diverged and wait for a reset.
    """

    q: Array
    v: Array
    time: Array
    frozen: Array


@dataclass(frozen=True)
class SimulatorOptions:
    """What a simulator is made of; see ``Robot.simulator``."""

    dt: float
    scheme: str = AUTO
    ground: Ground = True
    passive: Passive = True
    points: Sequence[str] | Mapping[str, float] = ()
    friction: float | None = None
    restitution: float | None = None
    sweeps: int | None = None
    seed: int = 0
    on_error: str = "raise"
    threads: int | None = None
    self_contact: SelfContact = False

    def check(self) -> None:
        """Raise unless numbers and names are possible."""
        require_time("dt", self.dt)
        if self.scheme not in (AUTO, *SCHEMES):
            raise UnknownNameError("scheme", self.scheme, (AUTO, *SCHEMES))
        if self.on_error not in ON_ERROR:
            known = " or ".join(map(repr, ON_ERROR))
            raise ArgumentError(f"on_error is {self.on_error!r}, expected {known}")
        for name, given in (("sweeps", self.sweeps), ("threads", self.threads)):
            if given is not None:
                require_count(name, given)
        for name, material in (("friction", self.friction), ("restitution", self.restitution)):
            if material is not None:
                require_number(name, material, "a number, 0 or more")
        if not isinstance(self.seed, (int, np.integer)) or self.seed < 0:
            raise ArgumentError(f"seed is {self.seed!r}, expected a whole number, 0 or more")

    @property
    def has_row_step(self) -> bool:
        """Whether the scheme is that of steps with contacts and joint physics."""
        return self.scheme in ROW_SCHEMES

    def require_scheme(self, rows: StepRows) -> None:
        """Raise unless the scheme takes these rows."""
        if not self.has_row_step:
            raise ArgumentError(
                f"scheme '{self.scheme}' with {len(rows.contacts)} pairs that may touch "
                f"and {len(rows.joints)} joints with springs, damping, friction or limits: impacts "
                f"and friction are solved at the end of a step, by '{SEMI_IMPLICIT.name}' alone. "
                "Use that, or ground=False and passive=False."
            )
