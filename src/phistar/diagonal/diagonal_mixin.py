# SPDX-License-Identifier: BSD-3-Clause
"""Dynamics in diagonal rates; a mixin of ``Robot``."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from phistar.diagonal import forward, state
from phistar.diagonal.forward import TotalRates
from phistar.diagonal.state import Diagonal
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.wrenches import check_wrenches


class Diagonalized:
    """Dynamics of a robot in rates that decouple it."""

    model: Model

    def diagonalize(
        self, q: Coordinates, v: Coordinates | None = None, *, root: str = "cholesky"
    ) -> Diagonal:
        """The robot in rates η and ζ in which each joint has an inertia of its own.

        ``d = robot.diagonalize(q, v)``; ``d.eta`` and ``d.coriolis`` with η̇ + C + ε_g = ε,
        ``d.zeta`` and ``d.coriolis_zeta`` with Dζ̇ + C_ζ + κ_g = κ; ``d.to_eta(v)``,
        ``d.from_eta(eta)``, ``d.to_epsilon(tau)``, ``d.from_epsilon(eps)``, the same for ζ and κ.

        Args:
            q: (..., nq).
            v: (..., nv); without it only the transforms and D are available.
            root: The root R of D = R R*: ``"cholesky"``, lower triangular, or ``"symmetric"``. For
                joints with one axis they are the same.

        Raises:
            SingularHingeError: A joint moves no inertia.
            ArgumentError: Mimic joints were reduced, so that 𝓜 has no such factors.
        """
        return state.diagonalize(self.model, q, v, root)

    def diagonal_forward_dynamics(
        self,
        q: Coordinates,
        zeta: Coordinates,
        tau: Coordinates,
        *,
        forces: Mapping[str, ArrayLike] | None = None,
        reference: str = "world_aligned",
    ) -> TotalRates:
        """Rates of the state (q, ζ) under joint forces: ``.zeta_dot`` and ``.v``, in O(n).

        Args:
            q: (..., nq).
            zeta: (..., nv) total joint rates, ``robot.diagonalize(q, v).zeta``.
            tau: (..., nv) joint forces.
            forces: External wrenches (..., 6) on named frames, as in ``forward_dynamics``.
            reference: Axes and point of those wrenches.

        Raises:
            SingularHingeError: A joint moves no inertia.
            ArgumentError: Mimic joints were reduced, so that 𝓜 has no such factors.
        """
        wrenches = check_wrenches(self.model, q, forces, reference)
        return forward.diagonal_forward_dynamics(self.model, q, zeta, tau, wrenches)
