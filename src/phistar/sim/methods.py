# SPDX-License-Identifier: BSD-3-Clause
"""What a user can ask a robot about motion in time; a part of ``Robot``."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.sim import simulate
from phistar.sim.simulation import Simulation


class Motions:
    """Motion of a robot in time."""

    model: Model

    def simulate(
        self,
        q: Coordinates,
        v: Coordinates,
        *,
        dt: float | None = None,
        steps: int | None = None,
        duration: float | None = None,
        tau: Coordinates | None = None,
        tau_steps: ArrayLike | None = None,
        scheme: str = "rk4",
        variables: str | None = None,
        every: int = 1,
        tolerance: float = 1e-8,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        progress: bool | None = None,
        threads: int | None = None,
    ) -> Simulation:
        """The motion from a state: ``sim.t .q .v``, ``sim.energy()``, ``sim(t)`` in between.

        Explicit schemes with a fixed step in v or ζ are one call of machine code for all steps of
        all samples; where that cannot be, NumPy takes the same steps between calls of compiled
        dynamics, and ``sim.engine`` says so.

        Args:
            q: (..., nq) where it starts.
            v: (..., nv) how fast.
            dt: Length of a step [s].
            steps: How many steps; or
            duration: how long [s], a whole number of steps.
            tau: (..., nv) joint forces, held all the time; none by default.
            tau_steps: (steps, ..., nv) joint forces, each held during its step.
            scheme: With a fixed step: ``"rk4"``, ``"midpoint"``, ``"semi_implicit"``, ``"euler"``;
                ``"implicit_midpoint"``, which keeps energy; ``"dopri5"``, which chooses its steps,
                the same for the whole batch, and knows the motion between them. With ``dt`` its
                knots are so far apart, without they are its steps.
            variables: What is stepped beside q: ``"v"``, ``"zeta"`` or ``"eta"`` (see
                ``diagonalize``); by default v, for ``"implicit_midpoint"`` η.
            every: Keep each so many-th state.
            tolerance: For ``"dopri5"``: of the error of a step, against 1 rad and 1 m for q, and
                against the size of v, or 1 if that is smaller.
            forces: External wrenches (..., 6) on named frames, as in ``forward_dynamics``, held all
                the time; NumPy takes the steps then.
            reference: Axes and point of those wrenches.
            progress: Whether to show a bar; default: on a terminal, if it takes long.
            threads: How many; default: as many as the work is worth. Results are the same bits.

        Returns:
            The motion; time is the first axis.

        Raises:
            ArgumentError: The motion leaves the range of numbers; numbers of steps do not fit.
            SingularHingeError: A joint moves no inertia.
        """
        return simulate.simulate(
            self.model,
            q,
            v,
            dt=dt,
            steps=steps,
            duration=duration,
            tau=tau,
            tau_steps=tau_steps,
            scheme=scheme,
            variables=variables,
            every=every,
            tolerance=tolerance,
            forces=forces,
            reference=reference,
            progress=progress,
            threads=threads,
        )
