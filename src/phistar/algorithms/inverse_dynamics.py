# SPDX-License-Identifier: BSD-3-Clause
"""Inverse dynamics: joint forces from joint accelerations, by Newton and Euler.

α = φ*(H*v̇ + a)          outward    link accelerations
f = φ(Mα + b)             inward     forces between links
τ = Hf + Av̇
"""

from phistar.algebra.ir import let
from phistar.algebra.proof import Theorem
from phistar.algebra.spaces import FORCE
from phistar.algebra.symbols import A, E_phi, H, M, mass_matrix, phi, vdot, vector
from phistar.algorithms.catalogue import algorithm
from phistar.algorithms.link_kinematics import a, alpha
from phistar.refs import FO00, RK92

b = vector("b", FORCE, "b", "Gyroscopic and external force on each link.", ref=RK92.eq("11"))

f = let("f", phi @ (M @ alpha + b))
"""Forces through the joints: inward f(k) = Σ φ(k,c) f(c) + Mα + b."""

bias_force = H @ phi @ (M @ phi.T @ a + b)
"""Joint forces at zero acceleration."""


@algorithm
def force_recursion() -> Theorem:
    """The force through a joint moves its link and the links beyond."""
    return Theorem(
        "force_recursion",
        definition=E_phi @ f + M @ alpha + b,
        result=f,
        doc="forces inward, over all children of a link: f = Ef + Mα + b",
        ref=FO00.eq("7"),
    )


@algorithm
def inverse_dynamics() -> Theorem:
    """Newton and Euler's equations are those of Lagrange."""
    return Theorem(
        "inverse_dynamics",
        definition=mass_matrix @ vdot + bias_force,
        result=H @ f + A @ vdot,
        doc="the recursive Newton-Euler equations give τ = 𝓜v̇ + C",
        ref=RK92.eq("23"),
    )


__all__ = ["a", "b", "bias_force", "force_recursion", "inverse_dynamics"]
