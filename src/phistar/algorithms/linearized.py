# SPDX-License-Identifier: BSD-3-Clause
"""Linearized dynamics: how joint forces follow accelerations, velocities and configuration.

    δτ = 𝓜 δv̇ + A_D δv + B_D δq          inverse dynamics
    δv̇ = 𝓜⁻¹δτ - A_C δv - B_C δq         forward dynamics, A_C = 𝓜⁻¹A_D, B_C = 𝓜⁻¹B_D

δq is a tangent vector: each joint transform X_J(q) is followed by exp(H*δq).
"""

from phistar.algebra.ir import Expr, Q, crm, let
from phistar.algebra.spaces import JOINT
from phistar.algebra.symbols import (
    A,
    E_phi,
    H,
    M,
    M_hat,
    dq,
    gravity,
    phi,
    vector,
)
from phistar.algorithms.equations_of_motion import in_motion
from phistar.algorithms.inverse_dynamics import f
from phistar.algorithms.kinematics import V, alpha

dv = vector("dv", JOINT, "δv", "A change of the joint velocities.", r"\delta v")
dvdot = vector("dvdot", JOINT, "δv̇", "A change of the joint accelerations.", r"\delta\dot v")
dtau = vector("dtau", JOINT, "δτ", "A change of the joint forces.", r"\delta\tau")

V_parent = let("V_parent", E_phi.T @ V)
"""Velocity of the parent, seen from the link."""
alpha_parent = let("alpha_parent", E_phi.T @ alpha + gravity)
"""Acceleration of the parent, seen from the link; the ground falls upward."""

H_dot = crm(V) @ H.T
"""Rate of the joint axes as the link moves."""
Theta_dot = crm(V_parent) @ H.T
"""Rate of the joint axes as the parent moves; the same as H_dot for joints with one axis."""
Theta_ddot = crm(alpha_parent) @ H.T + crm(V_parent) @ Theta_dot
"""The second rate."""

force_column = -Q(f) @ H.T
"""Change of the force on a link as it turns with its joint."""

A_D = H @ phi @ (2 * M_hat @ phi.T @ H.T + M @ phi.T @ (H_dot + Theta_dot))
"""∂τ/∂v."""
B_D = (
    H @ phi @ (force_column + 2 * M_hat @ phi.T @ Theta_dot + M @ phi.T @ Theta_ddot)
    - H @ force_column
)
"""∂τ/∂q."""

pi = let("pi", phi.T @ (H.T @ dvdot + (H_dot + Theta_dot) @ dv + Theta_ddot @ dq))
theta = let("theta", phi.T @ (H.T @ dv + Theta_dot @ dq))
rho = let("rho", phi @ (M @ pi + 2 * M_hat @ theta + force_column @ dq))
linearized_inverse = H @ rho - H @ force_column @ dq + A @ dvdot
"""δτ in O(n)."""


def linearized(expr: Expr) -> Expr:
    """An expression of this file in v, v̇, gravity and external forces."""
    return in_motion(expr)
