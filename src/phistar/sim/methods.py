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
        dt: float,
        steps: int | None = None,
        duration: float | None = None,
        tau: Coordinates | None = None,
        tau_steps: ArrayLike | None = None,
        scheme: str = "rk4",
        variables: str = "v",
        every: int = 1,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
        progress: bool | None = None,
        threads: int | None = None,
    ) -> Simulation:
        """The motion from a state: ``sim.t .q .v``, ``sim.energy()``, ``sim(t)`` in between.

        All steps of all samples are one call of machine code; where that cannot be, NumPy takes the
        same steps and ``sim.engine`` says so.

        Args:
            q: (..., nq) where it starts.
            v: (..., nv) how fast.
            dt: Length of a step [s].
            steps: How many steps; or
            duration: how long [s], a whole number of steps.
            tau: (..., nv) joint forces, held all the time; none by default.
            tau_steps: (steps, ..., nv) joint forces, each held during its step.
            scheme: ``"rk4"``, ``"midpoint"``, ``"semi_implicit"`` or ``"euler"``.
            variables: The variable that is stepped beside q.
            every: Keep each so many-th state.
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
            forces=forces,
            reference=reference,
            progress=progress,
            threads=threads,
        )
