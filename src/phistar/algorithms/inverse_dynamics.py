# SPDX-License-Identifier: BSD-3-Clause
"""Inverse dynamics: joint forces from joint accelerations, by Newton and Euler.

α = φ*(H*v̇ + a)          outward    link accelerations
f = φ(Mα + b)             inward     forces between links
τ = Hf + Av̇
"""

from phistar.algebra.ir import let
from phistar.algebra.proof import Theorem
from phistar.algebra.spaces import FORCE, MOTION
from phistar.algebra.symbols import A, H, M, mass_matrix, phi, vdot, vector
from phistar.algorithms.catalogue import algorithm
from phistar.refs import RK92

a = vector("a", MOTION, "a", "Coriolis and gravity acceleration of each link.")
b = vector("b", FORCE, "b", "Gyroscopic and external force on each link.")

bias_force = H @ phi @ (M @ phi.T @ a + b)
"""Joint forces at zero acceleration."""


@algorithm
def inverse_dynamics() -> Theorem:
    """Newton and Euler's equations are those of Lagrange."""
    alpha = let("alpha", phi.T @ (H.T @ vdot + a))
    f = let("f", phi @ (M @ alpha + b))
    return Theorem(
        "inverse_dynamics",
        definition=mass_matrix @ vdot + bias_force,
        result=H @ f + A @ vdot,
        doc="the recursive Newton-Euler equations give τ = 𝓜v̇ + C",
        ref=RK92.eq("23"),
    )
