# SPDX-License-Identifier: BSD-3-Clause
"""Linearized dynamics: derivatives of joint forces and accelerations.

    δτ = 𝓜 δv̇ + A_D δv + B_D δq          inverse dynamics
    δv̇ = 𝓜⁻¹δτ - A_C δv - B_C δq         forward dynamics, A_C = 𝓜⁻¹A_D, B_C = 𝓜⁻¹B_D

δq is a tangent vector: each joint transform X_J(q) is followed by exp(H*δq). External forces are
constant in the axes of their links. The forms for joints with several axes are those of the papers
with two corrections: the axes rotate with the parent (Θ̇, Θ̈), and a force rotates with its joint
(F₀).
"""

from collections.abc import Mapping
from types import MappingProxyType

from phistar.algebra.calculus import derivative
from phistar.algebra.ir import Expr, Q, crm, let
from phistar.algebra.spaces import JOINT
from phistar.algebra.symbols import (
    A,
    D,
    E_phi,
    H,
    J_hat,
    K,
    K_hat,
    M,
    M_hat,
    P,
    P_hat,
    R_hat,
    Upsilon,
    composite,
    dq,
    gravity,
    phi,
    psi,
    v,
    vdot,
    vector,
)
from phistar.algebra.traverse import substitute
from phistar.algorithms.equations_of_motion import in_motion
from phistar.algorithms.forward_dynamics import link_accelerations
from phistar.algorithms.innovations import L_inv, mass_matrix_inverse
from phistar.algorithms.inverse_dynamics import f
from phistar.algorithms.link_kinematics import V, alpha

dv = vector("dv", JOINT, "δv", "A change of the joint velocities.", r"\delta v")
dvdot = vector("dvdot", JOINT, "δv̇", "A change of the joint accelerations.", r"\delta\dot v")
dtau = vector("dtau", JOINT, "δτ", "A change of the joint forces.", r"\delta\tau")
w = vector("w", JOINT, "w", "Weights of the entries of a result.")

V_parent = let("V_parent", E_phi.T @ V)
"""Velocity of the parent, at the link."""
alpha_parent = let("alpha_parent", E_phi.T @ alpha + gravity)
"""Acceleration of the parent, at the link; the ground accelerates upward."""

H_dot = crm(V) @ H.T
"""Rate of the joint axes as the link moves."""
Theta_dot = crm(V_parent) @ H.T
"""Rate of the joint axes as the parent moves; the same as H_dot for joints with one axis."""
Theta_ddot = crm(alpha_parent) @ H.T + crm(V_parent) @ Theta_dot
"""The second rate."""
force_column = -Q(f) @ H.T
"""Change of the force on a link as it rotates with its joint."""
F_0 = H @ force_column
"""Its joint force; zero for joints with one axis."""

A_D = H @ phi @ (2 * M_hat @ phi.T @ H.T + M @ phi.T @ (H_dot + Theta_dot))
"""∂τ/∂v."""
B_D = H @ phi @ (force_column + 2 * M_hat @ phi.T @ Theta_dot + M @ phi.T @ Theta_ddot) - F_0
"""∂τ/∂q."""

_ancestors = E_phi.T @ phi.T
A_D_columns = H @ phi @ (composite @ (H_dot + Theta_dot) + 2 * R_hat @ H.T) + H @ (
    composite @ _ancestors @ (H_dot + Theta_dot) + 2 * R_hat @ _ancestors @ H.T
)
"""∂τ/∂v with the sums over descendants done once: a column is one sweep inward and one outward."""
B_D_columns = (
    H @ phi @ (force_column + 2 * R_hat @ Theta_dot + composite @ Theta_ddot)
    + H @ (2 * R_hat @ _ancestors @ Theta_dot + composite @ _ancestors @ Theta_ddot)
    - F_0
)
"""∂τ/∂q likewise."""

_velocity_source = let("velocity_source", H.T @ dv + Theta_dot @ dq)
_acceleration_source = let("acceleration_source", (H_dot + Theta_dot) @ dv + Theta_ddot @ dq)
theta = let("theta", phi.T @ _velocity_source)
"""Changes of the links' velocities, without the rotation of the links."""
pi = let("pi", phi.T @ (H.T @ dvdot + _acceleration_source))
"""Changes of the links' accelerations, without the rotation of the links."""
inverse_change = H @ phi @ (M @ pi + 2 * M_hat @ theta + force_column @ dq) - F_0 @ dq + A @ dvdot
"""δτ in O(n): one pass outward, one inward."""

_force = let("force", dtau + F_0 @ dq)
_load = let("load", M @ phi.T @ _acceleration_source + 2 * M_hat @ theta + force_column @ dq)
forward_change = L_inv.T @ D.inv @ (_force - H @ psi @ (K @ _force + _load))
"""δv̇ in O(n), by the rigid inertias of the links: the changes of forces go through L⁻¹Hφ = Hψ."""

_articulated_load = let(
    "articulated_load", 2 * P_hat @ _velocity_source + P @ _acceleration_source + force_column @ dq
)
_nu = D.inv @ (_force - H @ psi @ (K @ _force + _articulated_load)) - 2 * K_hat.T @ theta
forward_change_articulated = L_inv.T @ _nu - K.T @ psi.T @ _acceleration_source
"""δv̇ in O(n), by the articulated inertias P and P̂: no outward pass before the inward one."""

_y = let("y", phi.T @ H.T @ w)
_s_1 = let("s_1", phi @ M @ _y)
_s_2 = let("s_2", 2 * phi @ M_hat.T @ _y)
inverse_weights: Mapping[str, Expr] = MappingProxyType(
    {
        "q": Theta_ddot.T @ _s_1 + Theta_dot.T @ _s_2 + force_column.T @ _y - F_0.T @ w,
        "v": (H_dot + Theta_dot).T @ _s_1 + H @ _s_2,
        "vdot": H @ _s_1 + A @ w,
    }
)
"""B_D*w, A_D*w and 𝓜w in O(n): one pass outward, one inward."""

_u = let("u", mass_matrix_inverse.result @ w)


def weighted_by(expr: Expr, weight: Expr) -> Expr:
    """An expression with other weights in place of w."""
    return substitute(expr, {w: weight})


_moving_alpha = let("alpha", link_accelerations.result)


def in_forward_motion(expr: Expr) -> Expr:
    """An expression in v̇ as one in τ, by forward dynamics."""
    return in_motion(substitute(expr, {alpha: _moving_alpha}))


forward_weights: Mapping[str, Expr] = MappingProxyType(
    {
        "q": -weighted_by(inverse_weights["q"], _u),
        "v": -weighted_by(inverse_weights["v"], _u),
        "tau": _u,
    }
)
"""-B_C*w, -A_C*w and 𝓜⁻¹w in O(n)."""

_W = L_inv.T @ D.inv @ H @ psi
"""𝓜⁻¹Hφ."""


def _solve_load(load: Expr) -> Expr:
    """𝓜⁻¹(Hφ load - F₀) by one sweep inward and one outward."""
    return L_inv.T @ D.inv @ (H @ psi @ (load + K @ F_0) - F_0)


A_C = _W @ (2 * M_hat @ phi.T @ H.T + M @ phi.T @ (H_dot + Theta_dot))
"""-∂v̇/∂v, column by column in O(n²), without the mass matrix."""
B_C = _solve_load(force_column + 2 * M_hat @ phi.T @ Theta_dot + M @ phi.T @ Theta_ddot)
"""-∂v̇/∂q likewise."""

_axis_rates = H_dot + Theta_dot
Y_A = 2 * P_hat @ H.T + P @ _axis_rates
"""Forces of articulated bodies per unit of joint velocity."""
Y_B = 2 * P_hat @ Theta_dot + P @ Theta_ddot + force_column
"""Forces of articulated bodies per unit of joint angle."""
innovation_v = H @ psi @ Y_A + H @ (P @ _ancestors @ _axis_rates + 2 * P_hat @ _ancestors @ H.T)
"""L⁻¹A_D, innovations of the forces per unit of joint velocity: as ``A_D_columns``, of articulated
bodies. Entries for joints of different branches are zero."""
innovation_q = (
    H @ psi @ (Y_B + K @ F_0)
    + H @ (P @ _ancestors @ Theta_ddot + 2 * P_hat @ _ancestors @ Theta_dot)
    - F_0
)
"""L⁻¹B_D likewise."""
innovation_response = L_inv.T @ D.inv
"""L⁻*D⁻¹, joint accelerations per unit of innovation."""
Q_hat = 2 * (K_hat.T - K.T @ J_hat)
"""Joint accelerations per unit of velocity of the parent, through M̂ alone."""
_K_psi = K.T @ psi.T
A_C_split = _W @ Y_A + _K_psi @ (_axis_rates + 2 * J_hat @ H.T) + Q_hat @ phi.T @ H.T
"""-∂v̇/∂v by single sweeps: W = Uψ - K*ψ*Υ up to the coupling of branches."""
B_C_split = (
    _solve_load(Y_B) + _K_psi @ (Theta_ddot + 2 * J_hat @ Theta_dot) + Q_hat @ phi.T @ Theta_dot
)
"""-∂v̇/∂q likewise."""

forward_change_split = mass_matrix_inverse.result @ dtau - A_C_split @ dv - B_C_split @ dq
"""δv̇ by these."""

_axis_rates_split = 2 * Theta_dot + crm(let("rate", H.T @ v)) @ H.T
"""H_dot + Theta_dot, so that the part that vanishes for joints with one axis is separate."""
_Y_A = -(2 * P_hat @ H.T + P @ _axis_rates_split)
_Y_B = -Y_B
split_terms_v = (_Y_A, -_axis_rates_split - 2 * J_hat @ H.T - Upsilon @ _Y_A, -2 * H.T)
"""∂v̇/∂v as loads, drift, spin and, if any, own joint forces: see ``sweeps.split_matrices``."""
split_terms_q = (_Y_B, -Theta_ddot - 2 * J_hat @ Theta_dot - Upsilon @ _Y_B, -2 * Theta_dot, F_0)
"""∂v̇/∂q likewise."""


def directional_change(expr: Expr) -> Expr:
    """The change of an expression along (δq, δv, δv̇)."""
    return derivative(expr, {"q": dq, v: dv, vdot: dvdot})
