# SPDX-License-Identifier: BSD-3-Clause
"""Linearized forward dynamics: the derivatives of joint accelerations, without the mass matrix.

    δv̇ = 𝓜⁻¹δτ - A_C δv - B_C δq          A_C = 𝓜⁻¹A_D, B_C = 𝓜⁻¹B_D

Three forms, each closer to sweeps: with P and K alone, with the one-sided sums P̂ of M̂, and split
into single sweeps by Υ and Ĵ. All hold with rotor inertia, on trees, for joints of any kind.
"""

from phistar.algebra.calculus import derivative, gradient
from phistar.algebra.cross_product_rules import (
    CALCULUS,
    GRAVITY_AT_ROOTS,
    JACOBI,
    RIGID_SHIFTS,
    SWAPS,
)
from phistar.algebra.identities import GYROSCOPIC_BIAS
from phistar.algebra.ir import Expr, let
from phistar.algebra.phases import row
from phistar.algebra.proof import Theorem
from phistar.algebra.symbols import (
    D,
    H,
    J_hat,
    K,
    K_hat,
    M_hat,
    P,
    P_hat,
    Upsilon,
    Xi,
    dq,
    mass_matrix,
    phi,
    psi,
    tau,
    v,
    vdot,
)
from phistar.algebra.traverse import substitute
from phistar.algorithms.catalogue import algorithm, register_theorem
from phistar.algorithms.decompositions import U
from phistar.algorithms.equations_of_motion import in_motion
from phistar.algorithms.innovations import L_inv, mass_matrix_inverse
from phistar.algorithms.inverse_dynamics import bias_force
from phistar.algorithms.linearized import (
    A_C,
    A_D,
    B_C,
    B_D,
    F_0,
    Y_A,
    Y_B,
    A_C_split,
    B_C_split,
    H_dot,
    Q_hat,
    Theta_ddot,
    Theta_dot,
    dtau,
    dv,
    force_column,
    forward_change,
    forward_change_articulated,
    forward_weights,
    innovation_q,
    innovation_response,
    innovation_v,
    w,
)
from phistar.algorithms.linearized_inverse import H_ddot
from phistar.algorithms.operator_identities import W
from phistar.refs import JR93

accelerations = in_motion(mass_matrix.inv @ (tau - bias_force))
"""v̇ in v, τ, gravity and external forces."""


def with_forward_acceleration(expr: Expr) -> Expr:
    """An expression in v, v̇, gravity and external forces, with the v̇ of forward dynamics."""
    return substitute(in_motion(expr), {vdot: let("vdot", accelerations)})


_A_C, _B_C = mass_matrix.inv @ A_D, mass_matrix.inv @ B_D

_axis_rates = H_dot + Theta_dot
_joint_term = mass_matrix.inv @ F_0
_by_q, _by_v, _by_tau = forward_weights.values()
E_A = _axis_rates - Upsilon @ Y_A + 2 * J_hat @ H.T
E_B = Theta_ddot - Upsilon @ Y_B + 2 * J_hat @ Theta_dot
Y_A_one_axis = 2 * (P_hat @ H.T + P @ H_dot)
Y_B_one_axis = 2 * P_hat @ H_dot + P @ H_ddot + force_column
E_A_one_axis = 2 * H_dot - Upsilon @ Y_A_one_axis + 2 * J_hat @ H.T
E_B_one_axis = H_ddot - Upsilon @ Y_B_one_axis + 2 * J_hat @ H_dot
_CHAIN_ONE_DOF = frozenset({"serial", "one_dof"})
_siblings = K.T @ psi.T @ Xi @ psi

_INVERSE_RULES = (mass_matrix_inverse.rule,)
_BIAS_RULES = (*_INVERSE_RULES, *GYROSCOPIC_BIAS)
_SPLITS = (*_BIAS_RULES, row("bias_transfer"), row("compliance_recursion"))

register_theorem(
    Theorem(
        "acceleration_by_velocity",
        gradient(accelerations, v),
        -_A_C,
        "∂v̇/∂v = -𝓜⁻¹A_D",
        JR93.at("Lemma 4.1"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "acceleration_by_configuration",
        gradient(accelerations, "q"),
        with_forward_acceleration(-_B_C),
        "∂v̇/∂q = -𝓜⁻¹B_D, at the accelerations of forward dynamics",
        JR93.at("Lemma 4.1"),
        CALCULUS,
    )
)
register_theorem(
    Theorem(
        "acceleration_by_velocity_articulated",
        _A_C,
        W @ (2 * M_hat @ phi.T @ H.T + P @ _axis_rates) + K.T @ psi.T @ _axis_rates,
        "A_C by articulated bodies: no mass matrix, no inverse",
        JR93.at("Lemma 4.6"),
        _INVERSE_RULES,
    )
)
register_theorem(
    Theorem(
        "acceleration_by_configuration_articulated",
        in_motion(_B_C),
        in_motion(
            W @ (force_column + 2 * M_hat @ phi.T @ Theta_dot + P @ Theta_ddot)
            + K.T @ psi.T @ Theta_ddot
            - _joint_term
        ),
        "B_C by articulated bodies: no mass matrix, no inverse",
        JR93.at("Lemma 4.6"),
        _INVERSE_RULES,
    )
)
register_theorem(
    Theorem(
        "acceleration_by_velocity_sweeps",
        _A_C,
        L_inv.T @ (D.inv @ H @ psi @ Y_A + 2 * K_hat.T @ phi.T @ H.T) + K.T @ psi.T @ _axis_rates,
        "A_C with M̂ summed beforehand: each term one sweep in, one out",
        JR93.at("Lemma 4.7"),
        _BIAS_RULES,
    )
)
register_theorem(
    Theorem(
        "acceleration_by_configuration_sweeps",
        in_motion(_B_C),
        in_motion(
            L_inv.T @ (D.inv @ H @ psi @ Y_B + 2 * K_hat.T @ phi.T @ Theta_dot)
            + K.T @ psi.T @ Theta_ddot
            - _joint_term
        ),
        "B_C with M̂ summed beforehand: each term one sweep in, one out",
        JR93.at("Lemma 4.7"),
        _BIAS_RULES,
    )
)
register_theorem(
    Theorem(
        "innovation_by_velocity",
        L_inv @ A_D,
        innovation_v,
        "the innovations of the forces by velocity are single sweeps of articulated bodies",
        JR93.at("Lemma 4.7"),
        GYROSCOPIC_BIAS,
    )
)
register_theorem(
    Theorem(
        "innovation_by_configuration",
        in_motion(L_inv @ B_D),
        in_motion(innovation_q),
        "the innovations of the forces by configuration are single sweeps of articulated bodies",
        JR93.at("Lemma 4.7"),
        GYROSCOPIC_BIAS,
    )
)
register_theorem(
    Theorem(
        "acceleration_by_velocity_innovations",
        _A_C,
        innovation_response @ innovation_v,
        "A_C of innovations: both factors are zero for joints of different branches",
        JR93.at("Lemma 4.7"),
        _BIAS_RULES,
    )
)
register_theorem(
    Theorem(
        "acceleration_by_configuration_innovations",
        in_motion(_B_C),
        in_motion(innovation_response @ innovation_q),
        "B_C of innovations: both factors are zero for joints of different branches",
        JR93.at("Lemma 4.7"),
        _BIAS_RULES,
    )
)
register_theorem(
    Theorem(
        "acceleration_by_velocity_split",
        _A_C,
        U @ psi @ Y_A + K.T @ psi.T @ E_A + Q_hat @ phi.T @ H.T - _siblings @ Y_A,
        "A_C with single sweeps; the last term couples branches and is zero on a chain",
        JR93.at("Lemma 4.9"),
        _SPLITS,
    )
)
register_theorem(
    Theorem(
        "acceleration_by_configuration_split",
        in_motion(_B_C),
        in_motion(
            U @ psi @ Y_B
            + K.T @ psi.T @ E_B
            + Q_hat @ phi.T @ Theta_dot
            - _siblings @ Y_B
            - _joint_term
        ),
        "B_C with single sweeps; the term with Ξ couples branches and is zero on a chain",
        JR93.at("Lemma 4.9"),
        _SPLITS,
    )
)


@algorithm
def acceleration_along() -> Theorem:
    """Lemma 4.1 along a direction."""
    return Theorem(
        "acceleration_along",
        definition=derivative(accelerations, {"q": dq, v: dv, tau: dtau}),
        result=with_forward_acceleration(mass_matrix.inv @ (dtau - A_D @ dv - B_D @ dq)),
        doc="joint accelerations change as linearized inverse dynamics solved for them",
        ref=JR93.eq("1.4"),
        rules=CALCULUS,
    )


_change = in_motion(mass_matrix.inv @ (dtau - A_D @ dv - B_D @ dq))


@algorithm
def linearized_forward_dynamics() -> Theorem:
    """Articulated bodies once more, with other forces.

    ϑ = φ*(H*δv + Θ̇*δq)                                 outward
    ε = δτ + F₀δq - Hψ(K(δτ + F₀δq) + Y_A δv + Y_B δq)   inward
    ν = D⁻¹ε - 2K̂*ϑ
    δv̇ = L⁻*ν - K*ψ*((Ḣ* + Θ̇*)δv + Θ̈*δq)                outward
    """
    return Theorem(
        "linearized_forward_dynamics",
        definition=_change,
        result=in_motion(forward_change_articulated),
        doc="the change of joint accelerations along a direction in O(n)",
        ref=JR93.at("Algorithm 5"),
        rules=_BIAS_RULES,
    )


@algorithm
def linearized_forward_dynamics_rigid() -> Theorem:
    """The changes of forces on the links first, then the factored inverse."""
    return Theorem(
        "linearized_forward_dynamics_rigid",
        definition=_change,
        result=in_motion(forward_change),
        doc="the same by the rigid inertias of the links: L⁻¹Hφ = Hψ collects their forces",
        ref=JR93.eq("4.15"),
        rules=_INVERSE_RULES,
    )


register_theorem(
    Theorem(
        "acceleration_by_velocity_columns",
        _A_C,
        A_C,
        "A_C by the rigid inertias of the links, one pass in and one out",
        JR93.eq("4.11"),
        _INVERSE_RULES,
    )
)
register_theorem(
    Theorem(
        "acceleration_by_configuration_columns",
        in_motion(_B_C),
        in_motion(B_C),
        "B_C by the rigid inertias of the links, one pass in and one out",
        JR93.eq("4.11"),
        _INVERSE_RULES,
    )
)
register_theorem(
    Theorem(
        "acceleration_by_velocity_rows",
        _A_C,
        A_C_split,
        "A_C with single sweeps, on trees: W couples the branches",
        JR93.at("Lemma 4.9"),
        _SPLITS,
    )
)
register_theorem(
    Theorem(
        "acceleration_by_configuration_rows",
        in_motion(_B_C),
        in_motion(B_C_split),
        "B_C with single sweeps, on trees: W couples the branches",
        JR93.at("Lemma 4.9"),
        _SPLITS,
    )
)
register_theorem(
    Theorem(
        "weights_of_acceleration_by_configuration",
        -in_motion(_B_C).T @ w,
        in_motion(_by_q),
        "-B_C*w: the gradient of w*v̇ in the configuration, in O(n)",
        JR93.at("Lemma 4.1"),
        _INVERSE_RULES,
    )
)
register_theorem(
    Theorem(
        "weights_of_acceleration_by_velocity",
        -_A_C.T @ w,
        _by_v,
        "-A_C*w: the gradient of w*v̇ in the velocities, in O(n)",
        JR93.at("Lemma 4.1"),
        _INVERSE_RULES,
    )
)
register_theorem(
    Theorem(
        "acceleration_by_velocity_chain",
        _A_C,
        U @ psi @ Y_A_one_axis + K.T @ psi.T @ E_A_one_axis + Q_hat @ phi.T @ H.T,
        "A_C as printed: a chain of joints with one axis",
        JR93.eq("4.21"),
        _SPLITS,
        _CHAIN_ONE_DOF,
    )
)
register_theorem(
    Theorem(
        "acceleration_by_configuration_chain",
        in_motion(_B_C),
        in_motion(U @ psi @ Y_B_one_axis + K.T @ psi.T @ E_B_one_axis + Q_hat @ phi.T @ H_dot),
        "B_C as printed: a chain of joints with one axis",
        JR93.eq("4.21"),
        (*_SPLITS, *SWAPS, *RIGID_SHIFTS, *GRAVITY_AT_ROOTS, *JACOBI),
        _CHAIN_ONE_DOF,
    )
)
